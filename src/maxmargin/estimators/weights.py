"""Weights of samples and classes: factors on the cost of slack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from maxmargin.estimators.parameters import check_choice
from maxmargin.matrices.symmetric_matrix import Floats, Indices


def check_sample_weights(sample_weight: Any, X: Any) -> Floats:
    """Return the weight of each sample, 1 by default; 0 leaves a row out, negative weights are an error."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError("sample_weight must be at least 0 everywhere; 0 leaves a row out")
    return weights


def check_costs(cost: float, weights: Floats) -> Floats:
    """Return cost · weight of each sample, or raise: their sum and the inverse of each must be numbers."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        costs: Floats = cost * weights
        used = weights > 0
        good = np.isfinite(costs.sum()) and np.isfinite(1.0 / costs[used]).all()
    if not good:
        raise ValueError("the cost times the weights of the samples is too large or too small for a number")
    return costs


def class_factors(class_weight: Any, classes: Any, codes: Indices, weights: Floats) -> Floats:
    """Return the factor of each class: as given, 1 by default, or "balanced" by the weights of its samples."""
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        totals = np.bincount(codes, weights=weights)
        balanced: Floats = totals.sum() / (len(classes) * totals)
        return balanced
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, not {class_weight!r}")
    labels = classes.tolist()
    missing = [label for label in labels if label not in class_weight]
    if missing and len(class_weight) != len(labels) - len(missing):  # as scikit-learn: probably a mistyped label
        unknown = [label for label in class_weight if label not in labels]
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of the classes {labels}")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(f"class_weight must be above 0 for every class, not {class_weight!r}")
    return factors
