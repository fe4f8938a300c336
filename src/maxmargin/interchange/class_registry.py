"""Registry of the classes whose objects a model file may contain: kernels, solvers, certificates and others.

An object is stored as its class name and fields. When it is read, the fields are checked against the type hints of the
class, and the constructor validates them. Objects of other classes are never constructed from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Integral, Real
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from maxmargin import solvers
from maxmargin._typing import Floats, Indices
from maxmargin.formulations.all_in_one import ClassGeometry
from maxmargin.formulations.c_classification import MarginGeometry
from maxmargin.formulations.data_description import BallGeometry
from maxmargin.formulations.epsilon_regression import TubeGeometry
from maxmargin.formulations.formulation import KernelExpansion
from maxmargin.formulations.least_squares_classification import ScatterGeometry
from maxmargin.formulations.least_squares_regression import ErrorGeometry
from maxmargin.formulations.nu_classification import NuGeometry
from maxmargin.formulations.one_class import NoveltyGeometry
from maxmargin.formulations.order_ranking import RankSummary
from maxmargin.formulations.pairwise_ranking import RankGeometry
from maxmargin.formulations.quantile_regression import QuantileGeometry
from maxmargin.interchange.errors import ModelFileError
from maxmargin.kernels import (
    ChiSquared,
    Combination,
    Gaussian,
    Laplacian,
    Linear,
    OnFeatures,
    Polynomial,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    UnitDiagonal,
)
from maxmargin.models.calibration import PlattSigmoid
from maxmargin.problems import Certificate, Counters, Status
from maxmargin.training import StoredModel, TrainedLinearModel, TrainedModel
from maxmargin.training.exact_certificate import ExactCertificate

KERNELS: tuple[Any, ...] = (
    *(Linear, Polynomial, Gaussian, Laplacian, ChiSquared, Sigmoid),
    *(Sum, Product, Scaled, Combination, OnFeatures, UnitDiagonal),
)
_SOLVER_EXPORTS: list[Any] = [getattr(solvers, name) for name in solvers.__all__]
SOLVERS: tuple[Any, ...] = tuple(filter(is_dataclass, _SOLVER_EXPORTS))
GEOMETRIES: tuple[Any, ...] = (
    MarginGeometry,
    NuGeometry,
    ScatterGeometry,
    ClassGeometry,
    TubeGeometry,
    QuantileGeometry,
    ErrorGeometry,
    NoveltyGeometry,
    BallGeometry,
    RankGeometry,
    RankSummary,
)

FieldCheck = Callable[[Any], bool]

#: Enumerations, stored by the name of the member.
ENUMERATIONS: dict[str, type[Enum]] = {"Status": Status}


def check_of(hint: Any) -> FieldCheck:
    """Return the check for a type hint; integers are accepted as floats."""
    if hint is Any:
        return lambda value: True
    if hint in (Floats, Indices):
        dtype = np.dtype(np.float64 if hint == Floats else np.int64)
        return lambda value: isinstance(value, np.ndarray) and value.dtype == dtype
    if get_origin(hint) in (Union, UnionType):
        choices = [check_of(choice) for choice in get_args(hint)]
        return lambda value: any(check(value) for check in choices)
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if kinds[1:] == (Ellipsis,):
            check = check_of(kinds[0])
            return lambda value: isinstance(value, tuple) and all(map(check, value))
        parts = [check_of(part) for part in kinds]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(check(part) for check, part in zip(parts, value, strict=True))
        )
    if hint is float:
        return _is_number
    if hint is int:
        return lambda value: _is_number(value) and (isinstance(value, Integral) or float(value).is_integer())
    if hint is bool:
        return lambda value: isinstance(value, bool | np.bool_)
    return lambda value: isinstance(value, hint)


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number; NumPy does not take integers beyond int64 for numbers."""
    if type(value) is float:
        return True
    valid = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return valid and (not isinstance(value, Integral) or abs(int(value)) < 2**63)


class RegisteredClass(NamedTuple):
    """A class with the checks of its fields, and functions that return the fields and construct objects."""

    kind: type
    checks: dict[str, FieldCheck]
    fields_of: Callable[[Any], dict[str, Any]]
    construct: Callable[..., Any]

    def restore(self, name: str, values: dict[str, Any]) -> Any:
        """Return the object, or raise if its fields are invalid."""
        for field, value in values.items():
            if field not in self.checks:
                raise ModelFileError(f"{name} has no field {field[:40]!r}")
            if not self.checks[field](value):
                raise ModelFileError(f"{name}: the field {field!r} has the wrong type")
        try:
            return self.construct(**values)
        except (TypeError, ValueError) as error:  # a field is missing or out of range
            raise ModelFileError(f"{name}: {error}") from error


def _register(kind: type, names: Iterable[str]) -> RegisteredClass:
    hints = get_type_hints(kind)
    checks = {name: check_of(hints[name]) for name in names}
    return RegisteredClass(kind, checks, lambda value: {name: getattr(value, name) for name in checks}, kind)


_STORED = _register(StoredModel, StoredModel._fields)

#: The registered classes by their name in files.
CLASSES: dict[str, RegisteredClass] = {
    **{
        kind.__name__: _register(kind, [field.name for field in fields(kind)])
        for kind in (*KERNELS, *SOLVERS, *GEOMETRIES, Certificate, ExactCertificate, Counters, TrainedLinearModel)
    },
    "KernelExpansion": _register(KernelExpansion, KernelExpansion._fields),
    "PlattSigmoid": _register(PlattSigmoid, PlattSigmoid._fields),
    "TrainedModel": RegisteredClass(
        TrainedModel,
        _STORED.checks,
        lambda model: _STORED.fields_of(model.stored()),
        lambda **values: TrainedModel.from_stored(StoredModel(**values)),
    ),
}
