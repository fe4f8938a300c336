"""The `Formulation` protocol, and functions that several formulations share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypedDict

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.problems import Certificate, DualProblem


class KernelExpansion(NamedTuple):
    """f(x) = Σ coefficients_i k(x_i, x) + offset; for several functions, a column and an offset each."""

    coefficients: Floats
    offset: float | Floats


class Formulation(Protocol):
    """The functions that every module of this package provides besides `pose`."""

    def expand(self, problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
        """Return the decision function of a dual vector, given the offset ρ of each group."""
        ...

    def read(self, problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> Any:
        """Return the geometry of a solution, with sample indices taken from `samples`."""
        ...


class BiasConstraint(TypedDict):
    """The arrays of a dual problem for an unregularised bias: one group of total 0, or no group."""

    group: np.ndarray
    total: Floats


def bias_constraint(size: int, fit_intercept: bool) -> BiasConstraint:
    """Return group and total of `size` variables with one equality constraint Σ b_i = 0, or without."""
    return BiasConstraint(
        group=np.full(size, 0 if fit_intercept else -1, dtype=np.int32), total=np.zeros(1 if fit_intercept else 0)
    )


def signed(problem: DualProblem, values: Floats) -> Floats:
    """Return values of the variables with the signs of the expansion: of a signed matrix, the variables are |b|."""
    return problem.matrix.signs * values if isinstance(problem.matrix, SignedMatrix) else values


def mean_offset(offset: Floats) -> float:
    """Return the bias b of a problem with two groups, the mean of their offsets; 0 with a single group."""
    return float(offset.mean()) if len(offset) == 2 else 0.0
