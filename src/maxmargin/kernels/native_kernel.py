"""Base class of the kernels that are evaluated by the native loops."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels import rounding
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.kernel import DIAGONAL_BLOCK, Kernel
from maxmargin.kernels.kernel_columns import extended_block, kernel_block
from maxmargin.kernels.points import Points, as_points


class NativeKernel(Kernel):
    """A kernel given by a `KernelFormula`: evaluated natively, on dense or sparse samples, in float32 or float64."""

    @property
    @abstractmethod
    def formula(self) -> KernelFormula:
        """The description that the native loops take."""

    def evaluate(self, left: Points, right: Points, threads: int = 1) -> Floats:
        return kernel_block(self.formula, left, right, threads)

    def magnitudes(self, points: Points) -> Floats:
        return rounding.magnitudes(self.formula, points)

    def error_bound(self, rows: Points, columns: Points, weights: Floats) -> Floats:
        return rounding.error_bound(self.formula, rows, columns, weights)

    def diagonal_error(self, points: Points) -> Floats:
        return rounding.diagonal_error(self.formula, points)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        return extended_block(self.formula, left, right, threads)

    def diagonal(self, points: Any) -> Floats:
        samples = as_points(points)
        data = Points(samples.data)
        if 2 * len(samples) < len(data):
            return self._diagonal(samples)
        key = ("diagonal", self.formula)
        if key not in samples.memo:  # of all samples, for all views of them
            samples.memo[key] = self._diagonal(data)
        return np.asarray(samples.memo[key][samples.index])

    def _diagonal(self, samples: Points) -> Floats:
        parts = [samples.take(slice(start, start + DIAGONAL_BLOCK)) for start in range(0, len(samples), DIAGONAL_BLOCK)]
        return np.concatenate([np.diag(self.evaluate(part, part)) for part in parts]) if parts else np.empty(0)


def check_gamma(gamma: float) -> None:
    """Raise ValueError if `gamma` is negative or NaN."""
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
