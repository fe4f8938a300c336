"""The offset ρ of each group, from the gradient or, for a given weight vector, the one of least loss.

For slacks s = linear − F w without an offset, Σ conjugate(s − ρ) + ρ total is convex in ρ. Its derivative,
total − Σ response(s − ρ), increases with ρ; its root is found by Newton steps within a shrinking bracket.
"""

from __future__ import annotations

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.gradient_extremes import interval_midpoint, known_extremes
from maxmargin.problems.split_problem import SplitProblem

#: Up to so many groups, the offsets are parameters of the decision function: midpoints of their intervals.
MAX_OFFSET_GROUPS = 2

#: Limit on the steps that extend or shrink the bracket: halving it so often exhausts double precision.
MAX_STEPS = 120

_UNIT_SLOPES = np.empty(0)  # of the slacks with respect to ρ


def best_offsets(problem: DualProblem, slack: Floats, near: Floats | None = None, threads: int = 1) -> Floats:
    """Return the offset of least loss of each group, for slacks without an offset; `near` is an initial guess."""
    if problem.kinked:
        split = SplitProblem.of(problem)
        return best_offsets(split.problem, split.slack(slack), near, threads)
    offsets = np.zeros(problem.groups)
    for g in range(problem.groups):
        members = slice(None) if problem.groups == 1 and not problem.ungrouped else problem.group == g
        guess = float(near[g]) if near is not None else 0.0
        offsets[g] = _root(
            np.ascontiguousarray(slack[members]),
            problem.lower[members],
            problem.upper[members],
            problem.ridge[members],
            float(problem.total[g]),
            guess,
            threads,
        )
    return offsets


def _root(
    slack: Floats, lower: Floats, upper: Floats, ridge: Floats, total: float, guess: float, threads: int
) -> float:
    """Return the root of the derivative."""

    def derivatives(rho: float) -> tuple[float, float]:
        responses, second = _native.loss_derivatives(slack, lower, upper, ridge, _UNIT_SLOPES, rho, threads)
        return total - responses, second

    if not len(slack):
        return guess
    lowest, highest = float(slack.min()), float(slack.max())
    if total == 0 or not ridge.any():
        # Outside the range of the slacks the derivative is constant or does not change its sign.
        least, most = lowest, highest
        guess = min(max(guess, least), most)
    else:
        least, most = -np.inf, np.inf
    # Extend a small bracket from the guess until the derivative changes its sign.
    width = max(1e-3 * (highest - lowest), 1e-9)
    first = derivatives(guess)[0]
    if first == 0:
        return guess
    towards, edge = -np.sign(first), guess
    for _ in range(MAX_STEPS):
        edge = min(max(guess + towards * width, least), most)
        if towards * derivatives(edge)[0] >= 0 or edge in (least, most):
            break
        width *= 4.0
    low, high = min(guess, edge), max(guess, edge)
    rho = 0.5 * (low + high)
    smallest = 4 * DOUBLE_EPSILON * max(abs(low), abs(high), highest - lowest)
    for step in range(MAX_STEPS):
        first, second = derivatives(rho)
        if abs(first) <= smallest * second or high - low <= smallest:
            break
        low, high = (rho, high) if first < 0 else (low, rho)
        newton = rho - first / second if second > 0 else np.inf
        # Newton's step if it stays inside; every third step halves the bracket.
        rho = newton if low < newton < high and step % 3 != 2 else 0.5 * (low + high)
    return rho


def group_offsets(problem: DualProblem, dual: Floats, gradient: Floats) -> Floats:
    """Return the offset of each group: the midpoint of its interval, or the offset of least loss.

    One or two offsets are parameters of the decision function, and the midpoint treats both sides alike. Those of many
    small groups are only multipliers; any are valid, and those of least loss give the primal value of the textbook.
    """
    middle = interval_midpoint(*known_extremes(problem, dual, gradient).offset_bounds)
    if problem.groups <= MAX_OFFSET_GROUPS or not problem.bounded or problem.ridge.any():
        return middle
    best = _best_offsets_without_ridge(problem, gradient)
    return np.where(np.isfinite(best), best, middle)  # gradients of shrunk variables are unknown


def _best_offsets_without_ridge(problem: DualProblem, gradient: Floats) -> Floats:
    """Return, per group, the ρ that minimises Σ conjugate(g − ρ) + ρ total, for finite bounds and no ridge.

    Its slope is total − Σ response(g − ρ), where the response is upper above ρ and lower below: from the largest
    gradient down, variables take their upper bounds until the sum is reached.
    """
    if problem.kinked:
        split = SplitProblem.of(problem)
        return _best_offsets_without_ridge(split.problem, split.slack(gradient))
    grouped = np.flatnonzero(problem.group >= 0)
    order = grouped[np.lexsort((-gradient[grouped], problem.group[grouped]))]
    group = problem.group[order]
    first = np.searchsorted(group, np.arange(problem.groups))
    past = np.searchsorted(group, np.arange(problem.groups), side="right")
    reached = np.concatenate([[0.0], np.cumsum(problem.upper[order] - problem.lower[order])])
    wanted = reached[first] + problem.total - problem.group_sums(problem.lower)
    at = np.clip(np.searchsorted(reached, wanted) - 1, first, np.maximum(past - 1, first))
    offsets = np.zeros(problem.groups)
    members = past > first
    offsets[members] = gradient[order[at[members]]]
    return offsets
