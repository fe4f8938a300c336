"""The result of a search: the cross-validation score of every point, and the best one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial, score_of

#: Mean scores are rounded to this many digits, so that rounding errors of the mean do not break ties.
SCORE_DIGITS = 12

#: The status of a search.
COMPLETE, TIME_LIMIT, INTERRUPTED, STOPPED = "complete", "time limit", "interrupted", "stopped"


class PointScore(NamedTuple):
    """The cross-validation score of a point: mean and standard deviation over the folds, and the time of its trials."""

    point: Point
    mean: float
    std: float
    seconds: float


@dataclass(frozen=True)
class GridSearchResult:
    """The scores of a grid search.

    Attributes
    ----------
    estimator : estimator
        Not fitted; it defines all parameters that are not searched for.
    scoring : str
        Name of the score; greater is better.
    folds : int
        Number of folds, or of splits into training and test samples.
    rounds : tuple of tuples of Point
        The grid, then the points of each refinement.
    trials : tuple of Trial
        One per finished point and fold.
    status : str
        "complete", "time limit", "interrupted" or "stopped".
    seconds : float
        Total time.
    metric : str
        Name of the score in trials, after ``test_``.
    error_score : float
        The score of a trial that an exception ended.
    pruned : tuple of Point or None
        Points without a score because they cannot be the best; None in a search of all points.
    """

    estimator: Any
    scoring: str
    folds: int
    rounds: tuple[tuple[Point, ...], ...]
    trials: tuple[Trial, ...] = field(repr=False)
    status: str = COMPLETE
    seconds: float = 0.0
    metric: str = "score"
    error_score: float = np.nan
    pruned: tuple[Point, ...] | None = None

    @cached_property
    def by_point(self) -> dict[Point, dict[int, Trial]]:
        """The finished trials of each point by the number of the fold."""
        by_point: dict[Point, dict[int, Trial]] = {point: {} for point in self.points}
        for trial in self.trials:
            if trial.point in by_point:  # a journal may contain other points
                by_point[trial.point][trial.fold] = trial
        return by_point

    def score_of(self, trial: Trial) -> float:
        """Return the score of a trial that ranks its point."""
        return score_of(trial, self.metric, self.error_score)

    @cached_property
    def scores(self) -> tuple[PointScore, ...]:
        """The points whose folds are all finished, best first.

        Ties are broken by smaller values: of C, then gamma, epsilon and nu. A score that is not a number is the worst.
        """
        scores = []
        for point, trials in self.by_point.items():
            if len(trials) == self.folds:
                values = np.array([self.score_of(trials[fold]) for fold in sorted(trials)])
                seconds = sum(trial.seconds for trial in trials.values())
                mean = round(float(values.mean()), SCORE_DIGITS)
                scores.append(PointScore(point, mean, float(values.std(ddof=min(1, len(values) - 1))), seconds))
        return tuple(sorted(scores, key=_rank))

    @property
    def best(self) -> PointScore:
        """The point with the best score."""
        if not self.scores:
            raise ValueError(f"no point of the grid was finished: {self.status}; give the search more time")
        return self.scores[0]

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of all rounds."""
        return tuple(dict.fromkeys(point for points in self.rounds for point in points))

    @property
    def best_estimator(self) -> Any:
        """An unfitted estimator with the best parameters."""
        return clone(self.estimator).set_params(**self.best.point.parameters)

    def path(self) -> list[Point]:
        """Return the best point after each round, without repetitions."""
        found: list[Point] = []
        for last in range(1, len(self.rounds) + 1):
            scores = replace(self, rounds=self.rounds[:last]).scores
            if scores and scores[0].point not in found:
                found.append(scores[0].point)
        return found

    @property
    def values(self) -> dict[str, tuple[float, ...]]:
        """The values of each parameter that is searched for, in ascending order; C and gamma come first."""
        columns = zip(Point._fields, zip(*self.points, strict=True), strict=True) if self.points else ()
        return {name: tuple(sorted(set(column))) for name, column in columns if None not in column}

    def table(self, number: int = 0) -> ScoreTable:
        """Return the mean scores of a round over two parameters: C and gamma, or others if these have a single value.

        Round 0 is the grid, the others are refinements. Parameters that are on neither axis have their best value, or
        that of the round which is closest to it.
        """
        values = self.values
        names = sorted(values, key=lambda name: len(values[name]) == 1)[:2]  # a stable sort
        names.sort(key=Point._fields.index)
        x_name, y_name = names[0], names[1] if len(names) > 1 else None
        best = self.scores[0].point if self.scores else self.points[0]
        fixed = {name: self._nearest(number, name, best) for name in values if name not in names}
        shown = [p for p in self.rounds[number] if all(getattr(p, name) == value for name, value in fixed.items())]
        xs = tuple(sorted({getattr(point, x_name) for point in shown}))
        ys: tuple[float | None, ...] = (None,)
        if y_name is not None:
            ys = tuple(sorted({getattr(point, y_name) for point in shown}))
        found = [[Point(**fixed, **dict(zip(names, (x, y), strict=False))) for x in xs] for y in ys]
        known = {score.point: score.mean for score in self.scores}
        means = np.array([[known.get(point, np.nan) for point in row] for row in found], dtype=np.float64)
        return ScoreTable(x_name, xs, y_name, ys, means.reshape(len(ys), len(xs)), found)

    def _nearest(self, number: int, name: str, best: Point) -> float:
        """Return the value of a parameter in a round that is closest to the best one."""
        wanted = getattr(best, name)
        return float(
            min((getattr(point, name) for point in self.rounds[number]), key=lambda value: abs(value - wanted))
        )

    def edges(self) -> list[str]:
        """Return at which edges of the grid the best point lies, e.g. "largest C": better ones may lie beyond."""
        found = []
        for name, value in self.best.point.parameters.items():
            values = self.values[name]
            natural = (name == "epsilon" and value == 0) or (name == "nu" and value == 1)
            if len(values) > 1 and value in (values[0], values[-1]) and not natural:
                found.append(f"{'smallest' if value == values[0] else 'largest'} {name}")
        return found

    def record(self) -> dict[str, Any]:
        """Return the result as values that JSON can hold."""
        return {
            "status": self.status,
            "scoring": self.scoring,
            "folds": self.folds,
            "best": _record(self.best) if self.scores else None,
            "points": [_record(score) for score in self.scores],
            "unfinished": len(self.points) - len(self.scores) - len(self.pruned or ()),
            "pruned": len(self.pruned or ()),
            "seconds": self.seconds,
        }


class ScoreTable(NamedTuple):
    """Mean scores over the values of two parameters, or of one (`y` is None, `y_values` a single None).

    Attributes
    ----------
    x, y : str
        Names of the parameters.
    x_values, y_values : tuple of float
        In ascending order.
    means : float array
        A row for each value of `y`; nan where a point is unfinished.
    points : list of lists of Point
        The points of these scores.
    """

    x: str
    x_values: tuple[float, ...]
    y: str | None
    y_values: tuple[float | None, ...]
    means: Floats
    points: list[list[Point]]


def _rank(score: PointScore) -> tuple[float, ...]:
    """Return what to sort by for the best score first."""
    worst = float("inf") if np.isnan(score.mean) else -score.mean
    return worst, *(0.0 if value is None else value for value in score.point)


def _record(score: PointScore) -> dict[str, Any]:
    values = {"C": score.point.C, "gamma": score.point.gamma, **score.point.parameters}
    return {**values, "mean": score.mean, "std": score.std, "seconds": score.seconds}
