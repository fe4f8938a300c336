"""An independent evaluation of certificates: primal and dual value at the same point, in more digits.

A certificate claims that the optimum v* of the dual problem

    maximise    D(b) = linear·b − Σ kink_i |b_i| − ½ bᵀ M b − ½ Σ ridge_i b_i²
    subject to  lower ≤ b ≤ upper,  Σ_{i in g} b_i = total_g

lies between its bounds, `dual` ≤ v* ≤ `primal`. The problem is the one that was posed: its arrays are float64 numbers
and taken as exact, and M is the matrix of *exact* kernel values of the samples as the estimator sees them (for SVDD the
linear term, ½ k(x_i, x_i), is exact as well; for landmark machines the samples are the features that the estimator
computes, float64 numbers). The claim is checked without solving anything:

* v* ≤ P(w, ρ) for every primal point. P is evaluated at the weights and offsets of the certificate; if the exact value
  is at most `primal`, the upper bound is proved. (For a hard margin every multiple of the point is one, too, and the
  smallest that satisfies all margins is taken.)
* D(b') ≤ v* for every feasible b'. The dual vector of the fit satisfies box and sums up to rounding only. b' is the
  vector clipped to the box, with the missing part of each sum added where there is room, in extended precision; if
  the exact D(b') is at least `dual`, the lower bound is proved.

Weak duality, P − D ≥ 0, needs a positive semi-definite matrix. For an indefinite kernel the certificate says that the
point is stationary only; the two values are compared all the same.

The primal is written as in the textbook, with one loss per formulation in terms of z = linear − f(x):

    hinge, C_i max(0, 1 − y f)               bounds [0, C_i], linear = 1 (for y = +1):        C_i max(0, z)
    ε-insensitive                            kink ε, linear = t, [−C_i, C_i]:                 C_i max(0, |z| − ε)
    the same in two variables a sample       linear = t − ε, [0, C_i]; t + ε, [−C_i, 0]:      C_i max(0, ±z)
    pinball                                  [−(1 − τ) C_i, τ C_i]:                           τ C_i z or −(1 − τ) C_i z
    squared losses, C_i ξ²                   ridge 1/(2 C_i), unbounded on one side or both:  z² / (2 ridge)
    Crammer–Singer, Weston–Watkins           C_i max or sum over c ≠ y of max(0, z_y − z_c)
    hard margin                              0 where the margin holds, else ∞

Numbers are computed in extended precision with a bound on the error of each value; where that bound does not decide, or
the claim seems wrong, everything is computed again in multiple precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.matrices import MulticlassMatrix
from maxmargin.problems import DualProblem

from .arithmetic import EXTENDED, EXTENDED_IS_WIDER, MULTIPLE
from .exact_products import dense_rows, matrix_diagonal, matrix_product
from .recorder import CertifiedPoint

#: A sum that the box cannot reach by so much of itself is infeasible by the rounding of the posed arrays only.
UNREACHABLE_SUM = 1e-12


@dataclass(frozen=True)
class Evaluation:
    """Exact values at one point, each with a bound on the error of the evaluation itself."""

    primal: Any
    primal_error: Any
    dual: Any
    dual_error: Any


@dataclass(frozen=True)
class Verdict:
    """Whether a certificate is confirmed.

    Attributes
    ----------
    lower, upper : float
        The claimed bounds.
    primal, dual : float
        The exact values at the point.
    excess : float
        By how much the claim is wrong: dual value below `lower`, primal value above `upper`, or their
        difference above the claimed gap; 0 if it is confirmed.
    width : float
        upper − lower.
    multiple : bool
        Whether multiple precision was needed.
    """

    lower: float
    upper: float
    primal: float
    dual: float
    excess: float
    width: float
    multiple: bool

    @property
    def confirmed(self) -> bool:
        """Whether the exact values prove the claimed bounds."""
        return self.excess == 0.0

    @property
    def refuted(self) -> bool:
        """Whether the exact values prove that the optimum is outside of the claimed bounds.

        Where neither holds, this point, made feasible, does not decide.
        """
        return not (self.dual <= self.upper and self.lower <= self.primal)

    def __str__(self) -> str:
        widths = self.excess / self.width if self.width > 0 else float("inf")
        return (
            f"claimed [{self.lower!r}, {self.upper!r}], exact [{self.dual!r}, {self.primal!r}]: "
            f"off by {self.excess:.3g}, {widths:.3g} widths"
        )


def verify_certificate(point: CertifiedPoint, half_diagonal: bool = False) -> Verdict:
    """Compare a certificate with exact values; `half_diagonal` for SVDD, whose linear term is ½ k(x, x)."""
    lower, upper = point.certificate.dual, point.certificate.primal
    gap, multiple = point.certificate.gap, not EXTENDED_IS_WIDER
    if not multiple:
        found = evaluate(point, EXTENDED, half_diagonal)
        least, most = found.dual - found.dual_error, found.primal + found.primal_error
        sure = least >= lower and most <= upper and most - least <= gap
        multiple = not bool(sure)
    if multiple:
        found = evaluate(point, MULTIPLE, half_diagonal)
    below = lower - found.dual if np.isfinite(lower) else 0.0
    above = found.primal - upper if np.isfinite(upper) else 0.0
    wider = found.primal - found.dual - gap if np.isfinite(gap) else 0.0
    excess = max(0.0, float(below), float(above), float(wider))
    excess = float("inf") if np.isnan([lower, upper, gap]).any() else excess
    return Verdict(lower, upper, float(found.primal), float(found.dual), excess, upper - lower, multiple)


def evaluate(point: CertifiedPoint, arithmetic: Any, half_diagonal: bool = False) -> Evaluation:
    """Return exact primal and dual value at the point of a certificate."""
    if point.weights is None:
        return _evaluate_in_kernel_form(point, arithmetic, half_diagonal)
    return _evaluate_in_weights(point, arithmetic)


def _evaluate_in_kernel_form(point: CertifiedPoint, arithmetic: Any, half_diagonal: bool) -> Evaluation:
    """Evaluate at w = Σ b_i Φ(x_i)."""
    problem, unit, n = point.problem, arithmetic.unit, point.problem.size
    dual, offset = arithmetic.array(point.dual), arithmetic.array(point.certificate.offset)
    linear, linear_error = arithmetic.array(problem.linear), arithmetic.array(np.zeros(n))
    if half_diagonal:
        diagonal, diagonal_error = matrix_diagonal(_kernel_matrix(problem.matrix), arithmetic)
        linear, linear_error = diagonal / 2, diagonal_error
    product, product_error = matrix_product(problem.matrix, dual, arithmetic)
    norm, norm_error = _inner(dual, product, product_error, arithmetic)
    rho = _expand(problem, offset, arithmetic)
    if isinstance(problem.matrix, MulticlassMatrix):
        slack, slack_error = linear - product, product_error + 4 * unit * (abs(linear) + abs(product))
        loss, loss_error = _all_in_one_loss(problem, slack, slack_error, arithmetic)
        primal = norm / 2 + loss
        primal_error = norm_error + loss_error + 4 * unit * (abs(norm) + abs(loss))
    else:
        scale = _hard_margin_scale(problem, linear, product + rho, arithmetic)
        slack = linear - scale * (product + rho)
        slack_error = (
            scale * product_error + linear_error + 6 * unit * (abs(linear) + scale * (abs(product) + abs(rho)))
        )
        loss, loss_error = _losses(problem, slack, slack_error, arithmetic)
        sums = scale * (offset * arithmetic.array(problem.total)).sum()
        primal = scale * scale * norm / 2 + loss.sum() + sums
        sizes = (
            scale * scale * abs(norm) + abs(loss).sum() + abs(offset * arithmetic.array(problem.total)).sum() * scale
        )
        primal_error = scale * scale * norm_error + loss_error.sum() + 2 * (n + 4) * unit * sizes
    found = []
    for feasible in _repairs(problem, dual, arithmetic):
        moved, moved_error = matrix_product(problem.matrix, feasible - dual, arithmetic)
        moved_error = product_error + moved_error + unit * abs(product)
        norm, norm_error = _inner(feasible, product + moved, moved_error, arithmetic)
        value, error = _dual_value(problem, linear, feasible, norm, norm_error, arithmetic)
        found.append((value, error + (linear_error * abs(feasible)).sum()))
    return Evaluation(primal, primal_error, *max(found, key=lambda each: each[0] - each[1]))


def _evaluate_in_weights(point: CertifiedPoint, arithmetic: Any) -> Evaluation:
    """Evaluate at explicit weights, with the penalty ½‖w‖² or Σ |w_j|."""
    problem, unit, n = point.problem, arithmetic.unit, point.problem.size
    features = problem.matrix.features()
    rows = dense_rows(features.points, arithmetic)
    rows = np.column_stack([rows, arithmetic.array(np.full(n, features.constant))])
    weights, offset = arithmetic.array(point.weights), arithmetic.array(point.certificate.offset)
    linear, total = arithmetic.array(problem.linear), arithmetic.array(problem.total)
    width = rows.shape[1]
    decision = arithmetic.dot(rows, weights)
    error = 2 * (width + 1) * unit * arithmetic.dot(abs(rows), abs(weights))
    rho = _expand(problem, offset, arithmetic)
    scale = _hard_margin_scale(problem, linear, decision + rho, arithmetic)
    slack = linear - scale * (decision + rho)
    slack_error = scale * error + 6 * unit * (abs(linear) + scale * (abs(decision) + abs(rho)))
    loss, loss_error = _losses(problem, slack, slack_error, arithmetic)
    norm = abs(weights).sum() if point.l1_penalty else scale * scale * (weights * weights).sum() / 2
    sums = scale * (offset * total).sum()
    primal = norm + loss.sum() + sums
    sizes = norm + abs(loss).sum() + scale * abs(offset * total).sum()
    primal_error = loss_error.sum() + 2 * (n + width + 4) * unit * sizes
    found, candidates = [], _repairs(problem, arithmetic.array(point.dual), arithmetic)
    if point.l1_penalty:
        candidates = [_scaled_within_l1_bounds(problem, rows, linear, dual, arithmetic) for dual in candidates]
    for dual in candidates:
        squared, squared_error = 0 * norm, 0 * norm
        if not point.l1_penalty:
            products = arithmetic.dot(rows.T, dual)
            products_error = 2 * (n + 1) * unit * arithmetic.dot(abs(rows).T, abs(dual))
            squared = (products * products).sum()
            squared_error = 2 * (abs(products) * products_error).sum() + (products_error**2).sum()
            squared_error = squared_error + width * unit * squared
        found.append(_dual_value(problem, linear, dual, squared, squared_error, arithmetic))
    return Evaluation(primal, primal_error, *max(found, key=lambda each: each[0] - each[1]))


def _kernel_matrix(matrix: Any) -> Any:
    """Return the kernel matrix of the samples behind a matrix with a variable for each sample."""
    while not hasattr(matrix, "kernel"):
        matrix = getattr(matrix, "origin", None) or matrix.base
    return matrix


def _expand(problem: DualProblem, offset: Any, arithmetic: Any) -> Any:
    """Return the offset of each variable's group, 0 for a variable in no group."""
    if not problem.groups:
        return arithmetic.array(np.zeros(problem.size))
    return np.where(problem.group >= 0, offset[problem.group], 0 * offset[0])


def _inner(vector: Any, product: Any, error: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return the inner product with a vector that has errors, and a bound on its error."""
    terms = vector * product
    return terms.sum(), (abs(vector) * error).sum() + 2 * len(vector) * arithmetic.unit * abs(terms).sum()


def _losses(problem: DualProblem, slack: Any, slack_error: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return the loss of each sample at its slack z (see the module's table), and a bound on its error."""
    unit, zero = arithmetic.unit, 0 * slack
    kink = arithmetic.array(problem.kink)
    slack_error = slack_error + unit * (abs(slack) + kink)
    close, slack = abs(slack) <= kink + slack_error, np.where(slack > 0, 1, -1) * np.maximum(abs(slack) - kink, zero)
    ridge = arithmetic.array(problem.ridge)
    squared = problem.ridge > 0
    # Squared losses: z²/(2 ridge) where the variable has no bound, linear beyond a finite bound.
    safe_ridge = np.where(squared, ridge, 1 + zero)
    lower, upper = arithmetic.array(problem.lower), arithmetic.array(problem.upper)
    beta = np.minimum(np.maximum(slack / safe_ridge, lower), upper)
    quadratic = beta * (slack - safe_ridge * beta / 2)
    quadratic_error = (abs(beta) + slack_error / safe_ridge) * slack_error
    quadratic_error = quadratic_error + 8 * unit * abs(beta) * (abs(slack) + safe_ridge * abs(beta))
    # Other losses: one slope above 0 and one below. An infinite slope belongs to a hard margin, satisfied by now.
    slope_up = np.where(np.isinf(problem.upper), zero, arithmetic.array(np.nan_to_num(problem.upper, posinf=0.0)))
    slope_down = np.where(np.isinf(problem.lower), zero, arithmetic.array(np.nan_to_num(problem.lower, neginf=0.0)))
    hinge = np.where(slack > 0, slope_up * slack, slope_down * slack)
    broken = (slack > 0) & np.isinf(problem.upper) | (slack < 0) & np.isinf(problem.lower)
    hinge = np.where(broken, arithmetic.array(np.inf), hinge)
    near = close & (abs(slack) <= slack_error)
    slope = np.where(
        near, np.maximum(abs(slope_up), abs(slope_down)), np.where(slack > 0, abs(slope_up), abs(slope_down))
    )
    hinge_error = slope * slack_error + unit * abs(np.where(broken, zero, hinge))
    return np.where(squared, quadratic, hinge), np.where(squared, quadratic_error, hinge_error)


def _all_in_one_loss(problem: DualProblem, slack: Any, slack_error: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return the loss of Crammer & Singer or Weston & Watkins over all samples, from z without multipliers."""
    samples = problem.groups
    own = problem.linear.reshape(samples, -1) > 0
    cost = -problem.lower.reshape(samples, -1)[~own].reshape(samples, -1)[:, 0]
    summed = problem.upper.reshape(samples, -1)[own] > 1.5 * cost  # (k − 1) C_i: every class has its own slack
    z, error = slack.reshape(samples, -1), slack_error.reshape(samples, -1)
    others = z.shape[1] - 1
    margin = np.maximum(z[own][:, None] - z[~own].reshape(samples, others), 0 * z[:, :1])
    margin_error = error[own][:, None] + error[~own].reshape(samples, others) + 2 * arithmetic.unit * abs(margin)
    exact_cost = arithmetic.array(cost)
    loss = exact_cost * np.where(summed, margin.sum(axis=1), margin.max(axis=1))
    loss_error = exact_cost * margin_error.sum(axis=1) + 2 * (others + 2) * arithmetic.unit * loss
    return loss.sum(), loss_error.sum() + 2 * samples * arithmetic.unit * loss.sum()


def _hard_margin_scale(problem: DualProblem, linear: Any, decision: Any, arithmetic: Any) -> Any:
    """Return the least multiple of the point, at least 1, without an infinite loss; 1 if there is none."""
    one = arithmetic.array(1.0)
    rigid = problem.ridge == 0
    scale = one
    for hard, sign in ((rigid & np.isinf(problem.upper), 1), (rigid & np.isinf(problem.lower), -1)):
        needed, reached = sign * linear[hard] - arithmetic.array(problem.kink)[hard], sign * decision[hard]
        short = reached < needed
        if not ((needed[short] > 0) & (reached[short] > 0)).all():
            return one
        if short.any():
            scale = max(scale, (needed[short] / reached[short]).max() * (1 + 8 * arithmetic.unit))
    return scale


def _repairs(problem: DualProblem, dual: Any, arithmetic: Any) -> list[Any]:
    """Return vectors within the box whose groups have the sums they must have, near the given one.

    What is missing is added to the variables with the most room on both sides, or in the direction it takes; or, for
    sums of 0, the variables of the sign with the larger sum are scaled. Each is a proof; the best one counts.
    """
    lower, upper = arithmetic.array(problem.lower), arithmetic.array(problem.upper)
    inside = np.minimum(np.maximum(dual, lower), upper)
    found = [_moved(problem, inside, both, arithmetic) for both in (True, False)]
    if not problem.total.any():
        scaled = inside.copy()
        for g in range(problem.groups):
            members = problem.group == g
            above, below = members & (inside > 0), members & (inside < 0)
            up, down = inside[above].sum(), -inside[below].sum()
            larger = above if up > down else below
            if up != down:
                scaled[larger] = inside[larger] * (min(up, down) / max(up, down))
        found.append(_moved(problem, scaled, True, arithmetic))
    return found


def _moved(problem: DualProblem, dual: Any, both: bool, arithmetic: Any) -> Any:
    """Return the vector with what is missing in the sums added to the variables with the most room."""
    lower, upper = arithmetic.array(problem.lower), arithmetic.array(problem.upper)
    dual = dual.copy()
    for g in range(problem.groups):
        members = np.flatnonzero(problem.group == g)
        missing = arithmetic.array(problem.total[g]) - dual[members].sum()
        up, down = upper[members] - dual[members], dual[members] - lower[members]
        room = np.minimum(up, down) if both else up if missing > 0 else down
        order = members[np.argsort([-float(r) for r in room], kind="stable")]
        for _ in range(2):  # again with what the rounding of the first pass left over
            for i in order:
                if missing == 0:
                    break
                step = min(max(missing, lower[i] - dual[i]), upper[i] - dual[i])
                dual[i], missing = dual[i] + step, missing - step
            missing = arithmetic.array(problem.total[g]) - dual[members].sum()
        left = abs(float(missing))
        if left > UNREACHABLE_SUM * float(abs(dual[members]).sum() + abs(problem.total[g])):
            raise ValueError(f"the box of group {g} does not allow its sum: {left:.3g} are left over")
    return dual


def _scaled_within_l1_bounds(problem: DualProblem, rows: Any, linear: Any, dual: Any, arithmetic: Any) -> Any:
    """Return the multiple of a dual vector of the highest dual value with |Fᵀ b| ≤ 1."""
    zero = arithmetic.array(0.0)
    products = abs(arithmetic.dot(rows.T, dual))
    products_error = 2 * (len(dual) + 1) * arithmetic.unit * arithmetic.dot(abs(rows).T, abs(dual))
    largest = (products + products_error).max() if len(products) else zero
    curvature = (arithmetic.array(problem.ridge) * dual * dual).sum()
    best = (linear * dual).sum() / curvature if curvature > 0 else zero
    return dual * max(zero, best if largest * best <= 1 else 1 / largest)


def _dual_value(
    problem: DualProblem, linear: Any, dual: Any, norm: Any, norm_error: Any, arithmetic: Any
) -> tuple[Any, Any]:
    """Return linear·b − Σ kink |b| − ½ norm − ½ Σ ridge b², and a bound on its error."""
    gain, ridge = linear * dual, arithmetic.array(problem.ridge) * dual * dual
    kink = (arithmetic.array(problem.kink) * abs(dual)).sum()
    value = gain.sum() - kink - norm / 2 - ridge.sum() / 2
    sizes = abs(gain).sum() + kink + abs(norm) + ridge.sum()
    return value, norm_error + 2 * (problem.size + 4) * arithmetic.unit * sizes
