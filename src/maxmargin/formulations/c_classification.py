"""C-classification: the soft-margin support vector machine; with C = ∞ the hard margin.

    primal   minimise ½‖w‖² + Σ C_i ξ_i   subject to   y_i (w·Φ(x_i) + b) ≥ 1 − ξ_i,  ξ_i ≥ 0      (1.4)
    dual     linear = y,  bounds [0, C_i] where y_i = +1 and [−C_i, 0] where y_i = −1,  one group of total 0

(Bottou & Lin 1.2.3; without a bias there is no group.) Class and sample weights scale C_i.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, bias_constraint, bias_of, margin_of, support_partition
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def pose(matrix: SymmetricMatrix, signs: Floats, costs: Floats, fit_intercept: bool = True) -> DualProblem:
    """Return the dual problem of samples with labels `signs` = ±1 and slack costs C_i, infinite for a hard margin."""
    costs = np.asarray(costs, dtype=np.float64)
    return DualProblem(
        matrix=matrix,
        linear=signs,
        lower=np.where(signs > 0, 0.0, -costs),
        upper=np.where(signs > 0, costs, 0.0),
        **bias_constraint(matrix.size, fit_intercept),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the decision function."""
    return KernelExpansion(dual, bias_of(problem, offset))


def pose_hulls(problem: DualProblem) -> DualProblem:
    """Return the problem of the nearest points of the convex hulls of the two classes, for a hard margin with bias.

    Minimise ½‖Σ b_i Φ(x_i)‖² where the positive and the negative b each sum to one. It always has a solution. If the
    hulls intersect, the hard margin is infeasible; otherwise 2 b / ‖Σ b_i Φ(x_i)‖² solves it.
    """
    positive = problem.linear > 0
    return DualProblem(
        matrix=problem.matrix,
        linear=np.zeros(problem.size),
        lower=np.where(positive, 0.0, -1.0),
        upper=np.where(positive, 1.0, 0.0),
        group=positive.astype(np.int32),
        total=np.array([-1.0, 1.0]),
    )


@dataclass(frozen=True)
class MarginGeometry:
    """Geometry of a solved classification in feature space.

    Attributes
    ----------
    margin : float
        1/‖w‖, the distance from the decision boundary to either edge of the margin.
    squared_norm : float
        ‖w‖².
    offset : float
        b of the decision function; `offset_interval` contains all optimal values, a single one if there is a free
        support vector.
    free, bounded, non_support : int arrays
        Training samples on the edge of the margin (0 < α < C), inside it or misclassified (α = C), and beyond it
        (α = 0). Indices are those of the rows given to ``fit``.
    samples : int array
        The training samples of this model (all, or in one-vs-one those of its two classes).
    slack : float array
        ξ of each of `samples`: 0 outside the margin, above 1 on the wrong side of the boundary.
    """

    margin: float
    squared_norm: float
    offset: float
    offset_interval: tuple[float, float]
    free: Indices = field(repr=False)
    bounded: Indices = field(repr=False)
    non_support: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> MarginGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    free, bounded, non_support = support_partition(problem, dual, samples)
    interval = certificate.offset_interval[0] if problem.groups else np.zeros(2)
    return MarginGeometry(
        margin=margin_of(certificate.squared_norm),
        squared_norm=certificate.squared_norm,
        offset=bias_of(problem, certificate.offset),
        offset_interval=(float(interval[0]), float(interval[1])),
        free=free,
        bounded=bounded,
        non_support=non_support,
        samples=samples,
        slack=np.maximum(0.0, problem.linear * certificate.slack),
    )
