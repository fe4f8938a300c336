"""Rigorous bounds on both objective values of a point.

The primal value is off by what the errors of the slacks do to the losses, which are convex: the larger of the losses at
both ends of the interval of a slack bounds them. The dual value is a bound only at a feasible point: the sums of the
groups are off by rounding, and the cost of correcting them by moving one variable of each group (a few, if none has
room enough) is subtracted. Sums of n terms are off by at most n 2⁻⁵³ Σ |terms|, in double-double arithmetic by one
rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import EXTENDED_EPSILON, DoubleDouble, compressed, rounded_sum, summands, two_product
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.losses import excess, response_to_excess
from maxmargin.problems.products import Products, check_time

#: Factor on all bounds: covers their own rounding errors and terms of second order.
SAFETY = 1.02


@dataclass(frozen=True)
class PrimalPoint:
    """A decision function: offsets, the factor on weights and offsets, and slack, loss and residual of each variable.

    `slack_low` is the low part of the slacks, `slack_error` a bound on their errors.
    """

    offset: Floats
    scale: float
    slack: Floats
    slack_low: Floats
    slack_error: Floats
    loss: Floats
    residual: Floats


@dataclass(frozen=True)
class ObjectiveBounds:
    """An upper bound on the primal value, a lower bound on the dual value, their gap and its share due to rounding."""

    primal: float
    dual: float
    gap: float
    rounding: float


def bound_objectives(
    problem: DualProblem,
    dual: Floats,
    products: Products,
    point: PrimalPoint,
    gradient: Floats,
    gradient_error: Floats,
) -> ObjectiveBounds:
    """Return bounds on both objective values."""
    values = _extended_values if products.extended else _double_values
    primal, dual_value, gap, roundings = values(problem, dual, products, point)
    half = 0.5 * point.scale**2
    primal_error = half * products.weights_norm_error + loss_error(problem, point)
    dual_error = 0.5 * products.dual_norm_error + products.distance_error
    dual_error += inner(np.abs(dual), point.slack_error)  # which bounds the errors of the residuals, too
    if problem.linear_error is not None:
        dual_error += inner(np.abs(dual), problem.linear_error)
    dual_error += feasibility_cost(problem, dual, gradient, gradient_error, products.extended)
    primal_error, dual_error = SAFETY * (primal_error + roundings), SAFETY * (dual_error + roundings)
    rounding = primal_error + dual_error
    if not np.isfinite(primal + dual_value + gap + rounding):
        return _unbounded(primal + primal_error, dual_value - dual_error)
    return ObjectiveBounds(
        primal=float(np.nextafter(primal + primal_error, np.inf)),
        dual=float(np.nextafter(dual_value - dual_error, -np.inf)),
        gap=max(gap, 0.0) + rounding,
        rounding=rounding,
    )


def _unbounded(primal: float, dual: float) -> ObjectiveBounds:
    """Return the bounds where something has overflowed: what is not a number bounds nothing."""
    return ObjectiveBounds(
        primal=np.inf if np.isnan(primal) else primal,
        dual=-np.inf if np.isnan(dual) else dual,
        gap=np.inf,
        rounding=np.inf,
    )


def _double_values(
    problem: DualProblem, dual: Floats, products: Products, point: PrimalPoint
) -> tuple[float, float, float, float]:
    """Return primal value, dual value, gap, and a bound on the rounding errors of their sums, in float64."""
    half, loss = 0.5 * point.scale**2, point.loss
    ridge = inner(problem.ridge * dual, dual)
    offsets = point.scale * point.offset * problem.total
    primal = float(half * products.weights_norm + loss.sum() + offsets.sum())
    kinks = inner(problem.kink, np.abs(dual))
    dual_value = inner(problem.linear, dual) - kinks - 0.5 * products.dual_norm - 0.5 * ridge
    # The sum of residuals equals primal − dual, without the cancellation of subtracting them.
    gap = float(point.residual.sum()) + 0.5 * (point.scale - 1.0) ** 2 * products.dual_norm + products.distance
    size = half * products.weights_norm + float(np.abs(loss).sum()) + float(np.abs(offsets).sum()) + ridge
    size += inner(np.abs(problem.linear), np.abs(dual)) + kinks + 0.5 * products.dual_norm
    size += inner(np.abs(point.slack), np.abs(dual))
    return primal, dual_value, gap, (problem.size + 16) * UNIT_ROUNDOFF * size


def _extended_values(
    problem: DualProblem, dual: Floats, products: Products, point: PrimalPoint
) -> tuple[float, float, float, float]:
    """Return the same in double-double arithmetic; sums are rounded once."""
    half, slack = 0.5 * point.scale**2, _extended_excess(problem, point)
    beta = _finite_response(problem, point, slack.high)
    loss = slack.scaled(beta).minus(two_product(problem.ridge, beta).scaled(beta).scaled(0.5))
    offsets = two_product(point.offset * point.scale, problem.total)
    primal_terms = [loss, offsets]
    ridge = two_product(problem.ridge, dual).scaled(dual).scaled(-0.5)
    dual_terms = [two_product(problem.linear, dual), ridge]
    if problem.kinked:
        dual_terms.append(two_product(-problem.kink, np.abs(dual)))
    if products.weights is None:
        norm = products.product.scaled(dual)
        primal_terms.append(norm.scaled(half))
        dual_terms.append(norm.scaled(-0.5))
    else:
        primal_terms.append(two_product(products.weights, products.weights).scaled(half))
        dual_terms.append(DoubleDouble.of(np.array([-0.5 * products.dual_norm])))
    check_time(products)
    of_primal, of_dual = summands(*primal_terms), summands(*dual_terms)
    primal, dual_value = rounded_sum(of_primal), rounded_sum(of_dual)
    gap = rounded_sum(np.concatenate([of_primal, -of_dual]))
    size = sum(float(np.abs(term.high).sum()) for term in primal_terms + dual_terms)
    if problem.kinked:  # the excess of a slack is a difference, rounded relative to both
        size += inner(problem.kink, np.abs(beta))
    once = UNIT_ROUNDOFF * (abs(primal) + abs(dual_value) + abs(gap))
    if problem.groups:  # their products with the scale are rounded
        once += UNIT_ROUNDOFF * abs(point.scale - 1.0) * float(np.abs(offsets.high).sum())
    return primal, dual_value, gap, once + 16 * EXTENDED_EPSILON * size


def loss_error(problem: DualProblem, point: PrimalPoint) -> float:
    """Return by how much the sum of losses may be larger, with every slack within its error."""
    above, below = point.slack + point.slack_error, point.slack - point.slack_error
    if problem.kinked:  # rounded towards the kink, a slack beyond it would seem to have no loss
        above, below = np.nextafter(above, np.inf), np.nextafter(below, -np.inf)
    slopes = [np.abs(_finite_response(problem, point, excess(problem, end))) for end in (above, below)]
    return inner(np.maximum(*slopes), point.slack_error)


def _extended_excess(problem: DualProblem, point: PrimalPoint) -> DoubleDouble:
    """Return the part of each slack that exceeds its kink; the sign of its high part is exact."""
    slack = DoubleDouble(point.slack, point.slack_low)
    if not problem.kinked:
        return slack
    beyond = slack.minus(DoubleDouble.of(np.copysign(problem.kink, point.slack)))
    within = (beyond.high == 0) | ((beyond.high < 0) != (point.slack < 0))
    return DoubleDouble(np.where(within, 0.0, beyond.high), np.where(within, 0.0, beyond.low))


def _finite_response(problem: DualProblem, point: PrimalPoint, slack: Floats) -> Floats:
    """Return the slope of the loss at the excess of a slack.

    Hard margins that the scale satisfies, by more than the error, have no loss; a slope of a hard margin that is not
    satisfied is infinite.
    """
    if problem.bounded or point.scale == 1.0:
        return response_to_excess(problem, slack)
    hard = problem.ridge == 0
    slack = np.where(hard & np.isinf(problem.upper), np.minimum(slack, 0.0), slack)
    slack = np.where(hard & np.isinf(problem.lower), np.maximum(slack, 0.0), slack)
    return response_to_excess(problem, slack)


# ---- feasibility ----------------------------------------------------------------------------------------------------


def feasibility_cost(
    problem: DualProblem, dual: Floats, gradient: Floats, gradient_error: Floats, exact: bool = False
) -> float:
    """Return a bound on the dual value that is lost by moving a point into the box and to the sums of the groups.

    `exact` asks for exact sums of the groups, otherwise the rounding errors of the sums count as well.
    """
    moved = feasibility_moves(problem, dual, exact)
    variables = np.flatnonzero(moved)
    if not len(variables):
        return 0.0
    amounts, slope = moved[variables], (np.abs(gradient) + gradient_error + problem.kink)[variables]
    size = problem.matrix.magnitudes()[variables]
    length = inner(amounts, size)
    cost = inner(amounts, slope) + 0.5 * length * length  # infinite where it overflows
    return cost + 0.5 * inner(problem.ridge[variables], amounts**2)


def feasibility_moves(problem: DualProblem, dual: Floats, exact: bool = False) -> Floats:
    """Return by how much each variable moves, at most, to a point that satisfies all constraints exactly."""
    up, down = problem.upper - dual, dual - problem.lower
    moved = np.maximum(-np.minimum(up, down), 0.0)  # into the box
    for group, missing in _missing_sums(problem, dual, moved.copy() if moved.any() else None, exact):
        members = problem.members(group)
        moved[members] += _correction(float(problem.total[group]), dual[members], up[members], down[members], missing)
    return moved


def _missing_sums(
    problem: DualProblem, dual: Floats, excess: Floats | None, exact: bool
) -> Iterator[tuple[int, float | None]]:
    """Yield each group whose sum may be wrong and a bound on its error; None if the sum has to be computed exactly."""
    if not problem.groups:
        return
    size = problem.group_sums(np.abs(dual)) + np.abs(problem.total)
    beyond = np.zeros(problem.groups) if excess is None else problem.group_sums(excess)
    missing = np.abs(problem.total - problem.group_sums(dual))
    rounding = (problem.size + 2) * UNIT_ROUNDOFF * size
    for g in np.flatnonzero(size + beyond > 0):
        yield int(g), None if exact and not beyond[g] else float(missing[g] + rounding[g] + beyond[g])


def _correction(total: float, values: Floats, up: Floats, down: Floats, missing: float | None) -> Floats:
    """Return by how much the variables of a group move until their sum is right; they have room `up` and `down`."""
    out = np.zeros(len(values))
    room = np.minimum(up, down)
    best = int(room.argmax())
    if missing is None or room[best] < missing:
        exactly = fsum([total, *(-compressed(values)).tolist()])
        missing, room = abs(exactly), np.maximum(up if exactly > 0 else down, 0.0)
        best = int(room.argmax())
    if room[best] >= missing:
        out[best] = missing
        return out
    # Several variables. If they have not room enough together, the total itself is off by rounding: then no point
    # satisfies the constraints exactly.
    order = np.argsort(-room, kind="stable")
    left = np.maximum(missing - np.concatenate([[0.0], np.cumsum(room[order])[:-1]]), 0.0)
    out[order] = np.minimum(room[order], left)
    return out
