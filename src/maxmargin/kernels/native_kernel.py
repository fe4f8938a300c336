"""Base class of the kernels that are evaluated by the native loops."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.kernel import DIAGONAL_BLOCK, Kernel
from maxmargin.kernels.kernel_columns import kernel_block
from maxmargin.kernels.points import Points, as_points


class NativeKernel(Kernel):
    """A kernel given by a `KernelFormula`: evaluated natively, on dense or sparse samples, in float32 or float64."""

    @property
    @abstractmethod
    def formula(self) -> KernelFormula:
        """The description that the native loops take."""

    def evaluate(self, left: Points, right: Points, threads: int = 1) -> Floats:
        return kernel_block(self.formula, left, right, threads)

    def diagonal(self, points: Any) -> Floats:
        samples = as_points(points)
        parts = [samples.take(slice(start, start + DIAGONAL_BLOCK)) for start in range(0, len(samples), DIAGONAL_BLOCK)]
        return np.concatenate([np.diag(self.evaluate(part, part)) for part in parts]) if parts else np.empty(0)


def check_gamma(gamma: float) -> None:
    """Raise ValueError if `gamma` is negative or NaN."""
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
