"""Least squares regression (LS-SVM): squared loss; the dual is a system of linear equations.

    primal   minimise ½‖w‖² + ½ Σ C_i e_i²   where   e_i = t_i − w·Φ(x_i) − b
    dual     linear = t,  no bounds,  ridge 1/C_i,  one group of total 0

(Suykens & Vandewalle 1999; Saunders, Gammerman & Vovk 1998.) At the optimum b_i = C_i e_i: every sample with a
non-zero error is a support vector. Without offset and with equal C_i it is kernel ridge regression with α = 1/C.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.c_classification import expand
from maxmargin.formulations.formulation import bias_constraint, bias_of
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem

__all__ = ["ErrorGeometry", "expand", "pose", "read"]


def pose(matrix: SymmetricMatrix, targets: Floats, costs: Floats, fit_intercept: bool = True) -> DualProblem:
    """Return the dual problem of samples with `targets` and costs C_i of half the squared error."""
    n = matrix.size
    return DualProblem(
        matrix=matrix,
        linear=targets,
        lower=np.full(n, -np.inf),
        upper=np.full(n, np.inf),
        ridge=1.0 / costs,
        **bias_constraint(n, fit_intercept),
    )


@dataclass(frozen=True)
class ErrorGeometry:
    """Geometry of a solved least squares regression.

    Attributes
    ----------
    squared_norm : float
        ‖w‖².
    offset : float
        b of the function.
    samples : int array
        The training samples.
    error : float array
        Residual of each sample: target minus function.
    """

    squared_norm: float
    offset: float
    samples: Indices = field(repr=False)
    error: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> ErrorGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    return ErrorGeometry(
        squared_norm=certificate.squared_norm,
        offset=bias_of(problem, certificate.offset),
        samples=samples,
        error=certificate.slack,
    )
