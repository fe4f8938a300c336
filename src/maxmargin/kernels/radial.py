"""Kernels that fall off exponentially with a distance: k(x, z) = exp(−γ Σ_k distance(x_k, z_k))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Floats, Points, Term, as_points, pair_sums


@dataclass(frozen=True)
class Radial(Kernel):
    """What gaussian, Laplacian and chi-squared kernels share; they differ in the distance."""

    gamma: float = 1.0
    distance: ClassVar[Term]

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    def evaluate(self, left: Points, right: Points) -> Floats:
        values = pair_sums(self.distance, left, right)
        np.maximum(values, 0.0, out=values)  # sums over sparse rows may round below zero
        values *= -self.gamma
        return np.exp(values, out=values)

    def diagonal(self, points: Any) -> Floats:
        return np.ones(len(as_points(points)))
