"""What a grid search has found: the score of every point, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial

#: Scores that agree to so many digits are equal: the rest is rounding in the mean.
DIGITS = 12

#: How a search may end.
COMPLETE, TIME_LIMIT, INTERRUPTED, STOPPED = "complete", "time limit", "interrupted", "stopped"


class Score(NamedTuple):
    """A point and how well machines with its parameters did on samples that they had not seen."""

    point: Point
    mean: float
    deviation: float
    seconds: float


@dataclass(frozen=True)
class GridSearch:
    """The scores of a grid.

    Attributes
    ----------
    estimator : estimator
        All parameters but C and gamma.
    scoring : str
        What was measured; more is better.
    folds : int
    rounds : tuple of tuples of Point
        The grid, and the points that refinements added.
    trials : tuple of Trial
        Every fold of every point that was tried.
    status : str
        "complete", "time limit", "interrupted" or "stopped".
    seconds : float
        How long it took.
    """

    estimator: Any
    scoring: str
    folds: int
    rounds: tuple[tuple[Point, ...], ...]
    trials: tuple[Trial, ...] = field(repr=False)
    status: str = COMPLETE
    seconds: float = 0.0

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """All points whose folds have been tried, the best first: of equal ones that with the least C, then gamma."""
        by_point: dict[Point, list[Trial]] = {point: [] for point in self.points}
        for trial in self.trials:
            if trial.point in by_point:  # a journal may know more
                by_point[trial.point].append(trial)
        found = []
        for point, trials in by_point.items():
            if len(trials) == self.folds:
                values = np.array([trial.score for trial in sorted(trials, key=lambda trial: trial.fold)])
                seconds = sum(trial.seconds for trial in trials)
                found.append(Score(point, round(float(values.mean()), DIGITS), float(values.std(ddof=1)), seconds))
        return tuple(sorted(found, key=lambda score: (-score.mean, score.point.C, score.point.gamma or 0.0)))

    @property
    def best(self) -> Score:
        """The point with the best score."""
        if not self.scores:
            raise ValueError(f"no point of the grid was finished: {self.status}; give the search more time")
        return self.scores[0]

    @property
    def points(self) -> tuple[Point, ...]:
        """All points of all rounds."""
        return tuple(dict.fromkeys(point for points in self.rounds for point in points))

    @property
    def best_estimator(self) -> Any:
        """An estimator with the best parameters, not fitted."""
        best = self.best.point
        chosen = {"C": best.C} if best.gamma is None else {"C": best.C, "gamma": best.gamma}
        return clone(self.estimator).set_params(**chosen)

    def table(self, number: int = 0) -> tuple[tuple[float, ...], tuple[float | None, ...], Floats]:
        """Return the values of C and of gamma in a round, and the mean scores: a line for each gamma, nan if unknown.

        Round 0 is the grid, the others are refinements.
        """
        costs = tuple(sorted({point.C for point in self.rounds[number]}))
        widths = tuple(sorted({point.gamma for point in self.rounds[number]}, key=lambda gamma: gamma or 0.0))
        known = {score.point: score.mean for score in self.scores}
        means = np.array([[known.get(Point(cost, width), np.nan) for cost in costs] for width in widths])
        return costs, widths, means

    def edges(self) -> list[str]:
        """Return in words where the best point lies at the edge of what was tried: there may be better ones beyond."""
        best, found = self.best.point, []
        for name, values, value in (
            ("C", [point.C for point in self.points], best.C),
            ("gamma", [point.gamma for point in self.points if point.gamma is not None], best.gamma),
        ):
            if value is not None and len(set(values)) > 1 and value in (min(values), max(values)):
                found.append(f"{'smallest' if value == min(values) else 'largest'} {name}")
        return found

    def record(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "status": self.status,
            "scoring": self.scoring,
            "folds": self.folds,
            "best": _plain(self.best) if self.scores else None,
            "points": [_plain(score) for score in self.scores],
            "unfinished": len(self.points) - len(self.scores),
            "seconds": self.seconds,
        }


def _plain(score: Score) -> dict[str, Any]:
    return {
        "C": score.point.C,
        "gamma": score.point.gamma,
        "mean": score.mean,
        "deviation": score.deviation,
        "seconds": score.seconds,
    }
