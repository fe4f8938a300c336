"""Leave out trials of points whose mean score can no longer be the best, whatever their other folds score.

The mean over the folds is at most the sum of the scores that are known, and of the maximum of the score for each of the
others, divided by the number of folds. A point for which that is less than the mean of a finished point is not needed
to find the best one. Confidence intervals drop points earlier (Maron & Moore, NIPS 1994), but fail with a
small probability; these bounds never do.

Which points are dropped depends on the order in which trials end; the best one does not.
"""

from __future__ import annotations

import math
import threading
from bisect import insort
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _BaseScorer

from maxmargin.search.fold_scoring import SCORERS, FoldScorer, Scoring
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial, score_of
from maxmargin.search.novelty_score import BackgroundScore

#: Scores of scikit-learn whose maximum is 1.
AT_MOST_ONE = (
    "accuracy", "adjusted_mutual_info_score", "adjusted_rand_score", "average_precision", "balanced_accuracy",
    "completeness_score", "d2_absolute_error_score", "d2_brier_score", "d2_log_loss_score", "explained_variance", "f1",
    "fowlkes_mallows_score", "homogeneity_score", "jaccard", "matthews_corrcoef", "normalized_mutual_info_score",
    "precision", "r2", "rand_score", "recall", "roc_auc", "top_k_accuracy", "v_measure_score",
)  # fmt: skip

#: Scores that are errors with a minus sign.
AT_MOST_ZERO = (
    "neg_brier_score", "neg_log_loss", "neg_max_error", "neg_mean_absolute_error",
    "neg_mean_absolute_percentage_error", "neg_mean_gamma_deviance", "neg_mean_poisson_deviance",
    "neg_mean_squared_error", "neg_mean_squared_log_error", "neg_median_absolute_error",
    "neg_negative_likelihood_ratio", "neg_root_mean_squared_error", "neg_root_mean_squared_log_error",
)  # fmt: skip

#: Arguments of these scores that do not change their maximum; normalize=False does.
HARMLESS = {"adjusted", "average", "k", "labels", "max_fpr", "multi_class", "pos_label", "zero_division"}

#: Means must differ by more than rounding errors, relative to the larger of 1 and the best mean.
MARGIN = 1e-9


def maximum_score(scoring: Scoring) -> float:
    """Return the maximum of the score that ranks points, or raise if it is not known."""
    scorer = scoring.scorer
    if hasattr(scorer, "_scorers"):
        scorer = scorer._scorers[scoring.metric]
    if isinstance(scorer, BackgroundScore) or scorer in SCORERS.values():
        return 1.0
    maximum, name = None, scoring.name
    if isinstance(scorer, _BaseScorer):
        maximum = _maxima().get(_function_of(scorer)) if scorer._kwargs.keys() <= HARMLESS else None
        name = str(scorer)
    if maximum is None:
        raise ValueError(
            f"prune=True needs a score whose maximum is known, a scorer of scikit-learn such as 'accuracy' or 'r2', "
            f"not {name}; use prune=False"
        )
    return maximum


def check_prune(prune: Any) -> bool:
    """Return whether points are dropped, or raise if `prune` is not a Boolean."""
    if not isinstance(prune, bool | np.bool_):
        raise ValueError(f"prune must be True or False, not {prune!r}")
    return bool(prune)


def _function_of(scorer: Any) -> tuple[Any, int]:
    """Return the function of a scorer, and the sign that makes greater values better."""
    return scorer._score_func, scorer._sign


@cache
def _maxima() -> dict[tuple[Any, int], float]:
    """Return the maxima of the scores above that the installed version of scikit-learn has."""
    maxima = {**dict.fromkeys(AT_MOST_ONE, 1.0), **dict.fromkeys(AT_MOST_ZERO, 0.0)}
    return {_function_of(get_scorer(name)): maxima[name] for name in get_scorer_names() if name in maxima}


class Pruning:
    """The points of a search that can no longer be among the best. Threads may share it.

    Parameters
    ----------
    folds : int
    metric : str
        Name of the score in trials, after ``test_``.
    maximum : float
        The largest possible score of a trial.
    error_score : float, default=nan
        The score of a trial that an exception ended.
    keep : int, default=1
        How many of the best points are wanted.
    """

    def __init__(self, folds: int, metric: str, maximum: float, error_score: float = math.nan, keep: int = 1) -> None:
        self.folds, self.metric, self.error_score, self.keep = folds, metric, error_score, keep
        self.maximum = error_score if error_score > maximum else maximum  # NaN is not
        self._scores: dict[Point, dict[int, float]] = {}
        self._means: list[float] = []  # of finished points, in ascending order
        self._lock = threading.Lock()

    @classmethod
    def of(cls, scorer: FoldScorer, prune: bool, keep: int = 1) -> Pruning | None:
        """Return what drops points of a search; None if `prune` is False."""
        if not check_prune(prune):
            return None
        error_score = math.nan if scorer.error_score is None else scorer.error_score
        scoring = scorer.scoring
        return cls(scorer.folds, scoring.metric, maximum_score(scoring), error_score, keep)

    def add(self, trial: Trial) -> None:
        """Take the score of a trial into account."""
        score = score_of(trial, self.metric, self.error_score)
        if score > self.maximum + MARGIN * max(1.0, abs(self.maximum)):
            raise ValueError(
                f"prune=True needs a score of at most {self.maximum:g}, but that of {trial.point} is {score:g}; "
                "use prune=False"
            )
        with self._lock:
            scores = self._scores.setdefault(trial.point, {})
            if trial.fold in scores:
                return
            scores[trial.fold] = score
            if len(scores) == self.folds and not math.isnan(mean := math.fsum(scores.values()) / self.folds):
                insort(self._means, mean)

    def loses(self, point: Point) -> bool:
        """Whether a point cannot be among the best, although not all of its folds are scored."""
        with self._lock:
            scores = self._scores.get(point, {})
            if len(scores) == self.folds or len(self._means) < self.keep:
                return False
            bar = self._means[-self.keep]
            possible = (math.fsum(scores.values()) + self.maximum * (self.folds - len(scores))) / self.folds
            return possible < bar - MARGIN * max(1.0, abs(bar))

    def lose(self, trials: Iterable[tuple[Point, int]]) -> bool:
        """Whether the points of all of these trials do."""
        return all(self.loses(point) for point, _ in trials)


def central_first(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return points from the middle of a grid outwards: the sooner a good one is finished, the more others lose."""
    places = []
    for column in zip(*points, strict=True):
        values = {value: place for place, value in enumerate(sorted(set(column), key=_order))}
        middle = (len(values) - 1) / 2
        places.append([abs(values[value] - middle) / max(1.0, middle) for value in column])
    distances = [sum(of_point) for of_point in zip(*places, strict=True)]
    return tuple(points[k] for k in sorted(range(len(points)), key=lambda k: distances[k]))


def _order(value: Any) -> Any:
    """Return what to sort values of a parameter by: None, numbers, or tuples with a number for each feature."""
    return value if isinstance(value, tuple) else (-math.inf if value is None else value,)
