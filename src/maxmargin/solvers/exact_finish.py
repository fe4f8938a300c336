"""The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).

Once it is known which variables rest on which bound, the others satisfy g_i = ρ of their group: as many linear
equations as there are free variables. Solving them replaces the last digits of a slowly converging iteration by
one factorisation. A variable that would leave its box on the way stops there and the rest are solved again; then
a few pair steps let bounded variables in that should move.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs

from maxmargin.matrices.symmetric_matrix import Floats
from maxmargin.solvers.stopping import Monitor
from maxmargin.solvers.working_set import SELECTION_RULES
from maxmargin.solvers.working_state import Reason, WorkingState

ROUNDS = 20
PAIR_STEPS = 16  # between two solutions of the linear equations
#: Added to the diagonal, relative to it: duplicates make the system singular. One refinement makes up for it.
DAMPING = 1e-10


def exact_finish(state: WorkingState, limit: int, monitor: Monitor) -> None:
    """Go from an optimum within the tolerance to the exact one, if at most `limit` variables are free.

    The dual never falls. It ends where rounding does, when a limit of the stopping rule is reached, or when the
    equations cannot be solved (an indefinite matrix); the point is then as good as before or better.
    """
    rule = SELECTION_RULES["second_order"]
    state.bounded_part = np.empty(0)  # nothing shrinks any more
    for _ in range(ROUNDS):
        if monitor.limit_reached(state.iterations) is not None or not _solve_free(state, limit):
            return
        target = 1e-13 * (1.0 + float(np.abs(state.linear - state.gradient).max()))
        before = state.iterations
        while state.iterations < before + PAIR_STEPS:
            outcome = state.steps(rule, target, before + PAIR_STEPS - state.iterations, monitor.time_slice())
            if outcome.reason in (Reason.OPTIMAL, Reason.PRECISION, Reason.UNBOUNDED):
                return


def _solve_free(state: WorkingState, limit: int) -> bool:
    """Move the free variables to the optimum of their linear equations; return whether it could be done."""
    free = np.flatnonzero((state.lower < state.dual) & (state.dual < state.upper))
    if not 0 < len(free) <= limit:
        return False
    block = state.block(free)
    block.ravel()[:: len(free) + 1] += state.ridge[free]
    before, dual, gradient = state.dual[free], state.dual[free].copy(), state.gradient[free].copy()
    lower, upper, group = state.lower[free], state.upper[free], state.group[free]
    moving = np.arange(len(free))
    while len(moving):
        try:
            inner = block if len(moving) == len(free) else block[moving[:, None], moving]
            direction = _newton_direction(inner, gradient[moving], group[moving])
        except LinAlgError:
            return False
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, upper[moving] - dual[moving], lower[moving] - dual[moving]) / direction
        room[direction == 0] = np.inf
        step = min(1.0, float(room.min()))
        dual[moving] += step * direction
        gradient -= block[:, moving] @ (step * direction)
        if step == 1.0:
            break
        blocked = room <= step
        stopped = moving[blocked]
        dual[stopped] = np.where(direction[blocked] > 0, upper[stopped], lower[stopped])
        moving = moving[~blocked]
    dual = np.minimum(np.maximum(dual, lower), upper)
    state.move(free, dual - before, dual)
    return True


def _newton_direction(block: Floats, gradient: Floats, group: np.ndarray) -> Floats:
    """Solve block·d + E·ρ = gradient with Eᵀd = 0, where E says which variable is in which group."""
    damped = block.copy()
    damped.ravel()[:: len(block) + 1] *= 1.0 + DAMPING
    factor, info = dpotrf(damped, lower=1, overwrite_a=1)
    if info:
        raise LinAlgError("the block of free variables is not positive definite")
    names = np.unique(group[group >= 0])
    member = (group[:, None] == names).astype(float)
    # Both unknowns from one solve: A⁻¹ [gradient, E]; then the part along A⁻¹E that breaks the sums is taken off.
    both = dpotrs(factor, np.column_stack([gradient, member]), lower=1)[0]
    direction, spread = both[:, 0], both[:, 1:]
    keep_sums = np.linalg.pinv(member.T @ spread) @ member.T if len(names) > 1 else None

    def without_drift(part: Floats) -> Floats:
        if keep_sums is not None:
            return part - spread @ (keep_sums @ part)
        if len(names) == 1:
            return part - spread[:, 0] * ((member[:, 0] @ part) / (member[:, 0] @ spread[:, 0]))
        return part

    direction = without_drift(direction)
    remainder = dpotrs(factor, gradient - block @ direction, lower=1)[0]
    return direction + without_drift(remainder)
