"""
Linear in polar coordinates
===========================

Two classes that no line separates. In polar coordinates a line does, which is a circle in the original space.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from maxmargin import SVC
from maxmargin.feature_maps import PolarCoordinates

random = np.random.default_rng(0)
y = np.repeat([0, 1], 150)
radius = np.concatenate([random.uniform(0.05, 0.95, 150), random.uniform(1.35, 2.1, 150)])
angle = random.uniform(-np.pi, np.pi, 300)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

polar = PolarCoordinates().fit(X)
Z = polar.transform(X)
before = SVC(kernel="linear", C=10).fit(X, y)
after = SVC(kernel="linear", C=10).fit(Z, y)


def draw(ax: plt.Axes, model: BaseEstimator, samples: np.ndarray, title: str, axes: tuple[str, str]) -> None:
    """Draw samples and decision regions."""
    low, high = samples.min(axis=0) - 0.15, samples.max(axis=0) + 0.15
    sides = [np.linspace(*ends, 300) for ends in zip(low, high, strict=True)]
    grid = np.column_stack([side.ravel() for side in np.meshgrid(*sides)])
    values = model.decision_function(grid).reshape(300, 300)
    ax.contourf(*sides, values, levels=[-np.inf, 0, np.inf], colors=["#3b6fb6", "#d1603d"], alpha=0.18)
    ax.contour(*sides, values, levels=[-1, 0, 1], colors="#30343a", linestyles=["--", "-", "--"], linewidths=1.2)
    ax.scatter(*samples.T, s=12, c=np.where(y == 1, "#d1603d", "#3b6fb6"))
    ax.set(title=title, xlabel=axes[0], ylabel=axes[1])


figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.9), layout="constrained")
draw(left, before, X, f"linear: {before.score(X, y):.0%} correct", ("x", "y"))
draw(middle, after, Z, f"polar coordinates: {after.score(Z, y):.0%} correct", ("radius", "angle"))
draw(right, make_pipeline(polar, after), X, "the same boundary in the original space", ("x", "y"))
left.set_aspect("equal")
right.set_aspect("equal")
