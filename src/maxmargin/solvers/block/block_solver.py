"""Block decomposition: many variables at a time (Bottou & Lin 1.6.2; Joachims 1999; Serafini & Zanni 2005).

    select    a working set: free variables, and the worst violators from both ends of the gradient
    stop      if the violation among all variables does not exceed the tolerance
    solve     the subproblem of the working set by pair steps, on the square block of the matrix between its variables
    update    the gradient, with the kernel rows of the variables that have changed

Kernel values are computed many at a time and in single precision; dual vector and gradient are in double precision. A
working set is several times as large as the number of free variables, so that a few rounds suffice: the sequential
part, the pair steps, runs on short rows; the long part, the update, is rare and parallel.

Before it reports convergence, the solver compares its gradient with one recomputed in double precision, and continues
from there if single precision did not suffice.

This module holds the control flow only. A backend (`maxmargin.backends`) holds the arrays and implements every
operation over all variables or over a working set.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends import get_backend
from maxmargin.backends.interface import BlockState, StopReason, Subproblem
from maxmargin.backends.optimality import known_gap
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.solvers.block.nested_start import NestedStart, can_start_nested, expects_few_support_vectors
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

# How sensitive counts are to the thresholds here and in the backends: docs/thresholds.md.

#: The largest diagonal value of the matrix for which single precision is used.
MAX_SINGLE_PRECISION_VALUE = 1e30

#: A smaller `working_set` than this holds also for problems that are small enough to be solved whole.
MIN_WORKING_SET_FOR_WHOLE = 1024

#: A working set grows by this multiple of the number of free variables, so that all of them fit.
VARIABLES_PER_FREE = 2

#: The largest fraction of all variables in a working set, if all would fit: all of them need no further rounds.
MAX_PART = 0.5

#: When more than this fraction of a working set has changed, the next is twice as large, or all variables if they fit.
GROWTH_FRACTION = 0.5

#: A subproblem is solved until its violation is this fraction of the violation among all variables, unless the backend
#: has a value of its own.
SUBPROBLEM_TOLERANCE = 0.1

#: When the violation among all variables is at most so many times the tolerance of the subproblem before, no variable
#: outside that working set mattered. Then steps continue to the tolerance of the solve, which saves rounds, as long as
#: they take at most this fraction of the operations of the update. Tuned on the cases of `machines` not held aside.
SETTLED_FACTOR, REFINEMENT_FRACTION = 1.5, 0.5

#: Pair steps between two evaluations of the gap, if the stopping rule has a tolerance on it.
STEPS_PER_GAP_CHECK = 25

#: Steps, altogether and per variable, within which the violation must halve; a round counts for so many. Else the
#: matrix is so badly scaled that single precision only sees noise, and double precision takes over.
STALL_STEPS, STALL_STEPS_PER_VARIABLE, STEPS_PER_ROUND = 100_000, 200, 50

#: The most pair steps, per variable, on a subproblem with infinite bounds: only all variables show whether it is
#: bounded.
MAX_UNBOUNDED_STEPS_PER_VARIABLE = 100

#: The fraction of the tolerance that is reserved for the errors of single precision.
TOLERANCE_RESERVE = 0.1

#: The linear equations of up to so many free variables are solved in between, whenever pair steps have taken as many
#: operations as that will take: the square of their number times the rank of the matrix, at first assumed to be this
#: low, later as measured the last time.
MAX_FREE_EQUATIONS, INITIAL_RANK = 1024, 32


@dataclass(frozen=True)
class BlockSolver:
    """Block decomposition on single-precision rows, with shrinking.

    Parameters
    ----------
    working_set : int
        The largest number of variables in a working set. Its square block of the matrix takes 4 bytes per value: 64 MB
        for 4096.
    shrinking : bool
        Leave out variables of a working set that cannot be selected any more, and check them again before its end.
    cache_bytes : int
        Memory for rows of the matrix, beside the square block. Less memory makes it slower.
    stopping : StoppingRule
        When to stop.
    threads : int
        For the gradient; the matrix has its own. The result does not depend on it.
    nested_above : int
        With more variables than this, a quarter of them is solved first; see `maxmargin.solvers.block.nested_start`.
    audits : bool
        Compare the gradient with one in double precision before convergence is reported. Without it a solution may be
        less accurate than the tolerance: a start for another solve.
    backend : str
        The name of the implementation of its operations, a key of `maxmargin.backends.BACKENDS`.
    """

    working_set: int = 4096
    shrinking: bool = True
    cache_bytes: int = 2**30
    stopping: StoppingRule = field(default_factory=StoppingRule)
    threads: int = 1
    nested_above: int = 4000
    audits: bool = True
    backend: str = "native"
    audited: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.working_set >= 2:
            raise ValueError(f"a working set has at least 2 variables, not {self.working_set}")
        get_backend(self.backend)

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        monitor = Monitor(self.stopping, callback)
        if float(problem.curvature.max(initial=0.0)) > MAX_SINGLE_PRECISION_VALUE:
            return self._continue_in_double(problem, feasible_start(problem, start), Counters(), monitor, callback)
        backend = get_backend(self.backend)
        with backend.scope():
            return self._solve(backend.open(problem, self.cache_bytes, self.threads), start, monitor, callback)

    def _solve(
        self, state: BlockState[Any], start: Floats | None, monitor: Monitor, callback: Callback | None
    ) -> Solution:
        problem = state.problem
        try:
            first = feasible_start(problem, start)
            state.set_dual(first, with_gradient=not first.any())
            nested = start is None and self._starts_nested(state)
            # A nested start moves to another point; where this one is not 0, its gradient takes many kernel values.
            known = not (nested and first.any())
            if known and first.any():
                state.set_dual(first)
            if known:
                monitor.report_start(lambda: _progress(state, monitor))
            outcome = NestedStart(self, state, monitor).run() if nested else self._first_size(state, start is None)
            if not known:
                monitor.report_start(lambda: _progress(state, monitor))
            status = outcome if isinstance(outcome, Status) else _BlockRun(self, state, monitor, outcome).solve()
            monitor.report(lambda: _progress(state, monitor), now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        dual, gradient = state.point()
        counters = state.counters(monitor.seconds)
        if status is Status.PRECISION:
            del state  # frees the memory of its rows
            try:
                return self._continue_in_double(problem, dual, counters, monitor, callback)
            except Interruption as interruption:
                return Solution(dual, gradient, status_of(interruption), counters, trace=monitor.trace)
        return Solution(dual, gradient, status, counters, trace=monitor.trace, value=state.dual_value)

    def max_size(self, state: BlockState[Any]) -> int:
        """Return the largest number of variables in a working set for a problem."""
        whole = state.tuning.solve_whole and self.working_set >= MIN_WORKING_SET_FOR_WHOLE
        return state.problem.size if whole else min(self.working_set, state.problem.size)

    def _starts_nested(self, state: BlockState[Any]) -> bool:
        """Whether samples are solved first: of problems not solved whole, unless support vectors are few."""
        problem = state.problem
        if self.max_size(state) >= problem.size or problem.size <= self.nested_above:
            return False
        few = not problem.total.any() and expects_few_support_vectors(problem)
        return not few and can_start_nested(problem)

    def _first_size(self, state: BlockState[Any], at_zero: bool) -> int:
        """Return the size of the first working set, beside free variables, without a nested start.

        `at_zero` says that no point to start from was given.
        """
        problem, tuning = state.problem, state.tuning
        fits = self.max_size(state) >= problem.size
        if not at_zero:
            return problem.size if fits else tuning.first_size
        return tuning.min_first_size if fits or expects_few_support_vectors(problem) else tuning.first_size

    def _continue_in_double(
        self, problem: DualProblem, dual: Floats, spent: Counters, monitor: Monitor, callback: Callback | None
    ) -> Solution:
        """Continue in double precision where single precision does not make progress."""
        rule = self.stopping
        limited = StoppingRule(
            rule.violation, rule.gap, monitor.iterations_left(spent.iterations), monitor.seconds_left()
        )
        solver = PairwiseSolver(shrinking=self.shrinking, cache_bytes=self.cache_bytes, stopping=limited)
        solution = solver.solve(problem, dual, callback)
        return replace(solution, counters=spent + solution.counters)


class _BlockRun:
    """One run of a block solver."""

    def __init__(self, solver: BlockSolver, state: BlockState[Any], monitor: Monitor, first_size: int) -> None:
        self.state, self.monitor, self.rule = state, monitor, solver.stopping
        self.count = state.problem.size
        self.tolerance = (1.0 - TOLERANCE_RESERVE) * solver.stopping.violation
        self.shrinking, self.audits = solver.shrinking and state.problem.coercive, solver.audits
        tuning = state.tuning
        self.steps_per_check, self.value_credit = tuning.steps_per_check, tuning.value_credit
        self.subproblem_tolerance = tuning.subproblem_tolerance or SUBPROBLEM_TOLERANCE
        self.max_size = solver.max_size(state)
        self.size = first_size
        self.use_stored_rows = tuning.stored_rows > 2 * self.max_size
        self._last_error, self._last_target = np.inf, 0.0
        self._gap_reached, self._next_gap_check, self._failed_gap_checks = False, 0, 0
        self._credit, self._rank = 0.0, float(INITIAL_RANK)  # operations of pair steps since the last free equations

    def solve(self) -> Status:
        """Iterate until the point is optimal or a limit is reached."""
        try:
            self._iterate()
        except SolverStoppedError as ended:
            return ended.status
        return Status.CONVERGED

    def _iterate(self) -> None:
        state = self.state
        stall, is_unbounded = _stall_detector(self.count), UnboundedDualTest(state.problem)
        while True:
            violation = state.find_violation()
            if violation <= self.tolerance:
                if not self.audits or self._passes_audit():
                    return
                continue
            self._check_limits()
            if self.rule.gap is not None and state.gap() <= self.rule.gap:
                return
            self._gap_reached = False
            self._check_progress(stall, violation)
            self._round()
            self._report()
            if not state.problem.coercive and is_unbounded(state.dual, state.gradient):
                state.refresh_all()  # it may be an error of single precision
                if is_unbounded(state.dual, state.gradient):
                    raise SolverStoppedError(Status.UNBOUNDED)

    def _round(self) -> None:
        """Select a working set, solve its subproblem and update the gradient."""
        state = self.state
        free = state.count_free()
        subproblem, target = self._next_subproblem(free)
        steps = state.totals.iterations
        # The kernel values that the round will need, as far as they cost anything.
        self._solve_free_equations(subproblem, self.value_credit * self.count * free)
        reason = self._solve_subproblem(subproblem, target)
        changed = subproblem.count_changed()
        if reason is StopReason.OPTIMAL and state.violation <= SETTLED_FACTOR * self._last_target:
            affordable = REFINEMENT_FRACTION * self.count * changed / subproblem.active
            reason = self._solve_subproblem(subproblem, min(target, 0.5 * self.tolerance), int(affordable))
        self._last_target = target
        if changed > GROWTH_FRACTION * subproblem.active:
            self.size = self.count if self.max_size >= self.count else 2 * self.size
        state.close(subproblem)
        if reason is StopReason.NEEDS_ROW:
            self.use_stored_rows = False  # there is no memory for more
        # Unbounded, or so badly scaled that no step is possible: double precision decides which.
        # A round in which nothing moves would only repeat itself.
        idle = state.totals.iterations == steps and (
            reason is StopReason.PRECISION or (reason is StopReason.OPTIMAL and not changed)
        )
        if reason is StopReason.UNBOUNDED or idle:
            raise SolverStoppedError(Status.PRECISION)

    def _next_subproblem(self, free: int) -> tuple[Subproblem, float]:
        """Return the next subproblem and its tolerance."""
        state = self.state
        size = min(self.max_size, self.size + VARIABLES_PER_FREE * free)
        if self.max_size >= self.count and size > MAX_PART * self.count and not state.refreshed:
            return state.open_whole(), self.tolerance
        if self.use_stored_rows and free > self.max_size:
            return state.open_stored_rows(), self.tolerance
        working_set = state.select(size)
        tolerance = max(0.5 * self.tolerance, self.subproblem_tolerance * state.violation)
        return state.open_subproblem(working_set), tolerance

    def _solve_subproblem(self, subproblem: Subproblem, target: float, max_steps: float = np.inf) -> StopReason:
        """Take pair steps until the violation among the variables of the subproblem is within the target."""
        state, totals = self.state, self.state.totals
        stall = _stall_detector(subproblem.active)
        most = totals.iterations + max_steps
        if not state.problem.coercive:
            most = min(most, totals.iterations + MAX_UNBOUNDED_STEPS_PER_VARIABLE * subproblem.active)
        due = min(totals.iterations + self.steps_per_check, most)
        while True:
            self._check_limits()
            # The loop returns early for the clock, observers and the gap. All decisions depend on the count of steps
            # alone; when it is reached, a call without steps brings the violation up to date.
            left = max(0, int(due) - totals.iterations)  # a backend may take more steps than it was asked for
            reason = subproblem.pair_steps(target, self._steps(left), self.monitor.time_slice())
            if reason is not StopReason.PAUSED:
                return reason
            self._report()
            if self._check_gap():
                return reason
            if left:
                continue
            if totals.iterations >= most:
                return reason
            self._check_progress(stall, subproblem.violation)
            self._shrink(subproblem, target, most - totals.iterations)
            if self._gap_reached:
                return reason
            self._solve_free_equations(subproblem, self.steps_per_check * subproblem.active)
            due = min(totals.iterations + self.steps_per_check, most)

    def _shrink(self, subproblem: Subproblem, target: float, max_steps: float) -> None:
        """Solve without the variables that cannot be selected, if they are many."""
        if self.shrinking and (part := self.state.open_shrunk(subproblem)) is not None:
            self._solve_subproblem(part, target, max_steps)
            self.state.close(part)

    def _solve_free_equations(self, subproblem: Subproblem, spent: float) -> None:
        """Solve the linear equations of the free variables, if that is cheap beside the operations of slow steps."""
        self._credit += spent
        if not self._credit:
            return
        count = subproblem.count_free()
        if 0 < count <= MAX_FREE_EQUATIONS and self._credit >= count**2 * self._rank:
            max_work = 2.0 * self._credit
            work = subproblem.solve_free(max_work)
            self._rank = work / count**2 * (1.0 if work < max_work else 2.0)
            self._credit = 0.0

    def _passes_audit(self) -> bool:
        """Whether the point is optimal in double precision too; if not, recompute the gradient."""
        error = self.state.audit()
        if not np.isfinite(error):
            raise ValueError(NON_FINITE_MESSAGE)
        if self.state.violation + error <= self.rule.violation:
            return True
        if not error <= 0.5 * self._last_error:
            raise SolverStoppedError(Status.PRECISION)  # a better gradient does not help any more
        self._last_error = error
        self.state.refresh()
        return False

    def _check_progress(self, stall: StallDetector, violation: float) -> None:
        """End the solve in single precision if the violation does not decrease any more."""
        totals = self.state.totals
        if stall.stalled(violation, totals.iterations + STEPS_PER_ROUND * totals.rounds):
            raise SolverStoppedError(Status.PRECISION)

    def _check_gap(self) -> bool:
        """Return whether the gap of all variables is within its tolerance, if their gradients are known in a round.

        The gap is that of a copy of the point; after a failure it is evaluated at ever larger intervals.
        """
        gap, state, iterations = self.rule.gap, self.state, self.state.totals.iterations
        if gap is None or not state.has_full_gradient or iterations < self._next_gap_check:
            return False
        self._next_gap_check = iterations + STEPS_PER_GAP_CHECK
        if state.gap() > gap:  # that of the innermost subproblem, a lower bound
            return False
        self._gap_reached = known_gap(state.problem, *state.full_point()) <= gap
        if not self._gap_reached:
            self._failed_gap_checks += 1
            self._next_gap_check = iterations + STEPS_PER_GAP_CHECK * 2**self._failed_gap_checks
        return self._gap_reached

    def _check_limits(self) -> None:
        if (status := self.monitor.limit_reached(self.state.totals.iterations)) is not None:
            raise SolverStoppedError(status)

    def _report(self) -> None:
        iterations = self.state.totals.iterations
        if self.monitor.report(lambda: _progress(self.state, self.monitor), iterations=iterations):
            raise SolverStoppedError(Status.STOPPED)

    def _steps(self, wanted: int) -> int:
        iterations = self.state.totals.iterations
        if self.rule.gap is not None and self.state.has_full_gradient:
            wanted = min(wanted, max(1, self._next_gap_check - iterations))
        return self.monitor.next_steps(iterations, wanted)


def _stall_detector(size: int) -> StallDetector:
    return StallDetector(STALL_STEPS + STALL_STEPS_PER_VARIABLE * size)


def _progress(state: BlockState[Any], monitor: Monitor) -> Progress:
    """Return the progress of a solve.

    Within a round, if only gradients of the working set are known, primal value and violation are those of the point
    before the round, whose primal value bounds the optimum all the same.
    """
    problem, full = state.problem, state.has_full_gradient
    progress = progress_snapshot(
        problem,
        state.full_point() if full and monitor.traced else state.point(),
        state.dual_value,
        monitor,
        state.totals.iterations,
        state.kernel_evaluations,
        state.innermost_size,
    )
    if full:
        return progress
    dual, gradient = state.dual, state.gradient
    primal = problem.value(dual, gradient) + known_gap(problem, dual, gradient)
    return replace(progress, primal=primal, violation=max(0.0, state.violation))
