"""A weighted sum of several kernels: what multiple kernel learning fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.precision import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Combination(Kernel):
    """k(x, z) = Σ_m weights_m kernels_m(x, z) with weights of at least 0; a kernel of weight 0 is not evaluated.

    Parameters
    ----------
    kernels : tuple of Kernel
    weights : tuple of float
        As many as kernels.
    """

    kernels: tuple[Kernel, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.kernels or len(self.kernels) != len(self.weights):
            raise ValueError(
                f"a combination needs a weight for each kernel, not {len(self.weights)} for {len(self.kernels)}"
            )
        if not all(np.isfinite(weight) and weight >= 0 for weight in self.weights):
            raise ValueError(f"the weights of kernels must be finite and at least 0, not {self.weights}")

    @property
    def _used(self) -> list[tuple[float, Kernel]]:
        """The kernels with a positive weight; one of weight 0 if there is none."""
        pairs = list(zip(self.weights, self.kernels, strict=True))
        return [pair for pair in pairs if pair[0] > 0] or pairs[:1]

    @property
    def vectorised(self) -> bool:
        return all(kernel.vectorised for _, kernel in self._used)

    @property
    def positive_semidefinite(self) -> bool:
        return all(kernel.positive_semidefinite for _, kernel in self._used)

    def check(self, points: Points) -> None:
        for _, kernel in self._used:
            kernel.check(points)

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self._sum(lambda kernel: kernel.evaluate(left, right))

    def diagonal(self, points: Points) -> Floats:
        return self._sum(lambda kernel: kernel.diagonal(points))

    def _sum(self, values_of: Callable[[Kernel], Floats]) -> Floats:
        total: Floats | None = None
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused where they are used
            for weight, kernel in self._used:
                values = weight * values_of(kernel)
                total = values if total is None else np.add(total, values, out=total)
        assert total is not None
        return total

    def magnitudes(self, points: Points) -> Floats:
        squares = sum(weight * kernel.magnitudes(points) ** 2 for weight, kernel in self._used)
        return np.sqrt(squares)

    def diagonal_error(self, points: Points) -> Floats:
        errors = sum(weight * kernel.diagonal_error(points) for weight, kernel in self._used)
        return np.asarray(errors + self._roundings * self.magnitudes(points) ** 2)

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        errors = sum(weight * kernel.error_bound(rows, columns, weights, sums) for weight, kernel in self._used)
        size = self.magnitudes(rows) * float(self.magnitudes(columns) @ weights)
        return np.asarray(errors + self._roundings * size)

    @property
    def _roundings(self) -> float:
        """A bound on the relative error of the products and their sum."""
        return (len(self._used) + 2) * UNIT_ROUNDOFF

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        parts = [kernel.evaluate_extended(left, right, threads).scaled(weight) for weight, kernel in self._used]
        total = parts[0]
        for part in parts[1:]:
            total = total.plus(part)
        return total
