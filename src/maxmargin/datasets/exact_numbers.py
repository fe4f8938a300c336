"""Integers of binary files as float64: only if the conversion is exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats

#: float64 represents all integers up to this magnitude.
EXACT_LIMIT = 2**53

#: What to do about integers that float64 cannot represent.
INEXACT = "which float64 cannot represent; use smaller numbers, or leave the column out"


def to_float64(values: np.ndarray[Any, Any]) -> Floats:
    """Return numbers as a contiguous float64 array; values beyond its range become infinite."""
    with np.errstate(over="ignore"):  # long double
        return np.ascontiguousarray(values, dtype=np.float64)


def inexact_position(values: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the position of the first integer that float64 cannot represent, None if there is none."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return None
    if int(values.min()) >= -EXACT_LIMIT and int(values.max()) <= EXACT_LIMIT:
        return None
    for position in np.argwhere((values > EXACT_LIMIT) | (values < -EXACT_LIMIT)):
        place = tuple(int(index) for index in position)
        if int(values[place]) != int(float(values[place])):
            return place
    return None
