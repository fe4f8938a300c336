"""Histogram of the margins m = y f(x) and slacks ξ = max(0, 1 − m) (Bottou & Lin 1.2.3).

The slack is 0 for samples beyond the margin (m ≥ 1), and larger than 1 on the wrong side of the boundary (m < 0).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.plotting.margin_positions import (
    MarginPosition,
    class_indices,
    final_estimator,
    is_novelty_detector,
    margin_positions,
    sample_margins,
)
from maxmargin.plotting.style import COLOURS, INK, Display, axes_for, hide_spines, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colour, label and range of margins of each position, from left to right.
POSITIONS: dict[MarginPosition, tuple[str, str, float, float]] = {
    MarginPosition.WRONG_SIDE: (COLOURS[1], "wrong side", -np.inf, np.nextafter(0.0, -1.0)),
    MarginPosition.INSIDE: (COLOURS[4], "inside the margin", 0.0, np.nextafter(1.0, 0.0)),
    MarginPosition.ON: (INK, "on the margin", 1.0, 1.0),
    MarginPosition.BEYOND: (COLOURS[5], "beyond the margin", 1.0, np.inf),
}


@dataclass
class SlackHistogramDisplay(Display):
    """Histogram of the margins y f(x) of samples: on the wrong side, inside the margin, on it, beyond it.

    Samples on the margin all have the value 1 and share one bar. With more than two classes a sample has a margin in
    each binary subproblem that contains it; the smallest is used.

    Create it with `from_estimator`.

    Attributes
    ----------
    margins : float array
        The margin of each sample.
    positions : int array
        The `MarginPosition` of each sample: 0 beyond the margin, 1 on it, 2 inside, 3 on the wrong side.
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import SlackHistogramDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> SlackHistogramDisplay.from_estimator(SVC(kernel="linear", C=10).fit(X, y), X, y).slacks
    array([0., 0., 0., 0.])
    """

    margins: Floats = field(repr=False)
    positions: Indices = field(repr=False)

    @property
    def slacks(self) -> Floats:
        """The slack max(0, 1 − m) of each sample, exactly 0 for samples on the margin."""
        return np.where(self.positions == MarginPosition.ON, 0.0, np.maximum(0.0, 1.0 - self.margins))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, bins: int = 40, ax: Axes | None = None
    ) -> SlackHistogramDisplay:
        """Draw the margins of samples under a fitted classifier.

        Parameters
        ----------
        estimator : classifier, or a pipeline that ends with one
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        bins : int
            Approximate number of bars.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        SlackHistogramDisplay
        """
        model, transformed = final_estimator(estimator, X if hasattr(X, "shape") else np.asarray(X))
        if is_novelty_detector(model):
            raise ValueError("margins y f(x) require labels, which a novelty detector does not have; use a classifier")
        margins = sample_margins(model, transformed, class_indices(model, y))
        return cls(margins, margin_positions(model, transformed, margins)).plot(ax, bins=bins)

    def plot(self, ax: Axes | None = None, *, bins: int = 40) -> SlackHistogramDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        bins : int
            Approximate number of bars.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        from matplotlib.ticker import MaxNLocator

        edges, width = _bin_edges(self.margins, bins)
        for position, (colour, name, low, high) in POSITIONS.items():
            # Clipped, so that rounding does not move a sample into a bar of another position.
            members = np.clip(self.margins[self.positions == position], low, high)
            label = f"{name} ({len(members)})"
            if position is MarginPosition.ON:
                ax.bar(1.0, len(members), width=width / 3, color=colour, label=label, zorder=3)
            else:
                ax.hist(members, edges.tolist(), color=colour, edgecolor="white", linewidth=0.5, label=label)
        ax.axvline(0.0, color=INK, linewidth=1.5, zorder=0)
        ax.axvline(1.0, color=INK, linewidth=0.9, linestyle="--", zorder=0)
        above = ax.get_xaxis_transform()
        for at, text, alignment in ((0.0, "decision boundary ", "right"), (1.0, " margin", "left")):
            ax.text(
                at, 1.01, text, transform=above, horizontalalignment=alignment, va="bottom", fontsize="small", color=INK
            )
        ax.set(xlabel="margin  y f(x)", ylabel="number of samples")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        hide_spines(ax)
        legend_below(ax)
        return self._drawn_on(ax)


def _bin_edges(margins: Floats, bins: int) -> tuple[Floats, float]:
    """Return bin edges that include 0 and 1, and the bin width, which divides 1 or is an integer."""
    low, high = min(float(margins.min()), 0.0), max(float(margins.max()), 1.0)
    target = (high - low) / bins
    width = 1.0 / max(1, round(1.0 / target)) if target < 1 else float(round(target))
    # Counted from 0 to the left and from 1 to the right, so that both are edges of wide bins, too.
    left = np.arange(np.ceil(-low / width), -1, -1) * -width
    right = 1.0 + np.arange(np.ceil((high - 1.0) / width) + 1) * width
    between = np.arange(1, round(1.0 / width)) * width if width < 1 else np.empty(0)
    return np.concatenate([left, between, right]), min(width, 1.0)
