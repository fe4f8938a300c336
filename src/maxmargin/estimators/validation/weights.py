"""Weights of samples and classes: factors on the cost of slack."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.validation.parameters import check_choice


def check_sample_weights(sample_weight: Any, X: Any) -> Floats:
    """Return the weight of each sample, 1 by default; 0 leaves a row out, and so does less, as in scikit-learn."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    weights: Floats = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != X.shape[:1]:
        raise ValueError(f"sample_weight.shape == {weights.shape}, but there must be one weight for each row of X")
    weights = np.maximum(weights, 0.0)
    if not weights.any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Rows of such weights are left out, "
            "so sample_weight must contain at least one number above 0"
        )
    return weights


def check_costs(cost: float, weights: Floats) -> Floats:
    """Return cost · weight of each sample, or raise: their sum and the inverse of each must be numbers."""
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        used = weights > 0
        costs: Floats = np.where(used, cost * weights, 0.0)  # not ∞ · 0
        good = np.isinf(cost) or (np.isfinite(costs.sum()) and np.isfinite(1.0 / costs[used]).all())
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
