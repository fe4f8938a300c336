"""Sums over features in pairs of float32, for GPUs whose float64 is slow, and bounds on their errors.

A pair is the sum of two numbers of 24 bits, the second at most half a unit in the last place of the first. With
u = 2⁻²⁴, without underflow and overflow, and relative to the exact result (Joldes, Muller and Popescu 2017; Muller and
Rideau 2022):

    sum of two pairs      3 u² + 13 u³, whatever the signs (AccurateDWPlusDW)
    product of two pairs  5 u² (DWTimesDW3)
    a number of float64   u², as the pair of its rounding and of the rounding of the rest; 0 of float32

A difference is off by 3 u² of itself, its square by 11.1 u², and a sum of q of them, all positive, by
(3.1 (q − 1) + 11.1) u², at most (4 q + 16) u². A sum of q products is off by as much of Σ |x_k z_k|, in any order. The
rounding of features adds u² (|x_k| + |z_k|) to each difference, or 2 u² |x_k z_k| to each product, which is one of the
20 − 16 that are left. u² is 2⁻⁴⁸, or 32 units of the rounding of float64: so the bounds in `rounding` hold with
32 (4 q + 20) roundings more.

Features are multiplied by a power of 2, `unit`, that makes the largest magnitude at most 2⁴⁰: squares and their sums
are then below 2¹⁰³ and cannot overflow. What underflows is at most 2⁻¹⁴⁷ in a product. A feature loses up to 2⁻¹⁵⁰,
which is multiplied by less than 2⁴³ in a square: less than q 2⁻¹⁰⁴ for a sum, in units of unit⁻², and q 2⁻¹⁴⁶ of
unit⁻¹ where differences are not squared.

The sum is converted to float64, which is exact, and so are the function of the sum, and sums over samples, as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import frexp

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.formula import KernelFormula, Term
from maxmargin.kernels.points import Points

#: Features are scaled so that the largest magnitude is at most 2 to the power of this.
LARGEST_EXPONENT = 40

#: Features beyond 2 to the power of this, or all below its inverse, are for float64: scales would overflow.
MAX_EXPONENT = 330

#: u², the relative error of a feature as a pair, and what that is in units of 2⁻⁵³.
PAIR_ERROR, ROUNDINGS = 2.0**-48, 32


class FeatureSums(Enum):
    """The arithmetic of sums over features; kernel values and sums over samples are float64 in any case."""

    DOUBLE = "float64"
    PRODUCTS = "float64, squared distances from norms and inner products where that is accurate"
    SPLIT = "pairs of float32"


@dataclass(frozen=True)
class SplitSums:
    """Sums over features in pairs of float32.

    Attributes
    ----------
    unit : float
        The power of 2 that features are multiplied by.
    roundings : int
        Of a sum, in units of those of float64, in addition to them.
    underflow : float
        A bound on the error of a sum by underflow.
    """

    unit: float
    roundings: int
    underflow: float

    @classmethod
    def of(cls, formula: KernelFormula, points: Points) -> SplitSums | None:
        """Return the sums of a kernel of these samples, None if they are float64 in any case."""
        if formula.term is Term.CHI_SQUARED:  # a quotient
            return None
        exponent = frexp(_largest(formula, points))[1]
        if abs(exponent) > MAX_EXPONENT:
            return None
        width, unit = int(points.table.shape[1]), 2.0 ** (LARGEST_EXPONENT - exponent)
        lost = 2.0**-146 / unit if formula.term is Term.ABSOLUTE else 2.0**-104 / unit**2
        return cls(unit, ROUNDINGS * (4 * width + 20), width * lost)


def _largest(formula: KernelFormula, points: Points) -> float:
    """Return a bound on the magnitude of features, multiplied by the factors of a formula that has them."""
    if "largest" not in points.memo:
        table = points.table
        if isinstance(table, DeviceRows):
            points.memo["largest"] = float(np.abs(table.extremes()).max())
        else:
            stored = table.data if sparse.issparse(table) else table
            points.memo["largest"] = float(_native.largest_absolute(stored.reshape(-1), 1)) if stored.size else 0.0
    largest: float = points.memo["largest"]
    return largest if formula.gammas is None else largest * float(formula.gammas.largest_factor)
