"""The primal problem with the linear kernel, smoothed by a proximal term in the dual.

The primal P(w, ρ) = ½‖w‖² + Σ conjugate(linear − F w − ρ) + Σ ρ total has kinks where a loss has no ridge, as the hinge
loss. The term −½ σ‖b − c‖² in the dual smooths them: it acts as a ridge σ and changes the linear term,

    response(z) = clip((z + σ c) / (ridge + σ), lower, upper),

and the smoothed primal is piecewise quadratic and continuously differentiable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import OBJECTIVE_TOLERANCE
from maxmargin.problems import DualProblem
from maxmargin.solvers.linear.linear_point import (
    LinearPoint,
    dual_value,
    finite_norms,
    minimise_over_offset,
    repair_sums,
)
from maxmargin.solvers.stopping import StoppingRule

#: The smallest σ relative to the mean squared norm of a row: below it rounding errors dominate the Newton system.
MIN_RELATIVE_SIGMA = 1e-13

#: The first σ relative to the mean squared norm of a row, where no finite bounds determine it.
DEFAULT_RELATIVE_SIGMA = 0.02

#: At approximate weights this many samples for each feature, plus one in this many of all, are taken to be near a kink.
NEAR_KINK_PER_FEATURE, NEAR_KINK_ONE_IN = 3, 20

#: Rows from which the mean squared norm is estimated.
ROWS_FOR_MEAN_NORM = 1000

#: The line search ends when the slope is this fraction of the initial one, and after this many evaluations.
SLOPE_TOLERANCE, MAX_LINE_SEARCH_STEPS = 1e-2, 60


class SmoothedPrimal:
    """The smoothed primal problem at the current weights and offsets.

    Attributes
    ----------
    weights, offset : float arrays
        The current iterate; call `evaluate` after a change.
    sigma : float
        The smoothing parameter σ, 0 for none.
    centre : float array
        The proximal centre c.
    decisions : float array or None
        F w, None if unknown.
    slack, response : float arrays
        The smoothed slacks z + σ c and the responses to them.
    dual_weights : float array
        Fᵀ response.
    gradient, deficit : float arrays
        The gradient with respect to the weights, w − Fᵀ response, and to the offsets, total − Σ response.
    primal : float
        The primal objective without smoothing.
    repair_cost, dual_estimate : float
        The estimated cost of repairing the group sums of the responses, and their dual objective minus that.
    """

    def __init__(self, problem: DualProblem, rows: Features, start: NewtonStart) -> None:
        self.problem, self.rows = problem, rows
        self.weights, self.offset, self.centre = start.point.weights, start.point.offset, start.point.dual
        self.decisions: Any = start.decisions
        self.row_norm = mean_squared_norm(rows)
        self.sigma = self._first_sigma() if start.sigma is None else start.sigma

    def _first_sigma(self) -> float:
        """Return a σ with which most responses are free, or 0 if the ridge alone has that effect."""
        problem = self.problem
        width = problem.upper - problem.lower
        bounded = np.isfinite(width) & (width > 0)
        least = float(problem.ridge.min(initial=1.0))
        if not bounded.any():  # a ridge leaves a single kink per sample, which Newton steps can handle
            return 0.0 if least > 0 else DEFAULT_RELATIVE_SIGMA * self.row_norm
        self.decisions = self.rows.decisions(self.weights)
        slack = np.abs(problem.minus_groups(problem.linear - self.decisions, self.offset))
        sigma = 2.0 * float(slack[bounded].mean()) / float(width[bounded].mean())
        negligible = DEFAULT_RELATIVE_SIGMA * sigma <= 2 * least
        return 0.0 if negligible else max(sigma, MIN_RELATIVE_SIGMA * self.row_norm)

    def evaluate(self, decisions: Floats | None = None) -> None:
        """Compute responses, gradient and objective values; `decisions` is F w if it is known."""
        problem, rows, n = self.problem, self.rows, self.problem.size
        slack, response, sums = np.empty(n), np.empty(n), np.empty(problem.groups)
        box = problem.native
        smoothed = _native.SmoothedArrays(
            centre=self.centre,
            offset=self.offset,
            sigma=self.sigma,
            slack=slack,
            response=response,
            group_sums=sums,
        )
        if decisions is None and rows.device_rows is not None:
            decisions = rows.decisions(self.weights)
        if decisions is None:
            decisions, dual_weights = np.empty(n), np.empty(rows.dimension)
            threads = rows.threads_for(rows.stored)
            totals = _native.responses_of_rows(
                rows.native, box, smoothed, self.weights, rows.constant, decisions, dual_weights, threads
            )
        else:
            totals = _native.responses(box, smoothed, decisions, rows.threads_for_samples)
            dual_weights = rows.weights(response)
        self._response_sum = totals.absolute_sum
        if not np.isfinite(dual_weights).all():
            raise ValueError(NON_FINITE_MESSAGE)
        self.decisions, self.slack, self.response, self.dual_weights = decisions, slack, response, dual_weights
        self.deficit = problem.total - sums
        self.primal = 0.5 * inner(self.weights, self.weights) + totals.loss + float(self.offset @ problem.total)
        self.gradient = self.weights - dual_weights
        self._half_squared_gradient = 0.5 * inner(self.gradient, self.gradient)
        self.repair_cost = float(np.abs(self.deficit) @ np.abs(self.offset))
        value = totals.linear - 0.5 * totals.ridge - 0.5 * inner(dual_weights, dual_weights)
        self.dual_estimate = value - self.repair_cost

    def gradient_within(self, gap: float) -> bool:
        """Whether half the squared gradient is at most a gap, up to rounding errors."""
        return self._half_squared_gradient <= max(gap, 0.0) + OBJECTIVE_TOLERANCE * abs(self.dual_estimate)

    def solved(self, fraction: float) -> bool:
        """Whether the smoothed problem is solved to this fraction of the duality gap."""
        distance = _native.squared_distance(self.response, self.centre, self.rows.threads_for_samples)
        gap = min(self.primal - self.dual_estimate - self.repair_cost, self.sigma * distance)
        balanced = float(np.abs(self.deficit).sum()) <= 1e-2 * self._response_sum
        return balanced and self.gradient_within(fraction * gap)

    def free(self) -> tuple[NDArray[np.bool_], int]:
        """Return which responses are strictly between their bounds, and how many."""
        problem, free = self.problem, np.empty(self.problem.size, dtype=bool)
        threads = self.rows.threads_for_samples
        return free, _native.strictly_between(self.response, problem.lower, problem.upper, free, threads)

    def changes_since(self, decisions: Floats, offset_step: Floats) -> tuple[Floats, Floats]:
        """Return by how much F w has changed, and by how much the slacks have decreased after a step of the offsets."""
        problem = self.problem
        if problem.groups > 1 or (problem.groups and problem.ungrouped):
            change = self.decisions - decisions
            return change, change + problem.expand_groups(offset_step)
        change, decrease = np.empty(problem.size), np.empty(problem.size)
        shift = float(offset_step[0]) if len(offset_step) else 0.0
        threads = self.rows.threads_for_samples
        _native.slack_changes(self.decisions, decisions, shift, change, decrease, threads)
        return change, decrease

    def slope_along(self, direction: Floats, offset_step: Floats) -> float:
        """Return the directional derivative at the current iterate."""
        return inner(self.gradient, direction) + float(self.deficit @ offset_step)

    def line_search(
        self, weights: Floats, direction: Floats, offset_step: Floats, slack: Floats, slack_decrease: Floats
    ) -> float:
        """Return the step length at which the directional derivative is nearly 0, by safeguarded Newton steps."""
        problem, threads = self.problem, self.rows.threads_for_samples
        initial = inner(weights, direction) + float(problem.total @ offset_step)
        norm = inner(direction, direction)
        arrays = (slack, problem.lower, problem.upper, problem.ridge, slack_decrease)

        def derivatives(length: float) -> tuple[float, float]:
            loss_slope, loss_curvature = _native.loss_derivatives(*arrays, length, threads, self.sigma)
            return initial + length * norm - loss_slope, norm + loss_curvature

        steepest = -derivatives(0.0)[0]
        if not steepest > 0:  # due to rounding errors
            return 0.0
        low, high, length = 0.0, np.inf, 1.0
        for k in range(MAX_LINE_SEARCH_STEPS):
            slope, curvature = derivatives(length)
            if abs(slope) <= SLOPE_TOLERANCE * steepest:
                break
            low, high = (length, high) if slope < 0 else (low, length)
            newton = length - slope / curvature if curvature > 0 else np.inf
            if low < newton < min(high, 16 * max(length, 1e-3)) and k % 4 != 3:
                length = newton
            else:
                length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * length
        return length


class NewtonStart(NamedTuple):
    """The start of a Newton run: a point, σ, and F w of its weights; None for a value that is to be computed."""

    point: LinearPoint
    sigma: float | None = None
    decisions: Floats | None = None


def start_near(
    problem: DualProblem, rows: Features, weights: Floats, offset: Floats, rule: StoppingRule
) -> NewtonStart:
    """Return a start at weights and offsets that are approximately optimal, such as those of a subsample.

    σ is chosen so that the samples near a kink of their loss, a few for each feature, are free; the responses of all
    others are at the bound that their slack points to. Without finite bounds there are no such kinks, and the start is
    the weights alone.
    """
    width = problem.upper - problem.lower
    bounded = np.isfinite(width)
    least = float(problem.ridge.min())
    if least > 0 and rule.relative_gap is not None and not bounded.any():
        return NewtonStart(LinearPoint(np.zeros(problem.size), weights, offset, np.inf, -np.inf), 0.0)
    decisions = rows.decisions(weights)
    without_offset = problem.linear - decisions
    offset, primal = minimise_over_offset(problem, rows, weights, without_offset, offset)
    slack = problem.minus_groups(without_offset, offset)
    sigma = 0.0
    if bounded.any() and width[bounded].max() > 0:
        distance = np.abs(slack[bounded])
        count = min(len(distance) - 1, NEAR_KINK_PER_FEATURE * rows.dimension + len(distance) // NEAR_KINK_ONE_IN)
        sigma = 2.0 * float(np.partition(distance, count)[count]) / float(width[bounded].mean())
        sigma = max(sigma, MIN_RELATIVE_SIGMA * mean_squared_norm(rows))
    if sigma <= 0.1 * least:
        sigma = 0.0
    if sigma + least == 0.0:  # a hard margin, or all samples at a kink
        sigma = mean_squared_norm(rows)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (problem.lower + problem.upper), 0.0)
    dual = np.clip((slack + sigma * middle) / (problem.ridge + sigma), problem.lower, problem.upper)
    dual = repair_sums(problem, dual, rows.threads_for_samples)
    value = dual_value(problem, dual, rows.weights(dual))
    if rule.relative_gap is None:
        return NewtonStart(LinearPoint.of_dual(problem, rows, dual, rule), sigma)
    return NewtonStart(LinearPoint(dual, weights, offset, primal, value), sigma, decisions)


def mean_squared_norm(rows: Features) -> float:
    """Return the approximate mean of the squared norms of the rows, 1 if all are 0."""
    some = rows.take(np.arange(0, rows.size, max(1, rows.size // ROWS_FOR_MEAN_NORM)))
    mean = float(finite_norms(some).mean()) + rows.constant**2 if rows.size else 1.0
    return mean if mean > 0 else 1.0
