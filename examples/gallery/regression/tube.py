"""
The ε-tube
==========

Errors up to ε cost nothing: only the samples on the edge of the tube and outside are support vectors. A wide tube makes
a sparse and flat function.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR
from maxmargin.datasets import sinc

X, y = sinc(150, seed=0)
line = np.linspace(X.min(), X.max(), 400)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), sharey=True, layout="constrained")
for epsilon, ax in zip((0.02, 0.15, 0.4), axes, strict=True):
    model = SVR(C=10, gamma=0.2, epsilon=epsilon).fit(X, y)
    f = model.predict(line)
    ax.fill_between(line[:, 0], f - epsilon, f + epsilon, color="#0072B2", alpha=0.15)
    ax.plot(line, f, color="#0072B2", linewidth=2)
    ax.scatter(X, y, s=12, color="0.6")
    ax.scatter(X[model.support_], y[model.support_], s=28, facecolors="none", edgecolors="#D55E00")
    ax.set_title(f"ε = {epsilon}: {len(model.support_)} of {len(X)} are support vectors")
