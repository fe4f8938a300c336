"""Features as sums of two numbers of half precision, which tensor cores multiply.

Tensor cores multiply numbers of 11 bits. A feature is stored as the sum of two of them, high and low, which is exact to
about 22 bits; the product of two low parts, which is left out, is smaller than that. Features are multiplied by a power
of 2 first, so that the low parts are normal numbers. Integers up to 2048, as in images, are exact in one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import floor, log2
from typing import Any

import numpy as np

from maxmargin.cuda.device import DeviceError, cupy

#: Values that are prepared at a time: the temporary arrays take some of 8 bytes for each.
PREPARED_VALUES = 2**25

#: Features are scaled so that the largest magnitude is at most this: the low part is exact to 2⁻²⁴ times that.
LARGEST_FEATURE = 4096.0

#: Features beyond this, or all below its inverse, have scales that overflow.
LARGEST_MAGNITUDE = 1e100

#: Integers up to this are exact in one half-precision number.
LARGEST_EXACT_INTEGER = 2048

#: Factors that make integers of usual data: none, and images divided by 255.
INTEGER_FACTORS = (1.0, 255.0)

#: A two-valued feature is cut where it alone makes the kernel value 2 to the power of minus this.
LARGEST_FLAG_EXPONENT = 60.0

#: Widths are padded to a multiple of this, the depth of a product of tensor cores.
WIDTH_MULTIPLE = 16

#: Samples whose medians are the centre, one in so many.
CENTRE_SAMPLES = 4096

#: High and low parts of features; the low part is None if it is 0.
Halves = tuple[Any, Any]

#: From rows to their features as they are prepared.
RowValues = Callable[[slice], Any]

#: What the preparations of the same samples for several formulas have in common, by name.
Shared = dict[str, Any]


def is_extreme(data: Any) -> bool:
    """Whether the scales of features overflow."""
    return _is_extreme(_largest(data.shape, lambda rows: data[rows]))


def _is_extreme(largest: float) -> bool:
    return largest > LARGEST_MAGNITUDE or 0.0 < largest < 1.0 / LARGEST_MAGNITUDE


def once(shared: Shared, name: str, make: Callable[[], Any]) -> Any:
    """Return what is kept under a name, made when it is first needed."""
    if name not in shared:
        shared[name] = make()
    return shared[name]


def with_squares(found: tuple[Halves, float] | None) -> tuple[Halves, float, Any] | None:
    """Return halves and their factor with the squared norms of the samples."""
    if found is None:
        return None
    xp, (halves, unit) = cupy(), found
    squares = xp.empty(len(halves[0]))
    for rows in chunks(halves[0].shape):
        exact = halves[0][rows].astype(xp.float64)
        if halves[1] is not None:
            exact += halves[1][rows]
        squares[rows] = xp.einsum("ij,ij->i", exact, exact)
    return halves, unit, squares


def chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield the rows that are prepared at a time."""
    step = max(1, PREPARED_VALUES // max(1, shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, start + step)


def _largest(shape: tuple[int, ...], values: RowValues) -> float:
    """Return the largest magnitude."""
    return max(float(cupy().abs(values(rows)).max()) for rows in chunks(shape))


def _centre(data: Any, values: Callable[[Any], Any]) -> Any:
    """Return the median of the values of each feature over some samples."""
    xp, some = cupy(), data[:: -(-len(data) // CENTRE_SAMPLES)]
    step = max(1, PREPARED_VALUES // len(some))
    columns = (slice(first, first + step) for first in range(0, data.shape[1], step))
    return xp.concatenate([xp.median(values(some[:, part]), axis=0) for part in columns])


def centred_values(data: Any) -> RowValues:
    """Return the features in float64 minus their centre."""
    xp = cupy()
    centre = _centre(data, lambda some: some.astype(xp.float64))

    def values(rows: slice) -> Any:
        out = data[rows].astype(xp.float64)
        out -= centre
        return out

    return values


def integer_halves(data: Any, centred: bool) -> tuple[Halves, float] | None:
    """Return the features as integers of half precision, and their factor; None if there is none that makes them so."""
    xp = cupy()
    for factor in INTEGER_FACTORS:
        if not all(_are_integers(data[rows] * factor) for rows in chunks(data.shape)):
            continue
        centre = xp.rint(_centre(data, partial(_rounded, factor))) if centred else 0.0
        halves = _zero_halves(data.shape)
        for rows in chunks(data.shape):
            integers = _rounded(factor, data[rows])
            integers -= centre
            if float(xp.abs(integers).max()) > LARGEST_EXACT_INTEGER:
                break
            halves[rows, : data.shape[1]] = integers
        else:
            return (halves, None), factor
    return None


def _rounded(factor: float, values: Any) -> Any:
    return cupy().rint(values * factor)


def _are_integers(values: Any) -> bool:
    xp = cupy()
    return bool((xp.abs(values - xp.rint(values)) <= 4.0 * xp.finfo(values.dtype).eps * xp.abs(values)).all())


def split_halves(shape: tuple[int, ...], values: RowValues) -> tuple[Halves, float]:
    """Return high and low parts, padded, and the factor of the features."""
    largest = _largest(shape, values)
    if _is_extreme(largest):
        raise DeviceError(
            f"features as large as {largest:.2g} are too extreme for a GPU; scale them, or use device='cpu'"
        )
    unit = 2.0 ** floor(log2(LARGEST_FEATURE / largest)) if largest > 0.0 else 1.0
    high, low = _zero_halves(shape), _zero_halves(shape)
    for rows in chunks(shape):
        scaled = values(rows) * unit
        high[rows, : shape[1]] = scaled
        low[rows, : shape[1]] = scaled - high[rows, : shape[1]]
    return (high, low), unit


def _extremes(shape: tuple[int, ...], values: RowValues) -> tuple[Any, Any]:
    """Return the least and the largest value of each feature."""
    xp = cupy()
    least, largest = xp.full(shape[1], np.inf), xp.full(shape[1], -np.inf)
    for rows in chunks(shape):
        part = values(rows)
        least = xp.minimum(least, _combined(xp.minimum, part))
        largest = xp.maximum(largest, _combined(xp.maximum, part))
    return least, largest


def _combined(combine: Callable[[Any, Any], Any], rows: Any) -> Any:
    """Return all rows combined into one, half of them with the other half: CuPy reduces columns many times slower."""
    while len(rows) > 1:
        half = len(rows) // 2
        odd = rows[2 * half :]
        rows = combine(rows[:half], rows[half : 2 * half])
        if len(odd):
            rows[:1] = combine(rows[:1], odd)
    return rows[0]


def _zero_halves(shape: tuple[int, ...]) -> Any:
    """Return zeros in half precision, padded."""
    xp = cupy()
    return xp.zeros((shape[0], -(-shape[1] // WIDTH_MULTIPLE) * WIDTH_MULTIPLE), dtype=xp.float16)


def without_far_flags(shape: tuple[int, ...], values: RowValues, most: float, shared: Shared) -> RowValues:
    """Return the features with the gap of each two-valued one at most `most`, the commoner value at 0.

    `values` returns new arrays, which are changed.
    """
    xp = cupy()
    least, largest = once(shared, "extremes", lambda: _extremes(shape, values))
    wide = xp.flatnonzero(largest - least > most)
    if not len(wide):
        return values
    least, largest = least[wide], largest[wide]
    flag, larger = xp.ones(len(wide), dtype=bool), xp.zeros(len(wide), dtype=np.int64)
    for rows in chunks(shape):
        part = values(rows)[:, wide]
        is_largest = part == largest
        flag &= _combined(xp.logical_and, is_largest | (part == least))
        larger += _combined(xp.add, is_largest.astype(np.int32))
    rare_is_large = 2 * larger <= shape[0]
    flags = wide[flag]
    common = xp.where(rare_is_large, least, largest)[flag]
    shift = xp.where(rare_is_large, most, -most)[flag]

    def cut(rows: slice) -> Any:
        out = values(rows)
        out[:, flags] = xp.where(out[:, flags] == common, 0.0, shift)
        return out

    return cut if len(flags) else values
