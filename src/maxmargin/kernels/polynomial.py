"""The polynomial kernel k(x, z) = (γ x·z + c)^d: all products of up to d features."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import Formula, FormulaKernel, Function, Term


@dataclass(frozen=True)
class Polynomial(FormulaKernel):
    """k(x, z) = (gamma x·z + coef0)^degree."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number of at least 0, not {self.degree}")
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    @property
    def formula(self) -> Formula:
        return Formula(Term.PRODUCT, Function.POWER, float(self.gamma), float(self.coef0), int(self.degree))
