"""The sigmoid kernel k(x, z) = tanh(γ x·z + c).

It is not positive semi-definite in general, so the dual is not concave and its stationary points need not be
global maxima; see `docs/mathematics.md` on indefinite kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Floats, Points, as_points, pair_sums, squares


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """k(x, z) = tanh(gamma x·z + coef0)."""

    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    def evaluate(self, left: Points, right: Points) -> Floats:
        return self._of(pair_sums("product", left, right))

    def diagonal(self, points: Any) -> Floats:
        return self._of(squares(as_points(points)))

    def _of(self, products: Floats) -> Floats:
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products)
