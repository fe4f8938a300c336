"""The certificate of optimality for the L1 penalty, which makes most weights 0.

In place of ½‖w‖² the primal has Σ |w_j|, and the dual has bounds on Fᵀ b in place of ½‖Fᵀ b‖²:

    minimise  P(w, ρ) = Σ |w_j| + Σ conjugate(linear − F w − ρ)
    maximise  D(b)    = linear·b − ½ Σ ridge_i b_i²    subject to  |Fᵀ b| ≤ 1, lower ≤ b ≤ upper, Σ b = 0 in every group

Weak duality holds between any weights and any feasible b, and the gap is a sum of non-negative terms,

    P − D = Σ_i residual(z_i, b_i) + Σ_j (|w_j| − w_j (Fᵀ b)_j).

Any vector within the bounds is made feasible by scaling: the sign with the larger sum in a group until its sum is 0,
then all until |Fᵀ b| ≤ 1. At the optimum, b = response(z) is feasible without scaling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import DoubleDouble
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.certificate import Certificate, extended_is_affordable, inconclusive
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.losses import conjugate, residuals, response
from maxmargin.problems.objective_bounds import SAFETY, PrimalPoint, feasibility_moves, loss_error
from maxmargin.problems.offsets import best_offsets


@np.errstate(over="ignore", invalid="ignore")  # values that overflow are infinite in the certificate
def certify_l1(
    problem: DualProblem,
    dual: Floats,
    weights: Floats,
    offset: Floats | None = None,
    extended: bool | None = None,
) -> Certificate:
    """Compute the certificate of weights with the penalty Σ |w_j| and a dual vector, which is made feasible first.

    `offset` are the offsets of the decision function, by default those of least loss. The violation is the largest
    distance of a partial derivative of the loss from the subdifferential of −|w_j|. `extended` asks for double-double
    arithmetic; by default it is used where the rounding errors of float64 matter.
    """
    rows = l1_features(problem)
    if extended is not None:
        return _certify(problem, rows, dual, weights, offset, extended)
    certificate = _certify(problem, rows, dual, weights, offset, extended=False)
    if not inconclusive(certificate) or not extended_is_affordable(problem, dual):
        return certificate
    precise = _certify(problem, rows, dual, weights, offset, extended=True)
    return precise if precise.gap < certificate.gap else certificate


def _certify(
    problem: DualProblem, rows: Features, dual: Floats, weights: Floats, offset: Floats | None, extended: bool
) -> Certificate:
    """Return the certificate; with `extended`, products are computed in double-double arithmetic."""
    decisions, error = rows.decisions(weights), rows.decisions_error(weights)
    decisions_error = error.double
    if extended:
        decisions, decisions_error = rows.extended_decisions(DoubleDouble.of(weights)).high, error.extended
    if offset is None:
        offset = best_offsets(problem, problem.linear - decisions, None, rows.threads_for_samples)
    expanded = problem.expand_groups(offset)
    slack = problem.linear - decisions - expanded
    loss, magnitude = conjugate(problem, slack), np.abs(weights)
    feasible = _feasible_point(problem, rows, dual, extended)
    dual, ridge = feasible.dual, inner(problem.ridge * feasible.dual, feasible.dual)
    residual = residuals(problem, dual, slack, loss)
    weight_terms = np.maximum(magnitude - weights * feasible.products, 0.0)
    slack_error = 4 * UNIT_ROUNDOFF * (np.abs(problem.linear) + np.abs(decisions) + np.abs(expanded)) + decisions_error
    size = float(magnitude.sum()) + float(loss.sum()) + ridge
    size += inner(np.abs(problem.linear) + np.abs(slack), np.abs(dual))
    roundings = (problem.size + len(weights) + 16) * UNIT_ROUNDOFF * size
    point = PrimalPoint(offset, 1.0, slack, slack, slack_error, loss, residual)
    primal_error = SAFETY * (loss_error(problem, point) + roundings)
    dual_error = SAFETY * (feasible.cost + roundings)
    primal = float(magnitude.sum() + loss.sum()) + primal_error
    value = inner(problem.linear, dual) - 0.5 * ridge - dual_error
    # The sum of the terms of the gap has no cancellation, but errors of its own.
    terms_error = inner(np.abs(dual), slack_error) + feasible.products_error * float(magnitude.sum())
    terms = float(residual.sum() + weight_terms.sum()) + SAFETY * terms_error + primal_error + dual_error
    gap = min(terms, primal - value)
    return Certificate(
        primal=primal,
        dual=value,
        gap=gap if np.isfinite(gap) else np.inf,
        rounding=primal_error + dual_error + feasible.margin_cost,
        violation=float(l1_violations(weights, rows.weights(response(problem, slack))).max(initial=0.0)),
        infeasibility=max(0.0, _max_abs(feasible.products) - 1.0, _max_abs(problem.group_sums(dual))),
        squared_norm=inner(weights, weights),
        offset=offset,
        offset_interval=np.column_stack([offset, offset]),
        slack=slack,
        residual=residual,
    )


class FeasiblePoint(NamedTuple):
    """A dual vector with |Fᵀ b| ≤ 1 and sums of 0.

    `products` is Fᵀ b, with errors of at most `products_error`; `cost` bounds the dual value that the exact repair of
    the sums costs, `margin_cost` is the dual value that the margin for the errors of Fᵀ b has cost. The point is an
    exact multiple of a vector in float64: the rounding of `dual` does not matter.
    """

    dual: Floats
    products: Floats
    products_error: float
    cost: float
    margin_cost: float


def scale_to_feasible(problem: DualProblem, rows: Features, dual: Floats) -> tuple[Floats, Floats]:
    """Return the multiple of a dual vector, its sums repaired, of the highest dual value with |Fᵀ b| ≤ 1; and Fᵀ b.

    Up to rounding errors: `certify_l1` accounts for them.
    """
    dual = _repair_sums(problem, dual)
    products = rows.weights(dual)
    scale = _best_scale(problem, dual, _max_abs(products))
    return dual * scale, products * scale


def _feasible_point(problem: DualProblem, rows: Features, dual: Floats, extended: bool) -> FeasiblePoint:
    """Return a multiple of a dual vector that satisfies all constraints exactly."""
    dual = _repair_sums(problem, dual)
    bound, moved = rows.weights_error(dual), feasibility_moves(problem, dual, extended)
    if extended:
        products, error = rows.extended_weights(DoubleDouble.of(dual)).high, float(bound.extended[0])
        error += UNIT_ROUNDOFF * _max_abs(products)
    else:
        products, error = rows.weights(dual), float(bound.double[0])
    margin = error + inner(moved, rows.norms)
    without = _best_scale(problem, dual, _max_abs(products))
    scale = _best_scale(problem, dual, _max_abs(products) + margin) * (1.0 - 4 * UNIT_ROUNDOFF)
    slope, curvature = inner(problem.linear, dual), inner(problem.ridge * dual, dual)
    margin_cost = (without - scale) * (slope - 0.5 * (without + scale) * curvature)
    dual, moved = dual * scale, moved * scale
    repair = inner(moved, np.abs(problem.linear) + problem.ridge * np.abs(dual)) + inner(problem.ridge, moved**2)
    return FeasiblePoint(dual, products * scale, margin * scale, repair, max(margin_cost, 0.0))


def _repair_sums(problem: DualProblem, dual: Floats) -> Floats:
    """Return the vector within the bounds; in each group, the sign with the larger sum is scaled until they cancel."""
    dual = np.clip(dual, problem.lower, problem.upper)
    for g in range(problem.groups):
        members = problem.group == g
        positive, negative = members & (dual > 0), members & (dual < 0)
        above, below = float(dual[positive].sum()), -float(dual[negative].sum())
        if above != below:
            larger = positive if above > below else negative
            dual[larger] *= min(above, below) / max(above, below)
    return dual


def _best_scale(problem: DualProblem, dual: Floats, largest: float) -> float:
    """Return the factor of the highest dual value, given the largest |Fᵀ b|."""
    curvature = inner(problem.ridge * dual, dual)
    best = inner(problem.linear, dual) / curvature if curvature > 0 else 0.0
    return max(0.0, best if largest * best <= 1.0 else 1.0 / largest)


def l1_violations(weights: Floats, products: Floats) -> Floats:
    """Return by how much each Fᵀ b violates optimality: it must be the sign of the weight, within [−1, 1] for 0."""
    return np.where(weights == 0, np.maximum(np.abs(products) - 1.0, 0.0), np.abs(np.sign(weights) - products))


def l1_features(problem: DualProblem) -> Features:
    """Return the features of a problem; raise if it cannot have this penalty."""
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("the penalty Σ |w_j| is a penalty of feature weights: it works for the linear kernel only")
    if problem.total.any() or (problem.lower > 0).any() or (problem.upper < 0).any() or not (problem.ridge > 0).all():
        raise ValueError("the penalty Σ |w_j| needs a squared loss, and sums of 0")
    if problem.kinked:
        raise ValueError("the penalty Σ |w_j| needs a problem without kinks: pose its split form")
    return rows


def _max_abs(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
