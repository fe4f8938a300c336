"""Crossover: from a solution that is accurate to many digits to a point that meets the optimality criterion.

The solution of a generic solver lies slightly off the bounds that are active, and the criterion (1.11) takes such a
variable for a free one. As after an interior-point method in linear programming, a *crossover* follows:

    identify    a variable whose slack pushes it towards a bound close by is set to the bound
    solve       the linear equations of the variables that remain free (Bottou & Lin 1.4.2)
    correct     by a few pair steps, for variables that were set to the wrong bound; then solve again

The number of rounds is limited and counted: this completes the work of another solver and does not replace it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.free_equations import solve_free
from maxmargin.backends.interface import StopReason
from maxmargin.precision import SMALLEST_DOUBLE
from maxmargin.problems import Counters, DualProblem, Progress, Status
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.linear.linear_point import repair_sums
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.smo.smo_state import SELECTION_RULES, SmoState
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: A bound is close if it is at most this fraction of the box away, or of the largest variable if the box is unbounded.
CLOSE_TO_BOUND = 1e-3

#: Pair steps in a round: at least so many, and one for each variable.
MIN_STEPS = 32

STATUS = {
    StopReason.OPTIMAL: Status.CONVERGED,
    StopReason.PRECISION: Status.PRECISION,
    StopReason.UNBOUNDED: Status.UNBOUNDED,
}


def identify_bounds(problem: DualProblem, approximate: Floats) -> Floats:
    """Return a feasible point close to an approximate solution, with variables at the bounds their slacks indicate."""
    lower, upper = problem.lower, problem.upper
    dual = np.clip(approximate, lower, upper)
    gradient = problem.gradient(dual)
    distance = np.minimum(dual - lower, upper - dual)
    largest = float(np.abs(dual).max(initial=0.0))
    distance = np.where(np.isinf(distance), largest, distance)
    # The offset is the gradient of the free variables: a mean with weights that grow with the distance from the bounds.
    weight = np.square(distance / max(float(distance.max(initial=0.0)), SMALLEST_DOUBLE))
    total = problem.group_sums(weight)
    middle = interval_midpoint(*offset_bounds(problem, dual, gradient))
    mean = problem.group_sums(weight * gradient) / np.where(total > 0, total, 1.0)
    slack = gradient - problem.expand_groups(np.where(total > 0, mean, middle))
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(slack == 0, 0.0, slack / np.maximum(problem.curvature, 0.0))
    width = upper - lower
    close = CLOSE_TO_BOUND * np.where(np.isinf(width), largest, width)
    up = (step > 0) & (upper - dual <= np.minimum(step, close))
    down = (step < 0) & (dual - lower <= np.minimum(-step, close))
    return repair_sums(problem, np.where(up, upper, np.where(down, lower, dual)))


class Crossover:
    """The rounds after the identification of bounds; its point is valid whenever it is interrupted.

    Parameters
    ----------
    problem : DualProblem
    dual : float array
        A feasible point, usually from `identify_bounds`.
    cache_bytes : int
        Memory for rows of the matrix.
    spent : Counters
        The cost so far.

    Attributes
    ----------
    rounds : int
        The number of rounds so far.
    """

    def __init__(self, problem: DualProblem, dual: Floats, cache_bytes: int, spent: Counters) -> None:
        self.problem = problem
        self.state = SmoState(problem, dual, cache_bytes, keep_bounded_part=False)
        self.state.iterations = spent.iterations
        in_memory = problem.matrix.in_memory() is not None
        self.state.rows.evaluations = spent.kernel_evaluations + (0 if in_memory else self.state.rows.evaluations)
        self.rounds = 0

    @property
    def point(self) -> DualPoint:
        """The current point."""
        return DualPoint(self.problem, *self.state.point())

    def counters(self, seconds: float) -> Counters:
        """Return the cost, before and here: iterations are those of the other solver and pair steps."""
        rows = self.state.rows
        return Counters(self.state.iterations, rows.evaluations, rows.hits, rows.misses, self.rounds, seconds)

    def run(self, max_rounds: int, monitor: Monitor) -> Status:
        """Iterate until the rule of the monitor is met."""
        state, is_unbounded = self.state, UnboundedDualTest(self.problem)
        while self.rounds < max_rounds:
            if (stop := self._check(monitor)) is not None:
                return stop
            self.rounds += 1
            free = state.free()
            if len(free):
                solve_free(state, free)
            if self.point.meets(monitor.rule):
                return Status.CONVERGED
            end = self._pair_steps(monitor)
            if end in (None, Status.PRECISION) and self.point.meets(monitor.rule):
                return Status.CONVERGED
            if end is not None:
                return end
            if is_unbounded(*state.point()):
                return Status.UNBOUNDED
        return Status.PRECISION

    def _pair_steps(self, monitor: Monitor) -> Status | None:
        state, rule = self.state, SELECTION_RULES["second_order"]
        end = state.iterations + max(MIN_STEPS, state.size)
        try:
            return STATUS.get(state.run_until(end, rule, monitor.rule.violation, monitor, self._progress(monitor)))
        except SolverStoppedError as stopped:
            return stopped.status

    def _check(self, monitor: Monitor) -> Status | None:
        """Return the status of a limit that is reached, STOPPED if the callback requests it, else None."""
        state = self.state
        if (stop := monitor.limit_reached(state.iterations)) is not None:
            return stop
        return Status.STOPPED if monitor.report(self._progress(monitor)) else None

    def _progress(self, monitor: Monitor) -> Callable[[], Progress]:
        state = self.state
        return lambda: self.point.progress(monitor, state.iterations, state.rows.evaluations)
