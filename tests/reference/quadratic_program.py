"""An independent reference: the dual solved by a generic interior-point solver."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

from maxmargin.problems import DualProblem


def solve_quadratic_program(problem: DualProblem) -> tuple[float, np.ndarray]:
    """Return the optimal value of the dual problem and a point that attains it."""
    n = problem.size
    everything = np.arange(n)
    M = problem.matrix.block(everything, everything)
    if problem.groups == 1 and problem.ungrouped == 0 and problem.total[0] == 0:
        # With Σ b = 0, centred data give the same value and a far better conditioned matrix.
        M = M - M.mean(axis=0) - M.mean(axis=1)[:, None] + M.mean()
    M = M + np.diag(problem.ridge)
    sums = np.zeros((problem.groups, n))
    for g in range(problem.groups):
        sums[g, problem.group == g] = 1.0
    has_upper, has_lower = np.isfinite(problem.upper), np.isfinite(problem.lower)
    identity = np.eye(n)
    A = np.vstack([sums, identity[has_upper], -identity[has_lower]])
    right = np.concatenate([problem.total, problem.upper[has_upper], -problem.lower[has_lower]])
    cones = [clarabel.ZeroConeT(problem.groups)] if problem.groups else []
    cones.append(clarabel.NonnegativeConeT(int(has_upper.sum() + has_lower.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 500
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(M)), -problem.linear, sparse.csc_matrix(A), right, cones, settings
    ).solve()
    point = np.array(solution.x)
    return float(problem.linear @ point - 0.5 * point @ M @ point), point
