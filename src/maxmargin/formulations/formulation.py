"""What a formulation offers once its problem is solved."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import Certificate, DualProblem


class Expansion(NamedTuple):
    """f(x) = Σ coefficients_i k(x_i, x) + offset."""

    coefficients: Floats
    offset: float


class Formulation(Protocol):
    """A module of this folder."""

    def expand(self, problem: DualProblem, dual: Floats, offset: Floats) -> Expansion:
        """Return the decision function of a dual vector, given the offset ρ of each group."""
        ...

    def read(self, problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> Any:
        """Return what the solution looks like, by the training rows `samples`."""
        ...
