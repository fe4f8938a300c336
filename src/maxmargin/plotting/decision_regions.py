"""A picture of a machine on two features: its regions, its margins and where the samples lie."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import gaussian_filter

from maxmargin._typing import Floats, Indices
from maxmargin.plotting.sides import (
    Side,
    class_numbers,
    detected_sides,
    is_detector,
    is_training_data,
    machine_of,
    margins_of,
    sides_of,
)
from maxmargin.plotting.style import GREY, INK, axes_for, colour, figure_of, legend_below, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: How each kind of sample is marked, beyond its colour: shape, size, what it is called.
MARKS: dict[Side, tuple[str, float, str]] = {
    Side.ON: ("o", 62.0, "on the margin"),
    Side.INSIDE: ("D", 46.0, "inside the margin"),
    Side.WRONG: ("x", 80.0, "on the wrong side"),
}
DETECTED: dict[Side, tuple[str, float, str]] = {
    Side.ON: ("o", 62.0, "on the boundary"),
    Side.WRONG: ("x", 80.0, "outside"),
}

#: With more samples than this, marks become smaller.
ROOMY = 250


@dataclass
class DecisionRegionsDisplay:
    """Regions of a fitted classifier or novelty detector on two features, with margins and kinds of support vectors.

    A ring marks a support vector on the margin, a diamond one inside it, a cross one on the wrong side of the boundary;
    samples beyond the margin are not marked. With two classes the solid line is the boundary f = 0, the dashed lines
    are the edges of the margin, f = ±1. With more classes each pair or class has margins of its own, which are not
    drawn, and a sample is marked by the machine in which it does worst. Of a novelty detector, which has no margin, the
    line is the boundary, rings mark samples on it and crosses those outside.

    Make it with `from_estimator`.

    Attributes
    ----------
    horizontal, vertical : float arrays
        The grid.
    regions : int array of shape (vertical, horizontal)
        The number of the class at each point of the grid; of a detector 1 inside and 0 outside.
    decision : float array of the same shape, or None
        f at each point; None with more than two classes.
    X : float array of shape (n_samples, 2)
    numbers : int array
        The number of each sample's class; of a detector all 1.
    classes : list of str, or None of a detector
    sides : int array
        The `Side` of each sample: 0 beyond the margin, 1 on it, 2 inside, 3 on the wrong side.
    support : bool
        Whether `X` are the training samples of a kernel machine, so that those marked are its support vectors.
    labels : list of str
        Names of the two features, empty if they have none.
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.plotting import DecisionRegionsDisplay
    >>> X, y = chessboard(200)
    >>> model = SVC(gamma=1.0).fit(X, y)
    >>> display = DecisionRegionsDisplay.from_estimator(model, X, y)
    >>> list(display.sides).count(1) == len(model.geometry_.free)
    True
    """

    horizontal: Floats = field(repr=False)
    vertical: Floats = field(repr=False)
    regions: Indices = field(repr=False)
    decision: Floats | None = field(repr=False)
    X: Floats = field(repr=False)
    numbers: Indices = field(repr=False)
    classes: list[str] | None
    sides: Indices = field(repr=False)
    support: bool
    labels: list[str] = field(default_factory=lambda: ["", ""])
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, resolution: int = 320, ax: Axes | None = None
    ) -> DecisionRegionsDisplay:
        """Draw a fitted estimator and samples, as a rule those that it was fitted on.

        Parameters
        ----------
        estimator : classifier or novelty detector, or a pipeline that ends with one
            Fitted on two features.
        X : array-like of shape (n_samples, 2)
        y : array-like of shape (n_samples,)
            Their labels; a novelty detector needs none.
        resolution : int
            Grid points along each side.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        DecisionRegionsDisplay
        """
        table: Any = X if hasattr(X, "shape") else np.asarray(X, dtype=float)
        if len(table.shape) != 2 or table.shape[1] != 2:
            raise ValueError(
                f"a picture of regions needs exactly two features, but X has shape {tuple(table.shape)}; fit on two "
                "columns, or on PCA(n_components=2).fit_transform(X)"
            )
        machine, seen = machine_of(estimator, table)
        detector = is_detector(machine)
        if not detector and y is None:
            raise ValueError("y is missing: the samples of a classifier are drawn by their labels")
        points = np.asarray(table, dtype=float)
        horizontal, vertical = (_side(column, resolution) for column in points.T)
        grid: Any = np.column_stack([axis.ravel() for axis in np.meshgrid(horizontal, vertical)])
        if hasattr(table, "iloc"):  # a data frame, whose names the estimator knows
            grid = type(table)(grid, columns=table.columns)
        decision, regions = _decide(machine, machine_of(estimator, grid)[1], detector)
        if detector:
            numbers, sides = np.ones(len(points), dtype=np.intp), detected_sides(machine, seen)
        else:
            numbers = class_numbers(machine, y)
            sides = sides_of(machine, seen, margins_of(machine, seen, numbers))
        shape = (resolution, resolution)
        return cls(
            horizontal=horizontal,
            vertical=vertical,
            regions=regions.reshape(shape),
            decision=None if decision is None else decision.reshape(shape),
            X=points,
            numbers=numbers,
            classes=None if detector else [str(label) for label in machine.classes_],
            sides=sides,
            support=is_training_data(machine, seen),
            labels=[str(name) for name in getattr(table, "columns", ("", ""))],
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> DecisionRegionsDisplay:
        """Draw on the given axes, or on new ones.

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
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_regions(self, ax: Axes) -> None:
        grid = self.horizontal, self.vertical
        count = 2 if self.classes is None else len(self.classes)
        fills = [GREY, colour(0)] if self.classes is None else [colour(number) for number in range(count)]
        values = self.regions - 0.5 if self.decision is None else self.decision
        levels = np.arange(count + 1) - 1.0 if self.decision is None else [-np.inf, 0.0, np.inf]
        ax.contourf(*grid, values, levels=levels, colors=fills, alpha=0.16)
        if self.decision is None:
            for number in range(count):  # each class by itself, its border smoothed within two steps of the grid
                border = gaussian_filter((self.regions == number).astype(float), 2.0)
                ax.contour(*grid, border, levels=[0.5], colors=INK, linewidths=1.2)
        elif self.classes is None:
            ax.contour(*grid, self.decision, levels=[0.0], colors=INK, linewidths=1.6)
        else:
            ax.contour(*grid, self.decision, levels=[-1.0, 0.0, 1.0], colors=INK, linestyles=["--", "-", "--"],
                       linewidths=[0.9, 1.7, 0.9])  # fmt: skip

    def _draw_samples(self, ax: Axes) -> None:
        scale = min(1.0, max(0.3, ROOMY / len(self.X)))
        for number in np.unique(self.numbers):
            mine = self.X[self.numbers == number]
            name = "samples" if self.classes is None else f"class {self.classes[number]}"
            kind = 0 if self.classes is None else int(number)
            ax.scatter(mine[:, 0], mine[:, 1], s=20 * scale, color=colour(kind), marker=marker(kind), linewidths=0,
                       label=f"{name} ({len(mine)})", zorder=3)  # fmt: skip
        for side, (shape, size, name) in (MARKS if self.classes else DETECTED).items():
            marked = self.X[self.sides == side]
            if len(marked):
                ink: dict[str, Any] = {"color": INK} if shape == "x" else {"facecolors": "none", "edgecolors": INK}
                label = f"support vectors {name} ({len(marked)})" if self.support else f"{name} ({len(marked)})"
                ax.scatter(marked[:, 0], marked[:, 1], s=size * scale, marker=shape, linewidths=max(0.6, scale),
                           label=label, zorder=2, **ink)  # fmt: skip


def _decide(machine: Any, grid: Any, detector: bool) -> tuple[Floats | None, Indices]:
    """Return f on the grid, if there is only one function, and the number of the class at each point."""
    if not detector and len(machine.classes_) > 2:
        return None, class_numbers(machine, machine.predict(grid))
    decision = np.asarray(machine.decision_function(grid))
    return decision, (decision >= 0).astype(np.intp)


def _side(values: Floats, resolution: int) -> Floats:
    low, high = float(values.min()), float(values.max())
    border = 0.05 * (high - low) or 1.0
    return np.linspace(low - border, high + border, resolution)
