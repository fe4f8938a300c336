"""Coordinate descent for the L1 penalty Σ |w_j|: linear models with sparse weights.

    minimise  P(w, ρ) = Σ |w_j| + Σ conjugate(linear − F w − ρ)

Along one weight the loss has the slope g = −(Fᵀ response)_j and the curvature h = Σ F_ij² / ridge_i over the free
samples; |w + d| + g d + ½ h d² has a closed-form minimum, and the step is shortened until P decreases (Yuan et al.
2010, LIBLINEAR). Each round has a working set: the nonzero weights and about as many of the most violating zero
weights.

Coordinate descent converges slowly if columns are correlated or C is large. After a few passes a Newton step follows on
the same working set: the loss is piecewise quadratic, and its model with the current free samples is minimised with the
same penalty (`l1_model`; newGLMNET, Yuan et al. 2012), followed by a line search. The optimal offset for the weights is
computed at the start of each round, and eliminated from the model.

If C is so large that hardly any sample is free, the model is poor and steps are short. Then the loss is smoothed as in
`semismooth_newton`, by a term −½ σ‖b − c‖² in the dual around the best dual vector c so far. σ starts where few weights
are nonzero and decreases from problem to problem; the solutions converge to the optimum of the original problem for any
sequence of σ (Rockafellar 1976; Li, Sun & Toh 2018 for the lasso).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.feature_columns import FeatureColumns
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.l1_certificate import l1_features, l1_violations, scale_to_feasible
from maxmargin.problems.losses import conjugate, response
from maxmargin.problems.offsets import best_offsets
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.linear.l1_model import minimise_model
from maxmargin.solvers.linear.linear_point import LinearPoint
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The most zero weights in a working set: this many, or this multiple of the nonzero ones if that is more.
MIN_WORKING_SET_SIZE, WORKING_SET_RATIO = 100, 2

#: The most weights of a Newton step.
MAX_NEWTON_WEIGHTS = 2500

#: The fewest and most passes of a round; in between, a third of the cost of a Newton step.
MIN_PASSES, MAX_PASSES = 2, 20

#: Multiplications of a matrix product in the time of one multiplication of a pass.
BLAS_SPEEDUP = 8.0

#: Reductions of the violation at which the passes of a round end, and at which the quadratic model counts as solved.
PASS_REDUCTION, MODEL_REDUCTION = 0.1, 1e-2

#: Multiplications between two checks of the time limit.
CHUNK_MULTIPLICATIONS = 2 * 10**7

#: A problem is hard after this many Newton steps shorter than this length, or after this many rounds.
MAX_SHORT_STEPS, SHORT_STEP, MAX_ROUNDS_PER_PROBLEM = 2, 0.1, 10

#: The cost C of the first smoothed problem, as a multiple of the smallest one with a nonzero weight.
FIRST_COST_RATIO = 16.0

#: Factor on σ from one smoothed problem to the next.
SIGMA_REDUCTION = 0.25

#: A smoothed problem counts as solved when its violation is this fraction of the relative gap.
SOLVED_FRACTION = 0.05

#: The run has stalled if the gap has not fallen below this fraction of the previous one within this many rounds.
MAX_STALLED_ROUNDS, PROGRESS_RATIO = 30, 0.99


@dataclass(frozen=True)
class CoordinateDescentSolver:
    """Coordinate descent with Newton steps for the L1 penalty and a squared loss.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass over the working set, or a Newton step.
    seed : int
        Seed of the order of the weights.
    """

    penalty: ClassVar[str] = "l1"

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution with the L1 penalty; `start` are weights, the last that of the constant feature."""
        monitor = Monitor(self.stopping, callback)
        run = CoordinateDescentRun(problem, l1_features(problem), start, monitor, self.seed)
        status = run.solve()
        return run.point.solution(status, run.counters(), monitor)


class CoordinateDescentRun:
    """The state of coordinate descent on one problem.

    Attributes
    ----------
    point : LinearPoint
        The best weights and the best dual vector so far.
    iterations, rounds : int
        Passes and Newton steps so far; gap evaluations with the violations of all columns.
    """

    def __init__(self, problem: DualProblem, rows: Features, start: Floats | None, monitor: Monitor, seed: int) -> None:
        self.problem, self.rows, self.monitor, self.rule = problem, rows, monitor, monitor.rule
        self.columns = FeatureColumns.of(rows)
        self.iterations = self.rounds = 0
        self.weights = np.zeros(self.columns.count)
        if start is not None:
            self.weights[:] = start[: self.columns.count]
        self.offset = np.zeros(problem.groups)
        self.point = LinearPoint(np.zeros(problem.size), np.zeros(rows.dimension), self.offset, np.inf, -np.inf)
        self._random = np.random.default_rng(seed)
        self._smooth(0.0)

    def counters(self) -> Counters:
        """Return the cost of the run so far."""
        return Counters(iterations=self.iterations, rounds=self.rounds, seconds=self.monitor.seconds)

    def solve(self) -> Status:
        """Work until convergence, a limit or a stall."""
        self.evaluate()
        try:
            self.monitor.report_start(self._progress)
            with blas_thread_limit(1):  # the matrices are small, and idle BLAS threads would compete with ours
                return self._solve()
        except Interruption as interruption:
            return status_of(interruption)

    def _solve(self) -> Status:
        least_sigma, stall = np.inf, StallDetector(MAX_STALLED_ROUNDS, PROGRESS_RATIO)
        while not self.point.accepted(self.rule):
            if 0 < self.sigma < least_sigma:
                least_sigma = self.sigma
                stall.restart(self.point.gap, self.rounds)
            elif stall.stalled(self.point.gap, self.rounds):
                return Status.PRECISION
            stop = self._take_round(self._working_set())
            self.evaluate()
            if stop is not None:
                return Status.CONVERGED if self.point.accepted(self.rule) else stop
            self._update_smoothing()
        return Status.CONVERGED

    def _smooth(self, sigma: float) -> None:
        """Switch to the problem smoothed by σ around the best dual vector, or to the original one for σ = 0."""
        problem = self.problem
        self.sigma, self.smoothed = sigma, problem
        self._short_steps = self._rounds_on_problem = 0
        if sigma > 0:
            linear = problem.linear + sigma * self.point.dual
            self.smoothed = replace(problem, linear=linear, ridge=problem.ridge + sigma)
        self._inverse_ridge = 1.0 / self.smoothed.ridge
        self._curvature = self.columns.curvatures(self._inverse_ridge)
        if not np.isfinite(self._curvature).all():
            raise ValueError(NON_FINITE_MESSAGE)

    def _update_smoothing(self) -> None:
        """Switch to another smoothed problem if this one is solved or too hard."""
        self._rounds_on_problem += 1
        if self.sigma == 0.0:
            if self._short_steps < MAX_SHORT_STEPS:
                return
            sigma = self._first_sigma()
        else:
            relative_gap = self.point.gap / self.point.primal
            solved = float(self._violations.max(initial=0.0)) <= SOLVED_FRACTION * min(1.0, relative_gap)
            if not solved and self._rounds_on_problem < MAX_ROUNDS_PER_PROBLEM:
                return
            easy = self._short_steps < MAX_SHORT_STEPS
            sigma = self.sigma / SIGMA_REDUCTION if not solved else self.sigma * (SIGMA_REDUCTION if easy else 1.0)
        self._smooth(sigma)
        self.evaluate()

    def _first_sigma(self) -> float:
        """Return a σ with which few weights are nonzero: it corresponds to a small multiple of the smallest cost."""
        problem = self.problem
        slack = problem.linear - problem.expand_groups(best_offsets(problem, problem.linear))
        largest = float(np.abs(self.columns.products(response(problem, slack))).max())
        return float(problem.ridge.max()) * largest / FIRST_COST_RATIO

    def evaluate(self) -> None:
        """Recompute slacks, responses and violations, and keep the best weights and the best dual vector."""
        problem, vector = self.problem, np.zeros(self.rows.dimension)
        vector[: self.columns.count] = self.weights
        self.rounds += 1
        decisions = self.rows.decisions(vector)
        self._set_offset(self.smoothed.linear - decisions)
        offset, slack = self.offset, self.slack
        if self.sigma > 0:
            offset = best_offsets(problem, problem.linear - decisions, offset)
            slack = problem.linear - decisions - problem.expand_groups(offset)
        primal = float(np.abs(vector).sum() + conjugate(problem, slack).sum())
        dual, products = scale_to_feasible(problem, self.rows, self.response)
        if not (np.isfinite(primal) and np.isfinite(products).all()):
            raise ValueError(NON_FINITE_MESSAGE)
        value = inner(problem.linear, dual) - 0.5 * inner(problem.ridge * dual, dual)
        self._violations = l1_violations(self.weights, self.columns.products(self.response))
        found = LinearPoint(dual, vector, offset, primal, value)
        worst = float(self._violations.max(initial=0.0)) if self.sigma == 0.0 else np.inf
        if worst <= self.rule.violation:
            self.point = replace(found, violation=worst)
        else:
            self.point = self.point.or_better(found)

    def _set_offset(self, without_offset: Floats) -> None:
        """Compute the optimal offset for slacks without one, and responses that sum to 0.

        The rounding error of the offset, multiplied by C, would otherwise show in their sum.
        """
        problem, threads = self.smoothed, self.rows.threads_for_samples
        self.offset = best_offsets(problem, without_offset, self.offset, threads)
        self.slack = without_offset - problem.expand_groups(self.offset)
        self.response = response(problem, self.slack)
        self._factors = np.where(self.response != 0, self._inverse_ridge, 0.0)
        if problem.groups and self._factors.any():
            self.response -= self._factors * (self.response.sum() / self._factors.sum())

    def _working_set(self) -> Indices:
        """Return the weights of a round: the nonzero ones and the most violating zero ones."""
        nonzero = self.weights != 0
        most = max(MIN_WORKING_SET_SIZE, WORKING_SET_RATIO * int(np.count_nonzero(nonzero)))
        zero_violations = np.where(nonzero, 0.0, self._violations)
        violating = np.flatnonzero(zero_violations > 0)
        if len(violating) > most:
            violating = violating[np.argpartition(-zero_violations[violating], most)[:most]]
        return np.union1d(np.flatnonzero(nonzero), violating)

    def _take_round(self, working_set: Indices) -> Status | None:
        """Take passes and a Newton step on a working set; return a status if the run has to end."""
        per_column = self.columns.stored / max(1, self.columns.count)
        worst = float(self._violations[working_set].max(initial=0.0))
        nonzero = np.count_nonzero(self.weights)
        newton_cost = nonzero / BLAS_SPEEDUP * self.problem.size / max(1.0, per_column)
        for _ in range(int(min(max(MIN_PASSES, newton_cost / 3), MAX_PASSES))):
            violation, stop = self._take_pass(working_set, per_column)
            if stop is not None:
                return stop
            self._set_offset(self.slack + self.problem.expand_groups(self.offset))
            if violation <= PASS_REDUCTION * worst:
                break
        if (stop := self._limit()) is not None:
            return stop
        products = self.columns.products(self.response, working_set)
        moving = (self.weights[working_set] != 0) | (np.abs(products) > 1.0)
        if np.count_nonzero(moving) > MAX_NEWTON_WEIGHTS:
            return None
        self._newton_step(working_set[moving], -products[moving])
        return self._limit()

    def _take_pass(self, working_set: Indices, per_column: float) -> tuple[float, Status | None]:
        """Take a step along each weight of a working set in random order; return the largest violation before it."""
        order = self._random.permutation(working_set)
        chunk = max(1, int(CHUNK_MULTIPLICATIONS / max(1.0, per_column)))
        problem, worst = self.problem, 0.0
        if (stop := self._limit()) is not None:
            return worst, stop
        state = _native.ColumnState(
            weights=self.weights,
            slack=self.slack,
            inverse_ridge=self._inverse_ridge,
            lower=problem.lower,
            upper=problem.upper,
            curvature=self._curvature,
        )
        for begin in range(0, len(order), chunk):
            violation = _native.coordinate_descent(self.columns.native, state, order[begin : begin + chunk])
            worst = max(worst, violation)
            if self.monitor.seconds_left() == 0.0:
                return worst, Status.MAX_SECONDS
        self.iterations += 1
        return worst, None

    def _newton_step(self, chosen: Indices, slope: Floats) -> None:
        """Minimise the model of the loss at the current weights, and move towards its minimum by a line search."""
        problem, factors = self.smoothed, self._factors
        mean = self.columns.products(factors, chosen) / factors.sum() if problem.groups and factors.any() else None
        before = self.weights[chosen]
        tolerance = MODEL_REDUCTION * float(l1_violations(before, -slope).max(initial=0.0))
        after = minimise_model(self.columns.squares(chosen, factors, mean), before, slope, tolerance)
        direction = after - before
        slack_decrease = self.columns.image(chosen, direction)
        if mean is not None:
            slack_decrease -= float(mean @ direction)
        length = self._line_search(before, direction, slack_decrease)
        self._short_steps += length < SHORT_STEP
        self.weights[chosen] = after if length == 1.0 else before + length * direction
        self.slack = self.slack - length * slack_decrease
        self.iterations += 1

    def _line_search(self, weights: Floats, direction: Floats, slack_decrease: Floats) -> float:
        """Return the step length, at most 1, at which the slope of the objective changes its sign, by bisection."""
        problem, threads = self.smoothed, self.rows.threads_for_samples
        arrays = self.slack, problem.lower, problem.upper, problem.ridge, slack_decrease

        def slope(length: float) -> float:
            signs = np.sign(weights + length * direction)
            # Where a weight is 0 the slope jumps; the one-sided slope towards the start is used.
            signs = np.where(signs == 0, -np.sign(direction) if length > 0 else np.sign(direction), signs)
            return float(signs @ direction) - float(_native.loss_derivatives(*arrays, length, threads)[0])

        low, high = 0.0, 1.0
        if slope(high) <= 0:
            return high
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
        return low

    def _limit(self) -> Status | None:
        stop = self.monitor.limit_reached(self.iterations)
        stopped = self.monitor.report(self._progress, iterations=self.iterations)
        return stop or (Status.STOPPED if stopped else None)

    def _progress(self) -> Progress:
        worst = float(self._violations.max(initial=0.0))
        nonzero = int(np.count_nonzero(self.weights))
        progress = self.point.progress(self.iterations, self.monitor, nonzero, self.point.weights)
        return replace(progress, violation=worst)
