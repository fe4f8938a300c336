"""A fold of a cross-validation: the full problem with the variables of the held-out samples fixed at 0."""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem, Solution
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds

#: The relative distance of group totals from the largest feasible ones.
TOTAL_MARGIN = 1e-9


class Fold:
    """The problem without the held-out variables, and its current point.

    Attributes
    ----------
    problem : DualProblem
    held : bool array
        Which variables are held out.
    dual : float array
        At first the solution of the full problem with the held-out variables set to 0.
    gradient : float array
        Of the problem at `dual`, where it was updated.
    offset : float array
        Of each group, from the variables that were solved last.
    """

    def __init__(self, whole: DualProblem, dual: Floats, gradient: Floats, held: np.ndarray) -> None:
        self._start = dual, gradient
        # With fewer samples a hard margin does not shrink, so the sum of its dual variables does not grow.
        self.problem = hold_out(whole, held, 2.0 * float(np.abs(dual).sum()) + 1.0)
        self.held = held
        self.dual = np.where(held, 0.0, dual)
        self.gradient = np.empty(whole.size)
        self.offset = np.zeros(whole.groups)

    @property
    def change(self) -> Floats:
        """The difference between the dual vector and the solution of the full problem."""
        return self.dual - self._start[0]

    def update_gradient(self, variables: Indices, matrix: SymmetricMatrix, part: SymmetricMatrix | None = None) -> None:
        """Update the gradient of some variables; if it is all of them, in the precision of the matrix.

        `part` is the matrix between these variables, if it is known.
        """
        change = self.change
        if len(variables) == matrix.size:
            product = (matrix if part is None else part).matvec(change)
        else:
            product = np.zeros(len(variables))
            if part is not None:
                product += part.matvec(change[variables])
                change = change.copy()
                change[variables] = 0.0
            moved = np.flatnonzero(change)
            if len(moved):
                product += matrix.float32_columns(moved).combine(variables, change[moved])[0]
        change = self.change
        ridge = self.problem.ridge[variables] * change[variables]
        self.gradient[variables] = self._start[1][variables] - product - ridge

    def restricted_to(self, variables: Indices, matrix: SymmetricMatrix) -> DualProblem:
        """Return the problem of the change of some variables, given their matrix; the others are fixed."""
        problem, dual = self.problem, self.dual[variables]
        return DualProblem(
            matrix=matrix,
            linear=self.gradient[variables],
            lower=problem.lower[variables] - dual,
            upper=problem.upper[variables] - dual,
            ridge=problem.ridge[variables],
            group=problem.group[variables],
            total=problem.total - problem.group_sums(self.dual),
        )

    def move(self, variables: Indices, part: DualProblem, solution: Solution) -> None:
        """Change some variables by a solution; the gradient of the others is not updated."""
        step, gradient = solution.dual, solution.gradient
        assert gradient is not None
        if not np.isfinite(gradient).all():  # the solver was stopped
            gradient = part.gradient(step)
        lower, upper = self.problem.lower[variables], self.problem.upper[variables]
        moved = self.dual[variables] + step
        self.dual[variables] = np.where(step == part.lower, lower, np.where(step == part.upper, upper, moved))
        self.gradient[variables] = gradient
        self.offset = interval_midpoint(*offset_bounds(part, step, gradient))

    def violators(self, variables: Indices, tolerance: float) -> np.ndarray:
        """Return which variables other than these violate the optimality conditions."""
        slack = self.gradient - self.problem.expand_groups(self.offset)
        late: np.ndarray = (slack > tolerance) & (self.dual < self.problem.upper)
        late |= (slack < -tolerance) & (self.dual > self.problem.lower)
        late[variables] = False
        return late

    def values(self, formulation: Formulation, samples: int) -> Floats:
        """Return the decision values of the held-out samples; those of others are undefined."""
        product = self.problem.linear - self.gradient
        product[samples:] = 0.0  # all variables of a sample have the same product; the first is used
        expansion = formulation.expand(self.problem, product, self.offset)  # scales the product like the dual
        return (expansion.coefficients + expansion.offset)[:samples]


def hold_out(problem: DualProblem, held: np.ndarray, largest: float) -> DualProblem:
    """Return the problem with some variables fixed at 0, and its totals reduced with the bounds of the others.

    Totals stay in proportion to each other and feasible: ν of a ν-formulation is then the largest possible. Infinite
    bounds become `largest`.
    """
    lower, upper = np.where(held, 0.0, problem.lower), np.where(held, 0.0, problem.upper)
    if not problem.coercive:
        lower, upper = np.maximum(lower, -largest), np.minimum(upper, largest)
    total = problem.total
    if total.any():
        fraction = float((upper - lower).sum() / (problem.upper - problem.lower).sum())
        available = np.where(total > 0, problem.group_sums(upper), problem.group_sums(lower))
        total = total * min(fraction, (1.0 - TOTAL_MARGIN) * float((available[total != 0] / total[total != 0]).min()))
    return DualProblem(problem.matrix, problem.linear, lower, upper, problem.ridge, problem.group, total, problem.kink)
