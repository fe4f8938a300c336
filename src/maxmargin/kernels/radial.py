"""Kernels that fall off exponentially with a distance: k(x, z) = exp(−γ Σ_k distance(x_k, z_k))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.formula import Formula, FormulaKernel, Function, Term
from maxmargin.kernels.points import as_points


@dataclass(frozen=True)
class Radial(FormulaKernel):
    """What gaussian, Laplacian and chi-squared kernels share; they differ in the distance."""

    gamma: float = 1.0
    distance: ClassVar[Term]

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    @property
    def formula(self) -> Formula:
        return Formula(self.distance, Function.EXPONENTIAL, float(self.gamma))

    def diagonal(self, points: Any) -> Floats:
        return np.ones(len(as_points(points)))
