"""From a posed quadratic program to a solution: call a backend, read the dual vector off its result, cross over.

The dual program and the primal program of the linear kernel differ in how they are posed and in how the dual vector is
read; the rest is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.qp.crossover import Crossover, identify_bounds
from maxmargin.solvers.qp.qp_backends import TIGHTEST, Backend, BackendOptions, BackendResult, QuadraticProgram

#: Tolerances that are tried before the tightest one if the stopping rule has a tolerance on the gap.
ROUGH_TOLERANCES = (1e-3, 1e-6)


class PosedProgram(NamedTuple):
    """A quadratic program and how to interpret its results.

    Attributes
    ----------
    program : QuadraticProgram
    read : function
        Returns the dual vector of a backend's result, close to feasible.
    is_unbounded : function
        Whether a result claims that the dual is unbounded.
    problem : DualProblem
        The problem, with its matrix in the form that is cheapest to read.
    evaluations : int
        Values of the matrix that were computed.
    cache_bytes : int
        Memory for rows of the matrix in the crossover.
    """

    program: QuadraticProgram
    read: Callable[[BackendResult], Floats]
    is_unbounded: Callable[[BackendResult], bool]
    problem: DualProblem
    evaluations: int
    cache_bytes: int


class QpRun:
    """One run of a solver.

    Attributes
    ----------
    iterations : int
        Iterations of the backend.
    evaluations : int
        Values of the matrix that were computed.
    """

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor) -> None:
        dual = feasible_start(problem, start)
        self.problem, self.monitor, self.rule = problem, monitor, monitor.rule
        self.iterations = 0
        self.evaluations = problem.size * int(np.count_nonzero(dual))
        self._start = self._current = DualPoint.of(problem, dual)
        self._crossover: Crossover | None = None
        self._stopped: Status | None = None

    @property
    def point(self) -> DualPoint:
        """The current point: the start, the last result of the backend, or that of the crossover."""
        return self._current if self._crossover is None else self._crossover.point

    @property
    def counters(self) -> Counters:
        """The cost so far."""
        if self._crossover is not None:
            return self._crossover.counters(self.monitor.seconds)
        return Counters(self.iterations, self.evaluations, seconds=self.monitor.seconds)

    def progress(self) -> Progress:
        """Return the progress report of the current point."""
        counters = self.counters
        return self.point.progress(self.monitor, counters.iterations, counters.kernel_evaluations)

    def solve(self, pose: Callable[[], PosedProgram], backend: Backend, max_rounds: int) -> Solution:
        """Pose the program and solve it, with at most `max_rounds` rounds of crossover."""
        try:
            status = self._solve(pose, backend, max_rounds)
            self.monitor.report(self.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        point = self.point
        return Solution(point.dual, point.gradient, status, self.counters, trace=self.monitor.trace)

    def _solve(self, pose: Callable[[], PosedProgram], backend: Backend, max_rounds: int) -> Status:
        if self._start.meets(self.rule):
            return Status.CONVERGED
        if (stop := self._check()) is not None:
            return stop
        posed = pose()
        self.evaluations += posed.evaluations
        has_gap = self.rule.gap is not None or self.rule.relative_gap is not None
        found: DualPoint | None = None
        for tolerance in (*ROUGH_TOLERANCES, TIGHTEST) if has_gap else (TIGHTEST,):
            iterations, seconds = self.monitor.iterations_left(self.iterations), self.monitor.seconds_left()
            result = backend(posed.program, BackendOptions(tolerance, iterations, seconds, self._should_stop))
            self.iterations += result.iterations
            if posed.is_unbounded(result) and not self.problem.coercive:
                return Status.UNBOUNDED
            found = self._point_of(posed, result)
            # Each result replaces the one before: those of rough tolerances only serve to meet the gap.
            self._current = found if found is not None and found.value > self._start.value else self._start
            if self._current.meets_gap(self.rule) or (tolerance == TIGHTEST and self._current.meets(self.rule)):
                return Status.CONVERGED
            if (stop := self._stopped or self._check()) is not None:
                return stop
        if not max_rounds or found is None:
            return Status.PRECISION
        self._crossover = Crossover(posed.problem, self._current.dual, posed.cache_bytes, self.counters)
        return self._crossover.run(max_rounds, self.monitor)

    def _point_of(self, posed: PosedProgram, result: BackendResult) -> DualPoint | None:
        """Return the point of a backend's result, None if it has none."""
        if len(result.point) != posed.program.size or not np.isfinite(result.point).all():
            return None
        return DualPoint.of(posed.problem, identify_bounds(posed.problem, posed.read(result)))

    def _should_stop(self, iterations: int) -> bool:
        """Return whether to stop after so many more iterations; the backend calls this."""
        try:
            self._stopped = self._check(iterations)
        except Interruption as interruption:  # an exception must not pass through a backend
            self._stopped = status_of(interruption)
        return self._stopped is not None

    def _check(self, iterations: int = 0) -> Status | None:
        """Return the status of a limit that is reached, STOPPED if the callback requests it, else None."""
        stop = self.monitor.limit_reached(self.iterations + iterations)
        return Status.STOPPED if stop is None and self.monitor.report(self.progress) else stop
