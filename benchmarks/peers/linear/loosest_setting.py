"""Find the loosest setting that reaches a gap with few fits, since fits to small tolerances are expensive."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isfinite, log10


def find_loosest(gap_at: Callable[[int], float], settings: int, target: float, known: dict[int, float]) -> int | None:
    """Return the first index with a gap of at most `target`, or None if the last one misses it.

    Consecutive settings are half decades of a tolerance. From a setting that misses the target, as many are skipped as
    the gap lacks decades, as if it were proportional to the square of the tolerance, so that the target is rarely
    overshot; if it is, the interval is bisected. `known` holds the gaps computed so far.

    >>> find_loosest(lambda index: 10.0**-index, 8, 1e-3, {})
    3
    """
    while True:
        met = min((index for index, gap in known.items() if gap <= target), default=settings)
        missed = max((index for index in known if index < met), default=-1)
        if met - missed == 1:
            return met if met < settings else None
        if met < settings:
            index = (missed + met) // 2
        else:
            index = min(missed + stride(known.get(missed, float("inf")), target), settings - 1)
        known[index] = gap_at(index)


def stride(gap: float, target: float) -> int:
    """Return the number of settings to advance from one that misses the target."""
    return max(1, floor(log10(gap / target))) if isfinite(gap) else 1
