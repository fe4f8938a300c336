"""Kernels: symmetric functions of two samples, evaluated on blocks.

- `kernel`: the `Kernel` base class, and sums, products and multiples of kernels
- `radial`: `Gaussian`, `Laplacian`, `ChiSquared`
- `inner_product`: `Linear`, `Polynomial`, `Sigmoid`
- `function_kernel`: `FunctionKernel`, a callable k(X, Z) given by the user
- `combination`: `Combination`, a weighted sum of several kernels
- `on_features`: `OnFeatures`, a kernel of some of the features
- `unit_diagonal`: `UnitDiagonal`, a kernel normalised to k(x, x) = 1
- `points`: `Points`, a view of the samples that kernels compare
- `rounding`: bounds on the rounding errors of kernel values
- `device_rows`: samples in the memory of a device, as kernels on the host see them
- `split_sums`: sums over features in pairs of float32, for devices whose float64 is slow, and their errors
- `formula`, `native_kernel`, `kernel_columns`, `float32_kernel`: the interface to the native loops

The names in `__all__` are public. Names for `SVC(kernel=...)` are looked up in `KERNELS`; `Kernel` objects and
callables are used as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.combination import Combination
from maxmargin.kernels.function_kernel import FunctionKernel
from maxmargin.kernels.inner_product import Linear, Polynomial, Sigmoid
from maxmargin.kernels.kernel import Kernel, Product, Scaled, Sum
from maxmargin.kernels.native_kernel import NativeKernel, check_gamma
from maxmargin.kernels.on_features import OnFeatures
from maxmargin.kernels.points import Points
from maxmargin.kernels.radial import ChiSquared, Gaussian, Laplacian
from maxmargin.kernels.unit_diagonal import UnitDiagonal

__all__ = [
    "KERNELS",
    "ChiSquared",
    "Combination",
    "FunctionKernel",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "NativeKernel",
    "OnFeatures",
    "Points",
    "Polynomial",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "UnitDiagonal",
    "make_kernel",
]

#: The kernel of each name, as a function of scikit-learn's parameters gamma, coef0 and degree.
KERNELS: dict[str, Callable[[Any, float, int], Kernel]] = {
    "linear": lambda gamma, coef0, degree: _linear(gamma),
    "poly": lambda gamma, coef0, degree: Polynomial(degree, gamma, coef0),
    "rbf": lambda gamma, coef0, degree: Gaussian(gamma),
    "sigmoid": lambda gamma, coef0, degree: Sigmoid(gamma, coef0),
    "laplacian": lambda gamma, coef0, degree: Laplacian(gamma),
    "chi_squared": lambda gamma, coef0, degree: ChiSquared(gamma),
}
KERNELS["polynomial"] = KERNELS["poly"]
KERNELS["gaussian"] = KERNELS["rbf"]


def _linear(gamma: Any) -> Kernel:
    if np.ndim(gamma):  # one number is ignored, as by scikit-learn
        check_gamma(gamma)
    return Linear()


def make_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any], gamma: float | Floats, coef0: float, degree: int
) -> Kernel:
    """Return the kernel given by a name, a `Kernel` object or a callable k(X, Z)."""
    if isinstance(kernel, str):
        if kernel not in KERNELS:
            names = ", ".join(repr(name) for name in [*sorted(KERNELS), "precomputed"])
            raise ValueError(
                f"unknown kernel {kernel!r}; use one of the names {names}, a Kernel object, or a function k(X, Z)"
            )
        return KERNELS[kernel](gamma, coef0, degree)
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FunctionKernel(kernel)
    raise ValueError(f"kernel must be a name, a Kernel object or a function k(X, Z), not {kernel!r}")
