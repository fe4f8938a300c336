"""The proof of optimality where weights are penalised by the sum of their sizes, which makes most of them 0.

In place of ½‖w‖² the primal has Σ |w_j|, and the dual has bounds on Fᵀ b in place of ½‖Fᵀ b‖²:

    minimise  P(w, ρ) = Σ |w_j| + Σ conjugate(linear − F w − ρ)
    maximise  D(b)    = linear·b − ½ Σ ridge_i b_i²    subject to  |Fᵀ b| ≤ 1, lower ≤ b ≤ upper, Σ b = 0 in every group

Weak duality holds between any weights and any feasible b, and the gap is a sum of parts that are never negative,

    P − D = Σ_i residual(z_i, b_i) + Σ_j (|w_j| − w_j (Fᵀ b)_j).

Any vector within the bounds becomes feasible by shrinking: the heavier sign of a group until its sum is 0, then all
until no |Fᵀ b| is above 1. With b = response(z) that costs nothing at the optimum.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import GAP_CANCELLATION
from maxmargin.problems.certificate import Certificate, conjugate, of_samples, residuals, response
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.offsets import offsets_of_least_loss


def certify_sparse(problem: DualProblem, dual: Floats, weights: Floats) -> Certificate:
    """Judge weights whose penalty is Σ |w_j|, and a dual vector, which is made feasible first.

    The violation is the largest distance of a slope of the loss from what |w_j| allows: 1 in size where a weight is not
    0, at most 1 where it is.
    """
    rows = features_of_sparse(problem)
    decisions = rows.decisions(weights)
    offset = offsets_of_least_loss(problem, problem.linear - decisions, None, rows.threads_for(problem.size))
    slack = problem.linear - decisions - of_samples(problem, offset)
    loss = conjugate(problem, slack)
    primal = float(np.abs(weights).sum() + loss.sum())
    dual, products = feasible_within(problem, rows, dual)
    value = inner(problem.linear, dual) - 0.5 * inner(problem.ridge * dual, dual)
    residual = residuals(problem, dual, slack, loss)
    of_weights = np.maximum(np.abs(weights) - weights * products, 0.0)
    gap, plain = float(residual.sum() + of_weights.sum()), primal - value
    if not plain <= gap + GAP_CANCELLATION * (abs(primal) + abs(value)):
        gap = plain if np.isfinite(plain) else np.inf
    return Certificate(
        primal=primal,
        dual=value,
        gap=gap,
        violation=float(violations(weights, rows.weights(response(problem, slack))).max(initial=0.0)),
        infeasibility=max(0.0, _longest(products) - 1.0, _longest(problem.group_sums(dual))),
        squared_norm=inner(weights, weights),
        offset=offset,
        offset_interval=np.column_stack([offset, offset]),
        slack=slack,
        residual=residual,
    )


def feasible_within(problem: DualProblem, rows: Features, dual: Floats) -> tuple[Floats, Floats]:
    """Return the highest multiple of a dual vector, its sums mended, that keeps |Fᵀ b| ≤ 1; and Fᵀ b."""
    dual = np.clip(dual, problem.lower, problem.upper)
    for g in range(problem.groups):
        members = problem.group == g
        rising, falling = members & (dual > 0), members & (dual < 0)
        more, less = float(dual[rising].sum()), -float(dual[falling].sum())
        if more != less:
            heavier = rising if more > less else falling
            dual[heavier] *= min(more, less) / max(more, less)
    products = rows.weights(dual)
    longest, bend = _longest(products), inner(problem.ridge * dual, dual)
    highest = inner(problem.linear, dual) / bend if bend > 0 else 0.0
    part = max(0.0, highest if longest * highest <= 1.0 else 1.0 / longest)
    return dual * part, products * part


def violations(weights: Floats, products: Floats) -> Floats:
    """Return by how much each Fᵀ b violates optimality: it must be the sign of a weight, or between −1 and 1 for 0."""
    return np.where(weights == 0, np.maximum(np.abs(products) - 1.0, 0.0), np.abs(np.sign(weights) - products))


def features_of_sparse(problem: DualProblem) -> Features:
    """Return the features of a problem that can have this penalty, or raise."""
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("the penalty Σ |w_j| is about weights of features: it works for the linear kernel only")
    if problem.total.any() or (problem.lower > 0).any() or (problem.upper < 0).any() or not (problem.ridge > 0).all():
        raise ValueError("the penalty Σ |w_j| needs a squared loss, and sums of 0")
    return rows


def _longest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
