"""A picture of a grid search: the score of every cost C and width γ, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.plotting.style import GREY, INK, axes_for, bare, colour, figure_of
from maxmargin.search.grid import Point, format_value, typical_ratio
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.score_colormap import colour_of, colour_range, format_score, text_colour_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Up to so many values on an axis, each has a label and each cell its score.
LABELLED = 14


@dataclass
class ScoreGridDisplay:
    """The scores of a grid search: a map of C and γ, or a line where there is no γ.

    Make it with `from_search`. Points of a refinement are smaller cells on top of the grid.

    Attributes
    ----------
    found : GridSearchResult
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin import SVC, grid_search
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.plotting import ScoreGridDisplay
    >>> found = grid_search(*chessboard(200), Cs=[1, 10, 100], gammas=[0.1, 1, 10])
    >>> ScoreGridDisplay.from_search(found).ax_.get_xlabel()
    'C'
    """

    found: GridSearchResult = field(repr=False)
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_search(cls, found: GridSearchResult, *, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw what a search has found.

        Parameters
        ----------
        found : GridSearchResult
            With at least one finished point.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ScoreGridDisplay
        """
        return cls(found).plot(ax)

    def plot(self, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        best = self.found.best
        ax = axes_for(ax, (7.4, 5.0))
        if best.point.gamma is None:
            self._draw_line(ax)
        else:
            self._draw_map(ax)
        where = f"C = {_label(best.point.C)}" + (f", gamma = {_label(best.point.gamma)}" if best.point.gamma else "")
        score, deviation = format_score(best.mean, self.found.scoring), format_score(best.std, self.found.scoring)
        ax.set_title(f"best: {where}, {self.found.scoring} {score} ± {deviation}", fontsize="medium")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_line(self, ax: Axes) -> None:
        """Draw the scores along C, with their deviation over the folds."""
        scores = sorted(self.found.scores, key=lambda score: score.point.C)
        costs = [score.point.C for score in scores]
        means, spread = np.array([score.mean for score in scores]), np.array([score.std for score in scores])
        ax.fill_between(costs, means - spread, means + spread, color=colour(0), alpha=0.15, linewidth=0)
        ax.plot(costs, means, "o-", color=colour(0), label="mean over the folds")
        best = self.found.best
        ax.plot(best.point.C, best.mean, "o", markersize=12, markerfacecolor="none", markeredgecolor=INK, label="best")
        ax.set(xscale="log", xlabel="C", ylabel=f"{self.found.scoring} in cross-validation")
        ax.legend(frameon=False)
        bare(ax)

    def _draw_map(self, ax: Axes) -> None:
        """Draw a cell for each point, as large as its round's steps."""
        from matplotlib.patches import Rectangle

        axes = [sorted({point.C for point in self.found.rounds[0]}),
                sorted({point.gamma for point in self.found.rounds[0] if point.gamma is not None})]  # fmt: skip
        large = [float(np.log2(typical_ratio(values))) for values in axes]
        for number_of_round, points in enumerate(self.found.rounds):
            width, height = (step / 2**number_of_round for step in large)
            for point in points:
                x, y = _place(point)
                corner = x - width / 2, y - height / 2
                ax.add_patch(Rectangle(corner, width, height, facecolor=self._fill(point), edgecolor="white", lw=0.5))
                if max(map(len, axes)) <= LABELLED and number_of_round < 2:  # smaller ones could not be read
                    self._write(ax, point, 7.5 / 1.6**number_of_round)
                if point == self.found.best.point:
                    frame = Rectangle(corner, width, height, fill=False, edgecolor=colour(1), lw=2.5, zorder=5)
                    ax.add_patch(frame)
        for axis, values in zip((ax.xaxis, ax.yaxis), axes, strict=True):
            shown = values[:: max(1, -(-len(values) // LABELLED))]
            axis.set_ticks([np.log2(value) for value in shown], [_label(value) for value in shown])
        ax.autoscale_view()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="C", ylabel="gamma")

    def _fill(self, point: Point) -> str:
        """Return the colour of a cell; grey if its score is not known."""
        mean = self._means.get(point)
        return GREY if mean is None else "#{:02x}{:02x}{:02x}".format(*colour_of(mean, *self._limits))

    def _write(self, ax: Axes, point: Point, size: float) -> None:
        """Write the score into a cell, if it is known."""
        mean = self._means.get(point)
        if mean is not None:
            ink = "white" if text_colour_on(mean, *self._limits) == "white" else INK
            text = format_score(mean, self.found.scoring, short=True)
            ax.text(*_place(point), text, ha="center", va="center", color=ink, fontsize=size)

    @property
    def _means(self) -> dict[Point, float]:
        return {score.point: score.mean for score in self.found.scores}

    @property
    def _limits(self) -> tuple[float, float]:
        return colour_range(self.found.table()[2])


def _place(point: Point) -> tuple[float, float]:
    assert point.gamma is not None
    return float(np.log2(point.C)), float(np.log2(point.gamma))


def _label(value: float) -> str:
    """Return a number as people write it, powers with a raised exponent."""
    text = format_value(value)
    return f"$2^{{{text[2:]}}}$" if text.startswith("2^") else text
