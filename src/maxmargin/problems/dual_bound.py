"""A lower bound on the optimum from a dual vector and its squared norm bᵀMb alone, without the gradient.

`certify` needs M b for the primal value. Where only the dual value is wanted, bᵀMb suffices. The gradient, by which the
cost of moving the vector to an exactly feasible point is bounded, follows from |(M b)_i| ≤ √M_ii √(bᵀMb).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.objective_bounds import SAFETY, feasibility_cost


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bound infinite
def dual_value_bound(problem: DualProblem, dual: Floats, squared_norm: float, error: float = 0.0) -> float:
    """Return a lower bound on the optimum: the dual value of a feasible point next to `dual`, at least.

    `squared_norm` is bᵀMb within `error`, for a positive semi-definite matrix; an upper bound on it does as well.
    """
    magnitude = np.abs(dual)
    linear, kinks = inner(problem.linear, dual), inner(problem.kink, magnitude)
    ridge = inner(problem.ridge * dual, dual)
    value = linear - kinks - 0.5 * ridge - 0.5 * squared_norm
    size = inner(np.abs(problem.linear), magnitude) + kinks + ridge + abs(squared_norm)
    lost = 0.5 * error + (problem.size + 16) * UNIT_ROUNDOFF * size
    if problem.linear_error is not None:
        lost += inner(magnitude, problem.linear_error)
    norm = float(np.sqrt(max(squared_norm, 0.0) + error))
    slope = np.abs(problem.linear) + norm * problem.matrix.magnitudes() + problem.ridge * magnitude
    lost += feasibility_cost(problem, dual, np.zeros(problem.size), slope, exact=True)
    bound = value - SAFETY * lost
    return float(np.nextafter(bound, -np.inf)) if np.isfinite(bound) else -np.inf


def best_multiple(problem: DualProblem, dual: Floats, squared_norm: float) -> float:
    """Return the t ≥ 0 for which t·dual is within the box and has the highest dual value, if all totals are 0."""
    slope = inner(problem.linear, dual) - inner(problem.kink, np.abs(dual))
    curvature = squared_norm + inner(problem.ridge * dual, dual)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(dual > 0, problem.upper, problem.lower) / dual
    most = float(room[dual != 0].min(initial=np.inf))
    if not slope > 0:
        return 0.0
    best = min(most, slope / curvature) if curvature > 0 else most
    return best if np.isfinite(best) else 1.0


@np.errstate(over="ignore", invalid="ignore")
def bound_of_best_multiple(problem: DualProblem, dual: Floats, squared_norm: float, error: float = 0.0) -> float:
    """Return the bound of the multiple of a dual vector that has the highest dual value, if all totals are 0."""
    if not np.isfinite(squared_norm + error):
        return -np.inf
    factor = best_multiple(problem, dual, squared_norm + error)
    multiple = np.clip(factor * dual, problem.lower, problem.upper)
    length = inner(np.abs(multiple), problem.matrix.magnitudes())
    rounding = 4 * UNIT_ROUNDOFF * length * length  # of each variable of the multiple, and of the factor
    return dual_value_bound(problem, multiple, factor**2 * squared_norm, factor**2 * error + rounding)
