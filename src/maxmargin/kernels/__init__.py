"""Functions of two samples. Names for `SVC(kernel=...)` are looked up in `KERNELS`; objects are taken as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxmargin.kernels.chi_squared import ChiSquared
from maxmargin.kernels.formula import FormulaKernel
from maxmargin.kernels.function import FunctionKernel
from maxmargin.kernels.gaussian import Gaussian
from maxmargin.kernels.kernel import Kernel, Product, Scaled, Sum
from maxmargin.kernels.laplacian import Laplacian
from maxmargin.kernels.linear import Linear
from maxmargin.kernels.points import Points
from maxmargin.kernels.polynomial import Polynomial
from maxmargin.kernels.sigmoid import Sigmoid

__all__ = [
    "KERNELS",
    "ChiSquared",
    "FormulaKernel",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Points",
    "Polynomial",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "make_kernel",
]

#: What each name stands for, as a function of scikit-learn's three kernel parameters.
KERNELS: dict[str, Callable[[float, float, int], Kernel]] = {
    "linear": lambda gamma, coef0, degree: Linear(),
    "poly": lambda gamma, coef0, degree: Polynomial(degree, gamma, coef0),
    "rbf": lambda gamma, coef0, degree: Gaussian(gamma),
    "sigmoid": lambda gamma, coef0, degree: Sigmoid(gamma, coef0),
    "laplacian": lambda gamma, coef0, degree: Laplacian(gamma),
    "chi_squared": lambda gamma, coef0, degree: ChiSquared(gamma),
}
KERNELS["polynomial"] = KERNELS["poly"]
KERNELS["gaussian"] = KERNELS["rbf"]


def make_kernel(kernel: str | Kernel | Callable[[Any, Any], Any], gamma: float, coef0: float, degree: int) -> Kernel:
    """Return the kernel that a name, a kernel object or a function stands for."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            names = ", ".join(repr(name) for name in [*sorted(KERNELS), "precomputed"])
            raise ValueError(
                f"unknown kernel {kernel!r}; the names are {names}, and a Kernel object or a function "
                "k(X, Z) is taken as it is"
            )
        return KERNELS[kernel](gamma, coef0, degree)
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ValueError(f"kernel must be a name, a Kernel object or a function k(X, Z), not {kernel!r}")
