"""Dual coordinate ascent: one variable at a time, with the weights w = Σ b_i f_i kept at hand.

    g_i = linear_i − f_i·w − ridge_i b_i,    b_i ← clip(b_i + g_i / (‖f_i‖² + ridge_i)),    w ← w + (change of b_i) f_i

A step costs two passes over one row (Hsieh et al. 2008; Shalev-Shwartz & Zhang 2013). Passes go through the samples in
random order; samples that rest on a bound, and are pushed against it harder than any was away from it in the last
pass, are left out until the end.

*The offset.* A group's sum Σ b = total is an equation that single steps cannot keep. It enters as in an augmented
Lagrangian: ρ + stiffness · (Σ b − total) is taken for the offset, which after each pass becomes the new ρ. Before a
point is judged its sums are mended (`mended`).

*Threads.* Each has its own share of a stretch of samples and its own copy of the weights; at the end of the stretch the
changes are added up, provided that the dual rises by it, else the part of them at which it is highest. That does not
depend on who is quick: the same number of threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.solvers.linear.linear_point import (
    LinearPoint,
    dual_value,
    features_of,
    finite_norms,
    mended,
    primal_value,
)
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Multiplications between two looks at the clock.
STRETCH = 2 * 10**7

#: Several threads share a stretch of at least so many multiplications, and so many for each weight that is copied.
LEAST_SHARED, WORTH_COPIES = 2 * 10**6, 50

#: If the dual is highest at less than this part of what several threads did, they are held back from then on.
CAUTION = 0.75

#: Passes before the first look at the gap, if it cannot be small enough sooner.
FIRST_LOOK = 8

#: The relative gap that is waited for where a rule does not tell one.
SMALL_GAP = 1e-6

#: If so many passes have not raised the dual by more than this part, rounding is all that is left.
PATIENCE, MIN_RELATIVE_ASCENT = 1000, 1e-13


@dataclass(frozen=True)
class DualCoordinateAscentSolver:
    """Steps along one dual variable of a linear machine after another.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass over the samples that are in play.
    seed : int
        For the order of the samples.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem whose matrix is a product of features."""
        rows = features_of(problem, "dual_coordinate_ascent")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        run = AscentRun(problem, rows, point, monitor, self.seed)
        status = run.solve()
        assert status is not None
        return run.point.solution(status, run.counters(), monitor)


class AscentRun:
    """One run of the method.

    Attributes
    ----------
    point : LinearPoint
        The best point so far.
    iterations : int
        Passes.
    """

    def __init__(
        self, problem: DualProblem, rows: Features, point: LinearPoint, monitor: Monitor, seed: int = 0
    ) -> None:
        self.problem, self.rows, self.point, self.monitor, self.rule = problem, rows, point, monitor, monitor.rule
        self.iterations = self.looks = 0
        self.dual, self.weights, self.offset = point.dual.copy(), point.weights.copy(), point.offset.copy()
        self._norms = finite_norms(rows)
        members = np.maximum(problem.group_sums(np.ones(problem.size)), 1.0)
        self._stiffness = problem.group_sums(self._norms) / members  # the sum weighs as much as a row
        self._stiffness[self._stiffness == 0] = 1.0
        self._order = np.arange(problem.size)
        self._leave = np.inf, np.inf
        self._gaps = np.inf, np.inf, np.inf  # of the last three passes, each sample's when it was seen
        self._damping = 1.0
        self._random = np.random.default_rng(seed)

    def counters(self) -> Counters:
        """Return what the run cost."""
        return Counters(iterations=self.iterations, rounds=self.looks, seconds=self.monitor.seconds)

    def solve(self, worth_it: Callable[[], bool] | None = None) -> Status | None:
        """Take passes until the point is good enough or a limit is reached, or return None when it is not worth it."""
        try:
            return self._solve(worth_it)
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def passes_left(self) -> float:
        """Return about how many passes are left, going by how the gaps of the samples fall from pass to pass."""
        first, _, last = self._gaps
        if not np.isfinite(first):
            return 0.0
        rule = self.rule
        part = SMALL_GAP if rule.relative_gap is None else rule.relative_gap
        goal = max(part * abs(self._dual_value() + last), rule.gap or 0.0)
        if last <= goal:
            return 0.0
        return float(2.0 * np.log(goal / last) / np.log(last / first)) if 0 < last < first and goal > 0 else np.inf

    def _solve(self, worth_it: Callable[[], bool] | None) -> Status | None:
        self.monitor.report_start(self._progress)
        if self.point.accepted(self.rule):
            return Status.CONVERGED
        best, best_at, next_look = self.point.value, self.iterations, self.iterations + self._between_looks()
        while True:
            stop = self.monitor.limit_reached(self.iterations) or self.take_pass()
            given_up = worth_it is not None and not worth_it()
            if stop is None and not given_up and self.iterations < next_look and not self._promising():
                continue
            next_look = self.iterations + self._between_looks()
            if self.look():
                return Status.CONVERGED
            if stop is not None:
                return stop
            if self.monitor.report(self._progress):
                return Status.STOPPED
            if self.point.value > best + MIN_RELATIVE_ASCENT * abs(best):
                best, best_at = self.point.value, self.iterations
            elif self.iterations - best_at > PATIENCE:
                return self.point.no_better_possible(self.problem, self.rows, self.rule)
            if given_up:
                return None

    def _between_looks(self) -> int:
        """Return after how many passes the point is judged in any case: sooner where nothing tells of the gap."""
        return max(1, self.iterations // 3) if self.rule.relative_gap is None else max(FIRST_LOOK, self.iterations)

    def _promising(self) -> bool:
        """Whether the next look at the gap may be the last, going by what the samples of the last passes told of it."""
        _, before, now = self._gaps
        gap = now * (min(1.0, now / before) if 0 < before < np.inf else 1.0)
        primal = self.point.primal  # the objective is at most that
        if not self.rule.accepts_gap(primal, primal - gap):
            return False
        value = self._dual_value()
        return self.rule.accepts_gap(value + gap, value)

    def _dual_value(self) -> float:
        """Return D as it is now, but for what mending sums will cost."""
        return dual_value(self.problem, self.dual, self.weights)

    def take_pass(self) -> Status | None:
        """Take a step along every variable in play; return a status if the run has to end in the midst of it."""
        problem, rows = self.problem, self.rows
        order = self._shuffled()
        excess = problem.group_sums(self.dual) - problem.total
        stay: list[Indices] = []
        highest = lowest = gap = 0.0
        per_row = max(1, rows.stored // max(1, rows.size))
        step = max(1, STRETCH // per_row)
        for begin in range(0, len(order), step):
            end = min(len(order), begin + step)
            threads = rows.threads if (end - begin) * per_row >= LEAST_SHARED + WORTH_COPIES * rows.dimension else 1
            before = (self.dual.copy(), self.weights.copy()) if threads > 1 else None
            _, last, high, low, part = _native.ascend(
                *rows.arrays, rows.picks, not len(rows.picks), self.dual, self.weights, problem.linear, problem.lower,
                problem.upper, problem.ridge, self._norms, problem.group, self.offset, excess, self._stiffness,
                rows.constant, order, begin, end, *self._leave, self._damping if threads > 1 else 1.0, threads,
            )  # fmt: skip
            if before is not None:
                self._hold_back(*before, threads)
                excess = problem.group_sums(self.dual) - problem.total
            stay.append(order[begin:last])
            highest, lowest, gap = max(highest, high), min(lowest, low), gap + part
            if (stop := self._interruption()) is not None:
                return stop
        self.offset += self._stiffness * excess
        self._order = np.concatenate(stay) if stay else order
        self._leave = highest if highest > 0 else np.inf, -lowest if lowest < 0 else np.inf
        self._gaps = (*self._gaps[1:], gap)
        self.iterations += 1
        return None

    def look(self) -> bool:
        """Judge the present point, keep it if it is the best, and call back samples that were left out too early."""
        problem, rows, rule = self.problem, self.rows, self.rule
        self.looks += 1
        dual = mended(problem, self.dual) if problem.groups else self.dual.copy()
        if rule.relative_gap is None:
            found = LinearPoint.of_dual(problem, rows, dual, rule)
            assert found.gradient is not None
            if found.value >= self.point.value:
                self.point = found
            decisions = problem.linear - found.gradient - problem.ridge * dual
        else:
            together = not problem.groups or np.array_equal(dual, self.dual)
            own = self.weights if together else rows.weights(dual)
            decisions = rows.decisions(self.weights)
            slack = without = problem.linear - decisions
            threads = rows.threads_for(problem.size)
            offset = offsets_of_least_loss(problem, without, self.offset, threads)
            if problem.groups:
                slack = without - of_samples(problem, offset)
            primal = primal_value(problem, self.weights, offset, slack, threads)
            value = dual_value(problem, dual, own)
            better_weights, better_dual = primal < self.point.primal, value > self.point.value
            self.point = LinearPoint(
                dual if better_dual else self.point.dual,
                self.weights.copy() if better_weights else self.point.weights,
                offset if better_weights else self.point.offset,
                min(primal, self.point.primal),
                max(value, self.point.value),
                together=together and better_weights and better_dual,
            )
        slope = problem.linear - decisions - problem.ridge * self.dual
        if problem.groups:
            slope -= of_samples(problem, self.offset)
        above, below = self._leave
        resting = ((self.dual >= problem.upper) & (slope > above)) | ((self.dual <= problem.lower) & (slope < -below))
        self._order = np.flatnonzero(~resting)
        return self.point.accepted(rule)

    def _shuffled(self) -> Indices:
        """Return the samples in play in random order."""
        order = self._order.copy()
        _native.shuffle(order, int(self._random.integers(2**63)))
        return order

    def _hold_back(self, dual: Floats, weights: Floats, threads: int) -> None:
        """Make sure that the sum of what several threads did raises the dual: go back along it if it went too far."""
        problem = self.problem
        change, turn = self.dual - dual, self.weights - weights
        drift = problem.group_sums(change)
        excess = problem.group_sums(dual) - problem.total
        bend = inner(turn, turn) + inner(problem.ridge * change, change) + float((self._stiffness * drift) @ drift)
        rise = inner(problem.linear, change) - inner(weights, turn) - inner(problem.ridge * dual, change)
        rise -= float((self.offset + self._stiffness * excess) @ drift)
        best = rise / bend if bend > 0 else 1.0
        if best < CAUTION:
            self._damping = float(threads)  # from now on each thread takes the others to do as it does: always a rise
        if best < 1.0:
            self.dual = np.clip(dual + best * change, problem.lower, problem.upper)
            self.weights = weights + best * turn

    def _interruption(self) -> Status | None:
        if self.rule.max_seconds is not None and self.monitor.seconds >= self.rule.max_seconds:
            return Status.MAX_SECONDS
        told = self.monitor.report(self._progress, iterations=self.iterations)
        return Status.STOPPED if told else None

    def _progress(self) -> Progress:
        return self.point.progress(self.iterations, self.monitor, len(self._order))
