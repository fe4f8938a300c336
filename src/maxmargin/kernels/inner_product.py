"""Kernels that are functions of the inner product x·z: linear, polynomial and sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.native_kernel import NativeKernel, check_gamma


@dataclass(frozen=True)
class Linear(NativeKernel):
    """k(x, z) = x·z: the feature space is the input space."""

    @property
    def formula(self) -> KernelFormula:
        return KernelFormula(Term.PRODUCT)

    @property
    def positive_semidefinite(self) -> bool:
        return True


@dataclass(frozen=True)
class Polynomial(NativeKernel):
    """k(x, z) = (gamma x·z + coef0)^degree: all products of up to `degree` features."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number of at least 0, not {self.degree}")
        check_gamma(self.gamma)

    @property
    def formula(self) -> KernelFormula:
        return KernelFormula(Term.PRODUCT, OuterFunction.POWER, float(self.gamma), float(self.coef0), int(self.degree))

    @property
    def positive_semidefinite(self) -> bool:
        return self.coef0 >= 0


@dataclass(frozen=True)
class Sigmoid(NativeKernel):
    """k(x, z) = tanh(gamma x·z + coef0).

    The kernel is not positive semi-definite in general, so the dual is not concave and a stationary point need not be a
    global maximum; see `docs/mathematics.md` on indefinite kernels.
    """

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def formula(self) -> KernelFormula:
        return KernelFormula(Term.PRODUCT, OuterFunction.TANGENT, float(self.gamma), float(self.coef0))
