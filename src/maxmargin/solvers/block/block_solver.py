"""Block decomposition: many variables at a time (Bottou & Lin 1.6.2; Joachims 1999; Serafini & Zanni 2005).

    select    a working set: free variables, and the worst violators from both ends of the gradient
    stop      if the violation among all variables does not exceed the tolerance
    solve     the small problem of the working set by pair steps, on a tile of the matrix
    update    the gradient, with the rows of the variables that have changed

Rows are computed many at a time and in single precision; dual and gradient are in double precision. A working set is
several times as large as the number of variables in use, so that a few rounds suffice: what is sequential, the pair
steps, happens on short rows; what is long, the update, happens seldom and on all cores.

Before it calls a point optimal, the solver compares its gradient with one computed afresh in double precision, and goes
on from there if single precision was not enough; see `BlockState.audit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.free_equations import solve_free
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import can_be_selected, kkt_violations, known_gap
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.row_store import CHEAP
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.dual_problem import InfeasibleProblemError
from maxmargin.solvers.block.block_choice import choose
from maxmargin.solvers.block.block_state import BlockState
from maxmargin.solvers.block.nested_start import can_start, extend, nested_samples, place, pose_sample, worth_it
from maxmargin.solvers.block.subproblem import Tally, Tile
from maxmargin.solvers.monitor import Monitor, SharedCallback, SolverStoppedError
from maxmargin.solvers.progress_snapshot import standing
from maxmargin.solvers.smo.hard_margin import grows_without_limit
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The largest matrix value that single precision is trusted with.
LARGEST_VALUE = 1e30

#: A problem of up to so many variables is one tile if that takes at most so many multiplications.
WHOLE, WHOLE_WORK = 3000, 10**9

#: A working set has so many variables at first, fewer where values are dear, and so many times as many as are free.
FIRST, FIRST_OF_DEAR, PER_FREE = 1024, 512, 2

#: When more than this part of a working set has moved, the next is twice as large: there is much to do.
MOST = 0.5

#: A tile is solved until its violation is this part of the violation among all variables.
INNER = 0.1

#: Pair steps between two looks at limits, shrinking and the end game.
STRETCH = 500

#: The variables of a tile that can matter must be at most this part of it; else leaving out others costs more.
WORTH_SHRINKING = 0.6

#: The most variables of such a smaller tile: its memory must be written first, and is not in the budget for rows.
LARGEST_PART = 4096

#: The violation at which a sample is good enough to start from, and the most pair steps, by variable, that it may take:
#: where it takes more, the cost is so large that a wrong bound is far away from the right one.
NESTED_VIOLATION, NESTED_STEPS = 0.05, 3

#: Steps, altogether and by variable, within which the violation must halve; a round counts for so many. Else the matrix
#: is so badly scaled that single precision only sees noise, and double precision goes on.
PATIENCE, PATIENCE_PER_VARIABLE, STEPS_OF_A_ROUND = 100_000, 200, 50

#: The most pair steps on a tile of a problem with open bounds, by variable: whether it has a limit shows in the whole.
OPEN_STEPS = 100

#: The part of the tolerance that is left to the errors of single precision.
RESERVE = 0.1

#: The linear equations of up to so many free variables are solved in between, whenever pair steps have taken as many
#: operations as that will take. The rank of the matrix shows in what it took the last time; at first it counts as low.
MOST_FREE, LOW_RANK = 1024, 32


@dataclass(frozen=True)
class BlockSolver:
    """Block decomposition on single-precision rows, with shrinking.

    Parameters
    ----------
    working_set : int
        The most variables in a working set. Its tile of the matrix takes 4 bytes per value: 64 MB for 4096.
    shrinking : bool
        Leave out variables of a working set that are settled, and look again before its end.
    cache_bytes : int
        Memory for rows of the matrix, beside the tile. With less it takes longer.
    stopping : StoppingRule
        When to stop.
    threads : int
        For the gradient; the matrix has its own. The result does not depend on it.
    nested_above : int
        With more variables than this, a quarter of them is solved first; see `maxmargin.solvers.block.nested_start`.
    """

    working_set: int = 4096
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
            monitor.report_start(lambda: _progress(state, monitor))
            status = None
            if start is None and problem.size > self.nested_above and can_start(problem):
                status = self._start_nested(state, monitor)
            if status is None:
                status = _Run(self, state, monitor).solve()
            monitor.report(lambda: _progress(state, monitor), now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        dual, gradient = state.point()
        counters = Counters(
            iterations=state.tally.iterations,
            kernel_evaluations=state.rows.evaluations,
            cache_hits=state.rows.hits,
            cache_misses=state.rows.misses,
            rounds=state.tally.rounds,
            seconds=monitor.seconds,
        )
        if status is Status.PRECISION:
            del state  # its rows make room for others
            return self._polish(problem, dual, counters, monitor, callback)
        return Solution(dual, gradient, status, counters, trace=monitor.trace)

    def _start_nested(self, state: BlockState, monitor: Monitor) -> Status | None:
        """Move to a start from ever larger samples, if they show that most variables will rest on a bound.

        Return how it ended if the whole solve ends here; then what a sample has taught is kept.
        """
        problem = state.problem
        watch = SharedCallback(monitor.nested_callback)
        solver = replace(self, nested_above=problem.size)
        sample, dual = np.empty(0, dtype=np.int64), np.empty(0)
        try:
            for larger in nested_samples(problem.size):
                try:
                    posed = pose_sample(problem, larger)
                except InfeasibleProblemError:
                    return None  # the sample cannot sum up to what all can
                used = np.flatnonzero(dual)
                start = None
                if len(used):
                    at = np.searchsorted(larger, sample[used])
                    product, _ = posed.matrix.float32_columns(at).combine(np.arange(posed.size), dual[used])
                    start = place(posed, posed.linear - product)
                left, most = monitor.iterations_left(state.tally.iterations), NESTED_STEPS * posed.size
                rule = StoppingRule(
                    NESTED_VIOLATION, None, most if left is None else min(left, most), monitor.seconds_left()
                )
                solution = replace(solver, stopping=rule).solve(posed, start, watch)
                state.count(solution.counters)
                sample, dual = larger, solution.dual
                if solution.status is Status.MAX_ITERATIONS and monitor.limit_reached(state.tally.iterations) is None:
                    return None
                if solution.status not in (Status.CONVERGED, Status.PRECISION):
                    return self._settle_for(state, sample, dual, solution.status)
                if watch.stopped.is_set():
                    return self._settle_for(state, sample, dual, Status.STOPPED)
                if not worth_it(posed, dual):
                    return None
            used = np.flatnonzero(dual)
            state.place(place(problem, problem.linear - state.product(sample[used], dual[used])))
        except KeyboardInterrupt:
            return self._settle_for(state, sample, dual, Status.INTERRUPTED)
        return None

    def _settle_for(self, state: BlockState, sample: Indices, dual: Floats, status: Status) -> Status:
        """Keep what a sample has taught, for the price of a product, if the whole solve ends with it."""
        state.place(extend(state.problem, sample, dual))
        return status

    def _polish(
        self, problem: DualProblem, dual: Floats, spent: Counters, monitor: Monitor, callback: Callback | None
    ) -> Solution:
        """Go on in double precision where single precision does not get any further."""
        rule = self.stopping
        limited = StoppingRule(
            rule.violation, rule.gap, monitor.iterations_left(spent.iterations), monitor.seconds_left()
        )
        solver = PairwiseSolver(shrinking=self.shrinking, cache_bytes=self.cache_bytes, stopping=limited)
        solution = solver.solve(problem, dual, callback)
        return replace(solution, counters=spent + solution.counters)


class _Patience:
    """Notices when the violation does not fall any more."""

    def __init__(self, size: int) -> None:
        self._detector = StallDetector(PATIENCE + PATIENCE_PER_VARIABLE * size)

    def check(self, violation: float, tally: Tally) -> None:
        """Leave the rest to double precision if so much effort has not halved the violation."""
        effort = tally.iterations + STEPS_OF_A_ROUND * tally.rounds
        if self._detector.stalled(violation, effort):
            raise SolverStoppedError(Status.PRECISION)


class _Run:
    """One run of a block solver."""

    def __init__(self, solver: BlockSolver, state: BlockState, monitor: Monitor) -> None:
        self.state, self.monitor, self.rule = state, monitor, solver.stopping
        self.tolerance = (1.0 - RESERVE) * solver.stopping.violation
        self.shrinking = solver.shrinking and state.has_limit
        self.stretch = STRETCH if self.rule.gap is None else STRETCH // 20  # the gap is looked at in between
        self.largest = min(solver.working_set, state.active)
        whole = state.active <= WHOLE and state.active**2 * state.rows.cost <= WHOLE_WORK
        if whole and solver.working_set >= FIRST:
            self.largest = state.active
        self.size = FIRST if state.rows.cost <= CHEAP else FIRST_OF_DEAR
        self.wide = state.rows.capacity > 2 * self.largest
        self._last_error = np.inf
        self._credit, self._rank = 0.0, float(LOW_RANK)  # what pair steps have taken since the equations were solved

    def solve(self) -> Status:
        """Work until the point is optimal or a limit is reached."""
        try:
            self._iterate()
        except SolverStoppedError as ended:
            return ended.status
        return Status.CONVERGED

    def _iterate(self) -> None:
        state = self.state
        patience = _Patience(state.active)
        while True:
            up, down = self._look()
            if state.violation <= self.tolerance:
                if self._is_optimal():
                    return
                continue
            self._check_limits()
            if self._gap_reached():
                return
            patience.check(state.violation, state.tally)
            self._round(up, down)
            self._tell()
            if grows_without_limit(state):
                state.refresh_all()  # values in single precision may pretend that
                if grows_without_limit(state):
                    raise SolverStoppedError(Status.UNBOUNDED)

    def _round(self, up: Floats, down: Floats) -> None:
        """Choose a working set and solve it."""
        state = self.state
        tile, target = self._next_tile(up, down)
        steps = state.tally.iterations
        self._accelerate(tile, state.active * len(state.free()))  # the rows that the round will need
        reason = self._settle(tile, target)
        if len(tile.changed()) > MOST * tile.active:
            self.size *= 2
        state.take(tile)
        state.open_tiles.pop()
        if reason is StopReason.NEEDS_ROW:
            self.wide = False  # there is no room for more rows
        # Without a limit, or so badly scaled that no step is possible: which of them, double precision decides.
        if reason is StopReason.UNBOUNDED or (reason is StopReason.PRECISION and state.tally.iterations == steps):
            raise SolverStoppedError(Status.PRECISION)

    def _next_tile(self, up: Floats, down: Floats) -> tuple[Tile, float]:
        """Return what to work on next, and how far."""
        state = self.state
        if self.largest >= state.active and not state.refreshed:
            return state.tile(np.arange(state.active)), self.tolerance
        if self.wide and len(state.free()) > self.largest:
            return state.wide_tile(), self.tolerance
        size = min(self.largest, self.size + PER_FREE * len(state.free()))
        return state.tile(choose(state, up, down, size)), max(0.5 * self.tolerance, INNER * state.violation)

    def _settle(self, tile: Tile, target: float) -> StopReason:
        """Take pair steps until the violation among the variables of the tile is small enough."""
        state, tally = self.state, self.state.tally
        state.open_tiles.append(tile)
        patience = _Patience(tile.active)
        most = np.inf if state.has_limit else tally.iterations + OPEN_STEPS * tile.active
        due = tally.iterations + self.stretch
        while True:
            self._check_limits()
            # The clock may end a stretch early, to let Ctrl-C in; what is decided depends on the count of steps alone.
            reason = tile.steps(target, self._steps(due - tally.iterations), self.monitor.time_slice())
            if reason is not StopReason.PAUSED or tally.iterations >= most:
                return reason
            self._tell()
            if tally.iterations < due:
                continue
            patience.check(tile.violation, tally)
            if self.rule.gap is not None and known_gap(state.problem, *state.point()) <= self.rule.gap:
                return reason  # so far it is that of the tile alone
            self._shrink(tile, target)
            self._accelerate(tile, self.stretch * tile.active)
            due = tally.iterations + self.stretch

    def _shrink(self, tile: Tile, target: float) -> None:
        """Go on without the variables of the tile that cannot matter, if there are many."""
        if not self.shrinking:
            return
        keep = np.flatnonzero(can_be_selected(tile))
        if 2 <= len(keep) <= min(WORTH_SHRINKING * tile.active, LARGEST_PART):
            part = tile.part(keep)
            self._settle(part, target)
            tile.take(part)
            self.state.open_tiles.pop()

    def _accelerate(self, tile: Tile, spent: float) -> None:
        """Solve the linear equations of the free variables, if that is little beside what was spent: steps creep."""
        self._credit += spent
        count = len(free := tile.free())
        if 0 < count <= MOST_FREE and self._credit >= count**2 * self._rank:
            most = 2.0 * self._credit
            work = solve_free(tile, free, most)
            self._rank = work / count**2 * (1.0 if work < most else 2.0)
            self._credit = 0.0

    def _look(self) -> tuple[Floats, Floats]:
        """Return by how much each variable violates optimality, growing and falling."""
        state = self.state
        if not np.isfinite(state.gradient.sum()):
            raise ValueError(NON_FINITE_MESSAGE)
        up, down = kkt_violations(state)
        state.violation = max(float(up.max(initial=0.0)), float(down.max(initial=0.0)))
        return up, down

    def _is_optimal(self) -> bool:
        """Whether the point is optimal in double precision too; if not, go on from a better gradient."""
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

    def _gap_reached(self) -> bool:
        return self.rule.gap is not None and known_gap(self.state.problem, *self.state.point()) <= self.rule.gap

    def _check_limits(self) -> None:
        if (status := self.monitor.limit_reached(self.state.tally.iterations)) is not None:
            raise SolverStoppedError(status)

    def _tell(self) -> None:
        iterations = self.state.tally.iterations
        if self.monitor.report(lambda: _progress(self.state, self.monitor), iterations=iterations):
            raise SolverStoppedError(Status.STOPPED)

    def _steps(self, wanted: int) -> int:
        return self.monitor.next_steps(self.state.tally.iterations, wanted)


def _progress(state: BlockState, monitor: Monitor) -> Progress:
    """Return where the solver stands.

    Within a round, if only gradients of the working set are known, primal value and violation are those of the point
    before, whose primal value bounds the optimum all the same.
    """
    problem, open_tiles = state.problem, state.open_tiles
    progress = standing(
        problem,
        state.whole_point() if state.has_whole_point and monitor.traced else state.point(),
        state.dual_value,
        monitor,
        state.tally.iterations,
        state.rows.evaluations,
        open_tiles[-1].active if open_tiles else state.active,
    )
    if state.has_whole_point:
        return progress
    before = 0.5 * inner(state.dual, state.linear + state.gradient)
    primal = before + known_gap(problem, state.dual, state.gradient)
    return replace(progress, primal=primal, violation=max(0.0, state.violation))
