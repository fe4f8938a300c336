"""The certificate of optimality: computed in float64 from the problem and a dual vector alone.

With the gradient g = linear − M b − ridge∘b, an offset ρ per group (0 for a variable in no group) and the slack
z = linear − M b − ρ, three scalar functions carry every formulation:

    response(z)  = argmax over [lower, upper] of βz − ½ ridge β²
    conjugate(z) = that maximum                                     the primal loss of the sample
    residual     = conjugate(z) + ½ ridge b² − z b ≥ 0              its share of the duality gap

so that primal = ½ bᵀMb + Σ conjugate(z) + Σ_g ρ_g total_g, and primal − dual = Σ residual. By weak duality (Bottou &
Lin 1.9) the gap bounds the distance of the dual value from the optimum. Nothing here depends on what a solver reports.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import inner
from maxmargin.precision import DOUBLE_EPSILON, GAP_CANCELLATION, NEGATIVE_EIGENVALUE, SMALLEST_DOUBLE
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, offset_bounds, violation_of
from maxmargin.problems.offsets import best_offsets

#: Up to so many groups, the offsets are parameters of the decision function: midpoints of their intervals.
MAX_OFFSET_GROUPS = 2


@dataclass(frozen=True)
class Certificate:
    """Bounds and optimality measures of a dual vector.

    Attributes
    ----------
    primal, dual : float
        Primal and dual value. The optimum lies between them (for a positive semi-definite matrix).
    gap : float
        primal − dual.
    violation : float
        The largest violation of the optimality criterion (1.11), the number that `tol` bounds.
    infeasibility : float
        The largest violation of the box and the sums; rounding only.
    squared_norm : float
        bᵀMb = ‖w‖², the squared norm of the weight vector in feature space.
    offset : float array
        ρ of each group.
    offset_interval : float array of shape (groups, 2)
        The interval of optimal offsets; a single point if a variable is free.
    slack : float array
        z of each variable, signed.
    residual : float array
        Each variable's share of the gap: where it is large, the sample is not optimal yet.
    """

    primal: float
    dual: float
    gap: float
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
        return self.squared_norm < -NEGATIVE_EIGENVALUE * max(abs(self.primal), abs(self.dual))

    def __str__(self) -> str:
        numbers = f"primal {self.primal:.10g}, dual {self.dual:.10g}, gap {self.gap:.3g}"
        if self.indefinite:
            return (
                f"{numbers}, violation {self.violation:.3g}; the kernel is indefinite: stationary, not proved optimal"
            )
        return f"{numbers} (relative gap {self.relative_gap:.2g}), violation {self.violation:.3g}"


@np.errstate(over="ignore", invalid="ignore")  # values that overflow are infinite in the certificate
def certify(
    problem: DualProblem, dual: Floats, weights: Floats | None = None, dual_weights: Floats | None = None
) -> Certificate:
    """Compute the certificate of a dual vector, with its gradient recomputed from the matrix.

    With the linear kernel the model may have other `weights` than Fᵀ b (`matrices.features`): those of a primal solver.
    Then the primal value is theirs, with the offset of least loss, and the gap has one more term, ½‖w − Fᵀ b‖².
    `dual_weights` is Fᵀ b if it is known.
    """
    dual = np.ascontiguousarray(dual, dtype=np.float64)
    rows = None if weights is None else problem.matrix.features()
    if dual_weights is None and rows is not None:
        dual_weights = rows.weights(dual)
    product = problem.matrix.matvec(dual) if rows is None or dual_weights is None else rows.decisions(dual_weights)
    gradient = problem.linear - product - problem.ridge * dual
    extremes = gradient_extremes(problem, dual, gradient)
    low, high = extremes.offset_bounds
    weights_norm = squared_norm = inner(dual, product)
    if weights is None:
        offset, distance = group_offsets(problem, dual, gradient), 0.0
    else:
        if rows is None or dual_weights is None:
            raise ValueError("only a matrix that is a product of features has weights")
        difference = weights - dual_weights
        product = product if weights is dual_weights else rows.decisions(weights)
        offset = best_offsets(
            problem, problem.linear - product, interval_midpoint(low, high), rows.threads_for(problem.size)
        )
        weights_norm, distance = inner(weights, weights), 0.5 * inner(difference, difference)
    decision = product + problem.expand_groups(offset) if problem.groups else product

    scale = _feasible_scale(problem, decision) if weights is None else 1.0
    slack = problem.linear - (decision if scale == 1.0 else scale * decision)
    loss = conjugate(problem, slack)
    residual = residuals(problem, dual, slack, loss)
    dual_value = inner(problem.linear, dual) - 0.5 * squared_norm - 0.5 * inner(problem.ridge * dual, dual)
    primal = float(0.5 * scale**2 * weights_norm + loss.sum() + scale * offset @ problem.total)
    sums = problem.group_sums(dual)
    # The sum of residuals equals primal − dual, without the cancellation of subtracting them. If the two differ by more
    # than that, the residuals have overflowed, or the sums of the groups are wrong.
    gap = float(residual.sum() + 0.5 * (scale - 1.0) ** 2 * squared_norm) + distance
    subtracted = primal - dual_value
    if not subtracted <= gap + GAP_CANCELLATION * (abs(primal) + abs(dual_value)):
        gap = subtracted if np.isfinite(subtracted) else np.inf
    return Certificate(
        primal=primal,
        dual=dual_value,
        gap=gap,
        violation=violation_of(extremes, gradient),
        infeasibility=max(
            0.0,
            _largest(problem.lower - dual),
            _largest(dual - problem.upper),
            _largest(np.abs(sums - problem.total)),
        ),
        squared_norm=weights_norm,
        offset=offset,
        offset_interval=np.array([np.minimum(low, high), np.maximum(low, high)]).T,
        slack=slack if scale == 1.0 else problem.linear - decision,
        residual=residual,
    )


@np.errstate(over="ignore")  # a quotient that overflows is beyond every bound
def response(problem: DualProblem, slack: Floats) -> Floats:
    """Return the β in [lower, upper] that maximises βz − ½ ridge β²: the optimal dual variable for a given slack."""
    if problem.ridged:
        return np.clip(slack / problem.ridge, problem.lower, problem.upper)
    bound = np.where(slack > 0, problem.upper, np.where(slack < 0, problem.lower, 0.0))
    if not problem.ridge.any():
        return np.minimum(np.maximum(bound, problem.lower), problem.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        unclipped = np.where(problem.ridge > 0, slack / problem.ridge, bound)
    return np.clip(unclipped, problem.lower, problem.upper)


@np.errstate(over="ignore", invalid="ignore")  # infinite losses; 0 · ∞ where a branch is not taken
def conjugate(problem: DualProblem, slack: Floats) -> Floats:
    """Return max over [lower, upper] of βz − ½ ridge β²: the loss of each sample in the primal."""
    beta = response(problem, slack)
    if problem.bounded and not problem.ridge.any():
        return beta * slack
    if problem.ridged:
        return beta * (slack - 0.5 * problem.ridge * beta)
    gain = np.where(slack == 0, 0.0, beta * slack)
    return gain - np.where(problem.ridge > 0, 0.5 * (problem.ridge * beta) * beta, 0.0)


@np.errstate(over="ignore", invalid="ignore")  # infinite, or not a number, where the values overflow
def residuals(problem: DualProblem, dual: Floats, slack: Floats, loss: Floats | None = None) -> Floats:
    """Return each variable's share of the duality gap, at least 0; `loss` is conjugate(slack) if it is known."""
    share = (conjugate(problem, slack) if loss is None else loss) - (slack - 0.5 * problem.ridge * dual) * dual
    return np.maximum(share, 0.0, out=share)


def _largest(values: Floats) -> float:
    return float(values.max()) if len(values) else -np.inf


def group_offsets(problem: DualProblem, dual: Floats, gradient: Floats) -> Floats:
    """Return the offset of each group: the midpoint of its interval, or the offset of least loss.

    One or two offsets are parameters of the decision function, and the midpoint treats both sides alike. Those of many
    small groups are only multipliers; any are valid, and those of least loss give the primal value of the textbook.
    """
    middle = interval_midpoint(*offset_bounds(problem, dual, gradient))
    if problem.groups <= MAX_OFFSET_GROUPS or not problem.bounded or problem.ridge.any():
        return middle
    best = _best_offsets_without_ridge(problem, gradient)
    return np.where(np.isfinite(best), best, middle)  # gradients of shrunk variables are unknown


def _best_offsets_without_ridge(problem: DualProblem, gradient: Floats) -> Floats:
    """Return, per group, the ρ that minimises Σ conjugate(g − ρ) + ρ total, for finite bounds and no ridge.

    Its slope is total − Σ response(g − ρ), where the response is upper above ρ and lower below: from the largest
    gradient down, variables take their upper bounds until the sum is reached.
    """
    grouped = np.flatnonzero(problem.group >= 0)
    order = grouped[np.lexsort((-gradient[grouped], problem.group[grouped]))]
    group = problem.group[order]
    first = np.searchsorted(group, np.arange(problem.groups))
    past = np.searchsorted(group, np.arange(problem.groups), side="right")
    reached = np.concatenate([[0.0], np.cumsum(problem.upper[order] - problem.lower[order])])
    wanted = reached[first] + problem.total - problem.group_sums(problem.lower)
    at = np.clip(np.searchsorted(reached, wanted) - 1, first, np.maximum(past - 1, first))
    offsets = np.zeros(problem.groups)
    members = past > first
    offsets[members] = gradient[order[at[members]]]
    return offsets


def _feasible_scale(problem: DualProblem, decision: Floats) -> float:
    """Return the factor by which w must be scaled so that no sample has an infinite loss.

    With an infinite bound (a hard margin) the loss of a sample short of its margin by a rounding error is
    infinite. Every multiple of w is a primal point, too; the smallest that satisfies all margins gives the best bound.
    """
    if problem.bounded:
        return 1.0
    hard_up = np.isinf(problem.upper) & (problem.ridge == 0)
    hard_down = np.isinf(problem.lower) & (problem.ridge == 0)
    needed = np.concatenate([problem.linear[hard_up], -problem.linear[hard_down]])
    reached = np.concatenate([decision[hard_up], -decision[hard_down]])
    short = reached < needed
    if not short.any():
        return 1.0
    needed, reached = needed[short], reached[short]
    if not ((needed > 0) & (reached > 0)).all():
        return 1.0
    # Slightly more than needed, so that the rounding of the division does not violate a margin.
    return float((needed / reached).max() * (1.0 + 4 * DOUBLE_EPSILON))
