"""Bounds on the optimum, and the main loop, of the subgradient methods.

The primal problem for a matrix of features, M = F Fᵀ, is

    P(w, ρ) = ½‖w‖² + Σ conjugate(z_i) + Σ_g ρ_g total_g,      z = linear − F w − ρ

(problems/certificate.py). For given weights the optimal ρ is computed exactly, which leaves P(w) = min over ρ of
P(w, ρ). It is strongly convex with modulus 1, and w − Fᵀ b is a subgradient, where b = response(z); samples with z = 0,
whose response is not unique, get responses that satisfy the equality constraints. Then b is a feasible dual vector, and
P(w) − D(b') bounds the distance to the optimum for any w and any feasible b'.

A vector of responses is a vertex of the box and a poor dual point; convex combinations are good ones. Each new one is
combined with the best so far, b + γ (new − b), with the γ in [0, 1] that maximises D, a parabola in γ. The lower bound
therefore never decreases. (With γ = 1/t and steps of 1/t the two iterations coincide: Bach 2015.)
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.gradient_extremes import gradient_extremes, violation_of
from maxmargin.problems.losses import response
from maxmargin.problems.offsets import best_offsets
from maxmargin.solvers.linear.linear_point import dual_value, features_of, finite_norms, primal_value
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Weights and decision values beyond this have diverged; their squares can still be computed.
MAX_MAGNITUDE = 1e100

#: How many samples nearest to z = 0 are tried first when responses are made to satisfy the equality constraints.
FIRST_CANDIDATES = 64

#: The limit on iterations if the stopping rule has none: subgradient methods do not converge to high accuracy.
DEFAULT_MAX_ITERATIONS = 1000


class PrimalEvaluation(NamedTuple):
    """The primal objective of weights, the slacks, and the optimal offsets."""

    primal: float
    slack: Floats
    offset: Floats


class PrimalBounds:
    """The weights with the smallest primal value and the dual vector with the largest dual value so far."""

    def __init__(self, problem: DualProblem, start: Floats | None) -> None:
        if not problem.coercive:
            raise ValueError(
                "subgradient methods need finite costs: a hard margin has no subgradient outside its feasible set; "
                "the solver 'pairwise' supports hard margins"
            )
        self.problem = problem
        self.rows = features_of(problem, "subgradient")
        self.dual = feasible_start(problem, start)
        self.dual_weights = self.rows.weights(self.dual)
        self.dual_value = dual_value(problem, self.dual, self.dual_weights)
        self.weights, self.primal, self.violation = self.dual_weights, np.inf, np.inf
        self.offset: Floats | None = None

    def evaluate(self, weights: Floats, decisions: Floats | None = None) -> PrimalEvaluation:
        """Return the primal value of weights with their optimal offsets, and keep them if they are the best so far."""
        without_offset = self.problem.linear - (self.rows.decisions(weights) if decisions is None else decisions)
        if not np.abs(without_offset).max(initial=np.abs(weights).max()) < MAX_MAGNITUDE:
            raise FloatingPointError("the weights diverged")
        offset = best_offsets(self.problem, without_offset, self.offset, self.rows.threads)
        slack = without_offset - self.problem.expand_groups(offset)
        primal = primal_value(self.problem, weights, offset, slack)
        if primal < self.primal:
            self.primal, self.weights, self.offset = primal, weights.copy(), offset
        return PrimalEvaluation(primal, slack, offset)

    def combine(self, candidate: Floats, weights: Floats) -> None:
        """Replace the dual vector by its best convex combination with a feasible one; `weights` are Fᵀ b of that."""
        change, weight_change = candidate - self.dual, weights - self.dual_weights
        ridge = self.problem.ridge
        slope = float(self.problem.linear @ change - self.dual_weights @ weight_change - (ridge * self.dual) @ change)
        curvature = float(weight_change @ weight_change + (ridge * change) @ change)
        if slope <= 0:
            return
        length = min(1.0, slope / curvature) if curvature > 0 else 1.0
        dual = candidate if length == 1.0 else self.dual + length * change
        dual_weights = weights if length == 1.0 else self.dual_weights + length * weight_change
        value = dual_value(self.problem, dual, dual_weights)
        if value > self.dual_value:
            self.dual, self.dual_weights, self.dual_value = dual, dual_weights, value

    def evaluate_violation(self) -> float:
        """Return the KKT violation of the best dual vector, and evaluate its weights as primal weights.

        Its weights are recomputed, which removes the rounding errors of many combinations.
        """
        self.dual_weights = self.rows.weights(self.dual)
        self.dual_value = dual_value(self.problem, self.dual, self.dual_weights)
        decisions = self.rows.decisions(self.dual_weights)
        self.evaluate(self.dual_weights, decisions)
        gradient = self.problem.linear - decisions - self.problem.ridge * self.dual
        self.violation = violation_of(gradient_extremes(self.problem, self.dual, gradient), gradient)
        return self.violation

    def gap_accepted(self, rule: StoppingRule) -> bool:
        """Whether the duality gap is within the tolerance."""
        return rule.accepts_gap(self.primal, self.dual_value)

    def progress(self, iteration: int, monitor: Monitor) -> Progress:
        """Return a progress report with the violation of the last evaluation."""
        return Progress(
            iteration=iteration,
            violation=self.violation,
            primal=self.primal,
            dual=self.dual_value,
            active=self.problem.size,
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_point(self.dual),
        )

    def solution(self, status: Status, iterations: int, monitor: Monitor) -> Solution:
        """Return the best weights and the best dual vector."""
        counters = Counters(iterations=iterations, seconds=monitor.seconds)
        gradient = self.problem.gradient(self.dual)
        return Solution(self.dual, gradient, status, counters, self.weights, trace=monitor.trace)


def feasible_responses(problem: DualProblem, slack: Floats) -> Floats:
    """Return responses to slacks; the samples nearest to z = 0 are changed to satisfy the equality constraints."""
    responses = response(problem, slack)
    deficit = problem.total - problem.group_sums(responses)
    for g in np.flatnonzero(deficit):
        bounds = problem.upper if deficit[g] > 0 else problem.lower
        movable = np.flatnonzero((problem.group == g) & (responses != bounds))
        distance = np.abs(slack[movable])
        for count in (FIRST_CANDIDATES, len(movable)) if len(movable) else ():
            near = np.argpartition(distance, count - 1)[:count] if count < len(movable) else np.arange(len(movable))
            near = movable[near[np.lexsort((near, distance[near]))]]
            to_bound = np.abs(bounds[near] - responses[near])
            before = np.concatenate([[0.0], np.cumsum(to_bound)[:-1]])
            if count >= len(movable) or before[-1] + to_bound[-1] >= abs(deficit[g]):
                responses[near] += np.sign(deficit[g]) * np.clip(abs(deficit[g]) - before, 0.0, to_bound)
                break
    return np.clip(responses, problem.lower, problem.upper)


class SubgradientIteration(Protocol):
    """The state of a subgradient method."""

    bounds: PrimalBounds
    iterations: int

    def advance(self) -> None:
        """Take a step or a chunk of steps; raise FloatingPointError if the weights diverge."""
        ...

    def update_bounds(self) -> None:
        """Evaluate the current iterate."""
        ...

    def restart(self) -> None:
        """Continue from the best weights with shorter steps."""
        ...


def run_subgradient_method(
    name: str,
    begin: Callable[[PrimalBounds], SubgradientIteration],
    problem: DualProblem,
    start: Floats | None,
    rule: StoppingRule,
    callback: Callback | None,
) -> Solution:
    """Iterate until the stopping rule is met, and return the best weights and the best dual vector."""
    finite_norms(features_of(problem, name))
    if rule.max_iterations is None:
        rule = replace(rule, max_iterations=DEFAULT_MAX_ITERATIONS)
    monitor = Monitor(rule, callback)
    bounds = PrimalBounds(problem, start)
    run: SubgradientIteration | None = None
    try:
        met = bounds.evaluate_violation() <= rule.violation or bounds.gap_accepted(rule)
        monitor.report_start(lambda: bounds.progress(0, monitor))
        status = Status.CONVERGED if met else monitor.limit_reached(0)
        if status is None:
            run = begin(bounds)
            status = _iterate(run, monitor)
        iterations = run.iterations if run is not None else 0
        monitor.report(lambda: bounds.progress(iterations, monitor), now=True)
    except Interruption as interruption:
        status = status_of(interruption)
    return bounds.solution(status, run.iterations if run is not None else 0, monitor)


def _iterate(run: SubgradientIteration, monitor: Monitor) -> Status:
    bounds, rule = run.bounds, monitor.rule
    next_evaluation = 1
    while True:
        try:
            run.advance()
        except FloatingPointError:
            run.restart()
        if run.iterations >= next_evaluation:
            next_evaluation = 2 * run.iterations
            if bounds.evaluate_violation() <= rule.violation:
                return Status.CONVERGED
        if bounds.gap_accepted(rule):
            bounds.evaluate_violation()  # without the rounding errors of many combinations
            if bounds.gap_accepted(rule):
                return Status.CONVERGED
        stop = monitor.limit_reached(run.iterations)
        if stop is None and monitor.report(lambda: bounds.progress(run.iterations, monitor), iterations=run.iterations):
            stop = Status.STOPPED
        if stop is not None:
            with suppress(FloatingPointError):  # diverged weights are no better than the best, which are kept
                run.update_bounds()
            return Status.CONVERGED if stop is not Status.STOPPED and bounds.gap_accepted(rule) else stop
