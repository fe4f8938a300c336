"""Primal and dual iterates of the linear solvers, with their objective values.

Weak duality holds for any weights and any feasible dual vector. A solver may therefore keep the best of each,
independently of one another; the gap between the two objective values is a valid bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import DOUBLE_EPSILON, GROUP_SUM_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, violation_of
from maxmargin.problems.losses import residuals
from maxmargin.problems.offsets import best_offsets
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.stopping import StoppingRule


def features_of(problem: DualProblem, name: str) -> Features:
    """Return the feature rows of a problem with the linear kernel, or raise ValueError."""
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError(
            f"solver={name!r} optimises the weights of a linear model and works for the linear kernel only; for other "
            "kernels use 'block' or 'pairwise', or a feature map before the linear kernel"
        )
    return rows


def finite_norms(rows: Features) -> Floats:
    """Return the squared norms of the rows, or raise ValueError if products of features overflow float64."""
    norms = rows.squared_norms()
    if not np.isfinite(norms).all():
        raise ValueError(NON_FINITE_MESSAGE)
    return norms


def repair_sums(problem: DualProblem, dual: Floats, threads: int = 1) -> Floats:
    """Return the dual vector with the sums of its groups corrected, if possible by changing free variables only.

    A vector that exceeds its bounds is clipped first. A variable moved off its bound by a tiny amount would violate the
    KKT conditions. Deviations of the size of rounding errors are not corrected.
    """
    repaired = np.array(dual, dtype=np.float64)
    rounding = 4 * DOUBLE_EPSILON
    for g in range(problem.groups):
        total = float(problem.total[g])
        if problem.groups == 1 and not problem.ungrouped:
            sums = _native.repair_sum(repaired, problem.lower, problem.upper, total, rounding, threads)
            if abs(total - sums[0]) <= GROUP_SUM_TOLERANCE * (sums[1] + abs(total)) < np.inf:
                return repaired
        else:
            members = problem.group == g
            part = repaired[members]
            _native.repair_sum(part, problem.lower[members], problem.upper[members], total, rounding, threads)
            repaired[members] = part
    return feasible_start(problem, repaired)


@dataclass(frozen=True)
class LinearPoint:
    """A feasible dual vector and weights with their offsets.

    Attributes
    ----------
    dual, weights, offset : float arrays
    primal : float
        Primal objective of the weights and offsets.
    dual_value : float
        Dual objective of the dual vector.
    gradient : float array, optional
        Gradient of the dual objective; set only if the weights are those of the dual vector.
    violation : float
        KKT violation of the dual vector, infinite if it has not been computed.
    weights_match_dual : bool
        Whether the weights are Fᵀ b of the dual vector b, up to rounding.
    """

    dual: Floats
    weights: Floats
    offset: Floats
    primal: float
    dual_value: float
    gradient: Floats | None = None
    violation: float = np.inf
    weights_match_dual: bool = False

    @classmethod
    def start(cls, problem: DualProblem, rows: Features, dual: Floats | None, rule: StoppingRule) -> LinearPoint:
        """Return the point of a dual vector, made feasible, or of the default feasible start.

        With a relative gap as the tolerance only the objective values are computed, no gradient.
        """
        dual = feasible_start(problem) if dual is None else repair_sums(problem, dual, rows.threads_for_samples)
        if rule.relative_gap is None:
            return cls.of_dual(problem, rows, dual, rule)
        weights = rows.weights(dual)
        without_offset = problem.linear - rows.decisions(weights)
        if not np.isfinite(without_offset).all():
            raise ValueError(NON_FINITE_MESSAGE)
        offset, primal = minimise_over_offset(problem, rows, weights, without_offset)
        return cls(dual, weights, offset, primal, dual_value(problem, dual, weights))

    @classmethod
    def of_dual(cls, problem: DualProblem, rows: Features, dual: Floats, rule: StoppingRule) -> LinearPoint:
        """Return a dual vector with its own weights, gradient and KKT violation."""
        weights = rows.weights(dual)
        decisions = rows.decisions(weights)
        gradient = problem.linear - decisions - problem.ridge * dual
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        extremes = gradient_extremes(problem, dual, gradient)
        offset = interval_midpoint(*extremes.offset_bounds)
        if rule.relative_gap is not None:  # then the primal value is that of the weights with their best offset
            offset = best_offsets(problem, problem.linear - decisions, offset, rows.threads_for_samples)
        slack = problem.minus_groups(problem.linear - decisions, offset)
        value = dual_value(problem, dual, weights)
        gap = float(residuals(problem, dual, slack).sum())
        violation = violation_of(extremes, gradient)
        return cls(dual, weights, offset, value + gap, value, gradient, violation)

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual_value

    def or_better(self, other: LinearPoint) -> LinearPoint:
        """Return the point with the smaller violation, or, if one is unknown, the best weights and best dual vector."""
        if self.gradient is not None and other.gradient is not None:
            return other if other.violation < self.violation else self
        primal = other if other.primal < self.primal else self
        dual = other if other.dual_value > self.dual_value else self
        return LinearPoint(dual.dual, primal.weights, primal.offset, primal.primal, dual.dual_value)

    def accepted(self, rule: StoppingRule) -> bool:
        """Whether the point satisfies the stopping tolerance."""
        return self.violation <= rule.violation or rule.accepts_gap(self.primal, self.dual_value)

    def stalled_status(self, problem: DualProblem, rows: Features, rule: StoppingRule) -> Status:
        """Return the status of a run that stalled: converged if the KKT violation is within the tolerance.

        If both objective values are 0 at the optimum, no relative gap exists and the violation decides.
        """
        found = self if self.gradient is not None else LinearPoint.of_dual(problem, rows, self.dual, rule)
        return Status.CONVERGED if found.violation <= rule.violation else Status.PRECISION

    def progress(
        self, iterations: int, monitor: Monitor, active: int | None = None, start: Floats | None = None
    ) -> Progress:
        """Return the point as a progress report for callbacks; `start` is what a later solve would start from."""
        return Progress(
            iteration=iterations,
            violation=self.violation,
            primal=self.primal,
            dual=self.dual_value,
            active=len(self.dual) if active is None else active,
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_point(self.dual, start),
        )

    def solution(self, status: Status, counters: Counters, monitor: Monitor) -> Solution:
        """Report the point to the callback and return it as a `Solution`."""
        weights = None if self.weights_match_dual or self.gradient is not None else self.weights
        try:
            monitor.report(lambda: self.progress(counters.iterations, monitor), now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        return Solution(self.dual, self.gradient, status, counters, weights, trace=monitor.trace)


def minimise_over_offset(
    problem: DualProblem, rows: Features, weights: Floats, without_offset: Floats, near: Floats | None = None
) -> tuple[Floats, float]:
    """Return the optimal offsets for weights and the primal objective, given linear − F w and an initial guess."""
    threads = rows.threads_for_samples
    offset = best_offsets(problem, without_offset, near, threads)
    slack = problem.minus_groups(without_offset, offset)
    return offset, primal_value(problem, weights, offset, slack, threads)


def dual_value(problem: DualProblem, dual: Floats, dual_weights: Floats) -> float:
    """Return the dual objective D(b), given Fᵀ b."""
    squares = inner(dual_weights, dual_weights) + (inner(problem.ridge * dual, dual) if problem.ridge.any() else 0.0)
    return inner(problem.linear, dual) - 0.5 * squares


def primal_value(problem: DualProblem, weights: Floats, offset: Floats, slack: Floats, threads: int = 1) -> float:
    """Return the primal objective P(w, ρ), given the slacks linear − F w − ρ."""
    slack = np.ascontiguousarray(slack)
    loss = _native.total_loss(slack, problem.lower, problem.upper, problem.ridge, threads)
    return 0.5 * inner(weights, weights) + loss + float(offset @ problem.total)
