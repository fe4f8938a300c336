"""Gradient extremes per group: the optimality criterion and the interval of the offset follow from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.kinks import slopes


class GradientExtremes(NamedTuple):
    """Both ends of the optimality criterion (Bottou & Lin 1.11).

    One entry per group and a last one, which index −1 reaches, for the variables in no group. A single variable needs
    no partner: the other side of the criterion is 0, and both last entries include it.

    Attributes
    ----------
    largest : float array
        The largest gradient of a variable that can increase, −∞ if there is none.
    smallest : float array
        The smallest gradient of a variable that can decrease, ∞ if there is none.
    """

    largest: Floats
    smallest: Floats

    @property
    def offset_bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper end of the interval of each group's offset; they are crossed before the optimum."""
        return self.largest[:-1], self.smallest[:-1]


def gradient_extremes(
    problem: DualProblem, dual: Floats, gradient: Floats, below: Floats | None = None
) -> GradientExtremes:
    """Return the extremes of the gradient over the variables that can increase and over those that can decrease.

    If the gradient is known within bounds, `gradient` are the upper and `below` the lower ones. Where there is a kink,
    the gradient is that of the side to which a variable moves.
    """
    below = gradient if below is None else below
    if problem.kinked:
        gradient, below = slopes(dual, gradient, problem.kink)[0], slopes(dual, below, problem.kink)[1]
    can_increase, can_decrease = dual < problem.upper, dual > problem.lower
    largest, smallest = np.full(problem.groups + 1, -np.inf), np.full(problem.groups + 1, np.inf)
    if problem.groups == 1 and problem.ungrouped == 0:  # the common case, several times faster
        largest[0] = np.where(can_increase, gradient, -np.inf).max(initial=-np.inf)
        smallest[0] = np.where(can_decrease, below, np.inf).min(initial=np.inf)
    else:
        with np.errstate(invalid="ignore"):  # gradients that are not numbers, which `violation_of` looks for
            np.maximum.at(largest, problem.group[can_increase], gradient[can_increase])
            np.minimum.at(smallest, problem.group[can_decrease], below[can_decrease])
    largest[-1], smallest[-1] = max(largest[-1], 0.0), min(smallest[-1], 0.0)
    return GradientExtremes(largest, smallest)


def known_extremes(problem: DualProblem, dual: Floats, gradient: Floats) -> GradientExtremes:
    """Return the extremes over the variables whose gradient is known, that is finite."""
    known = np.isfinite(gradient)
    if known.all():
        return gradient_extremes(problem, dual, gradient)
    largest = gradient_extremes(problem, dual, np.where(known, gradient, -np.inf)).largest
    smallest = gradient_extremes(problem, dual, np.where(known, gradient, np.inf)).smallest
    return GradientExtremes(largest, smallest)


def offset_bounds(problem: DualProblem, dual: Floats, gradient: Floats) -> tuple[Floats, Floats]:
    """Return, per group, the largest gradient that can increase and the smallest that can decrease."""
    return gradient_extremes(problem, dual, gradient).offset_bounds


def violation_of(extremes: GradientExtremes, gradient: Floats) -> float:
    """Return the largest violation of the optimality criterion: at least 0, infinite if a gradient is not a number."""
    if np.isnan(gradient.sum()) and np.isnan(gradient).any():
        return float("inf")
    low, high = extremes.offset_bounds
    with np.errstate(over="ignore", invalid="ignore"):  # gradients that have overflowed
        of_groups = float((low - high).max(initial=-np.inf))  # not a number where no gradient is known
    return max(0.0, of_groups, float(extremes.largest[-1]), -float(extremes.smallest[-1]))


def interval_midpoint(low: Floats, high: Floats) -> Floats:
    """Return the middle of each interval, or its finite end, or 0 if it has none."""
    if np.isfinite(low).all() and np.isfinite(high).all():
        return 0.5 * (low + high)
    low = np.where(np.isfinite(low), low, high)
    high = np.where(np.isfinite(high), high, low)
    low, high = np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0)
    return 0.5 * (low + high)
