"""One-class SVM: a half-space far from the origin that contains all but a fraction ν of the samples.

    primal   minimise ½‖w‖² − ν W ρ + Σ c_i max(0, ρ − w·Φ(x_i)),   W = Σ c_i
    dual     linear = 0,  bounds [0, c_i],  one group of total ν W

(Schölkopf et al. 2001; LIBSVM's scaling, c_i = 1 unless weighted.) ν is an upper bound of the fraction of outliers and
a lower bound of that of support vectors. The decision function is w·Φ(x) − ρ; the offset of the group is −ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, support_partition
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def pose(matrix: SymmetricMatrix, weights: Floats, nu: float) -> DualProblem:
    """Return the dual problem of samples with weights c_i."""
    return DualProblem(
        matrix=matrix,
        linear=np.zeros(matrix.size),
        lower=np.zeros(matrix.size),
        upper=weights,
        total=np.array([nu * float(weights.sum())]),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the decision function, positive inside."""
    return KernelExpansion(dual, float(offset[0]))


@dataclass(frozen=True)
class NoveltyGeometry:
    """Geometry of a solved one-class SVM.

    Attributes
    ----------
    distance : float
        ρ/‖w‖, the distance of the half-space from the origin.
    squared_norm : float
        ‖w‖².
    offset : float
        −ρ, the offset of the decision function.
    edge, outside, inside : int arrays
        Training samples on the boundary, beyond it (outliers), and inside.
    samples : int array
        The training samples.
    slack : float array
        max(0, ρ − w·Φ(x)) of each sample; 0 inside.
    """

    distance: float
    squared_norm: float
    offset: float
    edge: Indices = field(repr=False)
    outside: Indices = field(repr=False)
    inside: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> NoveltyGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    edge, outside, inside = support_partition(problem, dual, samples)
    norm = np.sqrt(max(certificate.squared_norm, 0.0))
    offset = float(certificate.offset[0])
    return NoveltyGeometry(
        distance=float(-offset / norm) if norm > 0 else 0.0,
        squared_norm=certificate.squared_norm,
        offset=offset,
        edge=edge,
        outside=outside,
        inside=inside,
        samples=samples,
        slack=np.maximum(0.0, certificate.slack),
    )
