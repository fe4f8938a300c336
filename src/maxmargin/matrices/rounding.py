"""Bounds on the rounding errors of products with a matrix, in float64 and in double-double arithmetic."""

from __future__ import annotations

from typing import NamedTuple

from maxmargin._typing import Floats, Indices
from maxmargin.precision import UNIT_ROUNDOFF


class Errors(NamedTuple):
    """Bounds on the error of each entry of a product with a matrix.

    Attributes
    ----------
    double : float array
        Of the product in float64.
    extended : float array
        Of the product in double-double arithmetic.
    """

    double: Floats
    extended: Floats

    def plus(self, other: Errors) -> Errors:
        """Return the sums of the bounds."""
        return Errors(self.double + other.double, self.extended + other.extended)

    def take(self, indices: Indices) -> Errors:
        """Return the bounds of some entries."""
        return Errors(self.double[indices], self.extended[indices])


def sum_errors(terms: int, roundings: int, size: Floats) -> Errors:
    """Return the errors of sums of products, `size` = Σ |terms|, of which each is rounded `roundings` times.

    The bound of double-double arithmetic is that of the compensated inner product (native/double_double.hpp).
    """
    return Errors(roundings * UNIT_ROUNDOFF * size, 4.0 * (terms + 8.0) ** 2 * UNIT_ROUNDOFF**2 * size)
