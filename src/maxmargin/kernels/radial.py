"""Kernels that decay exponentially with a distance, k(x, z) = exp(−γ Σ_k distance(x_k, z_k))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.native_kernel import NativeKernel, check_gamma
from maxmargin.kernels.points import Points, as_points


@dataclass(frozen=True)
class RadialKernel(NativeKernel):
    """Base class of the Gaussian, Laplacian and chi-squared kernels, which differ in the distance."""

    gamma: float = 1.0
    distance: ClassVar[Term]

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    @property
    def formula(self) -> KernelFormula:
        return KernelFormula(self.distance, OuterFunction.EXPONENTIAL, float(self.gamma))

    def diagonal(self, points: Any) -> Floats:
        return np.ones(len(as_points(points)))


@dataclass(frozen=True)
class Gaussian(RadialKernel):
    """k(x, z) = exp(−gamma ‖x − z‖²), the radial basis function (RBF) kernel.

    Distances are summed from differences, not computed as ‖x‖² + ‖z‖² − 2x·z: columns with a large offset (years, time
    stamps) lose no digits, and k(x, x) is exactly 1.
    """

    distance = Term.SQUARED


@dataclass(frozen=True)
class Laplacian(RadialKernel):
    """k(x, z) = exp(−gamma Σ_k |x_k − z_k|): heavier tails than the Gaussian, robust to outlying columns."""

    distance = Term.ABSOLUTE


@dataclass(frozen=True)
class ChiSquared(RadialKernel):
    """k(x, z) = exp(−gamma Σ_k (x_k − z_k)² / (x_k + z_k)), with 0/0 = 0, for histograms: features of at least 0."""

    distance = Term.CHI_SQUARED

    def check(self, points: Points) -> None:
        stored = points.data.data if sparse.issparse(points.data) else points.data
        if stored.size and stored.min() < 0:
            raise ValueError(
                "the chi-squared kernel compares histograms: every feature must be at least 0. "
                "Shift or scale the data (for example with MinMaxScaler), or use kernel='laplacian'."
            )
