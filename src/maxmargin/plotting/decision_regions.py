"""Decision regions, margins and support vectors of a model with two features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter

from maxmargin._typing import Floats, Indices
from maxmargin.plotting.margin_positions import (
    MarginPosition,
    class_indices,
    detector_positions,
    final_estimator,
    is_novelty_detector,
    is_training_data,
    margin_positions,
    sample_margins,
)
from maxmargin.plotting.style import GREY, INK, Display, axes_for, colour, legend_below, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Marker, size and name for each position of a sample of a classifier and of a novelty detector.
CLASSIFIER_MARKERS: dict[MarginPosition, tuple[str, float, str]] = {
    MarginPosition.ON: ("o", 62.0, "on the margin"),
    MarginPosition.INSIDE: ("D", 46.0, "inside the margin"),
    MarginPosition.WRONG_SIDE: ("x", 80.0, "on the wrong side"),
}
DETECTOR_MARKERS: dict[MarginPosition, tuple[str, float, str]] = {
    MarginPosition.ON: ("o", 62.0, "on the boundary"),
    MarginPosition.WRONG_SIDE: ("x", 80.0, "outside"),
}

#: With more samples than this, markers become smaller.
MAX_FULL_SIZE_SAMPLES = 250


@dataclass
class DecisionRegionsDisplay(Display):
    """Decision regions of a fitted classifier or novelty detector with two features, its margins and support vectors.

    A ring marks a support vector on the margin, a diamond one inside the margin, a cross one on the wrong side of the
    decision boundary; samples beyond the margin are not marked. With two classes the solid line is the decision
    boundary f = 0, the dashed lines are the margins f = ±1. With more classes each binary subproblem has its own
    margins, which are not drawn, and a sample is marked by its smallest margin. For a novelty detector, which has no
    margin, the line is the boundary; rings mark samples on it and crosses those outside.

    Create it with `from_estimator`.

    Attributes
    ----------
    horizontal, vertical : float arrays
        Coordinates of the grid.
    regions : int array of shape (vertical, horizontal)
        Index of the predicted class at each grid point; for a novelty detector 1 inside and 0 outside.
    decision : float array of the same shape, or None
        Decision value at each grid point; None with more than two classes.
    X : float array of shape (n_samples, 2)
    class_indices : int array
        Index of the class of each sample; 1 for a novelty detector.
    classes : list of str, or None for a novelty detector
    positions : int array
        The `MarginPosition` of each sample: 0 beyond the margin, 1 on it, 2 inside, 3 on the wrong side.
    is_training_data : bool
        Whether `X` are the training samples of a kernel estimator, so that the marked samples are support vectors.
    labels : list of str
        Names of the two features, empty if unknown.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.plotting import DecisionRegionsDisplay
    >>> X, y = chessboard(200)
    >>> model = SVC(gamma=1.0).fit(X, y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X, y)
    >>> list(display.positions).count(1) == len(model.geometry_.free)
    True
    """

    horizontal: Floats = field(repr=False)
    vertical: Floats = field(repr=False)
    regions: Indices = field(repr=False)
    decision: Floats | None = field(repr=False)
    X: Floats = field(repr=False)
    class_indices: Indices = field(repr=False)
    classes: list[str] | None
    positions: Indices = field(repr=False)
    is_training_data: bool
    labels: list[str] = field(default_factory=lambda: ["", ""])

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, resolution: int = 320, ax: Axes | None = None
    ) -> DecisionRegionsDisplay:
        """Draw a fitted estimator and samples, usually its training samples.

        Parameters
        ----------
        estimator : classifier or novelty detector, or a pipeline that ends with one
            Fitted on two features.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
            Labels of the samples; not required for a novelty detector.
        resolution : int
            Number of grid points along each axis.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        DecisionRegionsDisplay
        """
        table: Any = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
        if len(table.shape) != 2 or table.shape[1] != 2:
            raise ValueError(
                f"decision regions require exactly two features, but X has shape {tuple(table.shape)}; fit on two "
                "columns, or on PCA(n_components=2).fit_transform(X)"
            )
        model, transformed = final_estimator(estimator, table)
        detector = is_novelty_detector(model)
        if not detector and y is None:
            raise ValueError("y is missing; pass the labels of the samples")
        points = np.asarray(table, dtype=float)
        horizontal, vertical = (_axis_grid(column, resolution) for column in points.T)
        grid: Any = np.column_stack([axis.ravel() for axis in np.meshgrid(horizontal, vertical)])
        if hasattr(table, "iloc"):  # a data frame: the estimator expects its column names
            grid = type(table)(grid, columns=table.columns)
        decision, regions = _evaluate(model, final_estimator(estimator, grid)[1], detector)
        if detector:
            indices, positions = np.ones(len(points), dtype=np.intp), detector_positions(model, transformed)
        else:
            indices = class_indices(model, y)
            positions = margin_positions(model, transformed, sample_margins(model, transformed, indices))
        shape = (resolution, resolution)
        return cls(
            horizontal=horizontal,
            vertical=vertical,
            regions=regions.reshape(shape),
            decision=None if decision is None else decision.reshape(shape),
            X=points,
            class_indices=indices,
            classes=None if detector else [str(label) for label in model.classes_],
            positions=positions,
            is_training_data=is_training_data(model, transformed),
            labels=[str(name) for name in getattr(table, "columns", ("", ""))],
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> DecisionRegionsDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 6.0))
        self._draw_regions(ax)
        self._draw_samples(ax)
        ax.set(xlim=self.horizontal[[0, -1]], ylim=self.vertical[[0, -1]], xlabel=self.labels[0], ylabel=self.labels[1])
        legend_below(ax)
        return self._drawn_on(ax)

    def _draw_regions(self, ax: Axes) -> None:
        grid = self.horizontal, self.vertical
        count = 2 if self.classes is None else len(self.classes)
        fills = [GREY, colour(0)] if self.classes is None else [colour(number) for number in range(count)]
        values = self.regions - 0.5 if self.decision is None else self.decision
        levels = np.arange(count + 1) - 1.0 if self.decision is None else [-np.inf, 0.0, np.inf]
        ax.contourf(*grid, values, levels=levels, colors=fills, alpha=0.16)
        if self.decision is None:
            for number in range(count):  # the border of each class, smoothed over two grid steps
                border = gaussian_filter((self.regions == number).astype(float), 2.0)
                ax.contour(*grid, border, levels=[0.5], colors=INK, linewidths=1.2)
        elif self.classes is None:
            ax.contour(*grid, self.decision, levels=[0.0], colors=INK, linewidths=1.6)
        else:
            ax.contour(*grid, self.decision, levels=[-1.0, 0.0, 1.0], colors=INK, linestyles=["--", "-", "--"],
                       linewidths=[0.9, 1.7, 0.9])  # fmt: skip

    def _draw_samples(self, ax: Axes) -> None:
        scale = min(1.0, max(0.3, MAX_FULL_SIZE_SAMPLES / len(self.X)))
        for number in np.unique(self.class_indices):
            members = self.X[self.class_indices == number]
            name = "samples" if self.classes is None else f"class {self.classes[number]}"
            kind = 0 if self.classes is None else int(number)
            ax.scatter(members[:, 0], members[:, 1], s=20 * scale, color=colour(kind), marker=marker(kind),
                       linewidths=0, label=f"{name} ({len(members)})", zorder=3)  # fmt: skip
        for position, (shape, size, name) in (CLASSIFIER_MARKERS if self.classes else DETECTOR_MARKERS).items():
            marked = self.X[self.positions == position]
            if len(marked):
                ink: dict[str, Any] = {"color": INK} if shape == "x" else {"facecolors": "none", "edgecolors": INK}
                prefix = "support vectors " if self.is_training_data else ""
                ax.scatter(marked[:, 0], marked[:, 1], s=size * scale, marker=shape, linewidths=max(0.6, scale),
                           label=f"{prefix}{name} ({len(marked)})", zorder=2, **ink)  # fmt: skip


def _evaluate(model: Any, grid: Any, detector: bool) -> tuple[Floats | None, Indices]:
    """Return the decision values on the grid, None with more than two classes, and the class index at each point."""
    if not detector and len(model.classes_) > 2:
        return None, class_indices(model, model.predict(grid))
    decision = np.asarray(model.decision_function(grid))
    return decision, (decision >= 0).astype(np.intp)


def _axis_grid(values: Floats, resolution: int) -> Floats:
    low, high = float(values.min()), float(values.max())
    border = 0.05 * (high - low) or 1.0
    return np.linspace(low - border, high + border, resolution)
