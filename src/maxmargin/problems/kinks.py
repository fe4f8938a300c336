"""Variables with a kink, −kink |b|, in the objective: the two sides of the slope, and the pieces without a kink.

An empty array of kinks means none. The slope of the objective is g − kink above 0 and g + kink below, and at 0 that of
the side to which the variable moves. A variable that stays at 0 because of its kink is like one at a bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats


def slopes(dual: Floats, gradient: Floats, kink: Floats) -> tuple[Floats, Floats]:
    """Return the slope of the objective along each variable when it increases, and when it decreases."""
    if not len(kink):
        return gradient, gradient
    less, more = gradient - kink, gradient + kink
    return np.where(dual < 0, more, less), np.where(dual > 0, less, more)


def nearest_bounds(dual: Floats, lower: Floats, upper: Floats, kink: Floats) -> tuple[Floats, Floats]:
    """Return the bounds within which the objective has no kink: 0 in place of the one on its other side."""
    if not len(kink):
        return lower, upper
    kinked = kink > 0
    return np.where(kinked & (dual > 0), 0.0, lower), np.where(kinked & (dual < 0), 0.0, upper)


def is_free(dual: Floats, lower: Floats, upper: Floats, kink: Floats) -> NDArray[np.bool_]:
    """Return which variables are strictly between their bounds and not at a kink."""
    inside = (lower < dual) & (dual < upper)
    return inside & ((dual != 0) | (kink == 0)) if len(kink) else inside


def excess_of(slack: Floats, kink: Floats) -> Floats:
    """Return the part of each slack that exceeds the kink, with its sign; 0 within it."""
    return np.where(np.abs(slack) <= kink, 0.0, slack - np.copysign(kink, slack))
