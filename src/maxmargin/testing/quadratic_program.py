"""An independent reference: the dual solved by a generic interior-point solver."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.problems import DualProblem


def solve_quadratic_program(problem: DualProblem) -> tuple[float, np.ndarray]:
    """Return the optimal value of the dual problem and a point that attains it.

    A kink is a second variable t ≥ |b| of its own cost.
    """
    clarabel = _clarabel()
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
    identity, kinked = np.eye(n), problem.kink > 0
    magnitude, count = identity[kinked], int(kinked.sum())
    A = np.vstack([sums, identity[has_upper], -identity[has_lower], magnitude, -magnitude])
    bounds = np.zeros((len(A) - 2 * count, count))
    A = np.hstack([A, np.vstack([bounds, -np.eye(count), -np.eye(count)])])
    right = np.concatenate([problem.total, problem.upper[has_upper], -problem.lower[has_lower], np.zeros(2 * count)])
    cones = [clarabel.ZeroConeT(problem.groups)] if problem.groups else []
    cones.append(clarabel.NonnegativeConeT(int(has_upper.sum() + has_lower.sum()) + 2 * count))
    quadratic = np.zeros((n + count, n + count))
    quadratic[:n, :n] = M
    linear = np.concatenate([-problem.linear, problem.kink[kinked]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 500
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic)), linear, sparse.csc_matrix(A), right, cones, settings
    ).solve()
    point = np.array(solution.x)[:n]
    return float(problem.linear @ point - problem.kink @ np.abs(point) - 0.5 * point @ M @ point), point


def _clarabel() -> Any:
    try:
        return import_module("clarabel")
    except ImportError as error:
        raise ImportError("the reference solution needs the package 'clarabel': pip install 'maxmargin[qp]'") from error
