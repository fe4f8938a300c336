"""What a primal method knows of the optimum: the best weights and the best dual vector so far.

The primal of the one problem, for a matrix of features, M = F Fᵀ, is

    P(w, ρ) = ½‖w‖² + Σ conjugate(z_i) + Σ_g ρ_g total_g,      z = linear − F w − ρ

(problems/certificate.py). For given weights the best ρ is found exactly, so that only P(w) = min over ρ of P(w, ρ) is
left. It bends with modulus 1, and w − Fᵀ b is a subgradient of it, where b = response(z), and samples with z = 0, which
may choose their responses, choose those that fulfil the sums of the groups. Then b is a feasible dual vector, and
P(w) − D(b') bounds the distance to the optimum for each w and each b' that were seen, in whatever order.

A vector of responses alone is a corner of the box and a poor dual point; mixtures of them are good ones. Each new one
is mixed with the best so far, b + γ (new − b), with the γ in [0, 1] where D is largest: D is a parabola in γ. So the
lower bound never falls. (With γ = 1/t and steps of 1/t the two iterations are one: Bach 2015.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.certificate import of_samples, response
from maxmargin.problems.gradient_extremes import gradient_extremes, violation_of
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.solvers.linear.linear_point import dual_value, features_of, primal_value
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import StoppingRule

#: Weights and decisions beyond this are taken to have diverged; their squares can still be computed.
LARGEST = 1e100

#: How many samples nearest to z = 0 are looked at first when responses are made to fulfil the sums.
FEW = 64


class Evaluation(NamedTuple):
    """What is known about some weights."""

    primal: float
    slack: Floats
    offset: Floats


class PrimalBounds:
    """The weights of least primal value and the dual vector of largest dual value."""

    def __init__(self, problem: DualProblem, start: Floats | None) -> None:
        if not problem.has_limit:
            raise ValueError(
                "subgradient methods need finite costs, because a hard margin has no subgradient beyond it; "
                "the solver 'pairwise' finds hard margins"
            )
        self.problem = problem
        self.rows = features_of(problem, "subgradient")
        self.dual = feasible_start(problem, start)
        self.dual_weights = self.rows.weights(self.dual)
        self.dual_value = dual_value(problem, self.dual, self.dual_weights)
        self.weights, self.primal, self.violation = self.dual_weights, np.inf, np.inf
        self.offset: Floats | None = None

    def evaluate(self, weights: Floats, decisions: Floats | None = None) -> Evaluation:
        """Return the primal value of weights with their best offsets, and keep them if they are the best so far."""
        raw = self.problem.linear - (self.rows.decisions(weights) if decisions is None else decisions)
        if not np.abs(raw).max(initial=np.abs(weights).max()) < LARGEST:
            raise FloatingPointError("the weights grew beyond all numbers")
        offset = offsets_of_least_loss(self.problem, raw, self.offset, self.rows.threads)
        slack = raw - of_samples(self.problem, offset)
        primal = primal_value(self.problem, weights, offset, slack)
        if primal < self.primal:
            self.primal, self.weights, self.offset = primal, weights.copy(), offset
        return Evaluation(primal, slack, offset)

    def offer(self, candidate: Floats, weights: Floats) -> None:
        """Mix a feasible dual vector and its weights Fᵀ b into the best one."""
        change, turn = candidate - self.dual, weights - self.dual_weights
        ridge = self.problem.ridge
        slope = float(self.problem.linear @ change - self.dual_weights @ turn - (ridge * self.dual) @ change)
        bend = float(turn @ turn + (ridge * change) @ change)
        if slope <= 0:
            return
        part = min(1.0, slope / bend) if bend > 0 else 1.0
        dual = candidate if part == 1.0 else self.dual + part * change
        dual_weights = weights if part == 1.0 else self.dual_weights + part * turn
        value = dual_value(self.problem, dual, dual_weights)
        if value > self.dual_value:
            self.dual, self.dual_weights, self.dual_value = dual, dual_weights, value

    def look(self) -> float:
        """Return the violation of the best dual vector, in two passes; its weights may be the best weights, too."""
        self.dual_weights = self.rows.weights(self.dual)  # without the rounding of many mixtures
        self.dual_value = dual_value(self.problem, self.dual, self.dual_weights)
        decisions = self.rows.decisions(self.dual_weights)
        self.evaluate(self.dual_weights, decisions)
        gradient = self.problem.linear - decisions - self.problem.ridge * self.dual
        self.violation = violation_of(gradient_extremes(self.problem, self.dual, gradient), gradient)
        return self.violation

    def reached(self, rule: StoppingRule) -> bool:
        """Whether the gap is small enough."""
        return rule.accepts_gap(self.primal, self.dual_value)

    def progress(self, iteration: int, monitor: Monitor) -> Progress:
        """Return where the method stands, with the violation of the last look."""
        return Progress(
            iteration=iteration,
            violation=self.violation,
            primal=self.primal,
            dual=self.dual_value,
            active=self.problem.size,
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_for_trace(self.dual),
        )

    def solution(self, status: Status, iterations: int, monitor: Monitor) -> Solution:
        """Return the best of both sides."""
        counters = Counters(iterations=iterations, seconds=monitor.seconds)
        return Solution(
            self.dual, self.problem.gradient(self.dual), status, counters, self.weights, trace=monitor.trace
        )


def responses_with_sums(problem: DualProblem, slack: Floats) -> Floats:
    """Return the responses to the slacks of least loss; those nearest to z = 0 choose so that the groups' sums hold."""
    answers = response(problem, slack)
    lacking = problem.total - problem.group_sums(answers)
    for g in np.flatnonzero(lacking):
        bounds = problem.upper if lacking[g] > 0 else problem.lower
        movable = np.flatnonzero((problem.group == g) & (answers != bounds))
        distance = np.abs(slack[movable])
        for count in (FEW, len(movable)) if len(movable) else ():
            near = np.argpartition(distance, count - 1)[:count] if count < len(movable) else np.arange(len(movable))
            near = movable[near[np.lexsort((near, distance[near]))]]
            room = np.abs(bounds[near] - answers[near])
            before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
            if count >= len(movable) or before[-1] + room[-1] >= abs(lacking[g]):
                answers[near] += np.sign(lacking[g]) * np.clip(abs(lacking[g]) - before, 0.0, room)
                break
    return np.clip(answers, problem.lower, problem.upper)
