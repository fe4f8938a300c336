"""Where a solver of linear machines stands: a dual vector and weights that go with it, and the values of both.

Weak duality holds for any weights and any feasible dual vector. So a solver may keep the best of each, wherever it met
them; the gap between the two values is proved all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.certificate import of_samples, residuals
from maxmargin.problems.gradient_extremes import gradient_extremes, offset_between, violation_of
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import StoppingRule


def features_of(problem: DualProblem, name: str) -> Features:
    """Return the features of a problem, or raise."""
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError(
            f"solver={name!r} keeps the weights of a linear machine and works for the linear kernel only; for other "
            "kernels use 'block' or 'pairwise', or a feature map before the linear kernel"
        )
    return rows


def finite_norms(rows: Features) -> Floats:
    """Return the squared lengths of the rows, or raise if products of features are too large for any number."""
    norms = rows.squared_norms()
    if not np.isfinite(norms).all():
        raise ValueError(NON_FINITE_MESSAGE)
    return norms


def mended(problem: DualProblem, dual: Floats) -> Floats:
    """Return the dual vector with the sums of its groups put right, if possible by those between their bounds alone.

    A variable on its bound that is moved off it by next to nothing would spoil the optimality criterion. What a sum
    lacks by rounding alone is left.
    """
    lacking = problem.total - problem.group_sums(dual)
    rounding = 4 * np.finfo(float).eps * (problem.group_sums(np.abs(dual)) + np.abs(problem.total))
    dual = dual.copy()
    for g in np.flatnonzero(np.abs(lacking) > rounding):
        between = np.flatnonzero((problem.group == g) & (dual > problem.lower) & (dual < problem.upper))
        if not len(between):
            continue
        up = lacking[g] > 0
        room = problem.upper[between] - dual[between] if up else dual[between] - problem.lower[between]
        if not room.sum() > 2 * abs(lacking[g]):
            continue
        shares = np.isinf(room).astype(float) if np.isinf(room).any() else room
        dual[between] += lacking[g] * shares / shares.sum()
    return feasible_start(problem, dual)


@dataclass(frozen=True)
class LinearPoint:
    """A feasible dual vector, weights with their offsets, and what is known about them.

    Attributes
    ----------
    dual, weights, offset : float arrays
    primal, value : float
        The primal value of the weights, the dual value of the dual vector.
    gradient : float array, optional
        That of the dual vector, where the weights are its own.
    violation : float
        That of the dual vector, infinite where nobody computed it.
    together : bool
        Whether the weights are those of the dual vector, but for rounding.
    """

    dual: Floats
    weights: Floats
    offset: Floats
    primal: float
    value: float
    gradient: Floats | None = None
    violation: float = np.inf
    together: bool = False

    @classmethod
    def start(cls, problem: DualProblem, rows: Features, dual: Floats | None, rule: StoppingRule) -> LinearPoint:
        """Return the point of a dual vector, or the simplest one; of a rule for a relative gap only the values."""
        dual = feasible_start(problem) if dual is None else mended(problem, dual)
        if rule.relative_gap is None:
            return cls.of_dual(problem, rows, dual, rule)
        weights = rows.weights(dual)
        without = problem.linear - rows.decisions(weights)
        if not np.isfinite(without).all():
            raise ValueError(NON_FINITE_MESSAGE)
        threads = rows.threads_for(problem.size)
        offset = offsets_of_least_loss(problem, without, None, threads)
        slack = without - of_samples(problem, offset) if problem.groups else without
        primal = primal_value(problem, weights, offset, slack, threads)
        return cls(dual, weights, offset, primal, dual_value(problem, dual, weights))

    @classmethod
    def of_dual(
        cls, problem: DualProblem, rows: Features, dual: Floats, rule: StoppingRule, weights: Floats | None = None
    ) -> LinearPoint:
        """Return a dual vector with its own weights, all computed afresh unless the weights are known."""
        weights = rows.weights(dual) if weights is None else weights
        decisions = rows.decisions(weights)
        gradient = problem.linear - decisions - problem.ridge * dual
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        extremes = gradient_extremes(problem, dual, gradient)
        offset = offset_between(*extremes.offset_bounds)
        if rule.relative_gap is not None:  # then the weights are judged by themselves
            offset = offsets_of_least_loss(problem, problem.linear - decisions, offset, rows.threads_for(problem.size))
        slack = problem.linear - decisions - (of_samples(problem, offset) if problem.groups else 0.0)
        value = dual_value(problem, dual, weights)
        gap = float(residuals(problem, dual, slack).sum())
        violation = violation_of(extremes, gradient)
        return cls(dual, weights, offset, value + gap, value, gradient, violation)

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.value

    def or_better(self, other: LinearPoint) -> LinearPoint:
        """Return the better of two points; where weights are judged by themselves, the better parts of both."""
        if self.gradient is not None and other.gradient is not None:
            return other if other.violation < self.violation else self
        primal = other if other.primal < self.primal else self
        value = other if other.value > self.value else self
        return LinearPoint(value.dual, primal.weights, primal.offset, primal.primal, value.value)

    def accepted(self, rule: StoppingRule) -> bool:
        """Whether the point is good enough."""
        return self.violation <= rule.violation or rule.accepts_gap(self.primal, self.value)

    def no_better_possible(self, problem: DualProblem, rows: Features, rule: StoppingRule) -> Status:
        """Return how a run ends that rounding has brought to a halt: well, if the criterion holds all the same.

        Where both values are 0 at the optimum there is no relative gap.
        """
        found = self if self.gradient is not None else LinearPoint.of_dual(problem, rows, self.dual, rule)
        return Status.CONVERGED if found.violation <= rule.violation else Status.PRECISION

    def progress(self, iterations: int, monitor: Monitor, active: int | None = None) -> Progress:
        """Return the point as what a callback sees."""
        return Progress(
            iteration=iterations,
            violation=self.violation,
            primal=self.primal,
            dual=self.value,
            active=len(self.dual) if active is None else active,
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_for_trace(self.dual),
        )

    def solution(self, status: Status, counters: Counters, monitor: Monitor) -> Solution:
        """Tell the callback of the point and return it as a solver's answer."""
        weights = None if self.together or self.gradient is not None else self.weights
        try:
            monitor.report(lambda: self.progress(counters.iterations, monitor), now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return Solution(self.dual, self.gradient, status, counters, weights, trace=monitor.trace)


def dual_value(problem: DualProblem, dual: Floats, own_weights: Floats) -> float:
    """Return D(b), given Fᵀ b."""
    squares = inner(own_weights, own_weights) + inner(problem.ridge * dual, dual)
    return inner(problem.linear, dual) - 0.5 * squares


def primal_value(problem: DualProblem, weights: Floats, offset: Floats, slack: Floats, threads: int = 1) -> float:
    """Return P(w, ρ), given linear − F w − ρ."""
    slack = np.ascontiguousarray(slack)
    loss = _native.total_loss(slack, problem.lower, problem.upper, problem.ridge, threads)
    return 0.5 * inner(weights, weights) + loss + float(offset @ problem.total)
