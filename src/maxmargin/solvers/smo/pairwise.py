"""Sequential minimal optimisation: two variables at a time (Bottou & Lin 1.6.3, Algorithm 1.3).

    select  i with b_i < upper_i, j with b_j > lower_j                        a selection rule of `smo_state`
    stop    if g_i − g_j does not exceed the tolerance                        (1.21)
    step    t = min((g_i − g_j) / (M_ii + M_jj − 2 M_ij), upper_i − b_i, b_j − lower_j)
            b_i += t,  b_j −= t,  g −= t (M_i − M_j)

The steps run natively. After every `period` of them, this loop evaluates the gap if one is asked for, detects stalls,
solves the equations of the free variables in slow runs, and shrinks. These decisions depend on the number of steps and
on the state alone, never on the clock or on who observes the solver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import known_gap
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.smo.exact_finish import accelerate, exact_finish
from maxmargin.solvers.smo.smo_state import SmoState, selection_code
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, GapSchedule, StoppingRule
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: Steps, and steps for each variable, within which the violation must halve; otherwise rounding undoes the steps.
STALL_STEPS, STALL_STEPS_PER_VARIABLE = 2_000_000, 1000

#: The same where the tolerance is below the rounding of the gradient, so that it may be out of reach.
ROUNDING_STALL_STEPS, ROUNDING_STALL_STEPS_PER_VARIABLE = 10_000, 50

#: Steps between two checks: as many as there are variables, within these limits. On tiny problems a check costs more
#: than a step.
MIN_CHECK_PERIOD, MAX_CHECK_PERIOD = 100, 1000

#: Checks after which the linear equations of the free variables are tried: in slow runs only. After ten times as many,
#: a system of four times as many free variables is tried.
ACCELERATION_PERIOD = 5

#: All variables are checked for shrinking once more when the violation is within this multiple of the tolerance.
RESHRINK_VIOLATION = 10


@dataclass(frozen=True)
class PairwiseSolver:
    """Sequential minimal optimisation with a row cache and shrinking.

    Parameters
    ----------
    selection : {"second_order", "most_violating_pair", "maximum_gain"}
        Working-set selection rule; see `maxmargin.solvers.smo.smo_state`.
    shrinking : bool
        Leave out variables that are expected to stay at their bounds, and check all variables before the end.
    cache_bytes : int
        Memory for rows of the matrix. The result does not depend on it.
    stopping : StoppingRule
        When to stop.
    finish_below : int
        With at most this many free variables their linear equations are solved, in slow runs and at the end; with four
        times as many in very slow runs. 0 takes pair steps only.
    stall_steps : int
        Steps, besides a thousand per variable, within which the violation must halve; else the solver stops.
    """

    selection: str = "second_order"
    shrinking: bool = True
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    finish_below: int = 256
    stall_steps: int = STALL_STEPS
    audited: ClassVar[bool] = False

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        monitor = Monitor(self.stopping, callback)
        rule = selection_code(self.selection)
        state = SmoState(problem, feasible_start(problem, start), self.cache_bytes, self.shrinking)
        run = _PairwiseRun(self, problem, state, monitor)
        try:
            monitor.report_start(run.progress)
            try:
                status = run.iterate(rule)
            except SolverStoppedError as stopped:
                status = stopped.status
            state.unshrink()
            if status is Status.CONVERGED and state.iterations and state.violation <= self.stopping.violation:
                exact_finish(state, self.finish_below, monitor)
            monitor.report(run.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        dual, gradient = state.point()
        return Solution(
            dual=dual,
            gradient=gradient,
            status=status,
            counters=Counters(
                iterations=state.iterations,
                kernel_evaluations=state.rows.evaluations,
                cache_hits=state.rows.hits,
                cache_misses=state.rows.misses,
                seconds=monitor.seconds,
            ),
            trace=monitor.trace,
            value=state.dual_value,
        )


class _PairwiseRun:
    """One run of the solver."""

    def __init__(self, solver: PairwiseSolver, problem: DualProblem, state: SmoState, monitor: Monitor) -> None:
        self.solver, self.problem, self.state, self.monitor = solver, problem, state, monitor
        self._is_unbounded = UnboundedDualTest(problem)
        self._gap_schedule = GapSchedule()

    def iterate(self, rule: int) -> Status:
        """Take steps until the point is optimal; raise `SolverStoppedError` at a limit."""
        state, solver = self.state, self.solver
        tolerance = solver.stopping.violation
        period = min(max(state.size, MIN_CHECK_PERIOD), MAX_CHECK_PERIOD)
        # The violation of an unbounded dual does not fall; that is detected in another way.
        bounded = self.problem.coercive
        stall = StallDetector(solver.stall_steps + STALL_STEPS_PER_VARIABLE * state.size if bounded else np.inf)
        next_check, checks, reshrunk = period, 0, False
        while True:
            reason = state.run_until(next_check, rule, tolerance, self.monitor, self.progress)
            if reason is StopReason.UNBOUNDED:
                return Status.UNBOUNDED
            if reason is not StopReason.PAUSED:
                if state.active == state.size:
                    return Status.CONVERGED if reason is StopReason.OPTIMAL else Status.PRECISION
                state.unshrink()  # among the active variables only: continue with all
                next_check = state.iterations + 1 if reason is StopReason.OPTIMAL else next_check
                continue
            next_check = state.iterations + period
            checks += 1
            if self._gap_reached(checks):
                return Status.CONVERGED
            if stall.stalled(state.violation, state.iterations) or self._stalled_by_rounding(stall):
                return Status.PRECISION
            if not bounded and self._is_unbounded(*self._point_of_used()):
                return Status.UNBOUNDED
            if checks % ACCELERATION_PERIOD == 0:
                very_slow = checks % (10 * ACCELERATION_PERIOD) == 0
                accelerate(state, 4 * solver.finish_below if very_slow else solver.finish_below)
            if solver.shrinking:
                if not reshrunk and state.violation <= RESHRINK_VIOLATION * tolerance:
                    reshrunk = True
                    state.reshrink()
                else:
                    state.shrink()

    def _gap_reached(self, checks: int) -> bool:
        """Return whether the gap is within its tolerance: first that of the active variables, then that of all.

        The gradient of shrunk variables is computed into a copy, so that the steps do not depend on it. After a failure
        that is repeated at ever larger intervals.
        """
        gap = self.solver.stopping.gap
        if gap is None or not self._gap_schedule.is_due(checks) or known_gap(self.problem, *self.state.point()) > gap:
            return False
        if known_gap(self.problem, *self.state.whole_point()) <= gap:
            return True
        self._gap_schedule.postpone(checks)
        return False

    def _stalled_by_rounding(self, stall: StallDetector) -> bool:
        """Return whether steps do not reduce the violation and the tolerance is below the rounding of the gradient."""
        state = self.state
        patience = ROUNDING_STALL_STEPS + ROUNDING_STALL_STEPS_PER_VARIABLE * state.size
        if not self.problem.coercive or stall.waited(state.iterations) <= patience:
            return False
        return self.solver.stopping.violation < DOUBLE_EPSILON * float(np.abs(state.dual * state.curvature).max())

    def _point_of_used(self) -> tuple[Floats, Floats]:
        """Return dual and gradient, with the gradient of shrunk variables if one of them is not 0."""
        return self.state.whole_point() if self.state.dual[self.state.active :].any() else self.state.point()

    def progress(self) -> Progress:
        """Return the progress report; that of a `Trace` covers shrunk variables, at a cost that is not counted."""
        state, rows = self.state, self.state.rows
        evaluations = rows.evaluations
        point = state.whole_point() if self.monitor.traced else state.point()
        rows.evaluations = evaluations
        return progress_snapshot(
            self.problem, point, state.dual_value, self.monitor, state.iterations, evaluations, state.active
        )
