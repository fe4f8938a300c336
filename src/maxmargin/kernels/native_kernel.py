"""Base class of the kernels that are evaluated by the native loops."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels import rounding
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.kernel_columns import extended_block, kernel_block, kernel_diagonal
from maxmargin.kernels.points import Points, as_points
from maxmargin.kernels.split_sums import FeatureSums


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

    def error_bound(
        self, rows: Points, columns: Points, weights: Floats, sums: FeatureSums = FeatureSums.DOUBLE
    ) -> Floats:
        return rounding.error_bound(self.formula, rows, columns, weights, sums)

    def largest_error(self, data: Any) -> float:
        uniform = rounding.uniform_error(self.formula, data)
        return super().largest_error(data) if uniform is None else uniform

    def diagonal_error(self, points: Points) -> Floats:
        return rounding.diagonal_error(self.formula, points)

    def evaluate_extended(self, left: Points, right: Points, threads: int = 1) -> DoubleDouble:
        return extended_block(self.formula, left, right, threads)

    def diagonal(self, points: Any) -> Floats:
        samples = as_points(points)
        known = samples.memo.setdefault(("diagonal", self.formula), np.full(samples.count, np.nan))  # for all views
        missing = samples.index[np.isnan(known[samples.index])]
        if len(missing):
            on_device = isinstance(samples.table, DeviceRows)
            of_formula = rounding.diagonal_from_norms if on_device else kernel_diagonal
            known[missing] = of_formula(self.formula, samples.pick(missing))
        return np.asarray(known[samples.index])


def check_gamma(gamma: Any) -> None:
    """Raise ValueError if `gamma` is negative or NaN, or no number."""
    if np.ndim(gamma):
        raise ValueError(
            "a gamma for each feature is for the kernels rbf, laplacian and chi_squared; for the others give one "
            "number, and multiply the features by factors instead"
        )
    if not gamma >= 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")


def feature_gammas(gamma: Any) -> Floats:
    """Return the γ of each feature as a new array, or raise: they must be numbers of at least 0."""
    try:
        values = np.array(gamma, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"gamma must be a number, or one for each feature, not {gamma!r}") from None
    if values.ndim != 1 or not len(values):
        raise ValueError(f"gamma for each feature must be a vector, not of shape {values.shape}")
    valid = np.isfinite(values) & (values >= 0)
    if not valid.all():
        k = int(np.argmin(valid))
        raise ValueError(f"gamma must be at least 0 and finite for every feature, not {values[k]} (feature {k})")
    return values
