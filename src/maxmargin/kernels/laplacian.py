"""The Laplacian kernel k(x, z) = exp(−γ Σ|x_k − z_k|): heavier tails than the gaussian, robust to outlying columns."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import Term
from maxmargin.kernels.radial import Radial


@dataclass(frozen=True)
class Laplacian(Radial):
    """k(x, z) = exp(−gamma Σ_k |x_k − z_k|)."""

    distance = Term.ABSOLUTE
