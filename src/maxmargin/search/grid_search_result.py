"""The result of a grid search: the cross-validation score of every point, and the best one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial

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
        Not fitted; it defines all parameters but C and gamma.
    scoring : str
        Name of the score; greater is better.
    folds : int
    rounds : tuple of tuples of Point
        The grid, then the points of each refinement.
    trials : tuple of Trial
        One per finished point and fold.
    status : str
        "complete", "time limit", "interrupted" or "stopped".
    seconds : float
        Total time.
    """

    estimator: Any
    scoring: str
    folds: int
    rounds: tuple[tuple[Point, ...], ...]
    trials: tuple[Trial, ...] = field(repr=False)
    status: str = COMPLETE
    seconds: float = 0.0

    @cached_property
    def scores(self) -> tuple[PointScore, ...]:
        """The points whose folds are all finished, best first; ties are broken by smaller C, then smaller gamma."""
        by_point: dict[Point, dict[int, Trial]] = {point: {} for point in self.points}
        for trial in self.trials:
            if trial.point in by_point:  # a journal may contain other points
                by_point[trial.point][trial.fold] = trial
        scores = []
        for point, trials in by_point.items():
            if len(trials) == self.folds:
                values = np.array([trials[fold].score for fold in sorted(trials)])
                seconds = sum(trial.seconds for trial in trials.values())
                mean = round(float(values.mean()), SCORE_DIGITS)
                scores.append(PointScore(point, mean, float(values.std(ddof=1)), seconds))
        return tuple(sorted(scores, key=lambda score: (-score.mean, score.point.C, score.point.gamma or 0.0)))

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
        best = self.best.point
        parameters = {"C": best.C} if best.gamma is None else {"C": best.C, "gamma": best.gamma}
        return clone(self.estimator).set_params(**parameters)

    def table(self, number: int = 0) -> tuple[tuple[float, ...], tuple[float | None, ...], Floats]:
        """Return the values of C and gamma of a round, and the mean scores (a row per gamma, nan if unfinished).

        Round 0 is the grid, the others are refinements.
        """
        costs = tuple(sorted({point.C for point in self.rounds[number]}))
        widths = tuple(sorted({point.gamma for point in self.rounds[number]}, key=lambda gamma: gamma or 0.0))
        known = {score.point: score.mean for score in self.scores}
        means = np.array([[known.get(Point(cost, width), np.nan) for cost in costs] for width in widths])
        return costs, widths, means

    def edges(self) -> list[str]:
        """Return at which edges of the grid the best point lies, e.g. "largest C": better ones may lie beyond."""
        best, found = self.best.point, []
        for name, values, value in (
            ("C", [point.C for point in self.points], best.C),
            ("gamma", [point.gamma for point in self.points if point.gamma is not None], best.gamma),
        ):
            if value is not None and len(set(values)) > 1 and value in (min(values), max(values)):
                found.append(f"{'smallest' if value == min(values) else 'largest'} {name}")
        return found

    def record(self) -> dict[str, Any]:
        """Return the result as values that JSON can hold."""
        return {
            "status": self.status,
            "scoring": self.scoring,
            "folds": self.folds,
            "best": _record(self.best) if self.scores else None,
            "points": [_record(score) for score in self.scores],
            "unfinished": len(self.points) - len(self.scores),
            "seconds": self.seconds,
        }


def _record(score: PointScore) -> dict[str, Any]:
    return {
        "C": score.point.C,
        "gamma": score.point.gamma,
        "mean": score.mean,
        "std": score.std,
        "seconds": score.seconds,
    }
