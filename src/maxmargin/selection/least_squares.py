"""Decision values of left-out samples of least squares machines, in closed form.

The solution is linear in the targets: with A = M + ridge and the equations [A 1; 1ᵀ 0] [b; ρ] = [t; 0], the model
without sample i has at x_i the error b_i / (the i-th diagonal entry of the inverse of the equations).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import until_deadline
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit, check_memory


def is_least_squares(problem: DualProblem) -> bool:
    """Whether the solution of a problem is that of linear equations."""
    free = bool(np.isneginf(problem.lower).all() and np.isposinf(problem.upper).all())
    return free and problem.ridged and not problem.kinked and problem.groups <= 1 and not problem.total.any()


def inverse_of(problem: DualProblem, threads: int) -> Floats:
    """Return the inverse of the matrix plus the ridge."""
    size = problem.size
    check_memory(24 * size**2, "leave-one-out of a least squares machine", "use fewer samples, or cross-validation")
    everything = np.arange(size)
    matrix = np.array(problem.matrix.block(everything, everything))
    matrix[everything, everything] += problem.ridge
    with blas_thread_limit(threads):
        return until_deadline(lambda: np.asarray(np.linalg.inv(matrix), dtype=np.float64))


def left_out_values(problem: DualProblem, inverse: Floats) -> Floats:
    """Return the value of the function at each sample without it."""
    solved, diagonal = inverse @ problem.linear, np.diagonal(inverse)
    if problem.groups:
        ones = inverse.sum(axis=1)
        total = float(ones.sum())
        solved = solved - ones * (float(solved.sum()) / total)
        diagonal = diagonal - ones * ones / total
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(solved == 0.0, 0.0, solved / diagonal)
    return np.asarray(problem.linear - error)
