"""What classical solvers share: a feasible point that climbs, who watches it, and when it may rest.

A subclass has the steps (`climb`). Here are the point, dual b and gradient g = linear − M b − ridge∘b, what the judge's
own functions (`problems.certificate`) say about it, and the rules that hold for all of them: a gradient that was
brought up to date step by step is computed afresh before anything is called optimal, and a point that rounding keeps
from its tolerance is called just that.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: How often a gradient computed afresh may find the violation not halved since the last time, and the dual not risen
#: by more than this part of it either.
REFRESHES, CREEPING = 3, 1e-10


class Ascent:
    """One run from a feasible point upwards.

    Parameters
    ----------
    problem : DualProblem
    start : float array, optional
        Is made feasible first.
    monitor : Monitor
    patience : int
        So many steps must halve the violation; else rounding may undo them, and the gradient is computed afresh.

    Attributes
    ----------
    point : tuple of float arrays
        Dual and gradient; replaced at once, so that Ctrl-C cannot come in between.
    iterations : int
        Steps so far.
    active : int
        How many variables take part in the steps.
    """

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor, patience: int) -> None:
        self.problem, self.monitor, self.rule = problem, monitor, monitor.rule
        self.linear = problem.linear
        dual = feasible_start(problem, start)
        self.point = dual, self._gradient_of(dual)
        self.iterations = 0
        self.active = problem.size
        self._stall = StallDetector(patience)
        self.box = Box(problem)
        self._fresh = True  # whether the gradient was just computed
        self._refreshed, self._value = np.inf, self.dual_value  # the violation after the last time, and D
        self._strikes = 0
        self._is_unbounded = UnboundedDualTest(problem)
        self._refresh_evaluations = problem.size * int(np.count_nonzero(dual))

    # ---- what a subclass provides ---------------------------------------------------------------------------------

    def climb(self) -> Status:
        """Take steps until `verdict` has one."""
        raise NotImplementedError

    def counters(self) -> Counters:
        """Return what the steps cost."""
        raise NotImplementedError

    # ---- what it gets ---------------------------------------------------------------------------------------------

    @property
    def dual(self) -> Floats:
        return self.point[0]

    @property
    def dual_value(self) -> float:
        """D at the point."""
        dual, gradient = self.point
        return 0.5 * inner(dual, self.linear + gradient)

    @property
    def evaluations(self) -> int:
        """Matrix values that went into gradients computed afresh."""
        return self._refresh_evaluations

    def solve(self) -> Solution:
        """Climb, and say how it ended."""
        try:
            try:
                with blas_thread_limit(
                    1
                ):  # products come one by one, and threads that wait for the next are in our way
                    status = self.climb()
            except SolverStoppedError as ended:
                status = ended.status
            self.monitor.report(self.progress, now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        dual, gradient = self.point
        return Solution(dual, gradient, status, self.counters(), trace=self.monitor.trace)

    def look(self) -> None:
        """Tell the callback, and end the run if it says so or a limit is reached."""
        self.monitor.check(self.progress, self.iterations)

    def step_to(self, dual: Floats, gradient: Floats) -> None:
        """Go to a new point; that is one iteration."""
        self.point = dual, gradient
        self.iterations += 1
        self._fresh = False

    def verdict(self, violation: float) -> Status | None:
        """Return how the run ends at the point, whose violation this is; None if it goes on."""
        if self._is_unbounded(*self.point):
            return Status.UNBOUNDED
        stalled = self._stall.stalled(violation, self.iterations)
        if not (self._reached(violation) or stalled):
            return None
        if not self._fresh:
            self.refresh()
            violation = self.violation()
        if self._reached(violation):
            return Status.CONVERGED
        value = self.dual_value
        self._strikes += violation > 0.5 * self._refreshed and value - self._value <= CREEPING * abs(value)
        self._refreshed, self._value = min(violation, self._refreshed), value
        self._stall.restart(violation, self.iterations)
        return Status.PRECISION if self._strikes > REFRESHES else None

    def refresh(self) -> None:
        """Compute the gradient afresh, at a point whose sums carry no rounding errors either."""
        dual = feasible_start(self.problem, self.dual)
        self._refresh_evaluations += self.problem.size * int(np.count_nonzero(dual))
        self.point = dual, self._gradient_of(dual)
        self._fresh = True

    def stuck(self) -> Status | None:
        """Return PRECISION if a step was too small to change anything, unless a fresh gradient may help."""
        if self._fresh:
            return Status.PRECISION
        self.refresh()
        return None

    def violation(self) -> float:
        """Return the violation of the optimality criterion (1.11)."""
        return known_violation(self.problem, *self.point)

    def progress(self) -> Progress:
        """Return where the run stands."""
        evaluations = self.counters().kernel_evaluations
        return progress_snapshot(
            self.problem, self.point, self.dual_value, self.monitor, self.iterations, evaluations, self.active
        )

    def _reached(self, violation: float) -> bool:
        if violation <= self.rule.violation:
            return True
        if self.rule.gap is None and self.rule.relative_gap is None:
            return False
        value = self.dual_value
        return self.rule.accepts_gap(value + known_gap(self.problem, *self.point), value)

    def _gradient_of(self, dual: Floats) -> Floats:
        gradient = self.problem.gradient(dual)
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        return gradient


class Box:
    """The bounds of a problem, and how far one may go before meeting them."""

    def __init__(self, problem: DualProblem) -> None:
        self.lower, self.upper = lower, upper = problem.lower, problem.upper
        self._nearly_lower = lower + BOUND_TOLERANCE * np.abs(np.where(np.isfinite(lower), lower, 0.0))
        self._nearly_upper = upper - BOUND_TOLERANCE * np.abs(np.where(np.isfinite(upper), upper, 0.0))

    def room(self, dual: Floats, moving: Indices, direction: Floats) -> Floats:
        """Return how far each moving variable can go along a direction (1.5.2)."""
        bound = np.where(direction > 0, self.upper[moving], self.lower[moving])
        room = np.full(len(moving), np.inf)
        np.divide(bound - dual[moving], direction, out=room, where=direction != 0)
        return room

    def moved(self, dual: Floats, moving: Indices, direction: Floats, step: float, room: Floats) -> Floats:
        """Return the dual after a step; what reaches a bound is set exactly to it (1.7.4.1)."""
        lower, upper = self.lower[moving], self.upper[moving]
        values = dual[moving] + step * direction
        stopped = room <= step
        at_upper = (values >= self._nearly_upper[moving]) | (stopped & (direction > 0))
        at_lower = (values <= self._nearly_lower[moving]) | (stopped & (direction < 0))
        out = dual.copy()
        out[moving] = np.where(at_upper, upper, np.where(at_lower, lower, values))
        return out
