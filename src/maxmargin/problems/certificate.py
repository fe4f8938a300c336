"""The certificate of optimality: computed from the problem and a dual vector alone, with proven bounds.

With the gradient g = linear − M b − ridge∘b, an offset ρ per group (0 for a variable in no group) and the slack
z = linear − M b − ρ, the loss of each sample (`losses`) gives both objective values of every formulation:

    primal = ½ bᵀMb + Σ conjugate(z) + Σ_g ρ_g total_g,   primal − dual = Σ residual

By weak duality (Bottou & Lin 1.9) the optimum lies between any dual and any primal value. A proven bound on all
rounding errors, those of kernel values included, is added to the primal value and subtracted from the dual value
(`objective_bounds`). Where the bound of float64 exceeds a fraction of the gap, everything is evaluated again in
double-double arithmetic. Nothing here depends on what a solver reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isnan

import numpy as np

from maxmargin._typing import Floats
from maxmargin.precision import DOUBLE_EPSILON, NEGATIVE_EIGENVALUE, SMALLEST_DOUBLE, UNIT_ROUNDOFF
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, violation_of
from maxmargin.problems.losses import conjugate, residuals
from maxmargin.problems.objective_bounds import PrimalPoint, bound_objectives
from maxmargin.problems.offsets import best_offsets, group_offsets
from maxmargin.problems.products import Products, check_time, evaluate_products, evaluate_products_extended

#: The certificate is computed in double-double arithmetic if rounding in float64 is more than this share of the gap …
MAX_ROUNDING_SHARE = 0.2

#: … and more than this fraction of the objective values, below which it does not matter …
NEGLIGIBLE_ROUNDING = 1e-10

#: … and the evaluation takes at most so many multiplications: about a second.
MAX_EXTENDED_WORK = 10**9


@dataclass(frozen=True)
class Certificate:
    """Bounds and optimality measures of a dual vector. All of them hold in exact arithmetic.

    Attributes
    ----------
    primal, dual : float
        The optimum lies between them (for a positive semi-definite matrix): primal and dual value, with the bound on
        rounding errors added and subtracted.
    gap : float
        primal − dual, without the cancellation of subtracting them.
    rounding : float
        The share of the gap that is due to rounding errors: a proven bound on them.
    violation : float
        The largest violation of the optimality criterion (1.11), the number that `tol` bounds; rounding included. NaN
        after a fit on blocks of rows, where it would take another pass over the data.
    infeasibility : float
        The largest violation of the box and the sums; rounding only.
    squared_norm : float
        bᵀMb = ‖w‖², the squared norm of the weight vector in feature space.
    offset : float array
        ρ of each group.
    offset_interval : float array of shape (groups, 2)
        The interval of optimal offsets; a single point if a variable is free.
    slack : float array
        z of each variable, signed; empty after a fit on blocks of rows.
    residual : float array
        Each variable's share of the gap: where it is large, the sample is not optimal yet; empty as well.
    """

    primal: float
    dual: float
    gap: float
    rounding: float
    violation: float
    infeasibility: float
    squared_norm: float
    offset: Floats = field(repr=False)
    offset_interval: Floats = field(repr=False)
    slack: Floats = field(repr=False)
    residual: Floats = field(repr=False)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the larger of primal and dual value."""
        if not np.isfinite(self.gap):
            return float("inf")
        return self.gap / max(abs(self.primal), abs(self.dual), SMALLEST_DOUBLE)

    @property
    def indefinite(self) -> bool:
        """Whether the matrix has a negative eigenvalue: then the point is stationary, not proved optimal."""
        size = max(abs(self.primal), abs(self.dual))
        return self.squared_norm < -max(NEGATIVE_EIGENVALUE * size, 2.0 * self.rounding)

    def __str__(self) -> str:
        numbers = f"primal {self.primal:.10g}, dual {self.dual:.10g}, gap {self.gap:.3g}"
        if self.indefinite:
            return (
                f"{numbers}, violation {self.violation:.3g}; the kernel is indefinite: stationary, not proved optimal"
            )
        rounding = f", of which rounding {self.rounding:.2g}" if self.rounding > MAX_ROUNDING_SHARE * self.gap else ""
        violation = "" if isnan(self.violation) else f", violation {self.violation:.3g}"
        return f"{numbers} (relative gap {self.relative_gap:.2g}{rounding}){violation}"


def certify(
    problem: DualProblem,
    dual: Floats,
    weights: Floats | None = None,
    dual_weights: Floats | None = None,
    extended: bool | None = None,
    offset: Floats | None = None,
    negligible: float = NEGLIGIBLE_ROUNDING,
) -> Certificate:
    """Compute the certificate of a dual vector, with its gradient recomputed from the matrix.

    With the linear kernel the model may have other `weights` than Fᵀ b (`matrices.features`): those of a primal solver.
    Then the primal value is theirs, with the offset of least loss, and the gap has one more term, ½‖w − Fᵀ b‖².
    `dual_weights` is Fᵀ b if it is known. `offset` are the offsets of the decision function, if they are given.
    `extended` asks for double-double arithmetic; by default it is used where the rounding errors of float64 matter: not
    if they are below the fraction `negligible` of the objective values.
    """
    dual = np.ascontiguousarray(dual, dtype=np.float64)
    if not extended:
        certificate = certificate_of(problem, dual, evaluate_products(problem, dual, weights, dual_weights), offset)
        if extended is False or not inconclusive(certificate, negligible) or not extended_is_affordable(problem, dual):
            return certificate
    precise = certificate_of(problem, dual, evaluate_products_extended(problem, dual, weights), offset)
    return precise if extended or precise.rounding < certificate.rounding else certificate


def extended_is_affordable(problem: DualProblem, dual: Floats) -> bool:
    """Whether a product with the matrix in double-double arithmetic takes about a second at most."""
    return problem.matrix.extended_work(int(np.count_nonzero(dual))) <= MAX_EXTENDED_WORK


def inconclusive(certificate: Certificate, negligible: float = NEGLIGIBLE_ROUNDING) -> bool:
    """Whether rounding errors in float64 are a large part of the gap, and more than a fraction of the objectives."""
    size = max(abs(certificate.primal), abs(certificate.dual))
    return not certificate.rounding <= max(MAX_ROUNDING_SHARE * certificate.gap, negligible * size)


def certificate_of(problem: DualProblem, dual: Floats, products: Products, offset: Floats | None = None) -> Certificate:
    """Return the certificate, given the products with the matrix and, perhaps, the offsets."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows makes the bounds infinite
        gradient, gradient_error = products.gradient(problem, dual)
        check_time(products)
        low, high = gradient_extremes(problem, dual, gradient).offset_bounds
        if offset is None and products.weights is None:
            offset = group_offsets(problem, dual, gradient)
        elif offset is None:
            middle, threads = interval_midpoint(low, high), products.threads(problem.size)
            offset = best_offsets(problem, problem.linear - products.decision.high, middle, threads)
        point = _primal_point(problem, dual, products, offset)
        check_time(products)
        bounds = bound_objectives(problem, dual, products, point, gradient, gradient_error)
        sums = problem.group_sums(dual)
        violation = rigorous_violation(problem, dual, gradient, gradient_error)
        outside = [
            _largest(problem.lower - dual),
            _largest(dual - problem.upper),
            _largest(np.abs(sums - problem.total)),
        ]
    return Certificate(
        primal=bounds.primal,
        dual=bounds.dual,
        gap=bounds.gap,
        rounding=bounds.rounding,
        violation=violation,
        infeasibility=max(0.0, *outside),
        squared_norm=products.weights_norm,
        offset=offset,
        offset_interval=np.array([np.minimum(low, high), np.maximum(low, high)]).T,
        slack=point.slack if point.scale == 1.0 else _primal_point(problem, dual, products, offset, 1.0).slack,
        residual=point.residual,
    )


def rigorous_violation(problem: DualProblem, dual: Floats, gradient: Floats, error: Floats) -> float:
    """Return the largest violation that a gradient with these errors may have."""
    if problem.kinked:
        error = error + 2 * UNIT_ROUNDOFF * (np.abs(gradient) + problem.kink)  # the sides of a kink are rounded
    above = gradient + error
    return violation_of(gradient_extremes(problem, dual, above, gradient - error), above)


def _primal_point(
    problem: DualProblem, dual: Floats, products: Products, offset: Floats, scale: float | None = None
) -> PrimalPoint:
    """Return the decision function, multiplied by a factor if a hard margin needs it."""
    expanded = problem.expand_groups(offset) if problem.groups else np.zeros(problem.size)
    if scale is None:
        scale = 1.0
        if products.weights is None and not problem.bounded:
            decision, error = products.decision.high + expanded, products.decision_error
            error = error + 4 * DOUBLE_EPSILON * (np.abs(products.decision.high) + np.abs(expanded))
            scale = _feasible_scale(problem, decision, error)
    slack, slack_low, error = products.slack(problem, expanded, scale)
    loss = conjugate(problem, slack)
    return PrimalPoint(offset, scale, slack, slack_low, error, loss, residuals(problem, dual, slack, loss))


def _largest(values: Floats) -> float:
    return float(values.max()) if len(values) else -np.inf


def _feasible_scale(problem: DualProblem, decision: Floats, error: Floats) -> float:
    """Return the factor by which w must be scaled so that no sample has an infinite loss.

    With an infinite bound (a hard margin) the loss of a sample short of its margin by a rounding error is
    infinite. Every multiple of w is a primal point, too; the smallest that satisfies all margins gives the best bound.
    """
    hard_up = np.isinf(problem.upper) & (problem.ridge == 0)
    hard_down = np.isinf(problem.lower) & (problem.ridge == 0)
    needed = np.concatenate([(problem.linear - problem.kink)[hard_up], -(problem.linear + problem.kink)[hard_down]])
    reached = np.concatenate([(decision - error)[hard_up], -(decision + error)[hard_down]])
    short = reached < needed
    if not short.any():
        return 1.0
    needed, reached = needed[short], reached[short]
    if not ((needed > 0) & (reached > 0)).all():
        return 1.0
    # Slightly more than needed, so that the rounding of the division does not violate a margin.
    return float((needed / reached).max() * (1.0 + 4 * DOUBLE_EPSILON))
