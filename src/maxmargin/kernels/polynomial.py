"""The polynomial kernel k(x, z) = (γ x·z + c)^d: all products of up to d features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.kernels.dot_product import DotProduct
from maxmargin.kernels.points import Floats


@dataclass(frozen=True)
class Polynomial(DotProduct):
    """k(x, z) = (gamma x·z + coef0)^degree."""

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.degree < 0 or self.degree != int(self.degree):
            raise ValueError(f"degree must be a whole number of at least 0, not {self.degree}")
        if not self.gamma >= 0:
            raise ValueError(f"gamma must be at least 0, not {self.gamma}")

    def of(self, products: Floats) -> Floats:
        products *= self.gamma
        products += self.coef0
        with np.errstate(over="ignore"):  # an overflow is reported once, where rows are checked
            return _whole_power(products, int(self.degree))


def _whole_power(base: Floats, exponent: int) -> Floats:
    """Return base**exponent by repeated squaring: much faster than the general power."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result *= base
        exponent //= 2
        if exponent:
            base = base * base
    return result
