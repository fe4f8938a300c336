"""Dual coordinate ascent: one dual variable at a time, with the weights w = Σ b_i f_i kept up to date.

    g_i = linear_i − f_i·w − ridge_i b_i,    b_i ← clip(b_i + g_i / (‖f_i‖² + ridge_i)),    w ← w + (change of b_i) f_i

A step costs two passes over one row (Hsieh et al. 2008; Shalev-Shwartz & Zhang 2013). Each pass visits the samples in a
new random order. Shrinking leaves out variables at a bound whose gradient points outward by more than the largest
inward gradient of the last pass. Where few of the active variables are between their bounds, some passes over these
alone follow each pass over all active ones, from the fourth on: they cost less, and the others seldom move.

*Offset.* A group's equality constraint Σ b = total cannot be kept by steps along single variables. It is handled by an
augmented Lagrangian: the offset is ρ + penalty · (Σ b − total), and after each pass this becomes the new ρ. Before the
gap is evaluated the sums are repaired (`repair_sums`).

*Threads.* Each thread works on its own share of a chunk of samples with its own copy of the weights. After the chunk
the changes are added; if the dual objective would decrease, an exact line search shortens their sum. The result is
independent of the relative speed of the threads: the same number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.solvers.linear.linear_point import (
    LinearPoint,
    dual_value,
    features_of,
    finite_norms,
    minimise_over_offset,
    repair_sums,
)
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Multiplications between two checks of the time limit and the callback.
CHUNK_MULTIPLICATIONS = 2 * 10**7

#: A chunk is shared between threads from this many multiplications on, plus this many for each weight, because every
#: thread copies the weights.
MIN_MULTIPLICATIONS_FOR_THREADS, MULTIPLICATIONS_PER_COPIED_WEIGHT = 2 * 10**6, 50

#: If the line search shortens the sum of the threads' changes below this factor, later steps are damped.
MIN_STEP_WITHOUT_DAMPING = 0.75

#: Passes over the variables between their bounds follow if these are at most this fraction of the active ones: so many,
#: or until the gap estimate of a pass is this fraction of that of the first one. The first three passes go without, as
#: long as no estimate of the remaining ones says whether the run continues.
MAX_INNER_FRACTION, MAX_INNER_PASSES, SUFFICIENT_INNER_DECREASE = 0.5, 4, 0.1

#: Passes before the first gap evaluation, unless the gap estimate is small earlier.
PASSES_BEFORE_FIRST_EVALUATION = 16

#: The relative gap assumed by `remaining_passes` where the stopping rule has none.
DEFAULT_RELATIVE_GAP = 1e-6

#: The run has stalled if the dual objective has not grown by this relative amount in this many passes.
MAX_STALLED_PASSES, MIN_RELATIVE_INCREASE = 1000, 1e-13

#: The limit on passes, thirty times that of LIBLINEAR, unless the user has set one.
MAX_PASSES = 30_000


@dataclass(frozen=True)
class DualCoordinateAscentSolver:
    """Dual coordinate ascent for the linear kernel.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass over the active samples, with the passes over some of them that follow.
    seed : int
        Seed of the order of the samples.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem with the linear kernel."""
        rows = features_of(problem, "dual_coordinate_ascent")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        run = CoordinateAscentRun(problem, rows, point, monitor, self.seed)
        status = run.solve(lambda: not monitor.is_slow(run.iterations, MAX_PASSES)) or Status.SLOW
        return run.point.solution(status, run.counters(), monitor)


class _Visit(NamedTuple):
    """What a pass found: the variables left after shrinking, the extreme projected gradients, the gap estimate.

    `stop` is the status if a limit or the callback ended the pass early.
    """

    kept: Indices
    highest: float
    lowest: float
    gap: float
    stop: Status | None = None


class CoordinateAscentRun:
    """The state of dual coordinate ascent on one problem.

    Attributes
    ----------
    point : LinearPoint
        The best point so far.
    iterations : int
        Passes over the active variables so far.
    """

    def __init__(
        self, problem: DualProblem, rows: Features, point: LinearPoint, monitor: Monitor, seed: int = 0
    ) -> None:
        self.problem, self.rows, self.point, self.monitor, self.rule = problem, rows, point, monitor, monitor.rule
        self.iterations = self.evaluations = 0
        self.dual, self.weights, self.offset = point.dual.copy(), point.weights.copy(), point.offset.copy()
        self._norms = finite_norms(rows)
        members = np.maximum(problem.group_sums(np.ones(problem.size)), 1.0)
        self._penalty = problem.group_sums(self._norms) / members  # the mean squared norm: the curvature of a row
        self._penalty[self._penalty == 0] = 1.0
        self._active = np.arange(problem.size)
        self._shrink_beyond = np.inf, np.inf
        self._gaps = np.inf, np.inf, np.inf  # estimates of the last three passes, summed while samples were visited
        self._damping = 1.0
        self._work = 1.0  # steps of the last iteration, relative to those along every active variable
        self._random = np.random.default_rng(seed)

    def counters(self) -> Counters:
        """Return the cost of the run so far."""
        return Counters(iterations=self.iterations, rounds=self.evaluations, seconds=self.monitor.seconds)

    def count_free(self) -> int:
        """Return the number of variables strictly between their bounds."""
        return int(np.count_nonzero((self.dual > self.problem.lower) & (self.dual < self.problem.upper)))

    def _free_among(self, variables: Indices) -> Indices:
        """Return those of the variables that are strictly between their bounds."""
        dual, problem = self.dual[variables], self.problem
        return variables[(dual > problem.lower[variables]) & (dual < problem.upper[variables])]

    def solve(self, should_continue: Callable[[], bool] | None = None) -> Status | None:
        """Take passes until convergence or a limit; return None if `should_continue` returns False after a pass."""
        try:
            return self._solve(should_continue)
        except Interruption as interruption:
            return status_of(interruption)

    def remaining_passes(self) -> float:
        """Return the estimated steps to convergence, in passes, extrapolated from the gaps of the last iterations.

        It is 0 as long as no estimate is possible, and infinite if the gap does not decrease.
        """
        first, _, last = self._gaps
        if not np.isfinite(first):
            return 0.0
        rule = self.rule
        relative = DEFAULT_RELATIVE_GAP if rule.relative_gap is None else rule.relative_gap
        target = max(relative * abs(self._dual_value() + last), rule.gap or 0.0)
        if last <= target:
            return 0.0
        if not (0 < last < first and target > 0):
            return np.inf
        return float(2.0 * self._work * np.log(target / last) / np.log(last / first))

    def _solve(self, should_continue: Callable[[], bool] | None) -> Status | None:
        self.monitor.report_start(self._progress)
        if self.point.accepted(self.rule):
            return Status.CONVERGED
        best, best_at = self.point.dual_value, self.iterations
        next_evaluation = self.iterations + self._evaluation_interval()
        while True:
            stop = self.monitor.limit_reached(self.iterations) or self.take_pass()
            abandoned = should_continue is not None and not should_continue()
            due = self.iterations >= next_evaluation or self._may_have_converged()
            if stop is None and not abandoned and not due:
                continue
            next_evaluation = self.iterations + self._evaluation_interval()
            if self.evaluate():
                return Status.CONVERGED
            if stop is not None:
                return stop
            if self.monitor.report(self._progress):
                return Status.STOPPED
            if self.point.dual_value > best + MIN_RELATIVE_INCREASE * abs(best):
                best, best_at = self.point.dual_value, self.iterations
            elif self.iterations - best_at > MAX_STALLED_PASSES:
                return self.point.stalled_status(self.problem, self.rows, self.rule)
            if abandoned:
                return None

    def _evaluation_interval(self) -> int:
        """Return the most passes until the next gap evaluation: fewer where no estimate of the gap is available."""
        if self.rule.relative_gap is None:
            return max(1, self.iterations // 3)
        return max(PASSES_BEFORE_FIRST_EVALUATION, self.iterations)

    def _may_have_converged(self) -> bool:
        """Whether the gap extrapolated from the last passes is within the tolerance."""
        _, before, now = self._gaps
        gap = now * (min(1.0, now / before) if 0 < before < np.inf else 1.0)
        primal = self.point.primal  # an upper bound of the optimal value
        if not self.rule.accepts_gap(primal, primal - gap):
            return False
        value = self._dual_value()
        return self.rule.accepts_gap(value + gap, value)

    def _dual_value(self) -> float:
        """Return the dual objective of the current iterate, before its sums are repaired."""
        return dual_value(self.problem, self.dual, self.weights)

    def take_pass(self) -> Status | None:
        """Take an iteration; return a status if a limit or the callback ends it early."""
        order, early = self._shuffled(self._active), not np.isfinite(self._gaps[0])
        visit = self._visit(order, *self._shrink_beyond)
        if visit.stop is not None:
            return visit.stop
        self._active = visit.kept
        self._shrink_beyond = (
            visit.highest if visit.highest > 0 else np.inf,
            -visit.lowest if visit.lowest < 0 else np.inf,
        )
        self._gaps = (*self._gaps[1:], visit.gap)
        self.iterations += 1
        return None if early else self._take_inner_passes(len(order))

    def _take_inner_passes(self, active: int) -> Status | None:
        """Take passes over the variables between their bounds if these are few among so many active ones."""
        free, first = self._free_among(self._active), 0.0
        passes = MAX_INNER_PASSES if 0 < len(free) <= MAX_INNER_FRACTION * active else 0
        self._work = 1.0
        for _ in range(passes):
            visit = self._visit(self._shuffled(free), np.inf, np.inf)
            if visit.stop is not None:
                return visit.stop
            self._work += len(free) / active
            first = first or visit.gap
            if visit.gap <= SUFFICIENT_INNER_DECREASE * first:
                break
        return None

    def _visit(self, order: Indices, above: float, below: float) -> _Visit:
        """Take a step along every variable of an order; shrink those whose gradients are beyond the thresholds."""
        problem, rows = self.problem, self.rows
        excess = problem.group_sums(self.dual) - problem.total
        kept: list[Indices] = []
        highest = lowest = gap = 0.0
        per_row = max(1, rows.stored // max(1, rows.size))
        chunk = max(1, CHUNK_MULTIPLICATIONS // per_row)
        min_shared = MIN_MULTIPLICATIONS_FOR_THREADS + MULTIPLICATIONS_PER_COPIED_WEIGHT * rows.dimension
        for begin in range(0, len(order), chunk):
            end = min(len(order), begin + chunk)
            threads = rows.threads if (end - begin) * per_row >= min_shared else 1
            before = (self.dual.copy(), self.weights.copy()) if threads > 1 else None
            state = _native.AscentState(
                dual=self.dual,
                weights=self.weights,
                squared_norms=self._norms,
                offset=self.offset,
                excess=excess,
                penalty=self._penalty,
            )
            options = _native.AscentOptions(
                constant=rows.constant,
                shrink_above=above,
                shrink_below=below,
                damping=self._damping if threads > 1 else 1.0,
            )
            result = _native.coordinate_ascent(rows.native, problem.native, state, options, order[begin:end], threads)
            if before is not None:
                self._shorten_step(*before, threads)
                excess = problem.group_sums(self.dual) - problem.total
            kept.append(order[begin : begin + result.remaining])
            highest, lowest, gap = max(highest, result.highest), min(lowest, result.lowest), gap + result.gap
            if (stop := self._interruption()) is not None:
                return _Visit(order, highest, lowest, gap, stop)
        self.offset += self._penalty * excess
        return _Visit(np.concatenate(kept) if kept else order, highest, lowest, gap)

    def evaluate(self) -> bool:
        """Evaluate the gap, keep the best point, reactivate shrunk samples, and return whether it is accepted."""
        problem, rows, rule = self.problem, self.rows, self.rule
        self.evaluations += 1
        dual = repair_sums(problem, self.dual, rows.threads_for_samples) if problem.groups else self.dual.copy()
        if rule.relative_gap is None:
            found = LinearPoint.of_dual(problem, rows, dual, rule)
            assert found.gradient is not None
            if found.dual_value >= self.point.dual_value:
                self.point = found
            decisions = problem.linear - found.gradient - problem.ridge * dual
        else:
            decisions = self._evaluate_gap(dual)
        gradient = problem.linear - decisions - problem.ridge * self.dual
        if problem.groups:
            gradient -= problem.expand_groups(self.offset)
        above, below = self._shrink_beyond
        at_upper, at_lower = self.dual >= problem.upper, self.dual <= problem.lower
        self._active = np.flatnonzero(~((at_upper & (gradient > above)) | (at_lower & (gradient < -below))))
        return self.point.accepted(rule)

    def _evaluate_gap(self, dual: Floats) -> Floats:
        """Keep the weights and the repaired dual vector if they are the best so far; return the decision values."""
        problem, rows = self.problem, self.rows
        match = not problem.groups or np.array_equal(dual, self.dual)
        dual_weights = self.weights if match else rows.weights(dual)
        decisions = rows.decisions(self.weights)
        offset, primal = minimise_over_offset(problem, rows, self.weights, problem.linear - decisions, self.offset)
        value = dual_value(problem, dual, dual_weights)
        better_weights, better_dual = primal < self.point.primal, value > self.point.dual_value
        self.point = LinearPoint(
            dual if better_dual else self.point.dual,
            self.weights.copy() if better_weights else self.point.weights,
            offset if better_weights else self.point.offset,
            min(primal, self.point.primal),
            max(value, self.point.dual_value),
            weights_match_dual=match and better_weights and better_dual,
        )
        return decisions

    def _shuffled(self, variables: Indices) -> Indices:
        """Return the variables in random order."""
        order = variables.copy()
        _native.shuffle(order, int(self._random.integers(2**63)))
        return order

    def _shorten_step(self, dual: Floats, weights: Floats, threads: int) -> None:
        """Move back towards the previous iterate if the sum of several threads' changes overshoots the maximum."""
        problem = self.problem
        change, weight_change = self.dual - dual, self.weights - weights
        drift = problem.group_sums(change)
        excess = problem.group_sums(dual) - problem.total
        curvature = inner(weight_change, weight_change) + inner(problem.ridge * change, change)
        curvature += float((self._penalty * drift) @ drift)
        slope = inner(problem.linear, change) - inner(weights, weight_change) - inner(problem.ridge * dual, change)
        slope -= float((self.offset + self._penalty * excess) @ drift)
        length = slope / curvature if curvature > 0 else 1.0
        if length < MIN_STEP_WITHOUT_DAMPING:
            self._damping = float(threads)  # then the sum of the threads' steps can only raise the dual objective
        if length < 1.0:
            self.dual = np.clip(dual + length * change, problem.lower, problem.upper)
            self.weights = weights + length * weight_change

    def _interruption(self) -> Status | None:
        if self.rule.max_seconds is not None and self.monitor.seconds >= self.rule.max_seconds:
            return Status.MAX_SECONDS
        stopped = self.monitor.report(self._progress, iterations=self.iterations)
        return Status.STOPPED if stopped else None

    def _progress(self) -> Progress:
        return self.point.progress(self.iterations, self.monitor, len(self._active), self.dual)
