"""The linear kernel k(x, z) = x·z: the feature space is the input space."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import Formula, FormulaKernel, Term


@dataclass(frozen=True)
class Linear(FormulaKernel):
    """k(x, z) = x·z."""

    @property
    def formula(self) -> Formula:
        return Formula(Term.PRODUCT)
