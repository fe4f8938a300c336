"""The offset ρ that a given weight vector deserves: the one with the least loss.

For slacks s = linear − F w without an offset, Σ conjugate(s − ρ) + ρ total is convex in ρ. Its slope,
total − Σ response(s − ρ), rises with ρ: the zero is found between two bounds that close in on it.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems.dual_problem import DualProblem

#: How often an interval is narrowed at most: halving it so often leaves nothing of it.
MOST_STEPS = 120

_ALL = np.empty(0)


def offsets_of_least_loss(problem: DualProblem, slack: Floats, near: Floats | None = None, threads: int = 1) -> Floats:
    """Return the best ρ of each group for the slacks that samples have without one; `near` is where it may be."""
    offsets = np.zeros(problem.groups)
    for g in range(problem.groups):
        members = slice(None) if problem.groups == 1 and not problem.ungrouped else problem.group == g
        guess = float(near[g]) if near is not None else 0.0
        offsets[g] = _zero_of_slope(
            np.ascontiguousarray(slack[members]),
            problem.lower[members],
            problem.upper[members],
            problem.ridge[members],
            float(problem.total[g]),
            guess,
            threads,
        )
    return offsets


def _zero_of_slope(
    slack: Floats, lower: Floats, upper: Floats, ridge: Floats, total: float, guess: float, threads: int
) -> float:
    """Return where the slope changes its sign."""

    def slope(rho: float) -> tuple[float, float]:
        answered, bend = _native.loss_derivatives(slack, lower, upper, ridge, _ALL, rho, threads)
        return total - answered, bend

    if not len(slack):
        return guess
    lowest, highest = float(slack.min()), float(slack.max())
    if total == 0 or not ridge.any():
        # Beyond the slacks nothing changes any more, or every response has the same sign.
        least, most = lowest, highest
        guess = min(max(guess, least), most)
    else:
        least, most = -np.inf, np.inf
    # From a good guess a small interval grows until the slope changes its sign within.
    width = max(1e-3 * (highest - lowest), 1e-9)
    rise = slope(guess)[0]
    if rise == 0:
        return guess
    towards, edge = -np.sign(rise), guess
    for _ in range(MOST_STEPS):
        edge = min(max(guess + towards * width, least), most)
        if towards * slope(edge)[0] >= 0 or edge in (least, most):
            break
        width *= 4.0
    low, high = min(guess, edge), max(guess, edge)
    rho = 0.5 * (low + high)
    smallest = 4 * DOUBLE_EPSILON * max(abs(low), abs(high), highest - lowest)
    for step in range(MOST_STEPS):
        rise, bend = slope(rho)
        if abs(rise) <= smallest * bend or high - low <= smallest:
            break
        low, high = (rho, high) if rise < 0 else (low, rho)
        newton = rho - rise / bend if bend > 0 else np.inf
        # Newton's step as long as it stays inside and every other step halves the interval.
        rho = newton if low < newton < high and step % 3 != 2 else 0.5 * (low + high)
    return rho
