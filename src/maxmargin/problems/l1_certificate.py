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
from maxmargin.precision import GAP_CANCELLATION
from maxmargin.problems.certificate import Certificate, conjugate, residuals, response
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.offsets import best_offsets


@np.errstate(over="ignore", invalid="ignore")  # values that overflow are infinite in the certificate
def certify_l1(problem: DualProblem, dual: Floats, weights: Floats) -> Certificate:
    """Compute the certificate of weights with the penalty Σ |w_j| and a dual vector, which is made feasible first.

    The violation is the largest distance of a partial derivative of the loss from the subdifferential of −|w_j|.
    """
    rows = l1_features(problem)
    decisions = rows.decisions(weights)
    offset = best_offsets(problem, problem.linear - decisions, None, rows.threads_for(problem.size))
    slack = problem.linear - decisions - problem.expand_groups(offset)
    loss = conjugate(problem, slack)
    primal = float(np.abs(weights).sum() + loss.sum())
    dual, products = scale_to_feasible(problem, rows, dual)
    value = inner(problem.linear, dual) - 0.5 * inner(problem.ridge * dual, dual)
    residual = residuals(problem, dual, slack, loss)
    weight_terms = np.maximum(np.abs(weights) - weights * products, 0.0)
    gap, subtracted = float(residual.sum() + weight_terms.sum()), primal - value
    if not subtracted <= gap + GAP_CANCELLATION * (abs(primal) + abs(value)):
        gap = subtracted if np.isfinite(subtracted) else np.inf
    return Certificate(
        primal=primal,
        dual=value,
        gap=gap,
        violation=float(l1_violations(weights, rows.weights(response(problem, slack))).max(initial=0.0)),
        infeasibility=max(0.0, _max_abs(products) - 1.0, _max_abs(problem.group_sums(dual))),
        squared_norm=inner(weights, weights),
        offset=offset,
        offset_interval=np.column_stack([offset, offset]),
        slack=slack,
        residual=residual,
    )


def scale_to_feasible(problem: DualProblem, rows: Features, dual: Floats) -> tuple[Floats, Floats]:
    """Return the multiple of a dual vector, its sums repaired, of the highest dual value with |Fᵀ b| ≤ 1; and Fᵀ b."""
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
    best = inner(problem.linear, dual) / curvature if curvature > 0 else 0.0
    scale = max(0.0, best if largest * best <= 1.0 else 1.0 / largest)
    return dual * scale, products * scale


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
