"""From a quadratic program to a solution: call a backend, read the dual vector off its answer, cross over, and say how.

The dual program and the primal one of a linear machine differ in how they are posed and in how the dual vector is read;
the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.qp.backends import TIGHT, Answer, Demand, QuadraticProgram
from maxmargin.solvers.qp.crossover import Crossover, put_on_bounds

#: Tolerances that are tried first where a gap is good enough.
ROUGH = (1e-3, 1e-6)


class PosedProgram(NamedTuple):
    """A program and how to understand the answers to it.

    Attributes
    ----------
    program : QuadraticProgram
    read : function
        Returns the dual vector of an answer, near the feasible ones.
    no_limit : function
        Whether an answer says that the dual has no limit.
    problem : DualProblem
        The problem, with its matrix in the best form that is known.
    evaluations : int
        Values of the matrix that were computed.
    cache_bytes : int
        For rows of the matrix in the crossover.
    """

    program: QuadraticProgram
    read: Callable[[Answer], Floats]
    no_limit: Callable[[Answer], bool]
    problem: DualProblem
    evaluations: int
    cache_bytes: int


class ProgramRun:
    """One run of a solver.

    Attributes
    ----------
    iterations, evaluations : int
        Of the backend; values of the matrix.
    """

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor) -> None:
        dual = feasible_start(problem, start)
        self.problem, self.monitor, self.rule = problem, monitor, monitor.rule
        self.iterations = 0
        self.evaluations = problem.size * int(np.count_nonzero(dual))
        self._point = DualPoint.of(problem, dual)
        self._crossover: Crossover | None = None
        self._ended: Status | None = None

    @property
    def point(self) -> DualPoint:
        """The best point so far."""
        return self._point if self._crossover is None else self._crossover.point

    @property
    def counters(self) -> Counters:
        """What was spent so far."""
        if self._crossover is not None:
            return self._crossover.counters(self.monitor.seconds)
        return Counters(self.iterations, self.evaluations, seconds=self.monitor.seconds)

    def progress(self) -> Progress:
        """Return where the solver stands."""
        spent = self.counters
        return self.point.progress(self.monitor, spent.iterations, spent.kernel_evaluations)

    def solve(
        self,
        pose: Callable[[], PosedProgram],
        backend: Callable[[QuadraticProgram, Demand], Answer],
        rounds: int,
    ) -> Solution:
        """Pose the program and solve it, with at most so many rounds of crossover."""
        try:
            status = self._solve(pose, backend, rounds)
            self.monitor.report(self.progress, now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        point = self.point
        return Solution(point.dual, point.gradient, status, self.counters, trace=self.monitor.trace)

    def _solve(
        self,
        pose: Callable[[], PosedProgram],
        backend: Callable[[QuadraticProgram, Demand], Answer],
        rounds: int,
    ) -> Status:
        if self._point.meets(self.rule):
            return Status.CONVERGED
        if (end := self._end()) is not None:
            return end
        posed = pose()
        self.evaluations += posed.evaluations
        rough = self.rule.gap is not None or self.rule.relative_gap is not None
        answered = False
        for tolerance in (*ROUGH, TIGHT) if rough else (TIGHT,):
            demand = Demand(
                tolerance, self.monitor.iterations_left(self.iterations), self.monitor.seconds_left(), self._look
            )
            answer = backend(posed.program, demand)
            self.iterations += answer.iterations
            if posed.no_limit(answer) and not self.problem.has_limit:
                return Status.UNBOUNDED
            answered = self._take(posed, answer)
            if self._point.meets(self.rule):
                return Status.CONVERGED
            if (end := self._ended or self._end()) is not None:
                return end
        if not rounds or not answered:
            return Status.PRECISION
        self._crossover = Crossover(posed.problem, self._point.dual, posed.cache_bytes, self.counters)
        return self._crossover.run(rounds, self.monitor)

    def _take(self, posed: PosedProgram, answer: Answer) -> bool:
        """Move to the answer of the backend unless it is worse than what was there; return whether there is one."""
        if len(answer.point) != posed.program.size or not np.isfinite(answer.point).all():
            return False
        point = DualPoint.of(posed.problem, put_on_bounds(posed.problem, posed.read(answer)))
        if point.value > self._point.value:
            self._point = point
        return True

    def _look(self, iterations: int) -> bool:
        """Whether to stop, after so many more iterations; what the backend calls."""
        try:
            self._ended = self._end(iterations)
        except KeyboardInterrupt:  # nothing may be raised through a backend
            self._ended = Status.INTERRUPTED
        return self._ended is not None

    def _end(self, iterations: int = 0) -> Status | None:
        """Return a limit that is reached, or that the callback wants to stop."""
        stop = self.monitor.limit_reached(self.iterations + iterations)
        return Status.STOPPED if stop is None and self.monitor.report(self.progress) else stop
