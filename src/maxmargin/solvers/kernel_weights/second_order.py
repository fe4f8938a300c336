"""The step on weights of sum 1 (ℓ1) by a quadratic model of the optimal value J(d) of the inner problems.

With b optimal for K_d = Σ d_m K_m, the derivative of J by d_m is −½ q_m, q_m = bᵀ K_m b. While the support vectors at
bounds stay there, the free ones, F, solve linear equations, so the second derivatives are

    H_lm = g_lᵀ P g_m,    g_m = (K_m b)_F,    P the inverse of (K_d)_FF on vectors that sum to 0 over each group

(Chapelle & Rakotomamonjy 2008). The step minimises the model over the simplex, a dual problem of one variable for each
kernel, for which the pairwise solver is there.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin._typing import Floats, Indices
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import StoppingRule

#: The equations of at most so many free variables are solved: 0.2 s. Of more, evenly spaced ones stand for all.
MAX_FREE = 3000

#: Added to the diagonal of the equations, relative to its mean, and to that of H, relative to the derivative: free
#: support vectors may depend linearly on each other, and kernels may be equal.
RELATIVE_RIDGE = 1e-10

#: Tolerance of the step, relative to the largest derivative.
STEP_TOLERANCE = 1e-11


def free_variables(problem: DualProblem, dual: Floats) -> Indices:
    """Return the variables strictly between their bounds that are not 0."""
    return np.flatnonzero((dual > problem.lower) & (dual < problem.upper) & (dual != 0))


def curvature_of(problem: DualProblem, free: Indices, products: Floats) -> Floats:
    """Return H of one inner problem; `products` has a column g_m for each kernel."""
    step = max(1, -(-len(free) // MAX_FREE))
    free, products = free[::step], products[::step]
    count, groups = len(free), problem.group[free]
    if not count:
        return np.zeros((products.shape[1], products.shape[1]))
    with blas_thread_limit(1):
        matrix = problem.matrix.block(free, free)
        diagonal = matrix.diagonal() + problem.ridge[free]
        factor = _factor_of(matrix, diagonal)
        members = (groups[:, None] == np.unique(groups[groups >= 0])).astype(np.float64)
        solved = cho_solve(factor, np.hstack([products, members]), check_finite=False)
        of_products, of_members = solved[:, : products.shape[1]], solved[:, products.shape[1] :]
        if members.shape[1]:
            of_products = of_products - of_members @ np.linalg.solve(members.T @ of_members, members.T @ of_products)
        curvature = step * products.T @ of_products
    symmetric: Floats = 0.5 * (curvature + curvature.T)
    return symmetric


def _factor_of(matrix: Floats, diagonal: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor with as small a ridge as it takes."""
    ridge, places = RELATIVE_RIDGE, np.diag_indices(len(matrix))
    while True:
        matrix[places] = diagonal + ridge * (np.abs(diagonal).mean() or 1.0)
        try:
            factor: tuple[Floats, bool] = cho_factor(matrix, lower=True, check_finite=False)
        except LinAlgError:
            ridge *= 100.0
        else:
            return factor


def second_order_step(weights: Floats, squared: Floats, curvature: Floats) -> Floats:
    """Return the minimum of the model −½ q·(x − d) + ½ (x − d)ᵀ H (x − d) over x ≥ 0, Σ x = 1."""
    size = squared.max(initial=0.0)
    if size == 0:
        return weights
    model = np.ascontiguousarray(curvature / size)
    model[np.diag_indices(len(model))] += RELATIVE_RIDGE + 1e-6
    problem = DualProblem(
        matrix=PrecomputedMatrix(model),
        linear=0.5 * squared / size + model @ weights,
        lower=np.zeros(len(weights)),
        upper=np.ones(len(weights)),
        total=np.ones(1),
    )
    solution = PairwiseSolver(stopping=StoppingRule(violation=STEP_TOLERANCE)).solve(problem, weights)
    positive = np.maximum(solution.dual, 0.0)
    step: Floats = positive / positive.sum()
    return step
