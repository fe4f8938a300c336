"""Least squares regression (LS-SVM): every error costs its square, and the dual is a system of linear equations.

    primal   minimise ½‖w‖² + ½ Σ C_i e_i²   where   e_i = t_i − w·Φ(x_i) − b
    dual     linear = t,  no bounds,  ridge 1/C_i,  one group of total 0

(Suykens & Vandewalle 1999; Saunders, Gammerman & Vovk 1998.) At the optimum b_i = C_i e_i: every sample with an error
is a support vector. Without an offset, and with one C, it is kernel ridge regression with α = 1/C.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.c_classification import expand
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
        group=np.full(n, 0 if fit_intercept else -1, dtype=np.int32),
        total=np.zeros(1 if fit_intercept else 0),
    )


@dataclass(frozen=True)
class ErrorGeometry:
    """What a solved least squares regression looks like.

    Attributes
    ----------
    squared_norm : float
        ‖w‖².
    offset : float
        b of the function.
    samples : int array
        The training samples.
    error : float array
        Target minus function, of each.
    """

    squared_norm: float
    offset: float
    samples: Indices = field(repr=False)
    error: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> ErrorGeometry:
    """Read the machine off a solution of the problem that `pose` made of the training rows `samples`."""
    return ErrorGeometry(
        squared_norm=certificate.squared_norm,
        offset=float(certificate.offset[0]) if problem.groups else 0.0,
        samples=samples,
        error=certificate.slack,
    )
