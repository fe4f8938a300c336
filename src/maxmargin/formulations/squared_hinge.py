"""Squared hinge classification: a larger loss for large slacks, a smaller one for small slacks than the hinge.

    primal   minimise ½‖w‖² + Σ C_i ξ_i²   subject to   y_i (w·Φ(x_i) + b) ≥ 1 − ξ_i
    dual     linear = y,  bounds [0, ∞) where y_i = +1 and (−∞, 0] where y_i = −1,  ridge 1/(2 C_i),
             one group of total 0

(LIBLINEAR's L2 loss and its scaling.) Every support vector has slack ξ_i = |b_i| / (2 C_i), so none is at a bound;
the dual is strictly concave and its solution unique. KernelExpansion and geometry are those of C-classification.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.formulations.c_classification import expand, pose_hulls, read
from maxmargin.formulations.formulation import bias_constraint
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem

__all__ = ["expand", "pose", "pose_hulls", "read"]


def pose(matrix: SymmetricMatrix, signs: Floats, costs: Floats, fit_intercept: bool = True) -> DualProblem:
    """Return the dual problem of samples with labels `signs` = ±1 and costs C_i of squared slack."""
    with np.errstate(divide="ignore", over="ignore"):  # an infinite ridge is refused by the problem
        ridge = 0.5 / costs
    return DualProblem(
        matrix=matrix,
        linear=signs,
        lower=np.where(signs > 0, 0.0, -np.inf),
        upper=np.where(signs > 0, np.inf, 0.0),
        ridge=ridge,
        **bias_constraint(matrix.size, fit_intercept),
    )
