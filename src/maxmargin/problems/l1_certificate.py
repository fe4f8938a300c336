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

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.certificate import Certificate
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.losses import conjugate, residuals, response
from maxmargin.problems.objective_bounds import SAFETY, PrimalPoint, feasibility_moves, loss_error
from maxmargin.problems.offsets import best_offsets


@np.errstate(over="ignore", invalid="ignore")  # values that overflow are infinite in the certificate
def certify_l1(problem: DualProblem, dual: Floats, weights: Floats) -> Certificate:
    """Compute the certificate of weights with the penalty Σ |w_j| and a dual vector, which is made feasible first.

    The violation is the largest distance of a partial derivative of the loss from the subdifferential of −|w_j|.
    """
    rows = l1_features(problem)
    decisions = rows.decisions(weights)
    offset = best_offsets(problem, problem.linear - decisions, None, rows.threads_for(problem.size))
    expanded = problem.expand_groups(offset)
    slack = problem.linear - decisions - expanded
    loss, magnitude = conjugate(problem, slack), np.abs(weights)
    dual, products, products_error, infeasibility_cost = scale_to_feasible(problem, rows, dual)
    residual = residuals(problem, dual, slack, loss)
    weight_terms = np.maximum(magnitude - weights * products, 0.0)
    ridge = inner(problem.ridge * dual, dual)
    slack_error = rows.decisions_error(weights).double
    slack_error += 4 * UNIT_ROUNDOFF * (np.abs(problem.linear) + np.abs(decisions) + np.abs(expanded))
    size = float(magnitude.sum()) + float(loss.sum()) + ridge
    size += inner(np.abs(problem.linear) + np.abs(slack), np.abs(dual))
    roundings = (problem.size + len(weights) + 16) * UNIT_ROUNDOFF * size
    primal_error = SAFETY * (loss_error(problem, PrimalPoint(offset, 1.0, slack, slack, slack_error)) + roundings)
    dual_error = inner(np.abs(dual), slack_error) + products_error * float(magnitude.sum())
    dual_error = SAFETY * (dual_error + infeasibility_cost + roundings)
    primal = float(magnitude.sum() + loss.sum()) + primal_error
    value = inner(problem.linear, dual) - 0.5 * ridge - dual_error
    gap = float(residual.sum() + weight_terms.sum()) + primal_error + dual_error
    return Certificate(
        primal=primal,
        dual=value,
        gap=gap if np.isfinite(gap) else np.inf,
        rounding=primal_error + dual_error,
        violation=float(l1_violations(weights, rows.weights(response(problem, slack))).max(initial=0.0)),
        infeasibility=max(0.0, _max_abs(products) - 1.0, _max_abs(problem.group_sums(dual))),
        squared_norm=inner(weights, weights),
        offset=offset,
        offset_interval=np.column_stack([offset, offset]),
        slack=slack,
        residual=residual,
    )


def scale_to_feasible(problem: DualProblem, rows: Features, dual: Floats) -> tuple[Floats, Floats, float, float]:
    """Return the multiple of a dual vector, its sums repaired, of the highest dual value with |Fᵀ b| ≤ 1.

    Also Fᵀ b, a bound on its error, and a bound on the dual value that the exact repair of the sums would cost.
    """
    dual = np.clip(dual, problem.lower, problem.upper)
    for g in range(problem.groups):
        members = problem.group == g
        positive, negative = members & (dual > 0), members & (dual < 0)
        above, below = float(dual[positive].sum()), -float(dual[negative].sum())
        if above != below:
            larger = positive if above > below else negative
            dual[larger] *= min(above, below) / max(above, below)
    products = rows.weights(dual)
    largest, curvature = _max_abs(products), inner(problem.ridge * dual, dual)
    error, moved = float(rows.weights_error(dual).double[0]), feasibility_moves(problem, dual)
    # Twice the error covers that of the scaled vector as well.
    margin = 2.0 * (error + inner(moved, rows.norms))
    best = inner(problem.linear, dual) / curvature if curvature > 0 else 0.0
    scale = max(0.0, best if (largest + margin) * best <= 1.0 else 1.0 / (largest + margin))
    dual, moved = dual * scale, moved * scale + UNIT_ROUNDOFF * np.abs(dual * scale)
    slope = np.abs(problem.linear) + problem.ridge * np.abs(dual)
    return dual, products * scale, margin * scale, inner(moved, slope) + inner(problem.ridge, moved**2)


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
    return rows


def _max_abs(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
