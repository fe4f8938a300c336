"""
Few labels and many samples without
===================================

Six samples have labels. The inductive machine separates these six; the transductive one separates all samples, so that
its boundary passes between the two moons.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC, TransductiveSVC

X, y = make_moons(300, noise=0.08, random_state=0)
known = np.concatenate([np.flatnonzero(y == label)[:3] for label in (0, 1)])
labels = np.full(len(y), -1)
labels[known] = y[known]
models = {
    "SVC, six samples": SVC(C=10, gamma=2.0).fit(X[known], y[known]),
    "TransductiveSVC, all samples": TransductiveSVC(C=10, gamma=2.0).fit(X, labels),
}

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
grid = np.stack(np.meshgrid(np.linspace(-1.5, 2.5, 200), np.linspace(-1.0, 1.5, 200)), axis=-1)
colours = np.array(["#0072B2", "#D55E00"])
for (name, model), ax in zip(models.items(), axes, strict=True):
    values = model.decision_function(grid.reshape(-1, 2)).reshape(200, 200)
    ax.contour(grid[..., 0], grid[..., 1], values, [-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
    ax.scatter(*X.T, s=12, c="0.65")
    ax.scatter(*X[known].T, s=90, c=colours[y[known]], edgecolors="black")
    ax.set_title(f"{name}: {model.score(X, y):.0%} right")
