"""Squared ε-insensitive regression; with ε = 0 it is ridge regression in feature space.

    primal   minimise ½‖w‖² + Σ C_i max(0, |t_i − w·Φ(x_i) − b| − ε)²
    dual     as ε-regression, without bounds and with ridge 1/(2 C_i)

(LIBLINEAR's L2 loss and its scaling.) A sample is at a distance of |b_i| / (2 C_i) from the tube.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.formulations.epsilon_regression import expand, read
from maxmargin.formulations.formulation import bias_constraint
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem

__all__ = ["expand", "pose", "read"]


def pose(
    matrix: SymmetricMatrix, targets: Floats, costs: Floats, epsilon: float, fit_intercept: bool = True
) -> DualProblem:
    """Return the dual problem of samples with `targets` and costs C_i of squared errors."""
    n = matrix.size
    return DualProblem(
        matrix=matrix,
        linear=targets,
        lower=np.full(n, -np.inf),
        upper=np.full(n, np.inf),
        ridge=0.5 / costs,
        kink=np.full(n, epsilon),
        **bias_constraint(n, fit_intercept),
    )
