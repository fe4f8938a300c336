"""The exact end: the free variables solve a system of linear equations (Bottou & Lin 1.4.2).

Once it is known which variables rest on which bound, the others satisfy g_i = ρ of their group: as many linear
equations as there are free variables. Solving them replaces the last digits of a slowly converging iteration by
one factorisation. A variable that would leave its box on the way stops there and the rest are solved again; then
a few pair steps let bounded variables in that should move.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg.lapack import dpotrs, dpstrf

from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.solvers.shrinking import unshrink
from maxmargin.solvers.stopping import Monitor
from maxmargin.solvers.working_set import SELECTION_RULES
from maxmargin.solvers.working_state import Reason, WorkingState


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
WORK = 3 * 10**8  # multiplications after which a solution that keeps hitting the box is left as it is
PAIR_STEPS = 16  # between two solutions of the linear equations
#: A remainder of so many times the accuracy of the matrix, relative to what was added up, means that the equations have
#: no solution.
INCONSISTENT = 100.0
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


def solve_free(state: FreeVariables, free: Indices) -> None:
    """Move the free variables to the solution of their linear equations, as far as the box lets them."""
    block = state.block(free)
    block.ravel()[:: len(free) + 1] += state.ridge[free]
    before, dual, gradient = state.dual[free], state.dual[free].copy(), state.gradient[free].copy()
    lower, upper, group = state.lower[free], state.upper[free], state.group[free]
    moving = np.arange(len(free))
    work = 0
    while len(moving) and work < WORK:
        inner = block if len(moving) == len(free) else block[moving[:, None], moving]
        direction, flat, rank = _ascent_direction(inner, gradient[moving], group[moving], state.accuracy)
        work += len(moving) ** 2 * max(rank, 8)
        pushed = direction != 0
        if not pushed.any():
            break
        limit = 1.0
        if flat:  # the top of the parabola along it, if it has one
            bend = float(direction @ inner @ direction)
            limit = float(gradient[moving] @ direction) / bend if bend > 0 else np.inf
        room = np.full(len(moving), np.inf)
        bounds = np.where(direction > 0, upper[moving], lower[moving])
        room[pushed] = (bounds[pushed] - dual[moving][pushed]) / direction[pushed]
        step = min(limit, float(room.min()))
        if not np.isfinite(step):
            break  # an open box without a top: the dual has no limit, which the solver finds out
        dual[moving] += step * direction
        gradient -= block[:, moving] @ (step * direction)
        if step == limit:
            break  # else at least one variable has reached the box: there are at most as many rounds as variables
        blocked = room <= step
        dual[moving[blocked]] = bounds[blocked]
        moving = moving[~blocked]
    at_upper = dual >= upper - ROUNDING * np.abs(upper) if state.bounded else dual >= upper
    at_lower = dual <= lower + ROUNDING * np.abs(lower) if state.bounded else dual <= lower
    dual = np.where(at_upper, upper, np.where(at_lower, lower, dual))
    change = dual - before
    if change @ (state.gradient[free] + gradient) > 0:  # twice the gain; rounding alone may lose
        state.move(free, change, dual)


def _ascent_direction(block: Floats, gradient: Floats, group: np.ndarray, accuracy: float) -> tuple[Floats, bool, int]:
    """Return a direction in which the dual rises and groups keep their sums, whether it is flat, and the rank found.

    Usually d with block·d = gradient − ρ of each group: the way to the solution of the equations. Where they have none,
    because variables depend on one another, a direction without curvature in which the dual rises up to the box.

    The sums are kept by moving every member of a group against one of them. What remains is a plain system.
    """
    direction = np.zeros(len(gradient))
    if group[0] >= 0 and (group == group[0]).all():  # one group, as in most machines: move against the first member
        edge = block[0, 1:]
        system = block[1:, 1:] - edge - edge[:, None] + block[0, 0]
        part, flat, rank = _solve_dependent(system, gradient[1:] - gradient[0], accuracy)
        direction[1:] = part
        direction[0] = -part.sum()
        return direction, flat, rank
    anchor = np.arange(len(gradient))  # against whom a variable moves; itself: on its own
    own = group < 0
    tied = np.flatnonzero(~own)
    _, first, name = np.unique(group[tied], return_index=True, return_inverse=True)
    anchor[tied] = tied[first[name]]
    movers = np.flatnonzero((anchor != np.arange(len(anchor))) | own)
    if not len(movers):
        return direction, False, 0
    against = anchor[movers]
    held = ~own[movers]
    to_anchor = np.where(held[:, None], block[against], 0.0)
    shifted = block[movers] - to_anchor
    system = shifted[:, movers] - np.where(held, shifted[:, against], 0.0)
    right = gradient[movers] - np.where(held, gradient[against], 0.0)
    part, flat, rank = _solve_dependent(system, right, accuracy)
    direction[movers] = part
    np.subtract.at(direction, against[held], part[held])
    return direction, flat, rank


def _solve_dependent(system: Floats, right: Floats, accuracy: float) -> tuple[Floats, bool, int]:
    """Solve a positive semi-definite system by a Cholesky factorisation with pivots.

    If it has a solution, return one that uses as few unknowns as possible, and False. If it has none, return a vector v
    with system·v ≈ 0 and right·v > 0, and True. The third value is the rank of the system.
    """
    solution = np.zeros(len(right))
    largest = float(system.ravel()[:: len(right) + 1].max(initial=0.0))
    if not largest > 0:
        return right, bool(right.any()), 0
    factor, pivots, rank, _ = dpstrf(system, tol=accuracy * largest, lower=1)
    chosen: Indices = pivots[:rank] - 1
    triangle = factor[:rank, :rank]
    solution[chosen] = dpotrs(triangle, right[chosen], lower=1)[0]
    remainder = right - system @ solution
    if rank < len(right):
        others: Indices = pivots[rank:] - 1
        left_over = remainder[others]
        noise = INCONSISTENT * accuracy * (np.abs(right).max() + largest * np.abs(solution).max())
        if np.abs(left_over).max() > noise:
            flat = np.zeros(len(right))
            flat[others] = left_over
            flat[chosen] = -dpotrs(triangle, system[chosen[:, None], others] @ left_over, lower=1)[0]
            return flat, True, int(rank)
    solution[chosen] += dpotrs(triangle, remainder[chosen], lower=1)[0]  # one refinement
    return solution, False, int(rank)
