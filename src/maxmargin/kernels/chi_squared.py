"""The chi-squared kernel k(x, z) = exp(−γ Σ (x_k − z_k)² / (x_k + z_k)) for histograms: features of at least 0."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import sparse

from maxmargin.kernels.formula import Term
from maxmargin.kernels.points import Points
from maxmargin.kernels.radial import Radial


@dataclass(frozen=True)
class ChiSquared(Radial):
    """k(x, z) = exp(−gamma Σ_k (x_k − z_k)² / (x_k + z_k)), with 0/0 = 0."""

    distance = Term.CHI_SQUARED

    def check(self, points: Points) -> None:
        stored = points.data.data if sparse.issparse(points.data) else points.data
        if stored.size and stored.min() < 0:
            raise ValueError(
                "the chi-squared kernel compares histograms: every feature must be at least 0. "
                "Shift or scale the data (for example with MinMaxScaler), or use kernel='laplacian'."
            )
