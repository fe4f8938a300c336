"""Class weights and the threshold of decision values, where the classes or the score call for them.

Accuracy is best without either. Scores that give rare classes the weight of frequent ones are not: a machine that is
trained for few errors hardly finds a class of 5 % of the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, cross_val_score

from maxmargin.search.data_summary import DataSummary
from maxmargin.search.score_colormap import format_score

#: Ratio of class sizes from which on classes are imbalanced, and accuracy says little.
MAX_CLASS_RATIO = 4

#: The score of imbalanced classes, unless another one is asked for.
BALANCED_SCORE = "balanced_accuracy"

#: Scores that depend on the threshold and for which class weights matter, and prefixes of further ones.
WEIGHTED_SCORES = ("balanced_accuracy", "matthews_corrcoef")
WEIGHTED_PREFIXES = ("f1", "jaccard")

#: Thresholds that are tried, and the gain in score from which on a tuned one is used.
THRESHOLDS, MIN_GAIN = 50, 0.005

#: The comparison of weights and thresholds takes about this many times the fits of a cross-validation, times its folds.
FITS_PER_FOLD = 3


@dataclass(frozen=True)
class Weighting:
    """Whether class weights and thresholds are considered, and the score.

    Attributes
    ----------
    scoring : str, callable or None
    considered : bool
    reason : str
        Why, in a sentence; empty if nothing is unusual.
    """

    scoring: Any
    considered: bool
    reason: str = ""


class Threshold(NamedTuple):
    """A classifier with or without weights, and the decision value from which on it predicts the second class."""

    estimator: Any
    threshold: float | None
    score: float
    reason: str


def weighting_for(summary: DataSummary, scoring: Any) -> Weighting:
    """Return whether the score or the imbalance of the classes calls for class weights and a threshold."""
    if summary.classes is None:
        return Weighting(scoring, False)
    if scoring is None and MAX_CLASS_RATIO * summary.counts.min() < summary.counts.max():
        rare = summary.classes[int(np.argmin(summary.counts))]
        name = f"{rare:g}" if isinstance(rare, float | np.floating) else str(rare)
        return Weighting(
            BALANCED_SCORE,
            True,
            f"class {name} has only {summary.smallest_class_fraction:.1%} of the samples: accuracy would be "
            f"misleading, so the score is the balanced accuracy, the mean recall of the classes (another one: --score)",
        )
    weighted = isinstance(scoring, str) and (scoring in WEIGHTED_SCORES or scoring.startswith(WEIGHTED_PREFIXES))
    reason = f"the score {scoring} depends on class weights and on the threshold of decision values" if weighted else ""
    return Weighting(scoring, weighted, reason)


def choose_threshold(X: Any, y: Any, estimator: Any, score: float, *, scoring: str, folds: int, seed: int) -> Threshold:
    """Compare a weighted classifier of two classes with tuned thresholds, with and without weights.

    The score of a tuned threshold is that of samples which took no part in tuning: of an outer cross-validation.

    Parameters
    ----------
    X, y : arrays
    estimator : classifier with class_weight="balanced"
    score : float
        Its cross-validation score.
    scoring : str
    folds, seed : int
    """
    plain = clone(estimator).set_params(class_weight=None)
    cv = StratifiedKFold(folds, shuffle=True, random_state=seed)
    tuned = [
        TunedThresholdClassifierCV(
            model, scoring=scoring, response_method="decision_function", thresholds=THRESHOLDS, cv=cv
        )
        for model in (estimator, plain)
    ]
    names = "with class weights", "with class weights and a tuned threshold", "with a tuned threshold", "with neither"
    scores = [
        score,
        *(float(np.mean(cross_val_score(model, X, y, scoring=scoring, cv=cv))) for model in (*tuned, plain)),
    ]
    best = int(np.argmax(scores[:3])) if max(scores[:3]) > score + MIN_GAIN else 0
    shown = "; ".join(f"{name} {format_score(value, scoring)}" for name, value in zip(names, scores, strict=True))
    reason = f"{scoring} on held-out samples: {shown}"
    if best == 0:
        return Threshold(estimator, None, score, reason)
    fitted = tuned[best - 1].fit(X, y)
    return Threshold((estimator, plain)[best - 1], float(fitted.best_threshold_), scores[best], reason)
