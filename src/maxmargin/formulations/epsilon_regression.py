"""ε-regression: residuals within a tube of half-width ε have no loss, others their distance from the tube.

    primal   minimise ½‖w‖² + Σ C_i max(0, |t_i − w·Φ(x_i) − b| − ε)
    dual     two variables for each sample: above the tube linear = t − ε, bounds [0, C_i];
             below it linear = t + ε, bounds [−C_i, 0]; one group of total 0

(Vapnik 1995; Smola & Schölkopf 2004.) The coefficient of a sample is the sum of its two variables, of which at most one
is non-zero at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, bias_constraint, bias_of, signed
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def pose(
    matrix: SymmetricMatrix, targets: Floats, costs: Floats, epsilon: float, fit_intercept: bool = True
) -> DualProblem:
    """Return the dual problem of samples with `targets` and slack costs C_i."""
    n = matrix.size
    return DualProblem(
        matrix=doubled_matrix(matrix),
        linear=np.concatenate([targets - epsilon, targets + epsilon]),
        lower=np.concatenate([np.zeros(n), -costs]),
        upper=np.concatenate([costs, np.zeros(n)]),
        **bias_constraint(2 * n, fit_intercept),
    )


def doubled_matrix(matrix: SymmetricMatrix) -> RepeatedMatrix:
    """Return the matrix of two variables for each sample."""
    return RepeatedMatrix(matrix, np.tile(np.arange(matrix.size), 2))


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the regression function."""
    return KernelExpansion(combine_sides(dual), bias_of(problem, offset))


def combine_sides(dual: Floats) -> Floats:
    """Return the coefficient of each sample."""
    above, below = np.split(dual, 2)
    return np.asarray(above + below)


@dataclass(frozen=True)
class TubeGeometry:
    """Geometry of a solved regression.

    Attributes
    ----------
    epsilon : float
        Half-width of the tube.
    squared_norm : float
        ‖w‖².
    offset : float
        b of the regression function.
    edge, outside, inside : int arrays
        Training samples on the edge of the tube (free support vectors), outside (bounded), and inside.
    samples : int array
        The training samples.
    slack : float array
        The distance of each sample from the tube, 0 inside.
    """

    epsilon: float
    squared_norm: float
    offset: float
    edge: Indices = field(repr=False)
    outside: Indices = field(repr=False)
    inside: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> TubeGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    low, high = problem.linear[: len(samples)], problem.linear[len(samples) :]
    offset = bias_of(problem, certificate.offset)
    return tube(problem, dual, certificate, samples, 0.5 * float((high - low).mean()), offset)


def tube(
    problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices, epsilon: float, offset: float
) -> TubeGeometry:
    """Return the geometry of a tube of known half-width."""
    coefficients = combine_sides(signed(problem, dual))
    at_cost = np.any(np.split((dual != 0) & ((dual == problem.lower) | (dual == problem.upper)), 2), axis=0)
    above, below = np.split(signed(problem, certificate.slack), 2)
    return TubeGeometry(
        epsilon=epsilon,
        squared_norm=certificate.squared_norm,
        offset=offset,
        edge=samples[(coefficients != 0) & ~at_cost],
        outside=samples[(coefficients != 0) & at_cost],
        inside=samples[coefficients == 0],
        samples=samples,
        slack=np.maximum(0.0, np.maximum(above, -below)),
    )
