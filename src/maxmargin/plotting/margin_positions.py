"""Position of each sample relative to the margin: beyond it, on it, inside it, or on the wrong side of the boundary.

The functional margin m = y f(x) decides: m > 1, m = 1, 0 ≤ m < 1 or m < 0. Among the training samples the last three
are the support vectors, and the dual variables distinguish them without rounding: 0 < |b| < C on the margin, |b| = C
inside the margin or on the wrong side (Bottou & Lin 1.2.4).

With more than two classes a sample has a margin in each binary subproblem that contains it; the smallest is used.

Estimators of scikit-learn have no `geometry_`: their support vectors are on the margin if their margin is close to 1.
"""

from __future__ import annotations

from copy import copy
from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices

#: Tolerance of |m − 1| for samples on the margin where no dual variables are available.
ON_MARGIN_TOLERANCE = 1e-2

#: Smallest tolerance for free support vectors: with squared slack a free variable need not lie on the margin.
MIN_FREE_TOLERANCE = 1e-3


class MarginPosition(IntEnum):
    """Position relative to the margin; for detectors: inside (BEYOND), on or outside (WRONG_SIDE) the boundary."""

    BEYOND = 0
    ON = 1
    INSIDE = 2
    WRONG_SIDE = 3


BEYOND, ON, INSIDE, WRONG_SIDE = MarginPosition


def final_estimator(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the final estimator of a pipeline and the samples transformed by the steps before it."""
    check_is_fitted(estimator)
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def is_novelty_detector(estimator: Any) -> bool:
    """Return whether it is a novelty detector, False for a classifier; raise ValueError for other estimators."""
    if is_outlier_detector(estimator):
        return True
    if not is_classifier(estimator):
        raise ValueError(
            f"this display requires a classifier or a novelty detector, but {type(estimator).__name__} is neither"
        )
    return False


def class_indices(estimator: Any, y: Any) -> Indices:
    """Return the index of each label in ``classes_`` of a fitted classifier."""
    labels = np.asarray(y)
    indices = np.searchsorted(estimator.classes_, labels)
    if not np.array_equal(estimator.classes_[np.minimum(indices, len(estimator.classes_) - 1)], labels):
        unknown = sorted(set(labels.tolist()) - set(estimator.classes_.tolist()))
        raise ValueError(f"y has labels that the estimator was not fitted on: {unknown}")
    return indices


def sample_margins(estimator: Any, X: Any, indices: Indices) -> Floats:
    """Return the margin y f(x) of each sample, the smallest one if it has several."""
    classes = len(estimator.classes_)
    # scikit-learn's kernel classifiers have no multi_class: they are one-vs-one.
    scheme = getattr(estimator, "multi_class", "ovo" if hasattr(estimator, "decision_function_shape") else "ovr")
    if classes == 2:
        return np.asarray(np.where(indices == 1, 1.0, -1.0) * estimator.decision_function(X))
    if scheme == "ovo":
        by_pair = copy(estimator).set_params(decision_function_shape="ovo", break_ties=False)
        margins = np.full((len(indices), classes), np.inf)  # one column for each opposing class
        values = by_pair.decision_function(X)
        for column, (first, second) in enumerate(combinations(range(classes), 2)):
            of_first, of_second = indices == first, indices == second
            margins[of_first, second] = values[of_first, column]
            margins[of_second, first] = -values[of_second, column]
        return np.asarray(margins.min(axis=1))
    scores = np.array(estimator.decision_function(X))
    own = np.arange(classes) == indices[:, None]
    if scheme == "ovr":
        return np.asarray(np.where(own, scores, -scores).min(axis=1))
    return np.asarray(scores[own] - np.where(own, -np.inf, scores).max(axis=1))


def margin_positions(estimator: Any, X: Any, margins: Floats) -> Indices:
    """Return the `MarginPosition` of each sample: by its margin, for training samples by its dual variables."""
    by_margin = np.where(margins < 0, WRONG_SIDE, np.where(margins < 1, INSIDE, BEYOND))
    if not is_training_data(estimator, X):
        return np.where(np.abs(margins - 1) <= ON_MARGIN_TOLERANCE, ON, by_margin)
    if is_sklearn_machine(estimator):
        free = np.isin(np.arange(len(margins)), estimator.support_)
        in_training, bounded = np.ones_like(free), np.zeros_like(free)
        tolerance = max(ON_MARGIN_TOLERANCE, 2 * estimator.tol)
    elif hasattr(_geometries(estimator)[0], "free"):
        geometries = _geometries(estimator)
        in_training, free, bounded = (
            _members(geometries, name, len(margins)) for name in ("samples", "free", "bounded")
        )
        certificates = estimator.certificate_ if isinstance(estimator.certificate_, list) else [estimator.certificate_]
        tolerance = max(MIN_FREE_TOLERANCE, *(2 * certificate.violation for certificate in certificates))
    else:
        return np.where(np.abs(margins - 1) <= ON_MARGIN_TOLERANCE, ON, by_margin)
    on_margin = free & ~bounded & (np.abs(margins - 1) <= tolerance)
    by_dual = np.where(free | bounded, np.where(margins < 0, WRONG_SIDE, INSIDE), BEYOND)
    return np.where(on_margin, ON, np.where(in_training, by_dual, by_margin))  # samples of weight 0 have no variable


def detector_positions(estimator: Any, X: Any) -> Indices:
    """Return the `MarginPosition` of each sample of a novelty detector."""
    decisions = estimator.decision_function(X)
    positions = np.where(decisions < 0, WRONG_SIDE, BEYOND)
    if is_training_data(estimator, X):
        if is_sklearn_machine(estimator):
            support = np.isin(np.arange(len(decisions)), estimator.support_)
            tolerance = max(2 * estimator.tol, MIN_FREE_TOLERANCE * float(np.abs(estimator.offset_).max()))
            positions[support & (np.abs(decisions) <= tolerance)] = ON
            return np.asarray(positions)
        geometry = estimator.geometry_
        positions[geometry.edge], positions[geometry.outside], positions[geometry.inside] = ON, WRONG_SIDE, BEYOND
    return positions


def is_training_data(estimator: Any, X: Any) -> bool:
    """Return whether X contains the support vectors of a kernel estimator and their dual variables are known."""
    if X.shape != getattr(estimator, "shape_fit_", None):
        return False
    if not (is_sklearn_machine(estimator) or hasattr(estimator, "geometry_")):
        return False
    if isinstance(estimator.kernel, str) and estimator.kernel == "precomputed":
        return True  # kernel values; there are no support vectors to compare
    rows, support_vectors = (X.iloc if hasattr(X, "iloc") else X)[estimator.support_], estimator.support_vectors_
    if sparse.issparse(rows):
        return bool(sparse.issparse(support_vectors) and (rows != support_vectors).nnz == 0)
    return bool(np.array_equal(np.asarray(rows), np.asarray(support_vectors)))


def is_sklearn_machine(estimator: Any) -> bool:
    """Return whether an estimator is a support vector machine of scikit-learn."""
    return any(kind.__module__.startswith("sklearn.svm.") for kind in type(estimator).__mro__)


def _geometries(estimator: Any) -> list[Any]:
    return estimator.geometry_ if isinstance(estimator.geometry_, list) else [estimator.geometry_]


def _members(geometries: list[Any], name: str, size: int) -> np.ndarray:
    """Return a mask of the samples listed under this attribute in any of the geometries."""
    found = np.zeros(size, dtype=bool)
    for geometry in geometries:
        found[getattr(geometry, name)] = True
    return found
