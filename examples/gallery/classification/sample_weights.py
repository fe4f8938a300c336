"""
Weights of samples
==================

The weight of a sample multiplies its cost: here the large samples count thirty times as much, and pull the boundary
to their own side. Weight 2 is the same as the sample twice, weight 0 the same as leaving it out.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC

X, y = make_blobs(60, centers=[[0, 0], [2, 1]], random_state=0)
heavy = np.zeros(len(X), bool)
heavy[np.flatnonzero(y == 1)[:6]] = True
grid = np.stack(np.meshgrid(np.linspace(-3, 5, 200), np.linspace(-3, 4, 200)), axis=-1)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), sharey=True, layout="constrained")
for weights, ax in zip((np.ones(len(X)), np.where(heavy, 30.0, 1.0)), axes, strict=True):
    model = SVC(gamma=0.3).fit(X, y, sample_weight=weights)
    values = model.decision_function(grid.reshape(-1, 2)).reshape(200, 200)
    ax.contourf(grid[..., 0], grid[..., 1], values, levels=[-9, 0, 9], colors=["#0072B2", "#D55E00"], alpha=0.2)
    ax.scatter(*X.T, s=15 + 5 * weights, c=np.where(y == 1, "#D55E00", "#0072B2"), edgecolors="#26292e", linewidths=0.5)
    ax.set_title("equal weights" if weights.max() == 1 else "six samples of weight 30")
