"""Decomposition with working sets of any size and any solver inside (Bottou & Lin 1.6.1, Algorithm 1.2).

Each round solves the subproblem of the most violating variables with all others fixed; `decomposition_run` has the
loop, the selection and the subproblem. The Royal Holloway package was made to compare solvers of the subproblem
(Saunders et al. 1998), and so is this: pair steps, gradient projection or a generic solver of quadratic programs. With
two variables it is sequential minimal optimisation: the steps are those of `PairwiseSolver("most_violating_pair")` to
the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.numerics import check_finite
from maxmargin.problems import Counters, DualProblem, Solution, feasible_start
from maxmargin.solvers.classical.decomposition_run import (
    DecompositionRun,
    SubproblemSolver,
    check_subproblem_solver,
    restrict,
    select_violating,
)
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: A subproblem is solved until its violation is this fraction of the violation among all variables.
INNER_TOLERANCE = 0.1


@dataclass(frozen=True)
class DecompositionSolver:
    """Working sets of a fixed size, each solved by another solver.

    Parameters
    ----------
    working_set_size : int
        q, the most variables that move in a round. Small ones were found to be the fastest (1.6.2).
    subproblem : solver object
        Solves the subproblems. Its options are kept except for the stopping rule, which is replaced in each round: a
        tenth of the violation.
    cache_bytes : int
        Memory for rows of the matrix.
    stopping : StoppingRule
        When to stop; iterations are those of the subproblem solver, and ``counters.rounds`` is the number of working
        sets.
    """

    working_set_size: int = 10
    subproblem: SubproblemSolver = field(default_factory=lambda: PairwiseSolver(shrinking=False, finish_below=0))
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.working_set_size >= 2:
            raise ValueError(f"a working set has at least 2 variables, not {self.working_set_size}")
        check_subproblem_solver("subproblem", self.subproblem)

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        dual = feasible_start(problem, start)
        return _FixedSizeRun(problem, dual, self, Monitor(self.stopping, callback)).solve()


class _FixedSizeRun(DecompositionRun):
    """One run of the solver."""

    def __init__(self, problem: DualProblem, dual: Floats, solver: DecompositionSolver, monitor: Monitor) -> None:
        super().__init__(problem, dual, solver.subproblem, solver.cache_bytes, monitor)
        self._size = solver.working_set_size
        self._diagonal = problem.matrix.diagonal()

    def select(self) -> Indices:
        return select_violating(self.problem, self.point.dual, self.point.gradient, self._size)

    def inner_violation(self) -> float:
        return max(0.5 * self.monitor.rule.violation, INNER_TOLERANCE * self.point.violation)

    def subproblem(self, variables: Indices) -> DualProblem:
        block = self.rows.rows(variables)[:, variables]
        check_finite(block)
        np.fill_diagonal(block, self._diagonal[variables])
        return restrict(self.problem, variables, self.point.dual, self.point.gradient, PrecomputedMatrix(block))

    def inner_evaluations(self, counters: Counters) -> int:
        return 0  # the values were in the rows
