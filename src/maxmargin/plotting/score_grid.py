"""Scores of a grid search over C and γ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.plotting.style import GREY, INK, Display, axes_for, colour, hide_spines
from maxmargin.search.grid import Point, format_value, typical_ratio
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.score_colormap import colour_of, colour_range, format_score, text_colour_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest number of values on an axis with a label for each value and a score in each cell.
MAX_LABELLED_VALUES = 14


@dataclass
class ScoreGridDisplay(Display):
    """Cross-validation scores of a grid search: a heat map over C and γ, or a line over C.

    Create it with `from_search`. Points of a refined grid are drawn as smaller cells on top.

    Attributes
    ----------
    result : GridSearchResult
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin import SVC, grid_search
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.plotting import ScoreGridDisplay
    >>> result = grid_search(*chessboard(200), Cs=[1, 10, 100], gammas=[0.1, 1, 10])
    >>> ScoreGridDisplay.from_search(result).ax_.get_xlabel()
    'C'
    """

    result: GridSearchResult = field(repr=False)

    @classmethod
    def from_search(cls, result: GridSearchResult, *, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw the result of a grid search.

        Parameters
        ----------
        result : GridSearchResult
            The result of `maxmargin.grid_search`, with at least one evaluated point.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        ScoreGridDisplay
        """
        return cls(result).plot(ax)

    def plot(self, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        best = self.result.best
        ax = axes_for(ax, (7.4, 5.0))
        if best.point.gamma is None:
            self._draw_line(ax)
        else:
            self._draw_heat_map(ax)
        where = f"C = {_label(best.point.C)}" + (f", gamma = {_label(best.point.gamma)}" if best.point.gamma else "")
        score, deviation = format_score(best.mean, self.result.scoring), format_score(best.std, self.result.scoring)
        ax.set_title(f"best: {where}, {self.result.scoring} {score} ± {deviation}", fontsize="medium")
        return self._drawn_on(ax)

    def _draw_line(self, ax: Axes) -> None:
        """Draw mean and standard deviation of the scores over the folds against C."""
        scores = sorted(self.result.scores, key=lambda score: score.point.C)
        costs = [score.point.C for score in scores]
        means, spread = np.array([score.mean for score in scores]), np.array([score.std for score in scores])
        ax.fill_between(costs, means - spread, means + spread, color=colour(0), alpha=0.15, linewidth=0)
        ax.plot(costs, means, "o-", color=colour(0), label="mean over folds")
        best = self.result.best
        ax.plot(best.point.C, best.mean, "o", markersize=12, markerfacecolor="none", markeredgecolor=INK, label="best")
        ax.set(xscale="log", xlabel="C", ylabel=f"cross-validated {self.result.scoring}")
        ax.legend(frameon=False)
        hide_spines(ax)

    def _draw_heat_map(self, ax: Axes) -> None:
        """Draw a cell for each point, as large as the grid step of its round."""
        from matplotlib.patches import Rectangle

        axes = [sorted({point.C for point in self.result.rounds[0]}),
                sorted({point.gamma for point in self.result.rounds[0] if point.gamma is not None})]  # fmt: skip
        large = [float(np.log2(typical_ratio(values))) for values in axes]
        for round_number, points in enumerate(self.result.rounds):
            width, height = (step / 2**round_number for step in large)
            for point in points:
                x, y = _coordinates(point)
                corner = x - width / 2, y - height / 2
                ax.add_patch(Rectangle(corner, width, height, facecolor=self._fill(point), edgecolor="white", lw=0.5))
                if max(map(len, axes)) <= MAX_LABELLED_VALUES and round_number < 2:  # smaller cells have no room
                    self._write_score(ax, point, 7.5 / 1.6**round_number)
                if point == self.result.best.point:
                    frame = Rectangle(corner, width, height, fill=False, edgecolor=colour(1), lw=2.5, zorder=5)
                    ax.add_patch(frame)
        for axis, values in zip((ax.xaxis, ax.yaxis), axes, strict=True):
            shown = values[:: max(1, -(-len(values) // MAX_LABELLED_VALUES))]
            axis.set_ticks([np.log2(value) for value in shown], [_label(value) for value in shown])
        ax.autoscale_view()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="C", ylabel="gamma")

    def _fill(self, point: Point) -> str:
        """Return the colour of a cell, grey if it has no score."""
        mean = self._means.get(point)
        return GREY if mean is None else "#{:02x}{:02x}{:02x}".format(*colour_of(mean, *self._limits))

    def _write_score(self, ax: Axes, point: Point, size: float) -> None:
        """Write the score into its cell."""
        mean = self._means.get(point)
        if mean is not None:
            ink = "white" if text_colour_on(mean, *self._limits) == "white" else INK
            text = format_score(mean, self.result.scoring, short=True)
            ax.text(*_coordinates(point), text, ha="center", va="center", color=ink, fontsize=size)

    @property
    def _means(self) -> dict[Point, float]:
        return {score.point: score.mean for score in self.result.scores}

    @property
    def _limits(self) -> tuple[float, float]:
        return colour_range(self.result.table()[2])


def _coordinates(point: Point) -> tuple[float, float]:
    assert point.gamma is not None
    return float(np.log2(point.C)), float(np.log2(point.gamma))


def _label(value: float) -> str:
    """Return a number as text, powers of 2 with an exponent."""
    text = format_value(value)
    return f"$2^{{{text[2:]}}}$" if text.startswith("2^") else text
