"""The `Formulation` protocol, and functions that several formulations share."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

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


def bias_constraint(size: int, fit_intercept: bool) -> dict[str, Any]:
    """Return the arguments `group` and `total` of a dual problem for one constraint Σ b_i = 0, or none."""
    groups = 1 if fit_intercept else 0
    return {"group": np.full(size, groups - 1, dtype=np.int32), "total": np.zeros(groups)}


def support_partition(problem: DualProblem, dual: Floats, samples: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the free support vectors, the bounded support vectors and the other samples."""
    support = dual != 0
    bounded = support & ((dual == problem.lower) | (dual == problem.upper))
    return samples[support & ~bounded], samples[bounded], samples[~support]


def margin_of(squared_norm: float) -> float:
    """Return 1/‖w‖, infinite for w = 0."""
    norm = np.sqrt(max(squared_norm, 0.0))
    return float(1.0 / norm) if norm > 0 else float("inf")


def bias_of(problem: DualProblem, offset: Floats) -> float:
    """Return the bias of a problem with at most one group: its offset, 0 without a group."""
    return float(offset[0]) if problem.groups else 0.0


def signed(problem: DualProblem, values: Floats) -> Floats:
    """Return values of the variables with the signs of the expansion: of a signed matrix, the variables are |b|."""
    return problem.matrix.signs * values if isinstance(problem.matrix, SignedMatrix) else values


def mean_offset(offset: Floats) -> float:
    """Return the bias b of a problem with two groups, the mean of their offsets; 0 with a single group."""
    return 0.5 * float(offset[0] + offset[1]) if len(offset) == 2 else 0.0
