"""The step length along a descent direction of a convex function, from its slope alone."""

from __future__ import annotations

from collections.abc import Callable

#: The slope at the step may be at most this fraction of the slope at 0.
SLOPE_RATIO = 0.1

#: Every third trial halves the interval, so that it shrinks by a fixed factor; more trials than this are pointless.
MAX_TRIALS = 40


def step_length(slope_at: Callable[[float], float], initial_slope: float) -> float:
    """Return a t in (0, 1] where the slope of a convex function is near 0, or 1 if it is still falling there."""
    low, low_slope, high, high_slope = 0.0, initial_slope, 1.0, slope_at(1.0)
    if high_slope <= SLOPE_RATIO * abs(initial_slope):
        return 1.0
    t = high
    for trial in range(1, MAX_TRIALS):
        share = low_slope / (low_slope - high_slope) if trial % 3 else 0.5
        t = low + (high - low) * min(max(share, 0.05), 0.95)
        slope = slope_at(t)
        if abs(slope) <= SLOPE_RATIO * abs(initial_slope):
            break
        if slope > 0:
            high, high_slope = t, slope
        else:
            low, low_slope = t, slope
    return t if slope <= 0 or low == 0 else low
