"""From an answer that is right to many digits to a point that meets the optimality criterion.

The answer of a generic solver lies a little off the bounds that it should rest on, and the criterion (1.11) takes such
a variable for a free one. As after an interior-point method in linear programming, a *crossover* follows:

    identify    a variable that its slack presses against a bound near by is put on it
    solve       the linear equations of the variables that remain free (Bottou & Lin 1.4.2)
    correct     by a few pair steps, for those that were put on the wrong side; then solve again

The number of rounds is limited and counted: this ends the work of another solver and does not replace it.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.free_equations import solve_free
from maxmargin.backends.interface import StopReason
from maxmargin.precision import SMALLEST_DOUBLE
from maxmargin.problems import Counters, DualProblem, Status
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.gradient_extremes import offset_between, offset_bounds
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.linear.linear_point import repair_sums
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.hard_margin import grows_without_limit
from maxmargin.solvers.smo.working_set import SELECTION_RULES
from maxmargin.solvers.smo.working_state import WorkingState

#: A bound is near if it is this part of the box away, or, where the box is open, of the largest variable.
NEAR = 1e-3

#: Pair steps in a round: at least so many, and one for each variable.
FEWEST_STEPS = 32

ENDS = {
    StopReason.OPTIMAL: Status.CONVERGED,
    StopReason.PRECISION: Status.PRECISION,
    StopReason.UNBOUNDED: Status.UNBOUNDED,
}


def put_on_bounds(problem: DualProblem, answer: Floats) -> Floats:
    """Return a feasible point near an answer, with the variables on the bounds that their slacks press them against."""
    lower, upper = problem.lower, problem.upper
    dual = np.clip(answer, lower, upper)
    gradient = problem.gradient(dual)
    room = np.minimum(dual - lower, upper - dual)
    largest = float(np.abs(dual).max(initial=0.0))
    room = np.where(np.isinf(room), largest, room)
    # The offset is where the gradients of free variables are; the further off its bounds, the more of a free one.
    trust = np.square(room / max(float(room.max(initial=0.0)), SMALLEST_DOUBLE))
    total = problem.group_sums(trust)
    middle = offset_between(*offset_bounds(problem, dual, gradient))
    mean = problem.group_sums(trust * gradient) / np.where(total > 0, total, 1.0)
    slack = gradient - of_samples(problem, np.where(total > 0, mean, middle))
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(slack == 0, 0.0, slack / np.maximum(problem.curvature, 0.0))
    width = upper - lower
    near = NEAR * np.where(np.isinf(width), largest, width)
    up = (reach > 0) & (upper - dual <= np.minimum(reach, near))
    down = (reach < 0) & (dual - lower <= np.minimum(-reach, near))
    return repair_sums(problem, np.where(up, upper, np.where(down, lower, dual)))


class Crossover:
    """The rounds after identification, and where they stand if they are interrupted.

    Parameters
    ----------
    problem : DualProblem
    dual : float array
        A feasible point, usually from `put_on_bounds`.
    cache_bytes : int
        Memory for rows of the matrix.
    spent : Counters
        What it took to get there.

    Attributes
    ----------
    rounds : int
        How many there were.
    """

    def __init__(self, problem: DualProblem, dual: Floats, cache_bytes: int, spent: Counters) -> None:
        self.problem = problem
        self.state = WorkingState(problem, dual, cache_bytes, keep_bounded_part=False)
        self.state.iterations = spent.iterations
        in_memory = problem.matrix.in_memory() is not None
        self.state.rows.evaluations = spent.kernel_evaluations + (0 if in_memory else self.state.rows.evaluations)
        self.rounds = 0

    @property
    def point(self) -> DualPoint:
        """Where it stands."""
        return DualPoint(self.problem, *self.state.point())

    def counters(self, seconds: float) -> Counters:
        """Return what was spent, before and here: iterations are those of the other solver and pair steps."""
        rows = self.state.rows
        return Counters(self.state.iterations, rows.evaluations, rows.hits, rows.misses, self.rounds, seconds)

    def run(self, most_rounds: int, monitor: Monitor) -> Status:
        """Work until the rule of the monitor is met."""
        state = self.state
        while self.rounds < most_rounds:
            if (stop := self._look(monitor)) is not None:
                return stop
            self.rounds += 1
            free = np.flatnonzero((state.lower < state.dual) & (state.dual < state.upper))
            if len(free):
                solve_free(state, free)
            if self.point.meets(monitor.rule):
                return Status.CONVERGED
            end = self._pair_steps(monitor)
            if end in (None, Status.PRECISION) and self.point.meets(monitor.rule):
                return Status.CONVERGED
            if end is not None:
                return end
            if grows_without_limit(state):
                return Status.UNBOUNDED
        return Status.PRECISION

    def _pair_steps(self, monitor: Monitor) -> Status | None:
        state, rule = self.state, SELECTION_RULES["second_order"]
        end = state.iterations + max(FEWEST_STEPS, state.size)
        while state.iterations < end:
            steps = monitor.next_steps(state.iterations, end - state.iterations)
            outcome = state.steps(rule, monitor.rule.violation, steps, monitor.time_slice())
            if outcome.reason in ENDS:
                return ENDS[outcome.reason]
            if (stop := self._look(monitor)) is not None:
                return stop
        return None

    def _look(self, monitor: Monitor) -> Status | None:
        """Return a limit that is reached, or that the callback wants to stop."""
        state = self.state
        if (stop := monitor.limit_reached(state.iterations)) is not None:
            return stop
        stopped = monitor.report(lambda: self.point.progress(monitor, state.iterations, state.rows.evaluations))
        return Status.STOPPED if stopped else None
