"""Kernels as the estimators of multiple kernel learning take them: a list of names, objects, functions and families.

A family is a dict that stands for several kernels: one for each combination of its values.

    {"kernel": "rbf", "gamma": [0.01, 0.1, 1.0]}            one for each γ
    {"kernel": "rbf", "gamma_factors": [0.25, 1.0, 4.0]}    the same, relative to γ ("scale" if it is not given)
    {"kernel": "linear", "features": [[0, 1], [2, 3]]}      one for each group of features, by number or name
    {"kernel": "rbf", "features": "each"}                   one for each feature
    {"kernel": "poly", "degree": [1, 2, 3], "coef0": 1.0}   one for each degree
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import KERNELS, Kernel, OnFeatures, make_kernel
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.machines.validation.training_data import resolve_gamma

#: What ``kernels=None`` stands for: the linear kernel and five Gaussian kernels.
DEFAULT_KERNELS: tuple[Any, ...] = ("linear", {"kernel": "rbf", "gamma_factors": (1 / 16, 1 / 4, 1.0, 4.0, 16.0)})

#: The keys of a family, and their values where they are not given.
FAMILY: dict[str, Any] = {
    "kernel": "rbf", "gamma": "scale", "gamma_factors": 1.0, "degree": 3, "coef0": 0.0, "features": None
}  # fmt: skip


@dataclass(frozen=True)
class TrainingTable:
    """The samples of a fit, for parameters that depend on them: weights of the samples, names of the features."""

    X: Any
    weights: Floats
    names: Sequence[str] | None = None

    def gamma(self, gamma: Any, features: tuple[int, ...] | None) -> float:
        """Return a number for "scale" or "auto", by some of the features or all."""
        X = self.X if features is None or not isinstance(gamma, str) else self.X[:, list(features)]
        resolved = resolve_gamma(gamma, X, self.weights)
        assert isinstance(resolved, float)
        return resolved


def make_kernels(kernels: Any, table: TrainingTable) -> list[Kernel]:
    """Return the kernels of the parameter ``kernels``, or raise."""
    if kernels is None:
        kernels = DEFAULT_KERNELS
    if isinstance(kernels, str | Mapping) or not isinstance(kernels, Sequence) or not len(kernels):
        raise ValueError(
            "kernels must be a list with a name, a Kernel object, a function or a dict such as "
            f"{{'kernel': 'rbf', 'gamma': [0.1, 1.0]}} for each kernel, or 'precomputed', not {kernels!r}"
        )
    found: list[Kernel] = []
    for entry in kernels:
        found += _family(entry if isinstance(entry, Mapping) else {"kernel": entry}, table)
    return found


def _family(entry: Mapping[str, Any], table: TrainingTable) -> list[Kernel]:
    """Return the kernels of one entry."""
    unknown = [key for key in entry if key not in FAMILY]
    if unknown:
        raise ValueError(f"a dict in kernels has the keys {', '.join(map(repr, FAMILY))}, not {unknown[0]!r}")
    values = {**FAMILY, **entry}
    kernel = values["kernel"]
    named = isinstance(kernel, str)
    if not named and (given := [key for key in entry if key not in ("kernel", "features")]):
        raise ValueError(f"{given[0]!r} in kernels is for kernels by name; give it to the kernel object itself")
    if named and kernel not in KERNELS:
        make_kernel(kernel, 0.0, 0.0, 0)  # raises
    found = []
    for group in _groups(values["features"], table):
        lists = (_listed(values[key]) for key in ("gamma", "gamma_factors", "degree", "coef0"))
        for gamma, factor, degree, coef0 in product(*lists) if named else [(0.0, 1.0, 0, 0.0)]:
            scaled = table.gamma(gamma, group) * check_number("gamma_factors", factor, above=0) if named else 0.0
            made = make_kernel(kernel, scaled, check_number("coef0", coef0), check_count("degree", degree, 0))
            found.append(made if group is None else OnFeatures(made, group))
    return found


def _listed(value: Any) -> list[Any]:
    """Return the values of one parameter of a family."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return [value]
    values = list(value)
    if not values:
        raise ValueError("a dict in kernels has an empty list of values")
    return values


def _groups(features: Any, table: TrainingTable) -> list[tuple[int, ...] | None]:
    """Return the groups of features of a family; None stands for all features."""
    if features is None:
        return [None]
    if isinstance(features, str) and features == "each":
        return [(j,) for j in range(table.X.shape[1])]
    if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray) or not len(features):
        raise ValueError(f"features must be 'each', a list of features, or a list of such lists, not {features!r}")
    nested = not isinstance(features[0], str) and np.ndim(features[0]) == 1
    groups = features if nested else [features]
    return [tuple(_number(feature, table) for feature in group) for group in groups]


def _number(feature: Any, table: TrainingTable) -> int:
    """Return the number of a feature that is given by its number or its name."""
    if isinstance(feature, str):
        names = [] if table.names is None else list(table.names)
        if feature not in names:
            known = f"they are {', '.join(map(repr, names[:10]))}" if names else "X has no feature names"
            raise ValueError(f"there is no feature {feature!r}: {known}")
        return names.index(feature)
    number, width = check_count("a feature in kernels", feature, 0), table.X.shape[1]
    if number >= width:
        raise ValueError(f"a kernel is for feature {number}, counted from 0, but X has {width} features")
    return number
