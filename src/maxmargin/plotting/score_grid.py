"""Scores of a search over one or two parameters, and its path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.plotting.style import GREY, INK, Display, axes_for, colour, hide_spines
from maxmargin.search.grid import Point, format_value, typical_ratio
from maxmargin.search.grid_search_result import GridSearchResult, PointScore, ScoreTable
from maxmargin.search.score_colormap import colour_of, colour_range, format_score, text_colour_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Largest number of values on an axis with a label for each value and a score in each cell.
MAX_LABELLED_VALUES = 14


@dataclass
class ScoreGridDisplay(Display):
    """Cross-validation scores of a search: a heat map over two parameters such as C and γ, or a line over one.

    Create it with `from_search`, or `from_estimator` for `SVCCV` and its like. Points of a refined grid are drawn as
    smaller cells on top, and a line leads from the best point of the grid to those of the refinements. Further
    parameters have their best value.

    Attributes
    ----------
    result : GridSearchResult
    best : PointScore
        The point that is marked.
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
    best: PointScore

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
        _check_grid(result)
        return cls(result, result.best).plot(ax)

    @classmethod
    def from_estimator(cls, model: Any, *, metric: str | None = None, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw the scores from which an estimator has chosen its parameters.

        Parameters
        ----------
        model : SVCCV, SVRCV, OneClassSVMCV, LinearSVCCV or LinearSVRCV
            Fitted.
        metric : str, optional
            The name of one of several metrics; by default the one that has chosen the parameters.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        ScoreGridDisplay

        Examples
        --------
        >>> from maxmargin import SVCCV
        >>> from maxmargin.datasets import chessboard
        >>> from maxmargin.plotting import ScoreGridDisplay
        >>> model = SVCCV(Cs=[1, 10, 100], gammas=[0.1, 1, 10]).fit(*chessboard(200))
        >>> ScoreGridDisplay.from_estimator(model).ax_.get_ylabel()
        'gamma'
        """
        result = getattr(model, "search_", None)
        if not isinstance(result, GridSearchResult):
            raise ValueError(
                f"model must be a fitted SVCCV, SVRCV, OneClassSVMCV, LinearSVCCV or LinearSVRCV, not {model!r}; "
                "use from_search for the result of grid_search"
            )
        _check_grid(result)
        if metric is None:
            # The choice of the estimator: by a function of the user, or the first of several that are as good.
            chosen = Point(**model.best_params_) if hasattr(model, "best_params_") else result.best.point
            return cls(result, next(score for score in result.scores if score.point == chosen)).plot(ax)
        known = [name[len("mean_test_") :] for name in model.cv_results_ if name.startswith("mean_test_")]
        if metric not in known:
            raise ValueError(f"metric must be one of {known}, not {metric!r}")
        result = replace(result, metric=metric, scoring=metric)
        return cls(result, result.best).plot(ax)

    def plot(self, ax: Axes | None = None) -> ScoreGridDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        best = self.best
        ax = axes_for(ax, (7.4, 5.0))
        if self._tables[0].y is None:
            self._draw_line(ax)
        else:
            self._draw_heat_map(ax)
        where = ", ".join(f"{name} = {_label(value)}" for name, value in best.point.parameters.items())
        score, deviation = format_score(best.mean, self.result.scoring), format_score(best.std, self.result.scoring)
        ax.set_title(f"best: {where}, {self.result.scoring} {score} ± {deviation}", fontsize="medium")
        return self._drawn_on(ax)

    def _draw_line(self, ax: Axes) -> None:
        """Draw mean and standard deviation of the scores over the folds against the values of the parameter."""
        name = self._tables[0].x
        scores = sorted(self.result.scores, key=lambda score: float(getattr(score.point, name)))
        values = [getattr(score.point, name) for score in scores]
        means, spread = np.array([score.mean for score in scores]), np.array([score.std for score in scores])
        ax.fill_between(values, means - spread, means + spread, color=colour(0), alpha=0.15, linewidth=0)
        ax.plot(values, means, "o-", color=colour(0), label="mean over folds")
        ax.plot(
            getattr(self.best.point, name),
            self.best.mean,
            "o",
            markersize=12,
            markerfacecolor="none",
            markeredgecolor=INK,
            label="best",
        )
        ax.set(
            xscale="log" if values[0] > 0 else "linear", xlabel=name, ylabel=f"cross-validated {self.result.scoring}"
        )
        ax.legend(frameon=False)
        hide_spines(ax)

    def _draw_heat_map(self, ax: Axes) -> None:
        """Draw a cell for each point, as large as the grid step of its round."""
        from matplotlib.patches import Rectangle

        grid = self._tables[0]
        axes = [_LogAxis.of(values) for values in (grid.x_values, grid.y_values)]
        path = self._path()
        for round_number, table in enumerate(self._tables):
            width, height = (axis.step / 2**round_number for axis in axes)
            for point in (point for row in table.points for point in row if point in self._searched[round_number]):
                x, y = axes[0].at(getattr(point, grid.x)), axes[1].at(getattr(point, str(grid.y)))
                corner = x - width / 2, y - height / 2
                ax.add_patch(Rectangle(corner, width, height, facecolor=self._fill(point), edgecolor="white", lw=0.5))
                few = max(len(grid.x_values), len(grid.y_values)) <= MAX_LABELLED_VALUES
                if few and round_number < 2 and point not in path:  # smaller cells have no room
                    self._write_score(ax, (x, y), point, 7.5 / 1.6**round_number)
                if point == self.best.point:
                    frame = Rectangle(corner, width, height, fill=False, edgecolor=colour(1), lw=2.5, zorder=5)
                    ax.add_patch(frame)
        if path:
            names = (grid.x, str(grid.y))
            places = [[axis.at(getattr(point, name)) for axis, name in zip(axes, names, strict=True)] for point in path]
            ax.plot(*np.transpose(places), "o-", color=INK, lw=1.2, markersize=3.5, zorder=6, label="path")
        for axis, on_axis, values in zip((ax.xaxis, ax.yaxis), axes, (grid.x_values, grid.y_values), strict=True):
            known = [value for value in values if value is not None]
            shown = known[:: max(1, -(-len(known) // MAX_LABELLED_VALUES))]
            axis.set_ticks([on_axis.at(value) for value in shown], [_label(value) for value in shown])
        ax.autoscale_view()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.set(xlabel=grid.x, ylabel=grid.y)

    def _path(self) -> list[Point]:
        """Return the best points after the grid and after each refinement, if they differ."""
        path = self.result.path()
        return path if len(path) > 1 else []

    @cached_property
    def _tables(self) -> list[ScoreTable]:
        return [self.result.table(number) for number, points in enumerate(self.result.rounds) if points]

    @cached_property
    def _searched(self) -> list[set[Point]]:
        return [set(points) for points in self.result.rounds if points]

    def _fill(self, point: Point) -> str:
        """Return the colour of a cell, grey if it has no score."""
        mean = self._means.get(point)
        return GREY if mean is None else "#{:02x}{:02x}{:02x}".format(*colour_of(mean, *self._limits))

    def _write_score(self, ax: Axes, place: tuple[float, float], point: Point, size: float) -> None:
        """Write the score into its cell."""
        mean = self._means.get(point)
        if mean is not None:
            ink = "white" if text_colour_on(mean, *self._limits) == "white" else INK
            text = format_score(mean, self.result.scoring, short=True)
            ax.text(*place, text, ha="center", va="center", color=ink, fontsize=size)

    @cached_property
    def _means(self) -> dict[Point, float]:
        return {score.point: score.mean for score in self.result.scores}

    @cached_property
    def _limits(self) -> tuple[float, float]:
        return colour_range(self._tables[0].means)


@dataclass(frozen=True)
class _LogAxis:
    """A logarithmic axis: the step of the grid, and where a value of 0 is drawn."""

    step: float
    zero: float

    @classmethod
    def of(cls, values: Sequence[float | None]) -> _LogAxis:
        """Return the axis for the values of a grid."""
        above = [value for value in values if value]
        step = float(np.log2(typical_ratio(above))) if above else 1.0
        return cls(step, float(np.log2(min(above))) - step if above else 0.0)

    def at(self, value: float | None) -> float:
        """Return the place of a value."""
        return float(np.log2(value)) if value else self.zero


def _label(value: float) -> str:
    """Return a number as text, powers of 2 with an exponent."""
    text = format_value(value)
    return f"$2^{{{text[2:]}}}$" if text.startswith("2^") else text


def _check_grid(result: GridSearchResult) -> None:
    if any(isinstance(point.gamma, tuple) for point in result.points):
        raise ValueError("a search for a gamma of each feature has no grid; use FeatureRelevanceDisplay.from_search")
