"""Sums of a pass as they travel between workers: of second moments only the lower triangle, d (d + 1) / 2 numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats
from maxmargin.solvers.linear.pass_sums import PassSums

#: The sums of each problem, by number; those of a worker without rows are empty.
Sums = dict[int, PassSums]


def packed(sums: Sums) -> Sums:
    """Return the sums with the lower triangles of their second moments as vectors."""
    return _with_squares(sums, lambda squares: squares[np.tri(len(squares), dtype=bool)])


def unpacked(sums: Sums, dimension: int) -> Sums:
    """Return packed sums as solvers take them; `dimension` is that of the second moments."""

    def unpack(values: Floats) -> Floats:
        squares = np.zeros((dimension, dimension))
        squares[np.tri(dimension, dtype=bool)] = values
        return squares

    return _with_squares(sums, unpack)


def add_sums(first: Sums, second: Sums) -> Sums:
    """Return the sums over both parts of the samples."""
    if not first or not second:
        return first or second
    return {number: found + second[number] for number, found in first.items()}


def _with_squares(sums: Sums, change: Callable[[Floats], Floats]) -> Sums:
    return {
        number: found
        if found.moments is None
        else replace(found, moments=found.moments._replace(squares=change(found.moments.squares)))
        for number, found in sums.items()
    }
