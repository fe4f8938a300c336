"""Iterative chunking (Vapnik 1982; Bottou & Lin 1.5.1).

    solve   the problem restricted to a working set, by any solver
    look    which of the other variables violate the optimality criterion
    stop    if none does; else add the worst of them to the working set

It works because the solution is sparse: most samples never enter. The working set ends up as the support vectors and
those that were taken for some on the way, and each of its problems is solved to the end. This was the first method for
data that did not fit into memory, and it is a decomposition whose working sets grow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem, Solution, feasible_start
from maxmargin.solvers.classical.subproblems import SubproblemRun, SubproblemSolver, check_subproblem_solver
from maxmargin.solvers.classical.violating_pairs import violating_variables
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The part of the tolerance to which the problem of a working set is solved: that of all variables is not smaller.
INNER = 0.5


@dataclass(frozen=True)
class ChunkingSolver:
    """A working set that grows by the worst violators, solved again each time.

    Parameters
    ----------
    chunk : int
        How many variables are added in a round, at most.
    inner : solver object
        Solves the problems of working sets. Its options are kept but for the stopping rule.
    cache_bytes : int
        Memory for the rows that bring the gradient up to date; the inner solver has its own.
    stopping : StoppingRule
        When to stop; iterations are those of the inner solver, and ``counters.rounds`` says how many working sets there
        were.
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

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        return _Run(problem, feasible_start(problem, start), self, Monitor(self.stopping, callback)).solution()


class _Run(SubproblemRun):
    """One run of the solver: those in the working set so far are `chosen`."""

    def __init__(self, problem: DualProblem, dual: Floats, solver: ChunkingSolver, monitor: Monitor) -> None:
        super().__init__(problem, dual, solver.inner, solver.cache_bytes, monitor)
        self._chunk = solver.chunk
        self._chosen = dual != 0

    def choose(self) -> Indices:
        """Add the worst violators.

        Half of what is added may be in the set already, as partners of those that are not: then others come too.
        """
        room = self._chunk + int(self._chosen.sum())
        worst = violating_variables(self.problem, self.dual, self.point.gradient, room)
        new = worst[~self._chosen[worst]][: self._chunk]
        self._chosen[new] = True
        return np.flatnonzero(self._chosen)

    def target(self) -> float:
        return INNER * self.monitor.rule.violation

    def gap(self) -> float | None:
        gap = self.monitor.rule.gap
        return None if gap is None or self.active < self.problem.size else INNER * gap
