"""A picture of the margins m = y f(x): how many samples lie beyond the edge, on it, inside, or on the wrong side.

The slack of a sample is ξ = max(0, 1 − m), what the machine pays for (Bottou & Lin 1.2.3): 0 beyond the edge at 1,
above 1 left of the boundary at 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.plotting.sides import Side, class_numbers, is_detector, machine_of, margins_of, sides_of
from maxmargin.plotting.style import COLOURS, INK, axes_for, bare, figure_of, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colour and name of each part, from left to right, and between which margins it lies.
PARTS: dict[Side, tuple[str, str, float, float]] = {
    Side.WRONG: (COLOURS[1], "wrong side", -np.inf, np.nextafter(0.0, -1.0)),
    Side.INSIDE: (COLOURS[4], "inside the margin", 0.0, np.nextafter(1.0, 0.0)),
    Side.ON: (INK, "on the margin", 1.0, 1.0),
    Side.BEYOND: (COLOURS[5], "beyond the margin", 1.0, np.inf),
}


@dataclass
class SlackHistogramDisplay:
    """Histogram of the margins y f(x) of samples: on the wrong side, inside the margin, on it, beyond it.

    Samples on the margin all have the same value, 1, and are one bar. Of more than two classes a sample has several
    margins, one in each machine that it takes part in, and the smallest counts.

    Make it with `from_estimator`.

    Attributes
    ----------
    margins : float array
        m of each sample.
    sides : int array
        The `Side` of each sample: 0 beyond the margin, 1 on it, 2 inside, 3 on the wrong side.
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.plotting import SlackHistogramDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> SlackHistogramDisplay.from_estimator(SVC(kernel="linear", C=10).fit(X, y), X, y).slacks
    array([0., 0., 0., 0.])
    """

    margins: Floats = field(repr=False)
    sides: Indices = field(repr=False)
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @property
    def slacks(self) -> Floats:
        """The slack of each sample, max(0, 1 − m), and 0 of those on the margin."""
        return np.where(self.sides == Side.ON, 0.0, np.maximum(0.0, 1.0 - self.margins))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, bins: int = 40, ax: Axes | None = None
    ) -> SlackHistogramDisplay:
        """Draw the margins that a fitted classifier gives to samples, those that it was fitted on or others.

        Parameters
        ----------
        estimator : classifier, or a pipeline that ends with one
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        bins : int
            How many bars, about.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        SlackHistogramDisplay
        """
        machine, seen = machine_of(estimator, X if hasattr(X, "shape") else np.asarray(X))
        if is_detector(machine):
            raise ValueError("margins y f(x) need labels, which a novelty detector has not; use a classifier")
        margins = margins_of(machine, seen, class_numbers(machine, y))
        return cls(margins, sides_of(machine, seen, margins)).plot(ax, bins=bins)

    def plot(self, ax: Axes | None = None, *, bins: int = 40) -> SlackHistogramDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        bins : int
            How many bars, about.

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        from matplotlib.ticker import MaxNLocator

        edges, width = _edges(self.margins, bins)
        for side, (colour, name, low, high) in PARTS.items():
            mine = np.clip(self.margins[self.sides == side], low, high)  # rounding moves nobody to the other side
            label = f"{name} ({len(mine)})"
            if side is Side.ON:
                ax.bar(1.0, len(mine), width=width / 3, color=colour, label=label, zorder=3)
            else:
                ax.hist(mine, edges.tolist(), color=colour, edgecolor="white", linewidth=0.5, label=label)
        ax.axvline(0.0, color=INK, linewidth=1.5, zorder=0)
        ax.axvline(1.0, color=INK, linewidth=0.9, linestyle="--", zorder=0)
        above = ax.get_xaxis_transform()
        for at, text, towards in ((0.0, "boundary ", "right"), (1.0, " edge", "left")):  # apart on any scale
            ax.text(
                at, 1.01, text, transform=above, horizontalalignment=towards, va="bottom", fontsize="small", color=INK
            )
        ax.set(xlabel="margin  y f(x)", ylabel="samples")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
        bare(ax)
        legend_below(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def _edges(margins: Floats, bins: int) -> tuple[Floats, float]:
    """Return the edges of bars that end at 0 and at 1, and their width: 1 divided or multiplied by a whole number."""
    low, high = min(float(margins.min()), 0.0), max(float(margins.max()), 1.0)
    wanted = (high - low) / bins
    width = 1.0 / max(1, round(1.0 / wanted)) if wanted < 1 else float(round(wanted))
    # Counted from 0 to the left and from 1 to the right, so that wide bars too end at both.
    left = np.arange(np.ceil(-low / width), -1, -1) * -width
    right = 1.0 + np.arange(np.ceil((high - 1.0) / width) + 1) * width
    between = np.arange(1, round(1.0 / width)) * width if width < 1 else np.empty(0)
    return np.concatenate([left, between, right]), min(width, 1.0)
