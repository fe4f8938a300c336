"""The linear equations of the free variables (Bottou & Lin 1.4.2).

Once it is known which variables are at which bound, the others satisfy g_i = ρ of their group: as many linear equations
as there are free variables. A variable that would leave its box stops at the bound, and the others are solved again.
Where there is a kink, 0 takes the place of the bound on its other side, and g is the slope on this side.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import TimeLimitReachedError, seconds_until_deadline
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems.kinks import nearest_bounds, slopes

#: Multiplications after which variables that keep reaching their bounds are left where they are.
MAX_WORK = 3e8


class FreeVariables(Protocol):
    """Variables with access to the matrix between some of them."""

    dual: Floats
    gradient: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    kink: Floats
    group: np.ndarray
    bounded: bool

    @property
    def accuracy(self) -> float:
        """The relative accuracy of the matrix: directions of less curvature, relative to the largest, count as flat."""
        ...

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at these positions, as an array that may be changed."""
        ...

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and update the gradient."""
        ...


def solve_free(state: FreeVariables, free: Indices, max_work: float = MAX_WORK) -> float:
    """Move the free variables to the solution of their linear equations, or as far as their bounds allow.

    Return the number of multiplications; it ends at `max_work`.
    """
    block = state.block(free)
    block.ravel()[:: len(free) + 1] += state.ridge[free]
    before, dual, group = state.dual[free], state.dual[free].copy(), state.group[free]
    kink = state.kink[free] if len(state.kink) else state.kink
    slope, _ = slopes(dual, state.gradient[free], kink)
    gradient = slope.copy()
    lower, upper = nearest_bounds(dual, state.lower[free], state.upper[free], kink)
    problem = _native.BoxProblem(lower=lower, upper=upper, group=group, groups=int(group.max(initial=-1)) + 1)
    seconds = seconds_until_deadline()
    work = _native.solve_free_variables(block, problem, dual, gradient, state.accuracy, max_work, seconds)
    if work == np.inf:
        raise TimeLimitReachedError
    at_upper = dual >= upper - BOUND_TOLERANCE * np.abs(upper) if state.bounded else dual >= upper
    at_lower = dual <= lower + BOUND_TOLERANCE * np.abs(lower) if state.bounded else dual <= lower
    dual = np.where(at_upper, upper, np.where(at_lower, lower, dual))
    change = dual - before
    with np.errstate(over="ignore", invalid="ignore"):  # not a number, too, is no gain
        gain = change @ (slope + gradient)
    if gain > 0:  # twice the gain; rounding alone may lose
        state.move(free, change, dual)
    return work
