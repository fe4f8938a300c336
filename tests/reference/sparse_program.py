"""Independent solution of the L1-penalised primal problem by a generic interior-point solver."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse


def solve_sparse_program(X, signs, costs, scaling=None) -> float:
    """Return the minimum of Σ |w_j| + Σ C_i max(0, 1 − y_i (w·x_i + b))², where `scaling` makes b a weight as well.

    With a scaling of 0 there is no b. The variables are w, b, √C ξ and bounds on |w|.
    """
    X = np.asarray(X, dtype=float)
    if scaling:
        X = np.c_[X, np.full(len(X), scaling)]
    n, d = X.shape
    free = np.zeros((n, 1)) if scaling is not None else np.ones((n, 1))
    identity, none = np.eye(d), np.zeros
    A = np.block(
        [
            [-signs[:, None] * X, -signs[:, None] * free, -np.diag(1 / np.sqrt(costs)), none((n, d))],
            [none((n, d)), none((n, 1)), -np.eye(n), none((n, d))],
            [identity, none((d, 1)), none((d, n)), -identity],
            [-identity, none((d, 1)), none((d, n)), -identity],
        ]
    )
    right = np.concatenate([-np.ones(n), none(n + 2 * d)])
    quadratic = sparse.diags(np.concatenate([none(d + 1), np.full(n, 2.0), none(d)])).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    settings.max_iter = 500
    solution = clarabel.DefaultSolver(
        quadratic,
        np.concatenate([none(d + 1 + n), np.ones(d)]),
        sparse.csc_matrix(A),
        right,
        [clarabel.NonnegativeConeT(len(right))],
        settings,
    ).solve()
    return float(solution.obj_val)
