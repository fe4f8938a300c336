"""Where samples lie: beyond the margin, on it, inside it, or on the wrong side of the boundary.

By the margin m = y f(x) that a sample has, in units where the edges are at ±1: m > 1, m = 1, 0 ≤ m < 1 and m < 0. Of
the training samples the last three are the support vectors, and the dual variables say it without rounding: those with
0 < |b| < C lie on the edge, those with |b| = C inside or beyond the boundary (Bottou & Lin 1.2.4).

Of more than two classes a sample has a margin in each machine that it takes part in, and the smallest counts.
"""

from __future__ import annotations

from copy import copy
from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxmargin._typing import Floats, Indices

#: How far from 1 a margin may be to count as on the edge, where no dual variable tells.
EDGE = 1e-2

#: The same where one does, but may rest nowhere (squared slack); or more, where the fit is less exact.
LEAST_EDGE = 1e-3


class Side(IntEnum):
    """Where a sample lies; of a novelty detector, which has no margin: inside, on the boundary or outside (WRONG)."""

    BEYOND = 0
    ON = 1
    INSIDE = 2
    WRONG = 3


def machine_of(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return a fitted machine and the samples as it sees them: the last step of a pipeline, after the others."""
    check_is_fitted(estimator)
    if isinstance(estimator, Pipeline):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X


def is_detector(estimator: Any) -> bool:
    """Whether it is a novelty detector; an error if it is no classifier either."""
    if is_outlier_detector(estimator):
        return True
    if not is_classifier(estimator):
        raise ValueError(
            f"this picture is about classifiers and novelty detectors, and {type(estimator).__name__} is neither"
        )
    return False


def class_numbers(machine: Any, y: Any) -> Indices:
    """Return the number of each label among the classes of a fitted machine."""
    labels = np.asarray(y)
    numbers = np.searchsorted(machine.classes_, labels)
    if not np.array_equal(machine.classes_[np.minimum(numbers, len(machine.classes_) - 1)], labels):
        unknown = sorted(set(labels.tolist()) - set(machine.classes_.tolist()))
        raise ValueError(f"y has labels that the estimator was not fitted on: {unknown}")
    return numbers


def margins_of(machine: Any, X: Any, numbers: Indices) -> Floats:
    """Return m = y f(x) of each sample, the smallest if it has several."""
    classes = len(machine.classes_)
    scheme = getattr(machine, "multi_class", "ovr")
    if classes == 2:
        return np.asarray(np.where(numbers == 1, 1.0, -1.0) * machine.decision_function(X))
    if scheme == "ovo":
        by_pair = copy(machine).set_params(decision_function_shape="ovo", break_ties=False)
        margins = np.full((len(numbers), classes), np.inf)  # against each other class
        values = by_pair.decision_function(X)
        for column, (first, second) in enumerate(combinations(range(classes), 2)):
            of_first, of_second = numbers == first, numbers == second
            margins[of_first, second] = values[of_first, column]
            margins[of_second, first] = -values[of_second, column]
        return np.asarray(margins.min(axis=1))
    scores = np.array(machine.decision_function(X))
    own = np.arange(classes) == numbers[:, None]
    if scheme == "ovr":
        return np.asarray(np.where(own, scores, -scores).min(axis=1))
    return np.asarray(scores[own] - np.where(own, -np.inf, scores).max(axis=1))


def sides_of(machine: Any, X: Any, margins: Floats) -> Indices:
    """Return the `Side` of each sample by its margin, and of training samples by their dual variables."""
    by_margin = np.where(margins < 0, Side.WRONG, np.where(margins < 1, Side.INSIDE, Side.BEYOND))
    if not (is_training_data(machine, X) and hasattr(_geometries(machine)[0], "free")):
        return np.where(np.abs(margins - 1) <= EDGE, Side.ON, by_margin)
    geometries = _geometries(machine)
    taking_part, free, bounded = (_members(geometries, name, len(margins)) for name in ("samples", "free", "bounded"))
    certificates = machine.certificate_ if isinstance(machine.certificate_, list) else [machine.certificate_]
    edge = max(LEAST_EDGE, *(2 * certificate.violation for certificate in certificates))
    on_edge = free & ~bounded & (np.abs(margins - 1) <= edge)
    by_dual = np.where(free | bounded, np.where(margins < 0, Side.WRONG, Side.INSIDE), Side.BEYOND)
    return np.where(on_edge, Side.ON, np.where(taking_part, by_dual, by_margin))  # some rows may have no weight


def detected_sides(machine: Any, X: Any) -> Indices:
    """Return the `Side` of each sample of a novelty detector."""
    sides = np.where(machine.decision_function(X) < 0, Side.WRONG, Side.BEYOND)
    if is_training_data(machine, X):
        geometry = machine.geometry_
        sides[geometry.edge], sides[geometry.outside], sides[geometry.inside] = Side.ON, Side.WRONG, Side.BEYOND
    return sides


def is_training_data(machine: Any, X: Any) -> bool:
    """Whether a kernel machine was fitted on these samples: its support vectors are found among them."""
    if not hasattr(machine, "support_") or X.shape != machine.shape_fit_:
        return False
    if isinstance(machine.kernel, str) and machine.kernel == "precomputed":
        return True  # a square of kernel values, and nothing to compare it with
    rows, known = (X.iloc if hasattr(X, "iloc") else X)[machine.support_], machine.support_vectors_
    if sparse.issparse(rows):
        return bool(sparse.issparse(known) and (rows != known).nnz == 0)
    return bool(np.array_equal(np.asarray(rows), np.asarray(known)))


def _geometries(machine: Any) -> list[Any]:
    return machine.geometry_ if isinstance(machine.geometry_, list) else [machine.geometry_]


def _members(geometries: list[Any], name: str, size: int) -> np.ndarray:
    """Return which samples are among those of this name in any geometry."""
    found = np.zeros(size, dtype=bool)
    for geometry in geometries:
        found[getattr(geometry, name)] = True
    return found
