"""The loosest setting that reaches a gap: found in few fits, because fits to fine tolerances are the dear ones."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isfinite, log10


def climb(gap_at: Callable[[int], float], rungs: int, target: float, known: dict[int, float]) -> int | None:
    """Return the first rung with a gap of at most `target`, or None if the last one misses it.

    Rungs are half decades of a tolerance. From one that misses the target, as many are skipped as the gap lacks
    decades, as if it fell with the square of the tolerance, so that the target is hardly ever overshot; where it is,
    the rungs between are halved. What was found out on the way is in `known`, and is not asked for again.

    >>> climb(lambda rung: 10.0**-rung, 8, 1e-3, {})
    3
    """
    while True:
        met = min((rung for rung, gap in known.items() if gap <= target), default=rungs)
        missed = max((rung for rung in known if rung < met), default=-1)
        if met - missed == 1:
            return met if met < rungs else None
        if met < rungs:
            rung = (missed + met) // 2
        else:
            rung = min(missed + stride(known.get(missed, float("inf")), target), rungs - 1)
        known[rung] = gap_at(rung)


def stride(gap: float, target: float) -> int:
    """Return how many rungs to go up from one that misses the target."""
    return max(1, floor(log10(gap / target))) if isfinite(gap) else 1
