"""Sequential minimal optimisation: two variables at a time (Bottou & Lin 1.6.3, Algorithm 1.3).

    select  i with b_i < upper_i, j with b_j > lower_j                        working_set
    stop    if g_i − g_j does not exceed the tolerance                        (1.21)
    step    t = min((g_i − g_j) / (M_ii + M_jj − 2 M_ij), upper_i − b_i, b_j − lower_j)
            b_i += t,  b_j −= t,  g −= t (M_i − M_j)

The steps run natively in stretches. Between two stretches this loop fetches missing rows, shrinks, watches the
limits, tells the callback, and lets Python deliver Ctrl-C.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import known_gap
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.progress_snapshot import standing
from maxmargin.solvers.smo.exact_finish import accelerate, exact_finish
from maxmargin.solvers.smo.hard_margin import grows_without_limit
from maxmargin.solvers.smo.shrinking import reconsider, shrink, unshrink
from maxmargin.solvers.smo.working_set import selection_code
from maxmargin.solvers.smo.working_state import WorkingState
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: So many steps, and so many for each variable, must halve the violation; else rounding undoes what the steps do.
PATIENCE, PATIENCE_PER_VARIABLE = 2_000_000, 1000

#: After how many looks at shrinking the linear equations of the free variables are tried: slow problems only.
ACCELERATE_EVERY = 5


@dataclass(frozen=True)
class PairwiseSolver:
    """Sequential minimal optimisation with a row cache and shrinking.

    Parameters
    ----------
    selection : {"second_order", "most_violating_pair", "maximum_gain"}
        How the next pair is chosen; see `maxmargin.solvers.smo.working_set`.
    shrinking : bool
        Leave out variables that are settled, and look again before the end.
    cache_bytes : int
        Memory for rows of the matrix. The result does not depend on it.
    stopping : StoppingRule
        When to stop.
    finish_below : int
        With at most this many free variables their linear equations are solved, in slow runs and at the end; with four
        times as many in very slow runs. 0 leaves it at pair steps.
    """

    selection: str = "second_order"
    shrinking: bool = True
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    finish_below: int = 256
    audited: ClassVar[bool] = False

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        monitor = Monitor(self.stopping, callback)
        rule = selection_code(self.selection)
        state = WorkingState(problem, feasible_start(problem, start), self.cache_bytes, self.shrinking)
        try:
            monitor.report_start(lambda: self._progress(problem, state, monitor))
            status = self._iterate(problem, state, rule, monitor)
            unshrink(state)
            if status is Status.CONVERGED and state.iterations and state.violation <= self.stopping.violation:
                exact_finish(state, self.finish_below, monitor)
            monitor.report(lambda: self._progress(problem, state, monitor), now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
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
        )

    def _iterate(self, problem: DualProblem, state: WorkingState, rule: int, monitor: Monitor) -> Status:
        tolerance = self.stopping.violation
        period = min(max(state.size, 100), 1000)  # at least 100: on tiny problems a check costs more than a step
        next_check = period
        checks = 0
        looked_again = False  # whether all variables were reconsidered near the end
        # A dual without a limit grows until it is found out, and its violation does not fall meanwhile.
        stall = StallDetector(PATIENCE + PATIENCE_PER_VARIABLE * state.size if state.has_limit else np.inf)
        while True:
            steps = next_check - state.iterations
            steps = monitor.next_steps(state.iterations, steps)
            outcome = state.steps(rule, tolerance, steps, monitor.time_slice())
            if outcome.reason is StopReason.OPTIMAL:
                if state.active == state.size:
                    return Status.CONVERGED
                unshrink(state)  # optimal among the active; now ask all
                next_check = state.iterations + 1
                continue
            if outcome.reason is StopReason.UNBOUNDED:
                return Status.UNBOUNDED
            if outcome.reason is StopReason.PRECISION:
                if state.active == state.size:
                    return Status.PRECISION
                unshrink(state)
                continue
            if (stop := monitor.limit_reached(state.iterations)) is not None:
                return stop
            if monitor.report(lambda: self._progress(problem, state, monitor), iterations=state.iterations):
                return Status.STOPPED
            if stall.stalled(state.violation, state.iterations):
                return Status.PRECISION
            if state.iterations >= next_check:
                next_check = state.iterations + period
                if self._gap_reached(problem, state):
                    return Status.CONVERGED
                if grows_without_limit(state):
                    return Status.UNBOUNDED
                checks += 1
                if checks % ACCELERATE_EVERY == 0:
                    patient = checks % (10 * ACCELERATE_EVERY) == 0  # a very slow run is worth a larger system
                    accelerate(state, 4 * self.finish_below if patient else self.finish_below)
                if self.shrinking:
                    if not looked_again and state.violation <= 10 * tolerance:
                        looked_again = True
                        reconsider(state)
                    else:
                        shrink(state)

    def _gap_reached(self, problem: DualProblem, state: WorkingState) -> bool:
        """Whether the gap is small enough: first among the active variables, then, if so, among all."""
        if self.stopping.gap is None or known_gap(problem, *state.point()) > self.stopping.gap:
            return False
        unshrink(state)
        return known_gap(problem, *state.point()) <= self.stopping.gap

    def _progress(self, problem: DualProblem, state: WorkingState, monitor: Monitor) -> Progress:
        return standing(
            problem,
            state.whole_point() if monitor.traced else state.point(),
            state.dual_value,
            monitor,
            state.iterations,
            state.rows.evaluations,
            state.active,
        )
