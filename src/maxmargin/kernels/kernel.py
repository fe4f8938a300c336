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
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.points import Points, as_points
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.precision import UNIT_ROUNDOFF

#: Side of the square blocks from which the diagonal of a kernel matrix is read: one call for several samples.
DIAGONAL_BLOCK = 32


class Kernel(ABC):
    """A symmetric function of two samples. Kernels add, multiply and scale: ``0.5 * Gaussian(1) + Linear()``."""

    @property
    def vectorised(self) -> bool:
        """Whether large blocks are efficient; False for a user's callable, which is called on small blocks."""
        return True

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every matrix of its values is known to be positive semi-definite; of a user's kernel it is not."""
        return False

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

    def magnitudes(self, points: Points) -> Floats:
        """Return numbers m with |k(x_i, x_j)| ≤ m_i m_j: by default √k(x, x), for a positive semi-definite kernel."""
        return np.sqrt(np.abs(self.diagonal(points)))

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        """Return a bound on Σ_j weights_j |rounding error of k(row, column_j)| for every row.

        `sums` is the arithmetic of sums over features. It is 0 by default: the values of a kernel that a user writes
        are the kernel.
        """
        return np.zeros(len(rows))

    def largest_error(self, data: Any) -> float:
        """Return a bound on the rounding error of every value k(x, z) of two of these samples."""
        points = Points(data)
        return float(self.error_bound(points, points, np.ones(len(points))).max())

    def diagonal_error(self, points: Points) -> Floats:
        """Return bounds on the rounding errors of the diagonal; 0 by default, as for all values."""
        return np.zeros(len(points))

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        """Return the block k(x, z) in double-double arithmetic."""
        return DoubleDouble.of(self.evaluate(left, right))

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

    @property
    def positive_semidefinite(self) -> bool:
        return self.first.positive_semidefinite and self.second.positive_semidefinite

    def check(self, points: Points) -> None:
        self.first.check(points)
        self.second.check(points)

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self._combined(self.first.evaluate(left, right), self.second.evaluate(left, right))

    def diagonal(self, points: Any) -> Floats:
        return self._combined(self.first.diagonal(points), self.second.diagonal(points))

    def _combined(self, first: Floats, second: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused where they are used
            values: Floats = self.combine(first, second)
        return values

    def _error_of_operation(self, rows: Points, columns: Points, weights: Floats) -> Floats:
        """Return a bound on Σ_j weights_j |error of the one operation|, given exact operands."""
        left, right = self.magnitudes(rows), self.magnitudes(columns)
        return np.asarray(2 * UNIT_ROUNDOFF * left * float(right @ weights))


@dataclass(frozen=True)
class Sum(_Combination):
    """k(x, z) = first(x, z) + second(x, z)."""

    combine = np.add

    def magnitudes(self, points: Points) -> Floats:
        return np.hypot(self.first.magnitudes(points), self.second.magnitudes(points))

    def diagonal_error(self, points: Points) -> Floats:
        errors = self.first.diagonal_error(points) + self.second.diagonal_error(points)
        return np.asarray(errors + 2 * UNIT_ROUNDOFF * self.magnitudes(points) ** 2)

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        errors = sum(one.error_bound(rows, columns, weights, sums) for one in (self.first, self.second))
        return np.asarray(errors + self._error_of_operation(rows, columns, weights))

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        first = self.first.evaluate_extended(left, right, threads)
        return first.plus(self.second.evaluate_extended(left, right, threads))


@dataclass(frozen=True)
class Product(_Combination):
    """k(x, z) = first(x, z) · second(x, z)."""

    combine = np.multiply

    def magnitudes(self, points: Points) -> Floats:
        return self.first.magnitudes(points) * self.second.magnitudes(points)

    def diagonal_error(self, points: Points) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            errors = 2 * UNIT_ROUNDOFF * self.magnitudes(points) ** 2
            for one, other in ((self.first, self.second), (self.second, self.first)):
                errors = errors + 1.01 * other.magnitudes(points) ** 2 * one.diagonal_error(points)
        return np.where(np.isnan(errors), np.inf, errors)  # 0 times an overflow: no bound is known

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        errors = self._error_of_operation(rows, columns, weights)
        for one, other in ((self.first, self.second), (self.second, self.first)):
            # The product of both errors is covered by the factor 1.01.
            weighted = weights * other.magnitudes(columns)
            errors = errors + 1.01 * other.magnitudes(rows) * one.error_bound(rows, columns, weighted, sums)
        return np.asarray(errors)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        first = self.first.evaluate_extended(left, right, threads)
        return first.times(self.second.evaluate_extended(left, right, threads))


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

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def check(self, points: Points) -> None:
        self.kernel.check(points)

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self.factor * self.kernel.evaluate(left, right)

    def diagonal(self, points: Any) -> Floats:
        return self.factor * self.kernel.diagonal(points)

    def magnitudes(self, points: Points) -> Floats:
        size: Floats = np.sqrt(self.factor) * self.kernel.magnitudes(points)
        return size

    def diagonal_error(self, points: Points) -> Floats:
        errors = self.factor * self.kernel.diagonal_error(points)
        return np.asarray(errors + 2 * UNIT_ROUNDOFF * self.magnitudes(points) ** 2)

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        left, right = self.magnitudes(rows), self.magnitudes(columns)
        operation = 2 * UNIT_ROUNDOFF * left * float(right @ weights)
        return np.asarray(self.factor * self.kernel.error_bound(rows, columns, weights, sums) + operation)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        return self.kernel.evaluate_extended(left, right, threads).scaled(self.factor)
