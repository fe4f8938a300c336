"""ν-regression: the width of the tube is optimised, so that at most a fraction ν of the samples is outside.

    primal   minimise ½‖w‖² + ν W ε + Σ C_i max(0, |t_i − w·Φ(x_i) − b| − ε),   ε ≥ 0,   W = Σ C_i
    dual     two variables for each sample, linear = t; above the tube bounds [0, C_i], sum ½ ν W;
             below it [−C_i, 0], sum −½ ν W

(Schölkopf et al. 2000; LIBSVM's scaling.) The two groups have two offsets: their mean is b, half their difference ε.

Without b the two sums may differ. In α = |b_i| ≥ 0 there is one group, Σ α_i = ν W, linear = t above and −t
below, the matrix gets the signs of the sides, and the offset of the group is ε.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.epsilon_regression import TubeGeometry, tube
from maxmargin.formulations.formulation import KernelExpansion, mean_offset, signed
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def pose(matrix: SymmetricMatrix, targets: Floats, costs: Floats, nu: float, fit_intercept: bool = True) -> DualProblem:
    """Return the dual problem of samples with `targets` and slack costs C_i."""
    n = matrix.size
    half = 0.5 * nu * float(costs.sum())
    if not fit_intercept:
        return DualProblem(
            matrix=SignedMatrix(doubled_matrix(matrix), np.repeat([1.0, -1.0], n)),
            linear=np.concatenate([targets, -targets]),
            lower=np.zeros(2 * n),
            upper=np.tile(costs, 2),
            total=np.array([2.0 * half]),
        )
    return DualProblem(
        matrix=doubled_matrix(matrix),
        linear=np.concatenate([targets, targets]),
        lower=np.concatenate([np.zeros(n), -costs]),
        upper=np.concatenate([costs, np.zeros(n)]),
        group=np.repeat(np.array([0, 1], dtype=np.int32), n),
        total=np.array([half, -half]),
    )


def doubled_matrix(matrix: SymmetricMatrix) -> RepeatedMatrix:
    """Return the matrix of two variables for each sample."""
    samples = np.arange(matrix.size)
    return RepeatedMatrix(matrix, np.concatenate([samples, samples]))


def combine_sides(dual: Floats) -> Floats:
    """Return the coefficient of each sample."""
    half = len(dual) // 2
    return np.asarray(dual[:half] + dual[half:])


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the regression function."""
    return KernelExpansion(combine_sides(signed(problem, dual)), mean_offset(offset))


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> TubeGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    offset = certificate.offset
    epsilon = 0.5 * float(offset[0] - offset[1]) if len(offset) == 2 else float(offset[0])
    at_cost = np.any(np.split((dual != 0) & ((dual == problem.lower) | (dual == problem.upper)), 2), axis=0)
    above, below = np.split(signed(problem, certificate.slack), 2)
    coefficients, distance = combine_sides(signed(problem, dual)), np.maximum(above, -below)
    return tube(certificate, samples, coefficients, at_cost, distance, max(0.0, epsilon), mean_offset(offset))
