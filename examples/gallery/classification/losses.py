"""
Hinge, squared hinge and least squares
======================================

What a sample costs as a function of its margin y f(x), and what that means for the boundary if one class has samples
far from it: least squares wants all values at ±1, and moves towards samples that are classified correctly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import LSSVC, SVC

margin = np.linspace(-2, 4, 300)
hinge = np.maximum(0, 1 - margin)
losses = {"hinge": hinge, "squared hinge": hinge**2, "least squares": (1 - margin) ** 2}
X, y = make_blobs([60, 60, 25], centers=[[0, 0], [2.5, 0], [14, 4]], random_state=1)
y = (y > 0).astype(int)
models = {
    "hinge": SVC(kernel="linear"),
    "squared hinge": SVC(kernel="linear", loss="squared_hinge"),
    "least squares": LSSVC(kernel="linear"),
}

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
right.scatter(*X.T, s=14, c=np.where(y == 1, "#D55E00", "#0072B2"), alpha=0.6)
for (name, model), colour, line in zip(
    models.items(), ("#26292e", "#009E73", "#CC79A7"), ("-", "--", ":"), strict=True
):
    left.plot(margin, losses[name], line, color=colour, linewidth=2.2, label=name)
    (a, b), c = model.fit(X, y).coef_[0], model.intercept_[0]
    height = np.array([-4.0, 7.0])
    right.plot(
        -(c + b * height) / a, height, line, color=colour, linewidth=2.2, label=f"{name}: {model.score(X, y):.0%}"
    )
left.set(xlabel="margin y f(x)", ylabel="loss", ylim=(-0.1, 5), title="Losses")
right.set(xlim=(-4, 17), ylim=(-4, 7), title="Boundaries of linear models")
left.legend()
right.legend(loc="lower right")
