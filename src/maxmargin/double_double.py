"""Arrays of about 106 bits: unevaluated sums of two float64 arrays (Dekker 1971).

Certificates whose rounding errors in float64 are too large are evaluated in this arithmetic. A sum or product has a
relative error below 2⁻¹⁰⁰, unless it overflows or underflows; overflow gives NaN in the low part.
"""

from __future__ import annotations

from math import frexp, fsum, inf, isfinite, ldexp, nan
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices

#: Relative error of one operation on double-double numbers, with a margin: 2⁻¹⁰⁰.
EXTENDED_EPSILON = 2.0**-100

#: Fewer numbers are added by `math.fsum` alone. Of more, most parts of a sum are extracted before.
MIN_COMPRESSED, MAX_EXTRACTIONS = 2**10, 6

#: Multiplier of Veltkamp's splitting of a double into two halves of 26 bits.
_SPLITTER = 2.0**27 + 1.0


class DoubleDouble(NamedTuple):
    """The numbers high + low, with |low| at most half a unit in the last place of high."""

    high: Floats
    low: Floats

    @classmethod
    def of(cls, values: Floats) -> DoubleDouble:
        """Return float64 numbers as they are."""
        return cls(values, np.zeros_like(values))

    def plus(self, other: DoubleDouble) -> DoubleDouble:
        """Return the sum."""
        total, error = two_sum(self.high, other.high)
        low, rest = two_sum(self.low, other.low)
        total, error = _normalised(total, error + low)
        return _normalised(total, rest + error)

    def minus(self, other: DoubleDouble) -> DoubleDouble:
        """Return the difference."""
        return self.plus(DoubleDouble(-other.high, -other.low))

    def times(self, other: DoubleDouble) -> DoubleDouble:
        """Return the product."""
        product, error = two_product(self.high, other.high)
        return _normalised(product, error + (self.high * other.low + self.low * other.high))

    def scaled(self, factor: Floats | float) -> DoubleDouble:
        """Return the product with float64 numbers."""
        product, error = two_product(self.high, np.broadcast_to(np.float64(factor), self.high.shape))
        return _normalised(product, error + self.low * factor)

    def take(self, indices: Any) -> DoubleDouble:
        """Return some of the numbers."""
        return DoubleDouble(self.high[indices], self.low[indices])


def two_sum(left: Floats, right: Floats) -> DoubleDouble:
    """Return left + right exactly."""
    total = left + right
    shift = total - left
    return DoubleDouble(total, (left - (total - shift)) + (right - shift))


def two_product(left: Floats, right: Floats) -> DoubleDouble:
    """Return left · right exactly."""
    product = left * right
    (lh, ll), (rh, rl) = _split(left), _split(right)
    return DoubleDouble(product, ((lh * rh - product) + lh * rl + ll * rh) + ll * rl)


def exact_sum(*terms: DoubleDouble) -> float:
    """Return the sum of all numbers, correctly rounded to float64; not a number where it overflows."""
    return rounded_sum(summands(*terms))


def rounded_sum(values: Floats) -> float:
    """Return the sum of float64 numbers, correctly rounded; not a number where it overflows."""
    try:
        total = fsum(values)
    except (OverflowError, ValueError):  # finite numbers with a sum beyond float64, and infinite ones of both signs
        return nan
    return total if isfinite(total) else nan


def summands(*terms: DoubleDouble) -> Floats:
    """Return float64 numbers, few if possible, with exactly the same sum."""
    return np.concatenate([compressed(np.ravel(part)) for term in terms for part in (term.high, term.low)])


def compressed(values: Floats) -> Floats:
    """Return numbers with exactly the same sum, of many only a few (the extraction of Rump, Ogita & Oishi 2008).

    Added to a power of two that is larger than their sum, numbers are rounded to multiples of its last digit, which
    have an exact sum in float64; the same is done with the rest, until it is 0.
    """
    if len(values) < MIN_COMPRESSED:
        return values
    rest, sums = values.copy(), []
    digits = len(values).bit_length() + 1
    for _ in range(MAX_EXTRACTIONS):
        largest = max(-float(rest.min()), float(rest.max()))
        exponent = digits + frexp(largest)[1]
        if not 0.0 < largest < inf or exponent > 1023:  # also if it is not a number
            break
        unit = ldexp(1.0, exponent)
        rounded = (rest + unit) - unit
        sums.append(float(rounded.sum()))
        rest -= rounded
    return np.concatenate([sums, rest[rest != 0.0]])


def extended_sums(place: Indices, values: DoubleDouble, count: int) -> DoubleDouble:
    """Return the sum of the values at each of `count` places."""
    total = DoubleDouble(np.zeros(count), np.zeros(count))
    order = np.argsort(place, kind="stable")
    rank = np.arange(len(place)) - np.searchsorted(place[order], place[order])
    ends = np.cumsum(np.bincount(rank))
    for chosen in np.split(order[np.argsort(rank, kind="stable")], ends[:-1]):  # the k-th value of every place
        partial = total.take(place[chosen]).plus(values.take(chosen))
        total.high[place[chosen]], total.low[place[chosen]] = partial
    return total


def _normalised(high: Floats, low: Floats) -> DoubleDouble:
    total = high + low
    return DoubleDouble(total, low - (total - high))


def _split(values: Floats) -> tuple[Floats, Floats]:
    scaled = values * _SPLITTER
    high = scaled - (scaled - values)
    return high, values - high
