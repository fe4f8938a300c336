"""Iterative chunking (Vapnik 1982; Bottou & Lin 1.5.1).

    solve   the problem restricted to a working set, by any solver
    check   which of the other variables violate the optimality criterion
    stop    if none does; else add the worst of them to the working set

It works because the solution is sparse: most samples never enter. The working set ends up with the support vectors and
others that were taken for some on the way, and each of its problems is solved completely. This was the first method for
data that did not fit into memory; it is a decomposition whose working sets grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem, Solution, feasible_start
from maxmargin.solvers.classical.decomposition_run import (
    DecompositionRun,
    SubproblemSolver,
    check_subproblem_solver,
    select_violating,
)
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The fraction of the tolerance to which the problem of a working set is solved: the violation of all variables is not
#: smaller.
INNER_TOLERANCE = 0.5


@dataclass(frozen=True)
class ChunkingSolver:
    """A working set that grows by the worst violators and is solved again each time.

    Parameters
    ----------
    chunk : int
        Maximum number of variables that are added in a round.
    inner : solver object
        Solves the problems of working sets. Its options are kept except for the stopping rule.
    cache_bytes : int
        Memory for the rows that update the gradient; the inner solver has its own.
    stopping : StoppingRule
        When to stop; iterations are those of the inner solver, and ``counters.rounds`` is the number of working sets.
    """

    chunk: int = 500
    inner: SubproblemSolver = field(default_factory=PairwiseSolver)
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.chunk >= 2:
            raise ValueError(f"a chunk has at least 2 variables, not {self.chunk}")
        check_subproblem_solver("inner", self.inner)

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        dual = feasible_start(problem, start)
        return _ChunkingRun(problem, dual, self, Monitor(self.stopping, callback)).solve()


class _ChunkingRun(DecompositionRun):
    """One run of the solver."""

    def __init__(self, problem: DualProblem, dual: Floats, solver: ChunkingSolver, monitor: Monitor) -> None:
        super().__init__(problem, dual, solver.inner, solver.cache_bytes, monitor)
        self._chunk = solver.chunk
        self._in_working_set = dual != 0

    def select(self) -> Indices:
        """Add the worst violators.

        Half of them may be in the set already, as partners of those that are not; then further ones are added.
        """
        most = self._chunk + int(self._in_working_set.sum())
        worst = select_violating(self.problem, self.point.dual, self.point.gradient, most)
        new = worst[~self._in_working_set[worst]][: self._chunk]
        self._in_working_set[new] = True
        return np.flatnonzero(self._in_working_set)

    def inner_violation(self) -> float:
        return INNER_TOLERANCE * self.monitor.rule.violation

    def inner_gap(self) -> float | None:
        gap = self.monitor.rule.gap
        return None if gap is None or self.active < self.problem.size else INNER_TOLERANCE * gap
