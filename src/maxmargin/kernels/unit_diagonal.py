"""A kernel normalised to k(x, x) = 1: the cosine in feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.precision import UNIT_ROUNDOFF


@dataclass(frozen=True)
class UnitDiagonal(Kernel):
    """k(x, z) = factor(x) kernel(x, z) factor(z), factor(x) = 1/√kernel(x, x), and 0 where kernel(x, x) is not above 0.

    The factors are what float64 makes of them, so the diagonal is 1 up to a few roundings.

    Examples
    --------
    >>> from maxmargin.kernels import Linear, UnitDiagonal
    >>> UnitDiagonal(Linear())([[2.0, 0.0], [0.0, 4.0]])
    array([[1., 0.],
           [0., 1.]])
    """

    kernel: Kernel

    @property
    def vectorised(self) -> bool:
        return self.kernel.vectorised

    @property
    def positive_semidefinite(self) -> bool:
        return self.kernel.positive_semidefinite

    def check(self, points: Points) -> None:
        self.kernel.check(points)

    def _factors(self, points: Any) -> Floats:
        diagonal = self.kernel.diagonal(points)
        positive = diagonal > 0
        factors: Floats = np.where(positive, 1.0 / np.sqrt(np.where(positive, diagonal, 1.0)), 0.0)
        return factors

    def evaluate(self, left: Points, right: Points) -> Floats:
        values = self.kernel.evaluate(left, right)
        values *= np.outer(self._factors(left), self._factors(right))
        return values

    def diagonal(self, points: Any) -> Floats:
        factors = self._factors(points)
        values: Floats = self.kernel.diagonal(points) * (factors * factors)
        return values

    def magnitudes(self, points: Points) -> Floats:
        return self.kernel.magnitudes(points) * self._factors(points)

    def diagonal_error(self, points: Points) -> Floats:
        errors = self._factors(points) ** 2 * self.kernel.diagonal_error(points)
        return np.asarray(errors + 4 * UNIT_ROUNDOFF * self.magnitudes(points) ** 2)

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        errors = self.kernel.error_bound(rows, columns, weights * self._factors(columns), sums) * self._factors(rows)
        size = self.magnitudes(rows) * float(self.magnitudes(columns) @ weights)
        return np.asarray(errors + 4 * UNIT_ROUNDOFF * size)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        values = self.kernel.evaluate_extended(left, right, threads)
        return values.scaled(self._factors(left)[:, None]).scaled(self._factors(right))
