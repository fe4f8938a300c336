"""The common part of dual ascent methods: a feasible point whose dual value rises, and when to stop.

A subclass takes the steps (`iterate`). Here are the point, dual b and gradient g = linear − M b − ridge∘b, and the
stopping criteria, by the formulas of the certificate (`problems.certificate`). The gradient is updated step by step; it
is recomputed from the matrix before a point is called optimal, and if the violation stalls because of rounding.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.optimality import known_violation
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.dual_point import DualPoint, progress_snapshot
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import GapSchedule
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: How often a recomputed gradient may find that, since the time before, the violation has not halved and the dual has
#: risen by less than this fraction of it.
MAX_REFRESHES, MIN_RELATIVE_RISE = 3, 1e-10

#: The limit on steps, and on steps per variable, unless the user has set one.
MAX_STEPS, MAX_STEPS_PER_VARIABLE = 20_000, 1000


class DualAscentRun:
    """One run from a feasible point upwards.

    Parameters
    ----------
    problem : DualProblem
    start : float array, optional
        Is made feasible first.
    monitor : Monitor
    stall_steps : int
        Steps within which the violation must halve; otherwise the gradient is recomputed.

    Attributes
    ----------
    point : tuple of float arrays
        Dual and gradient; replaced in one assignment, so that Ctrl-C leaves a consistent pair.
    iterations : int
        Steps so far.
    active : int
        The number of variables that take part in the steps.
    """

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor, stall_steps: int) -> None:
        self.problem, self.monitor, self.rule = problem, monitor, monitor.rule
        point = DualPoint.of(problem, feasible_start(problem, start))
        self.point = point.dual, point.gradient
        self.iterations = 0
        self.active = problem.size
        self.box = Box(problem)
        self._stall = StallDetector(stall_steps)
        self._is_unbounded = UnboundedDualTest(problem)
        self._fresh = True  # whether the gradient was just computed from the matrix
        self._refreshed, self._value = np.inf, self.dual_value  # least violation after a refresh, and D at the last
        self._useless_refreshes = 0
        self._gap_schedule = GapSchedule()
        self._refresh_evaluations = problem.size * int(np.count_nonzero(point.dual))

    # ---- to be provided by a subclass -----------------------------------------------------------------------------

    def iterate(self) -> Status:
        """Take steps until `final_status` returns one."""
        raise NotImplementedError

    def counters(self) -> Counters:
        """Return the cost of the steps."""
        raise NotImplementedError

    # ---- for subclasses -------------------------------------------------------------------------------------------

    @property
    def dual(self) -> Floats:
        return self.point[0]

    @property
    def dual_value(self) -> float:
        """D at the point."""
        return self.problem.value(*self.point)

    @property
    def evaluations(self) -> int:
        """Matrix values that recomputed gradients took."""
        return self._refresh_evaluations

    def solve(self) -> Solution:
        """Iterate, and return the point reached and how the run ended."""
        try:
            try:
                with blas_thread_limit(1):  # small products one after another: waiting threads would slow them down
                    status = self.iterate()
            except SolverStoppedError as stopped:
                status = stopped.status
            self.monitor.report(self.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        dual, gradient = self.point
        return Solution(dual, gradient, status, self.counters(), trace=self.monitor.trace)

    def check_limits(self) -> None:
        """Report progress, and stop the run at a limit or if the callback requests it."""
        self.monitor.check(self.progress, self.iterations)
        if self.monitor.is_slow(self.iterations, MAX_STEPS + MAX_STEPS_PER_VARIABLE * self.problem.size):
            raise SolverStoppedError(Status.SLOW)

    def step_to(self, dual: Floats, gradient: Floats) -> None:
        """Move to a new point; that is one iteration."""
        self.point = dual, gradient
        self.iterations += 1
        self._fresh = False

    def final_status(self, violation: float) -> Status | None:
        """Return how the run ends at the point, whose violation this is; None if it continues."""
        if self._is_unbounded(*self.point):
            return Status.UNBOUNDED
        if self._gap_reached():
            return Status.CONVERGED
        stalled = self._stall.stalled(violation, self.iterations)
        if violation > self.rule.violation and not stalled:
            return None
        if not self._fresh:
            self.refresh()
            violation = self.violation()
        if violation <= self.rule.violation:
            return Status.CONVERGED
        value = self.dual_value
        rise = value - self._value
        self._useless_refreshes += violation > 0.5 * self._refreshed and rise <= MIN_RELATIVE_RISE * abs(value)
        self._refreshed, self._value = min(violation, self._refreshed), value
        self._stall.restart(violation, self.iterations)
        return Status.PRECISION if self._useless_refreshes > MAX_REFRESHES else None

    def refresh(self) -> None:
        """Recompute the gradient, at a point whose group sums are free of rounding errors, too."""
        point = self._recomputed()
        self.point, self._fresh = (point.dual, point.gradient), True

    def status_of_failed_step(self) -> Status | None:
        """Return PRECISION if a step was too small to change anything, unless a recomputed gradient may help."""
        if self._fresh:
            return Status.PRECISION
        self.refresh()
        return None

    def violation(self) -> float:
        """Return the violation of the optimality criterion (1.11)."""
        return known_violation(self.problem, *self.point)

    def progress(self) -> Progress:
        """Return the progress report."""
        evaluations = self.counters().kernel_evaluations
        return progress_snapshot(
            self.problem, self.point, self.dual_value, self.monitor, self.iterations, evaluations, self.active
        )

    def _gap_reached(self) -> bool:
        """Return whether the gap is within its tolerance, also with a recomputed gradient; then move to that point.

        Otherwise nothing changes, and the gradient is recomputed for the gap at ever larger intervals.
        """
        due = self._gap_schedule.is_due(self.iterations)
        if not due or not DualPoint(self.problem, *self.point).meets_gap(self.rule):
            return False
        point = self._recomputed()
        if point.meets_gap(self.rule):
            self.point, self._fresh = (point.dual, point.gradient), True
            return True
        self._gap_schedule.postpone(self.iterations)
        return False

    def _recomputed(self) -> DualPoint:
        dual = feasible_start(self.problem, self.dual)
        self._refresh_evaluations += self.problem.size * int(np.count_nonzero(dual))
        return DualPoint.of(self.problem, dual)


class Box:
    """The bounds of a problem, and the step lengths at which they are reached."""

    def __init__(self, problem: DualProblem) -> None:
        self.lower, self.upper = lower, upper = problem.lower, problem.upper
        self._nearly_lower = lower + BOUND_TOLERANCE * np.abs(np.where(np.isfinite(lower), lower, 0.0))
        self._nearly_upper = upper - BOUND_TOLERANCE * np.abs(np.where(np.isfinite(upper), upper, 0.0))

    def max_steps(self, dual: Floats, moving: Indices, direction: Floats) -> Floats:
        """Return the step length at which each moving variable reaches a bound along a direction (1.5.2)."""
        bound = np.where(direction > 0, self.upper[moving], self.lower[moving])
        steps = np.full(len(moving), np.inf)
        np.divide(bound - dual[moving], direction, out=steps, where=direction != 0)
        return steps

    def moved(self, dual: Floats, moving: Indices, direction: Floats, step: float, max_steps: Floats) -> Floats:
        """Return the dual after a step; a variable that reaches a bound is set exactly to it (1.7.4.1)."""
        lower, upper = self.lower[moving], self.upper[moving]
        values = dual[moving] + step * direction
        stopped = max_steps <= step
        at_upper = (values >= self._nearly_upper[moving]) | (stopped & (direction > 0))
        at_lower = (values <= self._nearly_lower[moving]) | (stopped & (direction < 0))
        out = dual.copy()
        out[moving] = np.where(at_upper, upper, np.where(at_lower, lower, values))
        return out
