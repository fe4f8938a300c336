"""A picture of a two-dimensional machine: regions, margins and the kinds of support vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.estimators import SVC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3b6fb6", "#d1603d", "#4a9d5f", "#8a5fb0", "#c9a227", "#5f6b7a")


def plot_decision_regions(model: SVC, X: Any, y: Any, ax: Axes | None = None, resolution: int = 240) -> Axes:
    """Draw the decision regions of a fitted `SVC` on two features, with its samples.

    Filled circles are samples beyond the margin; open rings mark free support vectors (on the margin), crosses bounded
    ones (inside it or on the wrong side). With two classes the solid line is the boundary, dashed lines are the margin.

    Parameters
    ----------
    model : SVC
        Fitted on the two columns of `X`.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    resolution : int
        Grid points along each side.

    Returns
    -------
    matplotlib Axes
    """
    plt = _pyplot()
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"a picture needs exactly two features, but X has shape {X.shape}")
    if ax is None:
        _, ax = plt.subplots(figsize=(7.5, 7), layout="constrained")

    low, high = X.min(axis=0), X.max(axis=0)
    border = 0.04 * (high - low) + 1e-9
    first = np.linspace(low[0] - border[0], high[0] + border[0], resolution)
    second = np.linspace(low[1] - border[1], high[1] + border[1], resolution)
    grid = np.column_stack([axis.ravel() for axis in np.meshgrid(first, second)])
    codes = np.searchsorted(model.classes_, model.predict(grid)).reshape(resolution, resolution)
    count = len(model.classes_)
    colours = [COLOURS[c % len(COLOURS)] for c in range(count)]
    ax.contourf(first, second, codes, levels=np.arange(count + 1) - 0.5, colors=colours, alpha=0.18)
    if count == 2:
        decision = model.decision_function(grid).reshape(resolution, resolution)
        ax.contour(first, second, decision, levels=[-1, 0, 1], colors="#30343a",
                   linestyles=["--", "-", "--"], linewidths=[0.9, 1.6, 0.9])  # fmt: skip
    else:
        ax.contour(first, second, codes, levels=np.arange(count - 1) + 0.5, colors="#30343a", linewidths=1.2)

    geometries = model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]
    free = np.unique(np.concatenate([geometry.free for geometry in geometries]))
    bounded = np.setdiff1d(np.concatenate([geometry.bounded for geometry in geometries]), free)
    for c, label in enumerate(model.classes_):
        mine = np.asarray(y) == label
        ax.scatter(X[mine, 0], X[mine, 1], s=9, color=colours[c], label=f"class {label}", linewidths=0)
    ax.scatter(X[free, 0], X[free, 1], s=42, facecolors="none", edgecolors="#30343a", linewidths=1.0,
               label=f"free support vectors ({len(free)})")  # fmt: skip
    if len(bounded):
        ax.scatter(X[bounded, 0], X[bounded, 1], s=34, marker="x", color="#30343a", linewidths=0.9,
                   label=f"bounded support vectors ({len(bounded)})")  # fmt: skip
    ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.05), ncols=2, frameon=False, fontsize="small")
    return ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'maxmargin[plot]'") from error
    return plt
