"""Semismooth Newton method on the primal problem with the linear kernel: for few features or few support vectors.

The primal is smoothed by a proximal term −½ σ‖b − c‖² in the dual (`smoothed_primal`). A Newton step solves
(I + F_fᵀ F_f / (ridge + σ)) d = −gradient, where f are the free samples; an exact line search along d guarantees
descent. When the smoothed problem is nearly solved, its responses become the new centre c and σ is reduced (Rockafellar
1976; Yan & Li 2020). The number of steps hardly depends on C, and each costs a few passes over the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.linear.kink_samples import KinkSamples
from maxmargin.solvers.linear.linear_point import (
    LinearPoint,
    dual_value,
    features_of,
    minimise_over_offset,
    repair_sums,
)
from maxmargin.solvers.linear.newton_equations import (
    MAX_FACTORISED,
    NewtonEquations,
    RunningMoments,
    step_by_features,
    uses_features,
)
from maxmargin.solvers.linear.smoothed_primal import (
    DEFAULT_RELATIVE_SIGMA,
    MIN_RELATIVE_SIGMA,
    NewtonStart,
    SmoothedPrimal,
)
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: A smoothed problem counts as solved when its own gap is this fraction of the whole gap.
SOLVED_FRACTION = 0.05

#: Factor on σ from one smoothed problem to the next.
SIGMA_REDUCTION = 0.2

#: The smallest σ relative to the first one if no ridge smooths the loss: below it problems become harder, not fewer.
MIN_SIGMA_RATIO = 1e-5

#: After this many steps a smoothed problem is abandoned for one with a larger σ.
MAX_STEPS_PER_PROBLEM = 40

#: So is a problem without smoothing after this many steps shorter than this length.
MAX_SHORT_STEPS, SHORT_STEP = 6, 0.35

#: Updated moments of the features are cheaper than inner products of samples up to this many features per free sample,
#: unless the moments exceed the identity matrix by more than this factor.
MAX_FEATURES_PER_FREE_SAMPLE, MAX_MOMENT_RATIO = 2, 1e9

#: The run has stalled if neither gap nor violation has fallen below this fraction of the previous one within this many
#: steps.
MAX_STALLED_STEPS, PROGRESS_RATIO = 100, 0.9

#: A full step is accepted without a line search if the slope at its end is at most this fraction of the initial one.
FULL_STEP_SLOPE = 0.25


@dataclass(frozen=True)
class SemismoothNewtonSolver:
    """Semismooth Newton method on the primal problem with the linear kernel.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a Newton step.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem with the linear kernel."""
        rows = features_of(problem, "semismooth_newton")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        run = SemismoothNewtonRun(problem, rows, NewtonStart(point), monitor)
        status = run.solve()
        return run.point.solution(status, run.counters(), monitor)


class SemismoothNewtonRun:
    """The state of the semismooth Newton method on one problem.

    Attributes
    ----------
    point : LinearPoint
        The best point so far.
    smoothed : SmoothedPrimal
        The smoothed problem at the current iterate.
    iterations, rounds : int
        Newton steps and smoothed problems so far.
    """

    def __init__(self, problem: DualProblem, rows: Features, start: NewtonStart, monitor: Monitor) -> None:
        self.problem, self.rows, self.point = problem, rows, start.point
        self.monitor, self.rule = monitor, monitor.rule
        self.iterations = self.rounds = 0
        smoothed = self.smoothed = SmoothedPrimal(problem, rows, start)
        self._use_kink_samples = KinkSamples.pay_off(rows)
        self._moved: Floats | None = None  # absolute changes of the slacks if the last step was a full one
        has_ridge = float(problem.ridge.min(initial=1.0)) > 0
        relative = 0.0 if has_ridge else MIN_SIGMA_RATIO * smoothed.sigma
        self._min_sigma = max(MIN_RELATIVE_SIGMA * smoothed.row_norm, relative)
        self._lowest_primal, self._highest_dual = np.inf, -np.inf  # of responses that may be slightly infeasible
        self._gap_stall, self._violation_stall = (StallDetector(MAX_STALLED_STEPS, PROGRESS_RATIO) for _ in range(2))
        self._one_group = problem.groups == 0 or (problem.groups == 1 and problem.ungrouped == 0)
        self._moments = RunningMoments(rows, problem.ridge, centred=problem.groups == 1)

    def counters(self) -> Counters:
        """Return the cost of the run so far."""
        return Counters(iterations=self.iterations, rounds=self.rounds, seconds=self.monitor.seconds)

    def solve(self) -> Status:
        """Take steps until convergence, a limit or a stall."""
        try:
            with blas_thread_limit(1):  # the matrices are small, and idle BLAS threads would compete with ours
                return self._solve()
        except Interruption as interruption:
            return status_of(interruption)

    def _solve(self) -> Status:
        self.monitor.report_start(self._progress)
        if self.point.accepted(self.rule):
            return Status.CONVERGED
        smoothed = self.smoothed
        while True:
            self.rounds += 1
            before = self.iterations
            status = self._solve_smoothed()
            if status is not None:
                return status
            if smoothed.sigma > 0:
                smoothed.centre = smoothed.response
                self._update_sigma(self.iterations - before)
            else:  # the ridge is so small that rounding errors of the slacks cause large responses
                smoothed.centre, smoothed.sigma = self.point.dual, DEFAULT_RELATIVE_SIGMA * smoothed.row_norm

    def _update_sigma(self, steps: int) -> None:
        """Reduce σ, by more if the last problem was easy; set it to 0 if the ridge smooths the loss enough.

        A problem that took many steps has too many kinks; then σ is increased.
        """
        sigma = self.smoothed.sigma * SIGMA_REDUCTION ** (
            2 if steps <= 1 else -1 if steps >= MAX_STEPS_PER_PROBLEM else 1
        )
        self.smoothed.sigma = 0.0 if sigma <= float(self.problem.ridge.min()) else max(sigma, self._min_sigma)

    def _solve_smoothed(self) -> Status | None:
        """Solve the problem with the current σ and centre; return a status if the whole run ends."""
        steps = self._short_steps = 0
        smoothed = self.smoothed
        smoothed.evaluate(smoothed.decisions)
        while True:
            if self._converged():
                return Status.CONVERGED
            stalled = self._stalled()
            if (stop := self.monitor.limit_reached(self.iterations)) is not None:
                return stop
            if self.monitor.report(self._progress):
                return Status.STOPPED
            if stalled and smoothed.sigma <= self._min_sigma:
                return self.point.stalled_status(self.problem, self.rows, self.rule)
            if smoothed.sigma > 0:
                done = steps > 0 and (stalled or self._smoothed_solved())
            else:
                done = self._short_steps >= MAX_SHORT_STEPS
            if steps >= MAX_STEPS_PER_PROBLEM or done:
                return None
            self._step()
            steps += 1

    def _smoothed_solved(self) -> bool:
        return self.smoothed.solved(SOLVED_FRACTION)

    def _converged(self) -> bool:
        """Keep the best point and return whether it satisfies the stopping tolerance."""
        if self.rule.relative_gap is None:
            return self._evaluate_violation()
        self._keep_weights()
        better = self.smoothed.dual_estimate > self.point.dual_value
        if better and (self._may_be_accepted() or self._smoothed_solved()):
            self._keep_dual()
        return self.point.accepted(self.rule)

    def _keep_weights(self) -> None:
        """Keep the current weights and offsets if they are the best so far."""
        smoothed, point = self.smoothed, self.point
        if smoothed.primal < point.primal:
            self.point = LinearPoint(point.dual, smoothed.weights, smoothed.offset, smoothed.primal, point.dual_value)

    def _keep_dual(self) -> None:
        """Keep the responses as a dual vector with repaired sums, and the weights with their best offset."""
        problem, smoothed = self.problem, self.smoothed
        dual, dual_weights = smoothed.response, smoothed.dual_weights
        if problem.groups:
            without_offset = problem.linear - smoothed.decisions
            offset, primal = minimise_over_offset(problem, self.rows, smoothed.weights, without_offset, smoothed.offset)
            if primal < self.point.primal:
                self.point = LinearPoint(self.point.dual, smoothed.weights, offset, primal, self.point.dual_value)
            feasible = repair_sums(problem, dual, self.rows.threads_for_samples)
            dual, dual_weights = feasible, dual_weights + self.rows.weights(feasible - dual)
        value = dual_value(problem, dual, dual_weights)
        if value > self.point.dual_value:
            self.point = LinearPoint(dual, self.point.weights, self.point.offset, self.point.primal, value)

    def _evaluate_violation(self) -> bool:
        """Compute the KKT violation of the responses if their own weights are close to the primal weights."""
        smoothed = self.smoothed
        gap = smoothed.primal - smoothed.dual_estimate
        if smoothed.sigma > 0 and not smoothed.gradient_within(0.5 * gap):
            return False
        found = LinearPoint.start(self.problem, self.rows, smoothed.response, self.rule)
        if found.dual_value > self.point.dual_value or found.violation < self.point.violation:
            self.point = found
        return found.accepted(self.rule)

    def _may_be_accepted(self) -> bool:
        """Whether the best offset and repaired sums could bring the gap within the tolerance."""
        value = self.smoothed.dual_estimate
        return self.rule.accepts_gap(value + 0.5 * (self.point.primal - value), value)

    def _stalled(self) -> bool:
        """Whether neither the gap nor the violation, where it is known, has decreased for too many steps."""
        self._lowest_primal = min(self._lowest_primal, self.smoothed.primal)
        self._highest_dual = max(self._highest_dual, self.smoothed.dual_estimate)
        gap = max(self._lowest_primal - self._highest_dual, 0.0)  # negative for slightly infeasible responses
        gap_stalled = self._gap_stall.stalled(gap, self.iterations)
        return self._violation_stall.stalled(self.point.violation, self.iterations) and gap_stalled

    def _step(self) -> None:
        """Take a Newton step with a line search."""
        smoothed = self.smoothed
        direction, offset_step = self._direction()
        self.iterations += 1
        initial_slope = smoothed.slope_along(direction, offset_step)
        if not initial_slope < 0:  # due to rounding errors
            return
        weights, offset, decisions, slack = smoothed.weights, smoothed.offset, smoothed.decisions, smoothed.slack
        smoothed.weights, smoothed.offset = weights + direction, offset + offset_step
        smoothed.evaluate()
        self._moved = None
        full = abs(smoothed.slope_along(direction, offset_step)) <= FULL_STEP_SLOPE * -initial_slope
        if full and not self._use_kink_samples:
            return
        change, slack_decrease = smoothed.changes_since(decisions, offset_step)
        if full:
            self._moved = np.abs(slack_decrease, out=slack_decrease)
            return
        length = smoothed.line_search(weights, direction, offset_step, slack, slack_decrease)
        self._short_steps += length < SHORT_STEP
        smoothed.weights, smoothed.offset = weights + length * direction, offset + length * offset_step
        change *= length
        change += decisions
        smoothed.evaluate(change)

    def _direction(self) -> tuple[Floats, Floats]:
        """Return the Newton step of the weights and of the offsets."""
        problem, smoothed = self.problem, self.smoothed
        free, count = smoothed.free()
        if self._one_group and (uses_features(self.rows, count) or self._prefer_features(count)):
            step = self._step_by_features(free)
            if smoothed.sigma > 0 or self._moved is None:
                return step
            kinks = KinkSamples(problem, self.rows, smoothed.slack, self._moved)
            return kinks.consistent_step(step, free, self._step_by_features)
        chosen = np.flatnonzero(free)
        factors = 1.0 / (problem.ridge + smoothed.sigma)
        equations = NewtonEquations(
            self.rows.take(chosen),
            factors[chosen],
            problem.group[chosen],
            problem.group_sums(factors),
            lambda: problem.matrix.block(chosen, chosen),
        )
        return equations.solve(-smoothed.gradient, -smoothed.deficit)

    def _prefer_features(self, free: int) -> bool:
        """Whether updated moments pay off although there are more features than free samples.

        The moments are then singular, and the identity matrix must not be lost in rounding errors beside them.
        """
        rows, least = self.rows, float(self.problem.ridge.min()) + self.smoothed.sigma
        few = 0 < rows.dimension <= min(MAX_FACTORISED, MAX_FEATURES_PER_FREE_SAMPLE * free)
        return few and self.smoothed.row_norm * free <= MAX_MOMENT_RATIO * least

    def _step_by_features(
        self, free: NDArray[np.bool_], weights_change: Floats | float = 0.0, sum_change: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Solve the system by features, with Fᵀβ and Σβ changed by the given amounts."""
        smoothed, moments = self.smoothed, self._moments.of(free, self.smoothed.sigma)
        right, bottom = -(smoothed.gradient - weights_change), -(smoothed.deficit - sum_change)
        return step_by_features(moments, self._moments.origin, self.rows.constant, right, bottom)

    def _progress(self) -> Progress:
        return self.point.progress(self.iterations, self.monitor)
