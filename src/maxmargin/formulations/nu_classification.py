"""ν-classification: ν is an upper bound of the fraction of margin errors and a lower bound of that of support vectors.

    primal   minimise ½‖w‖² − ν W r + Σ c_i ξ_i   subject to   y_i (w·Φ(x_i) + b) ≥ r − ξ_i,  ξ_i ≥ 0,  r ≥ 0
    dual     linear = 0,  bounds [0, c_i] where y_i = +1 and [−c_i, 0] where y_i = −1,
             the positives sum to ½ ν W, the negatives to −½ ν W,   W = Σ c_i

(Schölkopf et al. 2000; LIBSVM's scaling, c_i = 1 unless weighted.) The decision function is divided by the optimal r,
so that support vectors on the edge have f = ±1 as in C-classification with C = 1/r. The two groups have two offsets:
their mean is b, half their difference r.

Without b the two sums may differ. In α = |b_i| ≥ 0 there is one group, Σ α_i = ν W, the matrix gets the signs
of the labels, and the offset of the group is −r. Every ν up to 1 is feasible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, mean_offset, signed, support_partition
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def largest_nu(signs: Floats, weights: Floats) -> float:
    """Return the largest feasible ν: twice the weight fraction of the smaller class."""
    positive = float(weights[signs > 0].sum())
    negative = float(weights[signs < 0].sum())
    return 2.0 * min(positive, negative) / (positive + negative)


def pose(matrix: SymmetricMatrix, signs: Floats, weights: Floats, nu: float, fit_intercept: bool = True) -> DualProblem:
    """Return the dual problem of samples with labels `signs` = ±1 and weights c_i."""
    half = 0.5 * nu * float(weights.sum())
    if not fit_intercept:
        return DualProblem(
            matrix=SignedMatrix(matrix, signs),
            linear=np.zeros(matrix.size),
            lower=np.zeros(matrix.size),
            upper=weights,
            total=np.array([2.0 * half]),
        )
    return DualProblem(
        matrix=matrix,
        linear=np.zeros(matrix.size),
        lower=np.where(signs > 0, 0.0, -weights),
        upper=np.where(signs > 0, weights, 0.0),
        group=(signs > 0).astype(np.int32),
        total=np.array([-half, half]),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the decision function, scaled so that the edges of the margin are at ±1."""
    margin = _margin(offset)
    return KernelExpansion(signed(problem, dual) / margin, mean_offset(offset) / margin)


def _margin(offset: Floats) -> float:
    """Return r: half the difference of two offsets, or minus a single one; 1 if it is not positive."""
    margin = 0.5 * float(offset[0] - offset[1]) if len(offset) == 2 else -float(offset[0])
    return margin if margin > 0 else 1.0


@dataclass(frozen=True)
class NuGeometry:
    """Geometry of a solved ν-classification.

    Attributes
    ----------
    margin : float
        1/‖w‖ of the scaled decision function: the distance from the boundary to either edge.
    cost : float
        The C with which C-classification has the same solution.
    squared_norm : float
        ‖w‖² of the scaled decision function.
    offset : float
        b of the scaled decision function.
    free, bounded, non_support : int arrays
        Training samples on the edge of the margin, inside it or misclassified, and beyond it.
    samples : int array
        The training samples of this model.
    slack : float array
        ξ of each of `samples`: max(0, 1 − y f).
    """

    margin: float
    cost: float
    squared_norm: float
    offset: float
    free: Indices = field(repr=False)
    bounded: Indices = field(repr=False)
    non_support: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> NuGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    edge = _margin(certificate.offset)
    free, bounded, non_support = support_partition(problem, dual, samples)
    norm, square = np.sqrt(max(certificate.squared_norm, 0.0)) / edge, edge * edge
    # With two groups, slack = −w·Φ(x) − ρ with ρ = b − y r, so y · slack = r − y f.
    signs = np.where(problem.group > 0, 1.0, -1.0) if problem.groups == 2 else 1.0
    return NuGeometry(
        margin=float(1.0 / norm) if norm > 0 else float("inf"),
        cost=1.0 / edge,
        squared_norm=certificate.squared_norm / square if 0 < square < np.inf else float(norm) * float(norm),
        offset=mean_offset(certificate.offset) / edge,
        free=free,
        bounded=bounded,
        non_support=non_support,
        samples=samples,
        slack=np.maximum(0.0, signs * certificate.slack / edge),
    )
