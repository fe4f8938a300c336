"""
Robust to outliers
==================

5 % of the targets are wrong by far. With the ε-insensitive loss each has a bounded influence; least squares moves
towards them.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LSSVR, SVR

random = np.random.default_rng(0)
X = np.sort(random.uniform(0, 6, (160, 1)), axis=0)
truth = np.sin(X[:, 0])
y = truth + random.normal(scale=0.1, size=160)
y[::20] += 6

figure, ax = plt.subplots(figsize=(9, 4.8), layout="constrained")
ax.scatter(X, y, s=12, color="0.6")
ax.plot(X, truth, ":", color="#26292e", label="truth")
for name, model, colour in (("SVR", SVR(C=10, gamma=1), "#0072B2"), ("LSSVR", LSSVR(C=10, gamma=1), "#D55E00")):
    f = model.fit(X, y).predict(X)
    error = np.sqrt(np.mean((f - truth) ** 2))
    ax.plot(X, f, color=colour, linewidth=2, label=f"{name}: distance from the truth {error:.2f}")
ax.set(xlabel="x", ylabel="y")
ax.legend()
