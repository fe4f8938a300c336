"""The linear kernel k(x, z) = x·z: the feature space is the input space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Floats, Points, as_points, pair_sums, squares


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, z) = x·z."""

    def evaluate(self, left: Points, right: Points) -> Floats:
        return pair_sums("product", left, right)

    def diagonal(self, points: Any) -> Floats:
        return squares(as_points(points))
