"""The sigmoid kernel k(x, z) = tanh(γ x·z + c).

It is not positive semi-definite in general, so the dual is not concave and its stationary points need not be
global maxima; see `docs/mathematics.md` on indefinite kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import Formula, FormulaKernel, Function, Term


@dataclass(frozen=True)
class Sigmoid(FormulaKernel):
    """k(x, z) = tanh(gamma x·z + coef0)."""

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    @property
    def formula(self) -> Formula:
        return Formula(Term.PRODUCT, Function.TANGENT, float(self.gamma), float(self.coef0))
