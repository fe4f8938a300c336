"""Weston–Watkins classification: the loss of a sample is the sum of the slacks over the other classes.

    primal   minimise ½ Σ_c ‖w_c‖² + Σ_i C_i Σ_{c ≠ y_i} ξ_ic
             subject to w_y·Φ(x_i) − w_c·Φ(x_i) ≥ 1 − ξ_ic,  ξ_ic ≥ 0
    dual     b_ic ∈ [−C_i, 0] for c ≠ y_i,  b_ic ∈ [0, (k − 1) C_i] for c = y_i;  the rest as in `all_in_one`

(Weston & Watkins 1999, with a margin of 1 instead of 2.)
"""

from __future__ import annotations

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import all_in_one
from maxmargin.formulations.all_in_one import expand, read
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem

__all__ = ["expand", "pose", "read"]


def pose(
    matrix: SymmetricMatrix, labels: Indices, classes: int, costs: Floats, fit_intercept: bool = True
) -> DualProblem:
    """Return the dual problem of samples with class indices `labels` and slack costs C_i."""
    return all_in_one.pose(matrix, labels, classes, costs, classes - 1.0, fit_intercept)
