"""Kernels that decay exponentially with a distance, k(x, z) = exp(−Σ_k γ_k distance(x_k, z_k)).

γ is one number, or one for each feature (automatic relevance determination, MacKay 1994; Neal 1996): a feature of a
small γ has little influence, one of γ = 0 none. Factors √γ_k, or γ_k for distances that are proportional to the
features, make all γ equal to 1, so the loops are the same; samples are multiplied while they are packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.formula import FeatureGammas, KernelFormula, OuterFunction, Term
from maxmargin.kernels.native_kernel import NativeKernel, check_gamma, feature_gammas
from maxmargin.kernels.points import Points, as_points

#: Features times factors must stay below this.
MAX_PRODUCT = 1e300


@dataclass(frozen=True, eq=False)
class RadialKernel(NativeKernel):
    """Base class of the Gaussian, Laplacian and chi-squared kernels, which differ in the distance.

    Parameters
    ----------
    gamma : float, or array of floats, one for each feature
    """

    gamma: float | Floats = 1.0
    distance: ClassVar[Term]

    def __post_init__(self) -> None:
        if np.ndim(self.gamma) == 0:
            check_gamma(self.gamma)
            return
        gammas = feature_gammas(self.gamma)
        gammas.flags.writeable = False
        object.__setattr__(self, "gamma", gammas)
        object.__setattr__(self, "_gammas", FeatureGammas(gammas, self.distance))  # of which there may be very many

    @property
    def positive_semidefinite(self) -> bool:
        return True

    @property
    def formula(self) -> KernelFormula:
        if isinstance(self.gamma, np.ndarray):
            return KernelFormula(self.distance, OuterFunction.EXPONENTIAL, 1.0, gammas=vars(self)["_gammas"])
        return KernelFormula(self.distance, OuterFunction.EXPONENTIAL, float(self.gamma))

    @property
    def isotropic(self) -> bool:
        """Whether all features have the same γ, given as one number."""
        return not isinstance(self.gamma, np.ndarray)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.formula == self.formula

    def __hash__(self) -> int:
        return hash((type(self), self.formula))

    def check(self, points: Points) -> None:
        gammas = self.formula.gammas
        if gammas is None:
            return
        key = ("within float64", gammas)
        if key not in points.memo:
            self.formula.factors_of(points.table.shape[1])
            stored = _values_or_extremes(points)
            largest = _native.largest_absolute(stored.reshape(-1), 1) * gammas.largest_factor
            if not largest < MAX_PRODUCT:
                raise ValueError(
                    "gamma times the features overflows float64; scale the features, or choose smaller values"
                )
            points.memo[key] = True

    def diagonal(self, points: Any) -> Floats:
        return np.ones(len(as_points(points)))


@dataclass(frozen=True, eq=False)
class Gaussian(RadialKernel):
    """k(x, z) = exp(−gamma ‖x − z‖²), the radial basis function (RBF) kernel.

    With an array it is exp(−Σ_k gamma_k (x_k − z_k)²), which ignores features of gamma 0.

    Distances are summed from differences, not computed as ‖x‖² + ‖z‖² − 2x·z: columns with a large offset (years, time
    stamps) lose no digits, and k(x, x) is exactly 1.
    """

    distance = Term.SQUARED


@dataclass(frozen=True, eq=False)
class Laplacian(RadialKernel):
    """k(x, z) = exp(−gamma Σ_k |x_k − z_k|): heavier tails than the Gaussian, robust to outlying columns."""

    distance = Term.ABSOLUTE


@dataclass(frozen=True, eq=False)
class ChiSquared(RadialKernel):
    """k(x, z) = exp(−gamma Σ_k (x_k − z_k)² / (x_k + z_k)), with 0/0 = 0, for histograms: features of at least 0."""

    distance = Term.CHI_SQUARED

    def check(self, points: Points) -> None:
        super().check(points)
        stored = _values_or_extremes(points)
        if stored.size and stored.min() < 0:
            raise ValueError(
                "the chi-squared kernel compares histograms: every feature must be at least 0. "
                "Shift or scale the data (for example with MinMaxScaler), or use kernel='laplacian'."
            )


def _values_or_extremes(points: Points) -> Any:
    """Return the stored values of the data; of those on a device, the extremes of each feature, which are copied."""
    if isinstance(points.table, DeviceRows):
        return points.table.extremes()
    return points.table.data if sparse.issparse(points.table) else points.table
