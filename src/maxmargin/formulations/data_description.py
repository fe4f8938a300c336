"""Support vector data description (SVDD): the smallest ball in feature space that contains most samples.

    primal   minimise R² + Σ c_i ξ_i / (ν W)   subject to   ‖Φ(x_i) − a‖² ≤ R² + ξ_i,   W = Σ c_i
    dual     half of it: linear = ½ K_ii,  bounds [0, c_i / (ν W)],  one group of total 1

(Tax & Duin 2004.) The centre is a = Σ b_i Φ(x_i), the decision function R² − ‖Φ(x) − a‖², positive inside. At the
optimum the offset ρ of the group is half of R² − ‖a‖². If K_ii is the same for all samples, as for the Gaussian kernel,
it is equivalent to the one-class SVM.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, support_partition
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def pose(matrix: SymmetricMatrix, weights: Floats, nu: float) -> DualProblem:
    """Return the dual problem of samples with weights c_i."""
    diagonal = matrix.diagonal()
    if not np.isfinite(diagonal).all():
        raise ValueError(NON_FINITE_MESSAGE)
    return DualProblem(
        matrix=matrix,
        linear=0.5 * diagonal,
        lower=np.zeros(matrix.size),
        upper=weights / (nu * float(weights.sum())),
        total=np.ones(1),
        linear_error=0.5 * matrix.diagonal_error(),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return R² − ‖Φ(x) − a‖² + k(x, x) = 2 Σ b_i k(x_i, x) + 2 ρ: the decision function without its term k(x, x)."""
    return KernelExpansion(2.0 * dual, 2.0 * float(offset[0]))


@dataclass(frozen=True)
class BallGeometry:
    """Geometry of a solved data description.

    Attributes
    ----------
    radius : float
        R.
    squared_norm : float
        ‖a‖² of the centre.
    edge, outside, inside : int arrays
        Training samples on the surface of the ball, outside (outliers), and inside.
    samples : int array
        The training samples.
    squared_distance : float array
        ‖Φ(x_i) − a‖² of each.
    """

    radius: float
    squared_norm: float
    edge: Indices = field(repr=False)
    outside: Indices = field(repr=False)
    inside: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    squared_distance: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> BallGeometry:
    """Read the ball off a solution of the problem that `pose` made of the training rows `samples`."""
    squared_radius = 2.0 * float(certificate.offset[0]) + certificate.squared_norm
    edge, outside, inside = support_partition(problem, dual, samples)
    return BallGeometry(
        radius=float(np.sqrt(max(0.0, squared_radius))),
        squared_norm=certificate.squared_norm,
        edge=edge,
        outside=outside,
        inside=inside,
        samples=samples,
        squared_distance=2.0 * certificate.slack + squared_radius,
    )
