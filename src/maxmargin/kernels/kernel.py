"""The `Kernel` base class: a symmetric function of two samples, evaluated on blocks.

A kernel k(x, z) is the inner product of two samples in some feature space (Bottou & Lin 1.2.2). Solvers and models
only use blocks of kernel values. To add a kernel, write a class with `evaluate` and `diagonal`; sums, products and
multiples are inherited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.points import Points, as_points

#: Side of the square blocks from which the diagonal of a kernel matrix is read: one call for several samples.
DIAGONAL_BLOCK = 32


class Kernel(ABC):
    """A symmetric function of two samples. Kernels add, multiply and scale: ``0.5 * Gaussian(1) + Linear()``."""

    @property
    def vectorised(self) -> bool:
        """Whether large blocks are efficient; False for a user's callable, which is called on small blocks."""
        return True

    def __call__(self, X: Any, Z: Any = None) -> Floats:
        """Return the block of values k(x, z) for every row x of `X` and z of `Z` (`Z` defaults to `X`)."""
        left = as_points(X)
        return self.evaluate(left, left if Z is None else as_points(Z))

    @abstractmethod
    def evaluate(self, left: Points, right: Points) -> Floats:
        """Return the block k(x, z), one row per sample of `left`, one column per sample of `right`."""

    @abstractmethod
    def diagonal(self, points: Any) -> Floats:
        """Return k(x, x) for every sample."""

    def check(self, points: Points) -> None:  # noqa: B027  # most kernels accept any numbers
        """Raise ValueError if these samples are outside the kernel's domain."""

    def __add__(self, other: Kernel) -> Kernel:
        if isinstance(other, Kernel):
            return Sum(self, other)
        return NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Scaled(float(other), self)
        return NotImplemented

    __rmul__ = __mul__


@dataclass(frozen=True)
class _Combination(Kernel):
    """An elementwise combination of two kernels."""

    first: Kernel
    second: Kernel
    combine: ClassVar[np.ufunc]

    @property
    def vectorised(self) -> bool:
        return self.first.vectorised and self.second.vectorised

    def check(self, points: Points) -> None:
        self.first.check(points)
        self.second.check(points)

    def evaluate(self, left: Points, right: Points) -> Floats:
        values: Floats = self.combine(self.first.evaluate(left, right), self.second.evaluate(left, right))
        return values

    def diagonal(self, points: Any) -> Floats:
        values: Floats = self.combine(self.first.diagonal(points), self.second.diagonal(points))
        return values


@dataclass(frozen=True)
class Sum(_Combination):
    """k(x, z) = first(x, z) + second(x, z)."""

    combine = np.add


@dataclass(frozen=True)
class Product(_Combination):
    """k(x, z) = first(x, z) · second(x, z)."""

    combine = np.multiply


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, z) = factor · kernel(x, z), factor > 0."""

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        if not (np.isfinite(self.factor) and self.factor > 0):
            raise ValueError(f"a kernel can only be scaled by a positive number, not by {self.factor}")

    @property
    def vectorised(self) -> bool:
        return self.kernel.vectorised

    def check(self, points: Points) -> None:
        self.kernel.check(points)

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self.factor * self.kernel.evaluate(left, right)

    def diagonal(self, points: Any) -> Floats:
        return self.factor * self.kernel.diagonal(points)
