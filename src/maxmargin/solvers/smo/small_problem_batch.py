"""A batch of small dual problems on parts of one full matrix, each solved from start to end in one native call.

For each problem:

    pair steps with second-order working sets until the violation is within the tolerance; where convergence is slow,
    the linear equations of the free variables in between
    those equations once more, to the exact optimum, as in `exact_finish`
    the gradient recomputed; if it does not confirm the tolerance, again

Problems that take many steps, or whose tolerance is close to rounding, come back unfinished, for a solver that shrinks
and a rigorous verification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.matrices.packed_kernel import PackedKernel
from maxmargin.problems import Counters, DualProblem, Solution, Status, feasible_start

#: Steps after which a problem is left to a solver that shrinks: about 10 ms for 1,000 variables.
MAX_STEPS = 10_000

#: Up to this many free variables their linear equations are solved, at a cost of its cube.
MAX_FREE = 256

#: Seconds of a native call: Ctrl-C, the time limit and the callback are handled in between. Each call touches its
#: memory anew.
SECONDS_PER_CALL = 0.2

#: The outcome of a problem that no native call has begun.
NOT_BEGUN = -1

#: The most groups of a problem that the native solver takes.
MAX_GROUPS = 2

NO_INDICES, NO_GROUPS, NO_KINKS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0)
NO_VALUES = np.empty((0, 0))


@dataclass(frozen=True)
class SmallProblemBatch:
    """Problems on rows of one matrix, concatenated.

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
    start : float array
        A feasible point of each problem.
    groups : int
        The number of groups of each problem, at most two, whose sums remain those of the start.
    group : int32 array
        The group of each variable within its problem; empty if there is at most one group, which all are in.
    kink : float array
        Of all variables; empty if there are none.
    kernel : PackedKernel, optional
        Computes the matrix row by row, instead of `values`.
    """

    values: Floats
    edges: Indices
    rows: Indices
    linear: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    start: Floats
    groups: int
    group: NDArray[np.int32]
    kink: Floats
    kernel: PackedKernel | None = None

    @classmethod
    def of(
        cls,
        problems: Sequence[DualProblem],
        starts: Sequence[Floats | None] | None = None,
        kernel: PackedKernel | None = None,
    ) -> SmallProblemBatch | None:
        """Return the batch of some problems, from starts that are made feasible; None if they are not of its kind.

        Their matrices must be rows of one array in memory or of `kernel`, their maxima finite, and all must have the
        same number of groups, at most two; with `kernel` at least one.
        """
        first = problems[0]
        if not all(_fits(problem, first.groups) for problem in problems) or (kernel and not first.groups):
            return None
        found = _common_matrix(problems, kernel)
        if found is None:
            return None
        values, rows = found
        starts = [None] * len(problems) if starts is None else starts
        edges = np.array([0, first.size]) if len(problems) == 1 else np.cumsum([0, *(one.size for one in problems)])
        return cls(
            values,
            edges,
            rows=_indices(rows, len(values)),
            linear=_join([problem.linear for problem in problems]),
            lower=_join([problem.lower for problem in problems]),
            upper=_join([problem.upper for problem in problems]),
            ridge=_join([problem.ridge for problem in problems]),
            start=_join([feasible_start(*each) for each in zip(problems, starts, strict=True)]),
            groups=first.groups,
            group=_join([problem.group for problem in problems]) if first.groups > 1 else NO_GROUPS,
            kink=_join([problem.kink for problem in problems]) if any(one.kinked for one in problems) else NO_KINKS,
            kernel=kernel,
        )

    @classmethod
    def of_joined(
        cls, joined: DualProblem, sizes: Indices, kernel: PackedKernel | None = None
    ) -> SmallProblemBatch | None:
        """Return the batch of problems that were posed as one, with so many variables each, from 0.

        None if they are not of its kind. The only group of `joined`, if any, has a total of 0 and becomes one for each.
        """
        if not _fits(joined, min(1, joined.groups)) or joined.total.any() or joined.kinked:
            return None
        found = _common_matrix([joined], kernel)
        if found is None or (kernel and not joined.groups):
            return None
        values, [rows] = found
        if rows is None:
            return None
        return cls(
            values,
            np.concatenate([[0], np.cumsum(sizes)]),
            rows,
            joined.linear,
            joined.lower,
            joined.upper,
            joined.ridge,
            start=np.zeros(joined.size),
            groups=joined.groups,
            group=NO_GROUPS,
            kink=NO_KINKS,
            kernel=kernel,
        )

    def __len__(self) -> int:
        return len(self.edges) - 1

    def variables(self, problem: int) -> slice:
        """Return the variables of a problem."""
        return slice(int(self.edges[problem]), int(self.edges[problem + 1]))

    def solve(
        self,
        tolerance: float,
        threads: int,
        max_free: int = MAX_FREE,
        max_steps: int = MAX_STEPS,
        deadline: float | None = None,
        callback: Callable[[BatchSolution, list[int]], bool] | None = None,
    ) -> BatchSolution:
        """Return the solutions.

        `callback` receives the problems that were finished since the last call, and returns True to stop. Neither it
        nor a `deadline` (a reading of ``time.perf_counter``) that is not reached changes the solutions. With
        ``max_free=0`` the equations of the free variables are not solved.
        """
        dual, count = self.start.copy(), len(self)
        outcomes, offsets = np.full((count, 4), NOT_BEGUN, dtype=np.int64), np.zeros((count, self.groups))
        solved = BatchSolution(self, dual, np.zeros(len(dual)), outcomes, offsets)
        limits = tolerance, max_steps, max_free
        samples = None if self.kernel is None else self.kernel.samples(max(1, threads))
        chunk = count if callback is None else max(1, threads)
        try:
            for first in range(0, count, chunk):
                if callback is not None and callback(solved, solved.finished_among(first - chunk, first)):
                    return solved
                last = min(first + chunk, count)
                if not self._solve_chunk(solved, first, last, limits, deadline, threads, samples):
                    return solved
            if callback is not None:
                callback(solved, solved.finished_among(count - 1 - (count - 1) % chunk, count))
        except KeyboardInterrupt:  # raised between two native calls: the arrays are those of complete steps
            return BatchSolution(self, dual, solved.gradient, outcomes, offsets, interrupted=True)
        return solved

    def _solve_chunk(
        self,
        solved: BatchSolution,
        first: int,
        last: int,
        limits: tuple[float, int, int],
        deadline: float | None,
        threads: int,
        samples: _native.KernelSamples | None,
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
            groups=self.groups,
            group=self.group[at] if len(self.group) else self.group,
            kink=self.kink[at] if len(self.kink) else self.kink,
            samples=samples,
        )
        point = solved.dual[at], solved.gradient[at], outcomes, solved.offsets[first:last]
        while (outcomes[:, 0] == NOT_BEGUN).any():
            seconds = SECONDS_PER_CALL if deadline is None else min(SECONDS_PER_CALL, deadline - perf_counter())
            if seconds <= 0:
                return False
            step_limits = _native.StepLimits(tolerance=tolerance, max_steps=max_steps, max_seconds=seconds)
            _native.solve_small_problems(batch, *point, step_limits, max_free, threads)
        return True


def _common_matrix(
    problems: Sequence[DualProblem], kernel: PackedKernel | None
) -> tuple[Floats, Sequence[Indices | None]] | None:
    """Return the array of which the matrices of all problems are rows, and these rows; None if there is none.

    With `kernel`, the rows are those of its matrix, of which there is no array.
    """
    if kernel is not None:
        places = [rows for problem in problems if (rows := kernel.rows(problem.matrix)) is not None]
        return (NO_VALUES, places) if len(places) == len(problems) else None
    stored = [found for problem in problems if (found := problem.matrix.stored()) is not None]
    if len(stored) < len(problems) or any(array is not stored[0][0] for array, _ in stored):
        return None
    return stored[0][0], [index for _, index in stored]


def _indices(rows: Sequence[Indices | None], size: int) -> Indices:
    """Return the rows of all variables; empty if they are all rows of the matrix, in order, in every problem."""
    if all(index is None for index in rows):
        return NO_INDICES
    joined: Indices = _join([np.arange(size) if index is None else index for index in rows])
    return joined


def _join(arrays: Sequence[Any]) -> Any:
    """Return arrays as one; a single one, as in most fits, without a copy."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _fits(problem: DualProblem, groups: int) -> bool:
    """Whether a problem has a finite maximum and this number of groups, and the native solver takes it."""
    alone = problem.ungrouped == (0 if groups else problem.size)
    return problem.groups == groups <= MAX_GROUPS and alone and problem.coercive


@dataclass(frozen=True)
class BatchSolution:
    """Dual and gradient of all problems, how each ended, the offsets of its groups, and whether Ctrl-C was pressed."""

    batch: SmallProblemBatch
    dual: Floats
    gradient: Floats
    outcomes: Indices
    offsets: Floats
    interrupted: bool = False

    def finished_among(self, first: int, last: int) -> list[int]:
        """Return the finished problems from `first` up to `last`."""
        return [problem for problem in range(max(0, first), last) if self.finished(problem)]

    def finished(self, problem: int) -> bool:
        """Whether a recomputed gradient confirmed the tolerance."""
        return bool(self.outcomes[problem, 0] == StopReason.OPTIMAL)

    def all_finished(self) -> np.ndarray:
        """Return for each problem whether a recomputed gradient confirmed the tolerance."""
        return np.asarray(self.outcomes[:, 0] == int(StopReason.OPTIMAL))

    def solution(self, problem: int, status: Status, seconds: float = 0.0) -> Solution:
        """Return the point of one problem."""
        at = self.batch.variables(problem)
        return Solution(self.dual[at], self.gradient[at], status, self.counters(problem, seconds))

    def counters(self, problem: int, seconds: float = 0.0) -> Counters:
        """Return the cost of a problem: the whole of its matrix, or the rows that were computed."""
        _, steps, requests, rows = (max(0, count) for count in self.outcomes[problem].tolist())
        size = int(self.batch.edges[problem + 1] - self.batch.edges[problem])
        values = min(size, len(self.batch.values)) ** 2 if self.batch.kernel is None else rows * size
        return Counters(steps, values, requests, 0, seconds=seconds)

    def costs(self) -> tuple[Indices, Indices, Indices]:
        """Return steps, kernel evaluations and row requests of all problems, as in `counters`."""
        steps, requests, rows = np.maximum(self.outcomes[:, 1:], 0).T
        sizes = np.diff(self.batch.edges)
        values = np.minimum(sizes, len(self.batch.values)) ** 2 if self.batch.kernel is None else rows * sizes
        return steps, values, requests
