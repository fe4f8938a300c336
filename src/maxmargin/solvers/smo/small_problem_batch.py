"""A batch of small dual problems on parts of one full matrix, each solved from start to end in one native call.

For each problem:

    pair steps with second-order working sets until the violation is within the tolerance; where convergence is slow,
    the linear equations of the free variables in between
    those equations once more, to the exact optimum, as in `exact_finish`
    the gradient recomputed; if it does not confirm the tolerance, again

Problems that take many steps come back unfinished, for a solver that shrinks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.problems import Counters, Solution, Status

#: Steps after which a problem is left to a solver that shrinks: about 10 ms for 1,000 variables.
MAX_STEPS = 10_000

#: Up to this many free variables their linear equations are solved, at a cost of its cube.
MAX_FREE = 256

#: Seconds of a native call: Ctrl-C, the time limit and the callback are handled in between.
SECONDS_PER_CALL = 0.05


@dataclass(frozen=True)
class SmallProblemBatch:
    """Problems of one group each or of none, concatenated.

    Attributes
    ----------
    values : float array
        The matrix.
    edges : int array
        Variables ``edges[p]`` up to ``edges[p + 1]`` belong to problem p.
    rows : int array
        The row of the matrix of each variable; empty if every problem consists of all rows in order.
    linear, lower, upper, ridge : float arrays
        Of all variables.
    grouped : bool
        Whether the variables of each problem keep the sum that they have at the start.
    """

    values: Floats
    edges: Indices
    rows: Indices
    linear: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    grouped: bool

    def __len__(self) -> int:
        return len(self.edges) - 1

    def variables(self, problem: int) -> slice:
        """Return the variables of a problem."""
        return slice(int(self.edges[problem]), int(self.edges[problem + 1]))

    def solve(
        self,
        tolerance: float,
        threads: int,
        start: Floats | None = None,
        max_free: int = MAX_FREE,
        max_steps: int = MAX_STEPS,
        deadline: float | None = None,
        callback: Callable[[BatchSolution, list[int]], bool] | None = None,
    ) -> BatchSolution:
        """Return the solutions, from a feasible `start`, by default 0.

        `callback` receives the problems that were finished since the last call, and returns True to stop. Neither it
        nor a `deadline` (a reading of ``time.perf_counter``) that is not reached changes the solutions. With
        ``max_free=0`` the equations of the free variables are not solved.
        """
        dual = np.zeros(len(self.linear)) if start is None else start.copy()
        outcomes = np.full((len(self), 3), -1, dtype=np.int64)
        solved = BatchSolution(self, dual, np.zeros(len(dual)), outcomes)
        limits = tolerance, max_steps, max_free
        chunk = len(self) if callback is None else max(1, threads)
        try:
            for first in range(0, len(self), chunk):
                if callback is not None and callback(solved, solved.finished_among(first - chunk, first)):
                    return solved
                if not self._solve_chunk(solved, first, min(first + chunk, len(self)), limits, deadline, threads):
                    return solved
            if callback is not None:
                callback(solved, solved.finished_among(len(self) - 1 - (len(self) - 1) % chunk, len(self)))
        except KeyboardInterrupt:  # raised between two native calls: the arrays are those of complete steps
            return BatchSolution(self, dual, solved.gradient, outcomes, interrupted=True)
        return solved

    def _solve_chunk(
        self,
        solved: BatchSolution,
        first: int,
        last: int,
        limits: tuple[float, int, int],
        deadline: float | None,
        threads: int,
    ) -> bool:
        """Solve the problems from `first` up to `last`; return False if the deadline is reached."""
        edges, outcomes = self.edges[first : last + 1], solved.outcomes[first:last]
        at = slice(int(edges[0]), int(edges[-1]))
        tolerance, max_steps, max_free = limits
        batch = _native.ProblemBatch(
            matrix=self.values,
            indices=self.rows[at] if len(self.rows) else self.rows,
            edges=edges - edges[0],
            linear=self.linear[at],
            lower=self.lower[at],
            upper=self.upper[at],
            ridge=self.ridge[at],
            grouped=self.grouped,
        )
        while (outcomes[:, 0] == -1).any():
            seconds = SECONDS_PER_CALL if deadline is None else min(SECONDS_PER_CALL, deadline - perf_counter())
            if seconds <= 0:
                return False
            step_limits = _native.StepLimits(tolerance=tolerance, max_steps=max_steps, max_seconds=seconds)
            _native.solve_small_problems(
                batch, solved.dual[at], solved.gradient[at], outcomes, step_limits, max_free, threads
            )
        return True


@dataclass(frozen=True)
class BatchSolution:
    """Dual and gradient of all problems, how each ended, and whether Ctrl-C was pressed."""

    batch: SmallProblemBatch
    dual: Floats
    gradient: Floats
    outcomes: Indices
    interrupted: bool = False

    def offset_bounds(self) -> tuple[Floats, Floats]:
        """Return the bounds of the offset of each problem: the extremes of the gradient in (1.11)."""
        starts, batch = self.batch.edges[:-1], self.batch
        increasing = np.where(self.dual < batch.upper, self.gradient, -np.inf)
        decreasing = np.where(self.dual > batch.lower, self.gradient, np.inf)
        return np.maximum.reduceat(increasing, starts), np.minimum.reduceat(decreasing, starts)

    def finished_among(self, first: int, last: int) -> list[int]:
        """Return the finished problems from `first` up to `last`."""
        return [problem for problem in range(max(0, first), last) if self.finished(problem)]

    def finished(self, problem: int) -> bool:
        """Whether a recomputed gradient confirmed the tolerance."""
        return bool(self.outcomes[problem, 0] == StopReason.OPTIMAL)

    def all_finished(self) -> np.ndarray:
        """Return for each problem whether a recomputed gradient confirmed the tolerance."""
        return np.asarray(self.outcomes[:, 0] == int(StopReason.OPTIMAL))

    def solution(self, problem: int, status: Status) -> Solution:
        """Return the point of one problem."""
        at = self.batch.variables(problem)
        return Solution(self.dual[at], self.gradient[at], status, self.counters(problem))

    def counters(self, problem: int) -> Counters:
        """Return the cost of a problem, the whole of its matrix included."""
        _, steps, requests = (max(0, int(count)) for count in self.outcomes[problem])
        size = int(self.batch.edges[problem + 1] - self.batch.edges[problem])
        return Counters(steps, size**2, requests, 0)
