"""The exact finish: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).

Once it is known which variables are at which bound, the others satisfy g_i = ρ of their group: as many linear equations
as there are free variables. Solving them replaces the last digits of a slowly converging iteration by one
factorisation. A variable that would leave its box stops at the bound and the others are solved again; then a few pair
steps release bounded variables that should move.
"""

from __future__ import annotations

import numpy as np

from maxmargin.backends.free_equations import solve_free
from maxmargin.backends.interface import StopReason
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.smo_state import SELECTION_RULES, SmoState

#: Solutions of the linear equations at the most, and pair steps between two of them.
MAX_ROUNDS, STEPS_PER_ROUND = 20, 16

#: The violation, relative to 1 + the largest entry of M b, that ends the exact finish: rounding of the gradient.
RELATIVE_VIOLATION = 1e-13


def exact_finish(state: SmoState, max_free: int, monitor: Monitor) -> None:
    """Move from an optimum within the tolerance to one in double precision, if at most `max_free` variables are free.

    It ends where rounding does, at a limit of the stopping rule, or after a number of rounds. If rounding makes the
    violation larger than it was, the previous point is restored.
    """
    if not max_free:
        return
    dual, gradient, value = state.dual.copy(), state.gradient.copy(), state.dual_value
    before = state.violation
    _finish(state, max_free, monitor)
    if state.violation > before:
        state.dual, state.gradient, state.dual_value, state.violation = dual, gradient, value, before


def accelerate(state: SmoState, max_free: int) -> None:
    """Solve the equations of the free variables during a slow run, if at most `max_free` are free.

    With large costs or ill-conditioned kernels, pair steps converge slowly along narrow valleys; one solution of the
    equations moves to the end of the valley or to the box. The dual only rises.
    """
    if 0 < len(state.free()) <= max_free:
        state.unshrink()
        solve_free(state, state.free())


def _finish(state: SmoState, max_free: int, monitor: Monitor) -> None:
    rule = SELECTION_RULES["second_order"]
    state.bounded_part = np.empty(0)  # no shrinking from here on
    for _ in range(MAX_ROUNDS):
        free = state.free()
        if len(free) > max_free or monitor.limit_reached(state.iterations) is not None:
            return
        if len(free):
            solve_free(state, free)
        target = RELATIVE_VIOLATION * (1.0 + float(np.abs(state.linear - state.gradient).max()))
        if state.run_until(state.iterations + STEPS_PER_ROUND, rule, target, monitor) is not StopReason.PAUSED:
            return
