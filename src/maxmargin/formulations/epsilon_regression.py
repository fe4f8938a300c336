"""ε-regression: residuals within a tube of half-width ε have no loss, others their distance from the tube.

    primal   minimise ½‖w‖² + Σ C_i max(0, |t_i − w·Φ(x_i) − b| − ε)
    dual     linear = t, kink ε, bounds [−C_i, C_i]; one group of total 0

(Vapnik 1995; Smola & Schölkopf 2004.) The textbook has two variables α, α* ≥ 0 for each sample, of which at most one is
non-zero at the optimum; b = α − α*, and ε (α + α*) is ε |b|.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.c_classification import expand
from maxmargin.formulations.formulation import bias_constraint, bias_of
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem

__all__ = ["TubeGeometry", "expand", "pose", "read", "tube"]


def pose(
    matrix: SymmetricMatrix, targets: Floats, costs: Floats, epsilon: float, fit_intercept: bool = True
) -> DualProblem:
    """Return the dual problem of samples with `targets` and slack costs C_i."""
    return DualProblem(
        matrix=matrix,
        linear=targets,
        lower=-costs,
        upper=costs,
        kink=np.full(matrix.size, epsilon),
        **bias_constraint(matrix.size, fit_intercept),
    )


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
    at_cost = (dual == problem.lower) | (dual == problem.upper)
    distance = np.abs(certificate.slack) - problem.kink
    offset = bias_of(problem, certificate.offset)
    return tube(certificate, samples, dual, at_cost, distance, float(problem.kink[0]), offset)


def tube(
    certificate: Certificate,
    samples: Indices,
    coefficients: Floats,
    at_cost: NDArray[np.bool_],
    distance: Floats,
    epsilon: float,
    offset: float,
) -> TubeGeometry:
    """Return the geometry of a tube of known half-width; inside, the distance of a sample is negative."""
    return TubeGeometry(
        epsilon=epsilon,
        squared_norm=certificate.squared_norm,
        offset=offset,
        edge=samples[(coefficients != 0) & ~at_cost],
        outside=samples[(coefficients != 0) & at_cost],
        inside=samples[coefficients == 0],
        samples=samples,
        slack=np.maximum(0.0, distance),
    )
