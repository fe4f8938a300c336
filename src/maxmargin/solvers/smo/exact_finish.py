"""The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).

Once it is known which variables rest on which bound, the others satisfy g_i = ρ of their group: as many linear
equations as there are free variables. Solving them replaces the last digits of a slowly converging iteration by
one factorisation. A variable that would leave its box on the way stops there and the rest are solved again; then
a few pair steps let bounded variables in that should move.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.solvers.smo.shrinking import unshrink
from maxmargin.solvers.smo.working_set import SELECTION_RULES
from maxmargin.solvers.smo.working_state import Reason, WorkingState
from maxmargin.solvers.stopping import Monitor


class FreeVariables(Protocol):
    """What the equations are made of, and how to move to their solution."""

    dual: Floats
    gradient: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    group: np.ndarray
    bounded: bool

    @property
    def accuracy(self) -> float:
        """Directions flatter than this, relative to the steepest, are not to be trusted."""
        ...

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at these positions, as an array of its own."""
        ...

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and bring the gradient up to date."""
        ...


ROUNDS = 20
WORK = 3e8  # multiplications after which variables that keep hitting the box are left where they are
PAIR_STEPS = 16  # between two solutions of the linear equations
#: A value that close to a bound, relative to it, is on it; as in the native loop.
ROUNDING = 1e-14


def exact_finish(state: WorkingState, limit: int, monitor: Monitor) -> None:
    """Go from an optimum within the tolerance to the exact one, if at most `limit` variables are free.

    It ends where rounding does, when a limit of the stopping rule is reached, or after a number of rounds. Where
    rounding makes the violation worse than it was, everything stays as it was.
    """
    if not limit:
        return
    dual, gradient, value = state.dual.copy(), state.gradient.copy(), state.dual_value
    before = state.violation
    _approach(state, limit, monitor)
    if state.violation > before:
        state.dual, state.gradient, state.dual_value, state.violation = dual, gradient, value, before


def accelerate(state: WorkingState, limit: int) -> None:
    """Solve the equations of the free variables in the middle of a slow run, if at most `limit` are free.

    With large costs or ill-conditioned kernels, pair steps creep along narrow valleys; one solution of the equations
    goes to the end of the valley or to the box. The dual only rises.
    """
    free = _free(state)
    if 0 < len(free) <= limit:
        unshrink(state)
        solve_free(state, _free(state))


def _free(state: WorkingState) -> Indices:
    return np.flatnonzero((state.lower < state.dual) & (state.dual < state.upper))


def _approach(state: WorkingState, limit: int, monitor: Monitor) -> None:
    rule = SELECTION_RULES["second_order"]
    state.bounded_part = np.empty(0)  # nothing shrinks any more
    for _ in range(ROUNDS):
        free = _free(state)
        if len(free) > limit or monitor.limit_reached(state.iterations) is not None:
            return
        if len(free):
            solve_free(state, free)
        target = 1e-13 * (1.0 + float(np.abs(state.linear - state.gradient).max()))
        end = state.iterations + PAIR_STEPS
        while state.iterations < end:
            outcome = state.steps(rule, target, end - state.iterations, monitor.time_slice())
            if outcome.reason in (Reason.OPTIMAL, Reason.PRECISION, Reason.UNBOUNDED):
                return


def solve_free(state: FreeVariables, free: Indices, most_work: float = WORK) -> float:
    """Move the free variables to the solution of their linear equations, as far as the box lets them.

    Return how many multiplications that took; it ends at `most_work`.
    """
    block = state.block(free)
    block.ravel()[:: len(free) + 1] += state.ridge[free]
    before, dual, gradient = state.dual[free], state.dual[free].copy(), state.gradient[free].copy()
    lower, upper, group = state.lower[free], state.upper[free], state.group[free]
    groups = int(group.max(initial=-1)) + 1
    work = _native.solve_free(block, group, groups, lower, upper, dual, gradient, state.accuracy, most_work)
    at_upper = dual >= upper - ROUNDING * np.abs(upper) if state.bounded else dual >= upper
    at_lower = dual <= lower + ROUNDING * np.abs(lower) if state.bounded else dual <= lower
    dual = np.where(at_upper, upper, np.where(at_lower, lower, dual))
    change = dual - before
    if change @ (state.gradient[free] + gradient) > 0:  # twice the gain; rounding alone may lose
        state.move(free, change, dual)
    return work
