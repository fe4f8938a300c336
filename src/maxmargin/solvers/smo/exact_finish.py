"""The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).

Once it is known which variables rest on which bound, the others satisfy g_i = ρ of their group: as many linear
equations as there are free variables. Solving them replaces the last digits of a slowly converging iteration by
one factorisation. A variable that would leave its box on the way stops there and the rest are solved again; then
a few pair steps let bounded variables in that should move.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Indices
from maxmargin.backends.free_equations import solve_free
from maxmargin.backends.interface import StopReason
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.shrinking import unshrink
from maxmargin.solvers.smo.working_set import SELECTION_RULES
from maxmargin.solvers.smo.working_state import WorkingState

ROUNDS = 20
PAIR_STEPS = 16  # between two solutions of the linear equations


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
            if outcome.reason in (StopReason.OPTIMAL, StopReason.PRECISION, StopReason.UNBOUNDED):
                return
