"""The certificate of multiple kernel learning: of dual vectors and the weights of kernels together.

For weights d ≥ 0 with ‖d‖_p ≤ 1 and K_d = Σ_m d_m K_m, the joint problem of all subproblems s is

    minimise over d  maximise over b_s    Σ_s linear_s·b_s − … − ½ Σ_m d_m q_m,    q_m = Σ_s b_sᵀ K_m b_s

where … are the kinks and ridges. The primal value at (d, w) is that of the subproblems with K_d, for every feasible d
an upper bound on the optimum. The dual value at b is the minimum over d, Σ linear·b − … − ½ ‖q‖_p*, 1/p + 1/p* = 1:
a lower bound. So

    gap = Σ_s gap_s(K_d) + ½ (‖q‖_p* − d·q),

the gaps of the subproblems with fixed weights, and what the weights lack to be optimal. The q_m are computed from the
kernels here, with bounds on their rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.certificate import Certificate
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.objective_bounds import feasibility_moves
from maxmargin.problems.products import norm_of_expansion


@dataclass(frozen=True)
class SquaredNorms:
    """Bounds on q_m = Σ_s b_sᵀ K_m b_s of every kernel, at dual vectors that satisfy all constraints exactly."""

    low: Floats
    high: Floats


def squared_norms(
    problems: Sequence[DualProblem],
    duals: Sequence[Floats],
    rows: Sequence[Indices],
    sources: Sequence[SymmetricMatrix],
    part: Callable[[int, Indices], SymmetricMatrix],
    scales: Floats,
) -> SquaredNorms:
    """Return the squared norms of kernels with the matrices ``scales[m] * sources[m]``.

    The variables of each problem are some of their `rows`; ``part(m, rows)`` is a submatrix of ``sources[m]``.
    """
    low, high = np.zeros(len(sources)), np.zeros(len(sources))
    moves = [feasibility_moves(problem, dual) for problem, dual in zip(problems, duals, strict=True)]
    for m, source in enumerate(sources):
        for dual, of_problem, moved in zip(duals, rows, moves, strict=True):
            used = np.flatnonzero(dual)
            matrix, weights = part(m, of_problem[used]), dual[used]
            product, error = matrix.matvec(weights), matrix.product_error(weights).double
            norm, norm_error = norm_of_expansion(weights, product, error)
            shift = inner(moved, source.magnitudes()[of_problem]) if moved.any() else 0.0
            low[m] += max(0.0, np.sqrt(max(0.0, norm - norm_error)) - shift) ** 2
            high[m] += (np.sqrt(max(0.0, norm + norm_error)) + shift) ** 2
    rounding = (len(duals) + 8) * UNIT_ROUNDOFF
    return SquaredNorms(low * scales * (1 - rounding), high * scales * (1 + rounding))


def dual_norm(squared: Floats, p: float) -> float:
    """Return ‖q‖_p* for q ≥ 0, 1/p + 1/p* = 1: the largest d·q of weights with ‖d‖_p ≤ 1."""
    largest = float(squared.max(initial=0.0))
    if p == 1 or largest == 0:
        return largest
    conjugate = p / (p - 1)
    return largest * float(((squared / largest) ** conjugate).sum() ** (1 / conjugate))


def certify_combination(
    certificates: Sequence[Certificate], weights: Floats, p: float, norms: SquaredNorms
) -> Certificate:
    """Return the certificate of the joint problem from those of the subproblems at fixed weights, ‖weights‖_p = 1.

    The offsets, slacks and residuals are those of the subproblems, one after another.
    """
    size = float(weights @ norms.high)
    #: Of the sums below, of the weights, whose norm is 1 up to rounding, and of their products with other factors.
    rounding = (8 * len(weights) + 64) * UNIT_ROUNDOFF * (size + dual_norm(norms.high, p))
    lacking = max(0.0, 0.5 * (dual_norm(norms.high, p) - float(weights @ norms.low)))
    uncertain = 0.5 * float(weights @ (norms.high - norms.low)) + rounding
    return Certificate(
        primal=sum(one.primal for one in certificates) + rounding,
        dual=sum(one.dual for one in certificates) - lacking - rounding,
        gap=sum(one.gap for one in certificates) + lacking + 2 * rounding,
        rounding=sum(one.rounding for one in certificates) + uncertain + rounding,
        violation=max(one.violation for one in certificates),
        infeasibility=max(one.infeasibility for one in certificates),
        squared_norm=sum(one.squared_norm for one in certificates),
        offset=np.concatenate([one.offset for one in certificates]),
        offset_interval=np.concatenate([one.offset_interval for one in certificates]),
        slack=np.concatenate([one.slack for one in certificates]),
        residual=np.concatenate([one.residual for one in certificates]),
    )
