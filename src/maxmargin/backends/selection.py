"""Selection of a working set by KKT violation, and the start with all variables at bounds, in NumPy.

Half of a working set are free variables, the rest the worst violators from both ends of the gradient where there are
one or two groups (Joachims 1999). With many groups, as in all-in-one multi-class problems, a variable cannot move
without a partner of its own group, and a working set is made of the worst groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.optimality import BoxedVariables
from maxmargin.problems import DualProblem
from maxmargin.problems.kinks import is_free
from maxmargin.problems.split_problem import SplitProblem

#: With more groups than this, a working set is made of whole groups.
MAX_GROUPS_BY_VARIABLE = 2

#: The largest of many values are searched among those above a bound. It comes from a sample, one in so many values, and
#: so many times as many values as wanted are expected above it.
SAMPLED_EVERY, SAMPLE_MARGIN = 16, 2


class SelectableVariables(BoxedVariables, Protocol):
    """Variables that know which of them are free."""

    def free(self) -> Indices:
        """Return the variables off their bounds and kinks."""
        ...


def select_working_set(state: SelectableVariables, up: Floats, down: Floats, size: int) -> Indices:
    """Return at most `size` variables, with many groups whole groups; `up` and `down` are overwritten."""
    if state.groups > MAX_GROUPS_BY_VARIABLE:
        return _select_groups(state, np.maximum(up, down), size)
    return np.asarray(select_by_violation(state.free(), up, down, size))


def select_by_violation(free: Any, up: Any, down: Any, size: int, xp: Any = np) -> Any:
    """Return at most `size` variables: free ones as one half, and the worst violators of both kinds.

    `up` and `down` are the KKT violations of growing and of falling; they are overwritten. `xp` is the module of the
    arrays.
    """
    max_free = min(size // 2, size - 2)  # the most violating pair must fit
    if len(free) > max_free:
        free = free[largest(xp.maximum(up, down)[free], max_free, 0.0, xp)]
    up[free] = down[free] = -np.inf
    growing = largest(up, (size - len(free)) // 2, 0.0, xp)
    down[growing] = -np.inf
    falling = largest(down, size - len(free) - len(growing), 0.0, xp)
    up[growing] = up[falling] = -np.inf
    rest = largest(up, size - len(free) - len(growing) - len(falling), 0.0, xp)
    return xp.concatenate([free, growing, falling, rest])


def _select_groups(state: SelectableVariables, violation: Floats, size: int) -> Indices:
    """Return a working set from the worst groups: free variables as one half, and members that violate optimality."""
    group = state.group
    worst = np.full(state.groups + 1, -np.inf)  # the last, which index −1 reaches, is for variables in no group
    np.maximum.at(worst, group, violation)
    free = is_free(state.dual, state.lower, state.upper, state.kink)
    members = np.flatnonzero(free | (violation > 0))
    members = members[np.lexsort((-violation[members], group[members], -worst[group[members]]))]
    first = members[free[members]][: size // 2]
    chosen = np.zeros(len(group), dtype=bool)
    chosen[first] = True
    rest = members[~chosen[members]]  # the most violating pair must fit, also if neither of it is free
    return np.concatenate([first[: size - 2], rest[: max(2, size - len(first))]])


def largest(values: Any, count: int, above: float = 0.0, xp: Any = np) -> Any:
    """Return the positions of the `count` largest values, of those above a bound only; of equal ones, evenly spread."""
    candidates = xp.flatnonzero(values > above)
    if len(candidates) <= max(0, count) or count <= 0:
        return candidates[: max(0, count)]
    some = values[candidates[::SAMPLED_EVERY]]
    rank = SAMPLE_MARGIN * count // SAMPLED_EVERY + 1
    if rank < len(some) // 2:  # a bound that about twice as many exceed leaves few to partition
        bound = xp.partition(some, len(some) - rank)[len(some) - rank]
        largest_ones = xp.flatnonzero(values >= bound)
        candidates = largest_ones if len(largest_ones) >= count else candidates
    chosen = values[candidates]
    if chosen.min() == chosen.max():  # as at the start, where the first working set is a sample of the data
        return candidates[xp.arange(count) * len(candidates) // count]
    return candidates[xp.argpartition(chosen, len(chosen) - count)[-count:]]


def _argsort(values: Floats) -> Indices:
    return np.argsort(values, kind="stable")


def place_at_bounds(problem: DualProblem, slack: Floats, argsort: Callable[[Floats], Indices] = _argsort) -> Floats:
    """Return the feasible point with the largest slacks of each group at the upper bound, the others at the lower.

    One variable of each group takes the remainder of the sum. Where there is a kink, slacks within it leave their
    variables at 0. `argsort` orders numbers, equal ones as given.
    """
    if problem.kinked:
        split = SplitProblem.of(problem)
        return split.combined_dual(place_at_bounds(split.problem, split.slack(slack), argsort))
    dual = np.where(slack > 0, problem.upper, problem.lower)
    for g in range(problem.groups):
        members = np.flatnonzero(problem.group == g)
        order = members[argsort(-slack[members])]
        width = problem.upper[order] - problem.lower[order]
        missing = max(0.0, problem.total[g] - problem.lower[order].sum())
        filled = np.concatenate([[0.0], np.cumsum(width)])
        full = int(np.searchsorted(filled, missing, side="right")) - 1  # the number of variables at the upper bound
        dual[order[:full]] = problem.upper[order[:full]]
        dual[order[full:]] = problem.lower[order[full:]]
        if full < len(order):
            last = order[full]
            remainder = problem.total[g] - (dual[order].sum() - dual[last])
            dual[last] = min(max(remainder, problem.lower[last]), problem.upper[last])
    return dual
