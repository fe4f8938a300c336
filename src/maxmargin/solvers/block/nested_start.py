"""A start for a large problem from the solutions of nested samples of it (Graf et al. 2005 and others).

Where noise makes most support vectors bounded, a sample of the data shows on which side of the margin every variable
is, and with it its bound. Placing all variables at once saves the many rounds that would move them one working set
after the other.

The sample is solved with bounds wider by the inverse of its fraction, so that its weight vector is that of the whole.
Then each group is filled up from its largest slack down, until its sum is right (`selection.place_at_bounds`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends import get_backend
from maxmargin.backends.interface import BlockState
from maxmargin.problems import Counters, DualProblem, Solution, Status, feasible_start, recorded_start
from maxmargin.problems.dual_problem import InfeasibleProblemError
from maxmargin.solvers.monitor import Interruption, Monitor, SharedCallback, status_of
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Each sample is this fraction of the next, and there are so many. Two, since smaller samples, whose bounds are so much
#: wider, look separable when the whole is not.
SAMPLE_RATIO, NUMBER_OF_SAMPLES = 4, 2

#: The smallest sample has at least so many variables.
MIN_SAMPLE_SIZE = 250

#: At least this fraction of a sample must be support vectors. Where it is less, a few rounds find them, and with a
#: large cost a wrong bound is far away from the right one.
MIN_SUPPORT_FRACTION = 0.3


#: The violation at which the solution of a sample is good enough to start from, and the most pair steps, per variable,
#: that it may take: where it takes more, the cost is so large that a wrong bound is far away from the right one.
SAMPLE_VIOLATION, MAX_SAMPLE_STEPS_PER_VARIABLE = 0.05, 3

#: The size of the first working set, per support vector of a sample. The first set is a sample, too, since at the start
#: all variables violate optimality alike: large sets save rounds where support vectors are many, and cost more kernel
#: values than the whole rest where they are few. Tuned on the cases of `machines` and `kernel` not held aside.
FIRST_VARIABLES_PER_SUPPORT_VECTOR = 8


class SampleSolver(Protocol):
    """What a nested start needs of the block solver; a dataclass with the fields `nested_above` and `stopping`."""

    @property
    def backend(self) -> str:
        """The name of the backend."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


class NestedStart:
    """A start from the solutions of ever larger samples, if they show that most variables will be at a bound.

    Parameters
    ----------
    solver : BlockSolver
    state : BlockState
        At dual = 0; afterwards at the start of the solve.
    monitor : Monitor
        Of the whole solve.
    """

    def __init__(self, solver: SampleSolver, state: BlockState[Any], monitor: Monitor) -> None:
        self.solver, self.state, self.monitor = solver, state, monitor
        self._sample, self._dual = np.empty(0, dtype=np.int64), np.empty(0)

    def run(self) -> Status | int:
        """Return the size of the first working set, larger the more support vectors a sample has.

        Return a status if the whole solve ends here; then the state has the solution of the last sample.
        """
        state, tuning = self.state, self.state.tuning
        shared = SharedCallback(self.monitor.nested_callback)
        try:
            for sample in nested_samples(state.problem.size):
                try:
                    posed = pose_sample(state.problem, sample)
                except InfeasibleProblemError:
                    return tuning.first_size  # the bounds of the sample do not allow the sum of a group
                solution = self._solve_sample(posed, sample, shared)
                limited = self.monitor.limit_reached(state.totals.iterations) is not None
                if solution.status is Status.MAX_ITERATIONS and not limited:
                    return tuning.first_size
                if solution.status not in (Status.CONVERGED, Status.PRECISION):
                    return self._end_with_sample(solution.status)
                if shared.stopped.is_set():
                    return self._end_with_sample(Status.STOPPED)
                if not is_mostly_bounded(posed, solution.dual):
                    wanted = FIRST_VARIABLES_PER_SUPPORT_VECTOR * int(np.count_nonzero(solution.dual))
                    return min(max(tuning.first_size, wanted), tuning.max_first_size)
            start, evaluations = self._place_at_bounds(state.problem, np.arange(state.problem.size))
            state.add(Counters(kernel_evaluations=evaluations))
            state.set_dual(start)
        except Interruption as interruption:
            return self._end_with_sample(status_of(interruption))
        return tuning.first_size

    def _solve_sample(self, posed: DualProblem, sample: Indices, callback: SharedCallback) -> Solution:
        """Solve the problem of a sample roughly, from the solution of the sample before."""
        start = self._place_at_bounds(posed, sample)[0] if self._dual.any() else None
        solver: SampleSolver = replace(  # type: ignore[type-var]  # a dataclass
            self.solver, nested_above=self.state.problem.size, stopping=self._rule(posed.size)
        )
        recorder = self.monitor.recorder.part(f"sample of {posed.size}")
        recorded, finished = recorded_start(posed, recorder.start), recorder.finished
        if finished is not None and recorded_start(posed, finished.dual) is not None:
            solution = finished
        else:
            solution = solver.solve(posed, start if recorded is None else recorded, recorder.observe(callback))
        recorder.close(solution, solution.dual)
        self.state.add(solution.counters)
        self._sample, self._dual = sample, solution.dual
        return solution

    def _place_at_bounds(self, problem: DualProblem, variables: Indices) -> tuple[Floats, int]:
        """Return the start of a problem of some variables by the last sample, and the number of kernel values."""
        support = np.flatnonzero(self._dual)
        at = np.searchsorted(variables, self._sample[support])
        return get_backend(self.solver.backend).start_at_bounds(problem, at, self._dual[support])

    def _rule(self, size: int) -> StoppingRule:
        """Return when the solve of a sample stops: at a rough solution, or a limit of its own or of the whole solve."""
        left, most = self.monitor.iterations_left(self.state.totals.iterations), MAX_SAMPLE_STEPS_PER_VARIABLE * size
        most = most if left is None else min(left, most)
        return StoppingRule(SAMPLE_VIOLATION, None, most, self.monitor.seconds_left())

    def _end_with_sample(self, status: Status) -> Status:
        """Set the state to the solution of the last sample when a limit ends the whole solve.

        Its gradient takes a product with the matrix, for which there is no time after the time limit.
        """
        if len(self._sample):
            point = extend(self.state.problem, self._sample, self._dual)
            self.state.set_dual(point, with_gradient=status is not Status.MAX_SECONDS)
        return status


def nested_samples(size: int) -> list[Indices]:
    """Return samples of the variables, each a part of the next: random, but always the same for one size."""
    order = np.random.default_rng(size).permutation(size)
    sizes = [size // SAMPLE_RATIO**level for level in range(NUMBER_OF_SAMPLES, 0, -1)]
    return [np.sort(order[:count]) for count in sizes if count >= MIN_SAMPLE_SIZE]


def can_start_nested(problem: DualProblem) -> bool:
    """Whether each slack has a bound on its side, and a sample has members of every group."""
    return problem.bounded and not problem.ridge.any() and problem.groups * MIN_SAMPLE_SIZE <= problem.size


def expects_few_support_vectors(problem: DualProblem) -> bool:
    """Whether the sum constraint leaves few variables at a bound, as with two classes of very uneven size.

    Positive variables sum up to at most what the negative ones can take, and conversely.
    """
    if not problem.bounded or problem.groups != 1 or (problem.group < 0).any():
        return False
    positive = float(np.maximum(problem.upper, 0.0).sum())
    negative = float(-np.minimum(problem.lower, 0.0).sum())
    total = float(problem.total[0])
    largest = 2.0 * min(positive, negative + total) - total
    return largest < MIN_SUPPORT_FRACTION * (positive + negative)


def pose_sample(problem: DualProblem, sample: Indices) -> DualProblem:
    """Return the problem of the sample, with wider bounds."""
    widening = problem.size / len(sample)
    return DualProblem(
        matrix=problem.matrix.take(sample),
        linear=problem.linear[sample],
        lower=problem.lower[sample] * widening,
        upper=problem.upper[sample] * widening,
        group=problem.group[sample],
        total=problem.total,
        kink=problem.kink[sample],
    )


def is_mostly_bounded(problem: DualProblem, dual: Floats) -> bool:
    """Whether a start from this solution of a sample will pay: many support vectors, most of them bounded."""
    support = dual != 0
    at_bound = support & ((dual == problem.lower) | (dual == problem.upper))
    return bool(support.mean() > MIN_SUPPORT_FRACTION) and 2 * int(at_bound.sum()) > int(support.sum())


def extend(problem: DualProblem, sample: Indices, dual: Floats) -> Floats:
    """Return the feasible point with the solution of a sample, within the bounds of the whole, and 0 elsewhere.

    It is the answer when a limit ends the solve before the whole problem was started.
    """
    point = np.zeros(problem.size)
    point[sample] = dual * (len(sample) / problem.size)
    return feasible_start(problem, point)
