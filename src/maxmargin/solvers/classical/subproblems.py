"""What decomposition and chunking share: one subproblem after the other, each left to another solver (Algorithm 1.2).

    stop    if the violation of (1.11) does not exceed the tolerance
    select  a working set B
    solve   the subproblem (1.20) of B with all other variables fixed         restriction
    update  g ← g − Σ_{i in B} d_i M_i,  b_B ← b_B + d                        with the rows of those that changed

A subproblem that is solved too roughly may change nothing. That never ends a run: it is solved again to a smaller
tolerance, and only if the least one changes nothing either, double precision is exhausted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices import CachedMatrix
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.solvers.classical.restriction import changed, restrict
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: How often the tolerance of a subproblem that changed nothing becomes ten times smaller.
TIGHTER = 8

#: A subproblem that takes longer than so many seconds lets the callback speak meanwhile.
LISTEN_AFTER = 0.1

#: Rounds, and rounds for each variable, within which the violation must halve; else rounding undoes what they do.
PATIENCE, PATIENCE_PER_VARIABLE = 10_000, 1000


@runtime_checkable
class SubproblemSolver(Protocol):
    """Any solver: a dataclass with a stopping rule."""

    @property
    def stopping(self) -> StoppingRule:
        """When it stops; a round sets its own."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


def check_subproblem_solver(name: str, solver: object) -> None:
    """Raise if something cannot solve subproblems."""
    if not hasattr(solver, "solve") or not hasattr(solver, "stopping"):
        raise ValueError(f"{name} must be a solver object such as PairwiseSolver(), not {solver!r}")


class SubproblemRun(ABC):
    """One run: a point, the rows of the matrix that are kept, and what was spent.

    Attributes
    ----------
    point : DualPoint
        Replaced at once, so that Ctrl-C cannot come in between.
    """

    def __init__(
        self, problem: DualProblem, dual: Floats, inner: SubproblemSolver, cache_bytes: int, monitor: Monitor
    ) -> None:
        self.problem, self.inner, self.monitor = problem, inner, monitor
        self.rows = CachedMatrix(problem.matrix, cache_bytes)
        self.rows.evaluations += problem.size * int(np.count_nonzero(dual))
        self._is_unbounded = UnboundedDualTest(problem)
        self.point = DualPoint.of(problem, dual)
        self.iterations = self.rounds = self.active = 0

    @abstractmethod
    def choose(self) -> Indices:
        """Return the next working set."""

    @abstractmethod
    def target(self) -> float:
        """Return the violation to which a subproblem is to be solved."""

    def gap(self) -> float | None:
        """Return the gap at which a subproblem may stop before: only if it is the gap of all variables."""
        return None

    def subproblem(self, variables: Indices) -> DualProblem:
        """Return the problem of a working set."""
        return restrict(self.problem, variables, self.dual, self.point.gradient)

    @property
    def dual(self) -> Floats:
        """The variables."""
        return self.point.dual

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        return self.point.value

    @property
    def counters(self) -> Counters:
        """What was spent so far: iterations are those of the subproblems, rounds are working sets."""
        rows = self.rows
        return Counters(self.iterations, rows.evaluations, rows.hits, rows.misses, self.rounds, self.monitor.seconds)

    def progress(self) -> Progress:
        """Return where the solver stands."""
        return self.point.progress(self.monitor, self.iterations, self.rows.evaluations, self.active)

    def solution(self) -> Solution:
        """Work, and return how it ended, with the point so far if it was interrupted."""
        try:
            status = self.solve()
            self.monitor.report(self.progress, now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return Solution(self.dual, self.point.gradient, status, self.counters, trace=self.monitor.trace)

    def solve(self) -> Status:
        """Work until the point is optimal or a limit is reached."""
        stall = StallDetector(PATIENCE + PATIENCE_PER_VARIABLE * self.problem.size if self.problem.coercive else np.inf)
        while not self.point.meets(self.monitor.rule):
            if (stop := self.monitor.limit_reached(self.iterations)) is not None:
                return stop
            if self.monitor.report(self.progress):
                return Status.STOPPED
            if self._is_unbounded(self.dual, self.point.gradient):
                return Status.UNBOUNDED
            if stall.stalled(self.point.violation, self.rounds):
                return Status.PRECISION
            if (end := self._round(self.choose())) is not None:
                return end
        return Status.CONVERGED

    def _round(self, variables: Indices) -> Status | None:
        """Solve a working set; return how it ended if the whole run ends here."""
        self.rounds += 1
        self.active = len(variables)
        part = self.subproblem(variables)
        violation = self.target()
        for _ in range(TIGHTER):
            rule = StoppingRule(
                violation=violation,
                gap=self.gap(),
                max_iterations=self.monitor.iterations_left(self.iterations),
                max_seconds=self.monitor.seconds_left(),
            )
            solver: SubproblemSolver = replace(self.inner, stopping=rule)  # type: ignore[type-var]  # a dataclass
            solution = solver.solve(part, callback=None if self.monitor.callback is None else self._listen)
            self.iterations += solution.counters.iterations
            self.rows.evaluations += self._computed(solution.counters)
            moved = self._move(variables, part, solution.dual)
            if solution.status not in (Status.CONVERGED, Status.PRECISION):
                return solution.status
            if moved:
                return None
            violation *= 0.1
        return Status.PRECISION

    def _computed(self, inside: Counters) -> int:
        """Return how many values of the matrix a subproblem has computed."""
        return inside.kernel_evaluations

    def _listen(self, inside: Progress) -> bool:
        """Let the callback stop a long subproblem; what it is told is where the whole stands."""
        return inside.seconds > LISTEN_AFTER and self.monitor.report(self.progress)

    def _move(self, variables: Indices, part: DualProblem, change: Floats) -> bool:
        """Take over the change of a working set; return whether there is any."""
        values = changed(self.problem, variables, self.dual, part, change)
        moved = np.flatnonzero(values != self.dual[variables])
        if not len(moved):
            return False
        at, change = variables[moved], change[moved]
        dual = self.dual.copy()
        dual[at] = values[moved]
        gradient = self.point.gradient - self._product(at, change)
        gradient[at] -= self.problem.ridge[at] * change
        self.point = DualPoint(self.problem, dual, gradient)
        return True

    def _product(self, variables: Indices, change: Floats) -> Floats:
        """Return Σ change · row."""
        step = max(2, BLOCK_BYTES // (8 * self.problem.size))
        product = np.zeros(self.problem.size)
        for first in range(0, len(variables), step):
            panel, weights = self.rows.rows(variables[first : first + step]), change[first : first + step]
            if len(variables) == 2 and weights[0] == -weights[1]:
                return np.asarray(
                    weights[0] * (panel[0] - panel[1])
                )  # the steps of the pairwise solver to the last bit
            product += weights @ panel
        return product
