"""Block decomposition: many variables at a time (Bottou & Lin 1.6.2; Joachims 1999; Serafini & Zanni 2005).

    select    a working set: the worst violators from both ends of the gradient, and half of the previous set
    stop      if the violation among all variables does not exceed the tolerance
    solve     the small problem of the working set by pair steps, on a tile of the matrix that stays in cache
    update    the gradient, with the rows of the variables that have changed

Rows are computed many at a time and in single precision; dual and gradient are in double precision. As soon as the rows
that matter are all in memory, pair steps among all variables that take part get further than blocks do: that is the
second half of most solves. Blocks go on where memory is short.

Before it calls a point optimal, the solver compares its gradient with one computed afresh in double precision, and goes
on from there if single precision was not enough; see `BlockState.audit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from maxmargin.matrices import NOT_FINITE
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.certificate import of_samples, offset_between, offset_bounds, residuals
from maxmargin.problems.dual_problem import InfeasibleProblemError
from maxmargin.solvers.block_state import BlockState
from maxmargin.solvers.exact_finish import solve_free
from maxmargin.solvers.hard_margin import grows_without_limit
from maxmargin.solvers.nested_start import can_start, mostly_bounded, nested_samples, place, pose_sample
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.shrinking import extremes
from maxmargin.solvers.stopping import Callback, Monitor, StoppingRule
from maxmargin.solvers.working_state import Reason

#: The largest matrix value that single precision is trusted with.
LARGEST_VALUE = 1e30

#: All rows of a problem of up to so many variables are computed at once if that takes at most so many multiplications:
#: there is no need for blocks then.
ALL_ROWS = 3000
ALL_ROWS_WORK = 10**9

#: A block is solved until its violation is this part of the violation among all variables.
INNER = 0.1

#: The most pair steps on a block, by variable: a fraction of a second, so that Ctrl-C is heard.
BLOCK_STEPS = 100

#: Pair steps among all variables between two looks at limits, shrinking and the end game.
STRETCH = 1000

#: Pair steps among all variables begin when fewer than this part of the rows of a block were new.
NEW_ROWS = 0.1

#: The variables that can matter must be at most this part of those that take part; else leaving out others costs more.
WORTH_SHRINKING = 0.6

#: A narrowed view has at most this part of the variables, and is given up at this part of its first violation.
WORTH_FOCUSING, FOCUSED = 0.25, 0.05

#: The violation at which a sample is good enough to start from.
NESTED_VIOLATION = 0.05

#: Steps, altogether and by variable, within which the violation must halve; a round counts for so many. Else the matrix
#: is so badly scaled that single precision only sees noise, and double precision goes on.
PATIENCE, PATIENCE_PER_VARIABLE, STEPS_OF_A_ROUND = 100_000, 200, 50

#: The part of the tolerance that is left to the errors of single precision.
RESERVE = 0.1

#: After how many stretches of pair steps the linear equations of up to so many free variables are tried.
ACCELERATE = ((5, 256), (50, 1024))


@dataclass(frozen=True)
class BlockSolver:
    """Block decomposition on single-precision rows, with shrinking.

    Parameters
    ----------
    working_set : int
        Variables in a block. Its tile of the matrix, 4 bytes per value, should fit the second-level cache.
    shrinking : bool
        Leave out variables that are settled, and look again before the end.
    cache_bytes : int
        Memory for rows of the matrix. With less it takes longer.
    stopping : StoppingRule
        When to stop.
    threads : int
        For the gradient; the matrix has its own. The result does not depend on it.
    nested_above : int
        With more variables than this, a quarter of them is solved first; see `maxmargin.solvers.nested_start`.
    """

    working_set: int = 512
    shrinking: bool = True
    cache_bytes: int = 2**30
    stopping: StoppingRule = field(default_factory=StoppingRule)
    threads: int = 1
    nested_above: int = 4000
    audited: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.working_set >= 2:
            raise ValueError(f"a working set has at least 2 variables, not {self.working_set}")

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        monitor = Monitor(self.stopping, callback)
        if float(problem.curvature.max(initial=0.0)) > LARGEST_VALUE:
            return self._polish(problem, feasible_start(problem, start), Counters(), monitor, callback)
        state = BlockState(problem, self.cache_bytes, self.threads)
        try:
            state.place(feasible_start(problem, start))
            status = None
            if start is None and problem.size > self.nested_above and can_start(problem):
                status = self._start_nested(state, monitor)
            if status is None:
                status = self._iterate(state, monitor)
            monitor.report(lambda: _progress(state, monitor), now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        dual, gradient = state.point()
        counters = Counters(
            iterations=state.iterations,
            kernel_evaluations=state.rows.evaluations,
            cache_hits=state.rows.hits,
            cache_misses=state.rows.misses,
            rounds=state.rounds,
            seconds=monitor.seconds,
        )
        if status is Status.PRECISION:
            del state  # its rows make room for others
            return self._polish(problem, dual, counters, monitor, callback)
        return Solution(dual, gradient, status, counters)

    def _start_nested(self, state: BlockState, monitor: Monitor) -> Status | None:
        """Move to a start from ever larger samples, if they show that most variables will rest on a bound.

        Return how it ended if the whole solve ends here.
        """
        problem = state.problem
        solver = replace(self, nested_above=problem.size)
        sample, dual = np.empty(0, dtype=np.int64), np.empty(0)
        for larger in nested_samples(problem.size):
            try:
                posed = pose_sample(problem, larger)
            except InfeasibleProblemError:
                return None  # the sample cannot sum up to what all can
            used = np.flatnonzero(dual)
            start = None
            if len(used):
                at = np.searchsorted(larger, sample[used])
                product, _ = posed.matrix.single(at).combine(np.arange(posed.size), dual[used])
                start = place(posed, posed.linear - product)
            rule = StoppingRule(NESTED_VIOLATION, None, monitor.steps_left(state.iterations), monitor.time_left())
            solution = replace(solver, stopping=rule).solve(posed, start, monitor.callback)
            state.count(solution.counters)
            if solution.status not in (Status.CONVERGED, Status.PRECISION):
                return solution.status
            sample, dual = larger, solution.dual
            if not mostly_bounded(posed, dual):
                return None
        used = np.flatnonzero(dual)
        state.place(place(problem, problem.linear - state.product(sample[used], dual[used])))
        return None

    def _iterate(self, state: BlockState, monitor: Monitor) -> Status:
        tolerance = (1.0 - RESERVE) * self.stopping.violation
        run = _Run(self, state, monitor, tolerance)
        if run.look() <= tolerance and state.violation + state.audit() <= self.stopping.violation:
            return Status.CONVERGED  # the start is optimal
        run.hold_all_rows()
        while True:
            if (stop := monitor.limit_reached(state.iterations)) is not None:
                return stop
            reason = run.pairs() if run.rows_at_hand else run.block()
            if reason is Reason.UNBOUNDED:
                return Status.PRECISION  # in single precision; whether it really is, double precision decides
            if reason in (Reason.OPTIMAL, Reason.PRECISION):
                if state.reconsider():
                    run.start_again()
                    continue
                if reason is Reason.PRECISION:
                    return Status.PRECISION
                error = state.audit()
                if not np.isfinite(error):
                    raise ValueError(NOT_FINITE)
                if state.violation + error <= self.stopping.violation:
                    return Status.CONVERGED
                if not run.refresh(error):
                    return Status.PRECISION
                continue
            if monitor.report(lambda: _progress(state, monitor)):
                return Status.STOPPED
            if run.gap_reached(self.stopping.gap):
                return Status.CONVERGED
            if run.out_of_patience():
                return Status.PRECISION
            run.focus(self.shrinking and state.bounded)
            if run.due():
                if grows_without_limit(state):
                    return Status.UNBOUNDED
                # An open box is never shrunk: whether its dual has a limit shows in all variables together.
                if self.shrinking and state.bounded and state.shrink(WORTH_SHRINKING):
                    run.start_again()
                run.accelerate()

    def _polish(
        self, problem: DualProblem, dual: Floats, spent: Counters, monitor: Monitor, callback: Callback | None
    ) -> Solution:
        """Go on in double precision where single precision does not get any further."""
        rule = self.stopping
        limited = StoppingRule(rule.violation, rule.gap, monitor.steps_left(spent.iterations), monitor.time_left())
        solver = PairwiseSolver(shrinking=self.shrinking, cache_bytes=self.cache_bytes, stopping=limited)
        solution = solver.solve(problem, dual, callback)
        return Solution(solution.dual, solution.gradient, solution.status, spent + solution.counters)


class _Run:
    """What a run remembers from one block or stretch of pair steps to the next."""

    def __init__(self, solver: BlockSolver, state: BlockState, monitor: Monitor, tolerance: float) -> None:
        self.state, self.monitor, self.tolerance = state, monitor, tolerance
        self.block_size, self.max_iterations = solver.working_set, solver.stopping.max_iterations
        self.stretch = STRETCH if solver.stopping.gap is None else STRETCH // 20  # the gap is looked at in between
        self.rows_at_hand = False  # whether the rows that matter are in memory
        self._previous: Indices = np.empty(0, dtype=np.int64)
        self._stretches = 0
        self._next_due = 0
        self._focused_at: float | None = None  # the violation when the view was narrowed; 0 when it is no more
        self._last_error = np.inf
        self._best, self._best_at = np.inf, 0  # the least violation so far, by halves, and after which effort

    def look(self) -> float:
        """Return the violation among all that take part."""
        if not np.isfinite(self.state.gradient.sum()):
            raise ValueError(NOT_FINITE)
        self._up, self._down = _violations(self.state)
        self.state.violation = max(float(self._up.max(initial=0.0)), float(self._down.max(initial=0.0)))
        return self.state.violation

    def block(self) -> Reason:
        """Choose a working set and solve it."""
        state = self.state
        if self.look() <= self.tolerance:
            return Reason.OPTIMAL
        self._previous = _choose(state, self._up, self._down, self._previous, self.block_size)
        target = max(0.5 * self.tolerance, INNER * state.violation)
        misses, hits, steps = state.rows.misses, state.rows.hits, state.iterations
        reason = state.solve_block(self._previous, target, self._steps(BLOCK_STEPS * self.block_size))
        new, known = state.rows.misses - misses, state.rows.hits - hits
        self.rows_at_hand = new <= NEW_ROWS * (new + known) and state.rows.spare > 0
        if reason is Reason.OPTIMAL or (reason is Reason.PRECISION and state.iterations > steps):
            return Reason.PAUSED  # the block is; the whole is not known to be
        return reason

    def pairs(self) -> Reason:
        """Take a stretch of pair steps among all that take part."""
        state = self.state
        # The clock may end a stretch early, to let Ctrl-C in; what is decided depends on the count of steps alone.
        steps = max(1, self._next_due - state.iterations)
        reason = state.pair_steps(self.tolerance, self._steps(steps), self.monitor.time_slice())
        if state.rows.spare == 0 and reason is Reason.NEEDS_ROW:
            self.rows_at_hand = False  # memory is short: whole blocks of rows are cheaper than one after the other
        return reason

    def out_of_patience(self) -> bool:
        """Whether so many steps have not halved the violation that double precision should go on."""
        state = self.state
        effort = state.iterations + STEPS_OF_A_ROUND * state.rounds
        if state.violation < 0.5 * self._best:
            self._best, self._best_at = state.violation, effort
        return effort - self._best_at > PATIENCE + PATIENCE_PER_VARIABLE * state.size

    def gap_reached(self, wanted: float | None) -> bool:
        """Whether the duality gap of all variables is small enough."""
        if wanted is None or _gap(self.state) > wanted:
            return False
        if self.state.reconsider():  # so far it was that of the variables that take part
            self.start_again()
        return _gap(self.state) <= wanted

    def hold_all_rows(self) -> None:
        """Compute all rows at once if that is little work: there is no need for blocks then, nor for a narrow view."""
        if self.state.size <= ALL_ROWS and self.state.rows.hold_all(ALL_ROWS_WORK):
            self.rows_at_hand, self._focused_at = True, 0.0

    def focus(self, allowed: bool) -> None:
        """Narrow the view when the rows in use are there, and widen it when the violation in it has become small."""
        state = self.state
        if self._focused_at is None and self.rows_at_hand:
            self._focused_at = 0.0
            if allowed and state.focus(WORTH_FOCUSING):
                self._focused_at = state.violation
                self.start_again()
        elif self._focused_at and state.violation <= FOCUSED * self._focused_at:
            self._focused_at = 0.0
            if state.reconsider():
                self.start_again()
                self.rows_at_hand = False

    def due(self) -> bool:
        """Whether it is time to look at shrinking and at the end game."""
        if self.state.iterations < self._next_due:
            return False
        self._next_due = self.state.iterations + self.stretch
        return True

    def accelerate(self) -> None:
        """Solve the linear equations of the free variables, now and then, if there are few: slow runs creep without."""
        if not self.rows_at_hand:
            return
        self._stretches += 1
        free = self.state.free()
        if any(self._stretches % every == 0 and 0 < len(free) <= most for every, most in ACCELERATE):
            solve_free(self.state, free)

    def refresh(self, error: float) -> bool:
        """Compute the gradient afresh in double precision; return False if that does not help any more."""
        if not error <= 0.5 * self._last_error:
            return False
        self._last_error = error
        self.state.refresh()
        return True

    def start_again(self) -> None:
        """Forget positions: they mean other variables now."""
        self._previous = np.empty(0, dtype=np.int64)

    def _steps(self, wanted: int) -> int:
        left = wanted if self.max_iterations is None else self.max_iterations - self.state.iterations
        return min(wanted, left)


def _violations(state: BlockState) -> tuple[Floats, Floats]:
    """Return by how much each variable violates optimality when it grows, and when it falls; −∞ if it cannot."""
    ends = extremes(state)
    up = np.where(state.dual < state.upper, state.gradient - ends.lowest[state.group], -np.inf)
    down = np.where(state.dual > state.lower, ends.highest[state.group] - state.gradient, -np.inf)
    return up, down


def _choose(state: BlockState, up: Floats, down: Floats, previous: Indices, size: int) -> Indices:
    """Return a working set: half of the previous one, free variables first, and the worst violators of both kinds."""
    size = min(size, state.active)
    dual = state.dual[previous]
    free = (state.lower[previous] < dual) & (dual < state.upper[previous])
    kept = np.concatenate([previous[free], previous[~free]])[: min(size // 2, size - 2)]  # the worst pair must fit
    up[kept] = down[kept] = -np.inf
    growing = _largest(up, (size - len(kept)) // 2)
    down[growing] = -np.inf
    falling = _largest(down, size - len(kept) - len(growing))
    up[growing] = up[falling] = -np.inf
    rest = _largest(up, size - len(kept) - len(growing) - len(falling))
    return np.concatenate([kept, growing, falling, rest])


def _largest(values: Floats, count: int) -> Indices:
    """Return where the largest values are, those above 0 only."""
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    picks = np.argpartition(values, len(values) - count)[-count:] if count < len(values) else np.arange(len(values))
    return picks[values[picks] > 0]


def _gap(state: BlockState) -> float:
    """Return the duality gap, taking what is left out as settled."""
    problem = state.problem
    dual, gradient = state.point()
    offset = offset_between(*offset_bounds(problem, dual, gradient))
    known = np.isfinite(gradient)
    slack = np.where(known, gradient, 0.0) + problem.ridge * dual - of_samples(problem, offset)
    return float(residuals(problem, dual, slack)[known].sum())


def _progress(state: BlockState, monitor: Monitor) -> Progress:
    return Progress(
        iteration=state.iterations,
        violation=max(0.0, state.violation),
        primal=state.dual_value + _gap(state),
        dual=state.dual_value,
        active=state.active,
        seconds=monitor.seconds,
    )
