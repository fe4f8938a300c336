"""One decision value for each class and sample, from whatever ``decision_function`` an estimator has."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats


def class_values(estimator: Any, X: Any) -> Floats:
    """Return the decision values of samples, one column for each class; two classes are (−f, f).

    Values of pairs of classes (``decision_function_shape="ovo"``) become those of classes: the winner of the vote has
    0, the others the negative of twice what they lose by to it, so that half the difference of the two largest is the
    decision value of the closest pair that the winner is part of.
    """
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{type(estimator).__name__} has no decision_function, which every strategy but 'random' needs")
    values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"the decision_function of {type(estimator).__name__} returned values that are not finite")
    if values.ndim == 1 or values.shape[1] == 1:
        return np.column_stack([-values.ravel(), values.ravel()])
    return _of_pairs(values, len(estimator.classes_)) if _in_pairs(estimator, values.shape[1]) else values


def _in_pairs(estimator: Any, columns: int) -> bool:
    classes = len(estimator.classes_)
    if columns != classes * (classes - 1) // 2:
        return False
    if columns != classes:
        return True
    # Three classes have three pairs. Only the parameters tell, of the estimator or of one inside it.
    shapes = [value for name, value in estimator.get_params().items() if name.endswith("decision_function_shape")]
    return "ovo" in shapes


def _of_pairs(values: Floats, classes: int) -> Floats:
    against = np.zeros((len(values), classes, classes))
    for column, (a, b) in enumerate(combinations(range(classes), 2)):
        against[:, a, b], against[:, b, a] = values[:, column], -values[:, column]
    winners = (against > 0).sum(axis=2).argmax(axis=1)
    return np.asarray(-2.0 * np.maximum(against[np.arange(len(values)), winners], 0.0))
