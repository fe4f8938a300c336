"""What a formulation offers once its problem is solved."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.problems import Certificate, DualProblem


class KernelExpansion(NamedTuple):
    """f(x) = Σ coefficients_i k(x_i, x) + offset; for several functions a column and an offset each."""

    coefficients: Floats
    offset: float | Floats


def signed(problem: DualProblem, values: Floats) -> Floats:
    """Return values of the variables as those of the expansion: where the matrix has signs, the variables are |b|."""
    return problem.matrix.signs * values if isinstance(problem.matrix, SignedMatrix) else values


def middle(offset: Floats) -> float:
    """Return the b of a machine with two groups, the mean of their offsets; with a single group there is none."""
    return float(offset.mean()) if len(offset) == 2 else 0.0


class Formulation(Protocol):
    """A module of this folder."""

    def expand(self, problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
        """Return the decision function of a dual vector, given the offset ρ of each group."""
        ...

    def read(self, problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> Any:
        """Return what the solution looks like, by the training rows `samples`."""
        ...
