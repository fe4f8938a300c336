"""A problem restricted to some of its variables, with all others fixed: the subproblem (1.20) of a decomposition.

It is written for the change d = b' − b of these variables, since that needs nothing but the gradient at b:

    maximise    g_B·d − ½ dᵀ M_BB d − ½ Σ ridge_i d_i²
    subject to  lower − b ≤ d ≤ upper − b
                Σ_{i in B, in group g} d_i = 0      for every group g

Its gradients are those of the whole problem, its violation is that among the variables of B, its dual value is the
gain, and d = 0 is feasible. What the fixed variables contribute to the linear term and to the sums is in g and b.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.host_subproblem import renumbered
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import DualProblem


def restrict(
    problem: DualProblem, variables: Indices, dual: Floats, gradient: Floats, matrix: SymmetricMatrix | None = None
) -> DualProblem:
    """Return the problem of the change of some variables.

    Parameters
    ----------
    problem : DualProblem
    variables : int array
        Those that may change.
    dual, gradient : float arrays
        Of all variables; the gradient only needs to be known at `variables`.
    matrix : SymmetricMatrix, optional
        That of these variables, if its values are at hand.
    """
    group, groups = renumbered(problem.group[variables])
    return DualProblem(
        matrix=problem.matrix.take(variables) if matrix is None else matrix,
        linear=gradient[variables],
        lower=problem.lower[variables] - dual[variables],
        upper=problem.upper[variables] - dual[variables],
        ridge=problem.ridge[variables],
        group=group,
        total=np.zeros(groups),
    )


def changed(problem: DualProblem, variables: Indices, dual: Floats, part: DualProblem, change: Floats) -> Floats:
    """Return the new values of the variables; those that have come to a bound are exactly on it."""
    lower, upper = problem.lower[variables], problem.upper[variables]
    values = dual[variables] + change
    with np.errstate(invalid="ignore"):  # an open bound is never reached
        at_upper = (change == part.upper) | (upper - values <= BOUND_TOLERANCE * np.abs(upper)) & np.isfinite(upper)
        at_lower = (change == part.lower) | (values - lower <= BOUND_TOLERANCE * np.abs(lower)) & np.isfinite(lower)
    still = change == 0
    return np.where(still, dual[variables], np.where(at_upper, upper, np.where(at_lower, lower, values)))
