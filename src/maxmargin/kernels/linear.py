"""The linear kernel k(x, z) = x·z: the feature space is the input space."""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.dot_product import DotProduct
from maxmargin.kernels.points import Floats


@dataclass(frozen=True)
class Linear(DotProduct):
    """k(x, z) = x·z."""

    def of(self, products: Floats) -> Floats:
        return products
