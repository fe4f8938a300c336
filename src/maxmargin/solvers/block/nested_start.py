"""A start for a large problem from the solutions of nested samples of it (Graf et al. 2005 and others).

Where noise makes most support vectors bounded, a sample of the data shows on which side of the margin every variable
is, and with it its bound. Placing all variables at once saves the many rounds that would move them one working set
after the other.

The sample is solved with bounds wider by the inverse of its fraction, so that its weight vector is that of the whole.
Then each group is filled up from its largest slack down, until its sum is right (`selection.place_at_bounds`).

Where 0 is not feasible, as in the ν-machines and the one-class SVM, any start has variables at bounds. Then even a
sample most of whose support vectors are free tells better than the order of the samples which ones those should be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends import get_backend
from maxmargin.backends.interface import BlockState, BoundStart, KnownProduct
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Solution, Status, feasible_start, recorded_start
from maxmargin.problems.dual_problem import InfeasibleProblemError
from maxmargin.solvers.monitor import Interruption, Monitor, SharedCallback, status_of
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Each sample is this fraction of the next, and there are so many. Two, since smaller samples, whose bounds are so much
#: wider, look separable when the whole is not.
SAMPLE_RATIO, NUMBER_OF_SAMPLES = 4, 2

#: The smallest sample has at least so many variables.
MIN_SAMPLE_SIZE = 250

#: At least this fraction of the variables of a sample must be support vectors at a bound. Where it is less, a few
#: rounds find them, and with a large cost a wrong bound is far away from the right one. Where 0 is not feasible, this
#: fraction of the variables that the sums keep at bounds suffices. Tuned on the cases of `machines` and `kernel` not
#: held aside.
MIN_BOUNDED_FRACTION = 0.1

#: A sum constraint that leaves a smaller fraction of variables at a bound than this leaves few support vectors.
MIN_SUPPORT_FRACTION = 0.3

#: The violation at which the solution of a sample is good enough to start from, and the most pair steps, per variable,
#: that it may take: where it takes more, the cost is so large that a wrong bound is far away from the right one.
SAMPLE_VIOLATION, MAX_SAMPLE_STEPS_PER_VARIABLE = 0.05, 10

#: The size of the first working set, per support vector of a sample. The first set is a sample, too, since at the start
#: all variables violate optimality alike: large sets save rounds where support vectors are many, and cost more kernel
#: values than the whole rest where they are few. Tuned on the cases of `machines` and `kernel` not held aside.
FIRST_VARIABLES_PER_SUPPORT_VECTOR = 8


class SampleSolver(Protocol):
    """What a nested start needs of the block solver: a dataclass with `nested_above`, `stopping` and `audits`."""

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
        At its simplest feasible point, whose gradient may be unknown unless it is 0; afterwards at the start of the
        solve.
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
        state = self.state
        shared = SharedCallback(self.monitor.nested_callback)
        try:
            for sample in nested_samples(state.problem.size):
                try:
                    posed = pose_sample(state.problem, sample)
                except InfeasibleProblemError:  # the bounds of the sample do not allow the sum of a group
                    return self._stay(state.tuning.first_size)
                solution = self._solve_sample(posed, sample, shared)
                limited = self.monitor.limit_reached(state.totals.iterations) is not None
                slow = solution.status is Status.MAX_ITERATIONS and not limited
                if solution.status not in (Status.CONVERGED, Status.PRECISION) and not slow:
                    return self._end_with_sample(solution.status)
                if shared.stopped.is_set():
                    return self._end_with_sample(Status.STOPPED)
                bounded = bounded_fraction(posed, solution.dual)
                if slow or bounded < MIN_BOUNDED_FRACTION:
                    if bounded > MIN_BOUNDED_FRACTION * filled_fraction(state.problem) > 0:
                        break
                    return self._stay(state.tuning.first_size if slow else self._first_size())
            self._start_at_bounds()
        except Interruption as interruption:
            return self._end_with_sample(status_of(interruption))
        return state.tuning.first_size

    def _stay(self, size: int) -> int:
        """Compute the gradient of the point of the state if it is unknown; return the size of the first working set."""
        if self.state.dual.any():
            self.state.set_dual(self.state.dual)
        return size

    def _first_size(self) -> int:
        """Return the size of the first working set by the number of support vectors of the last sample."""
        tuning = self.state.tuning
        wanted = FIRST_VARIABLES_PER_SUPPORT_VECTOR * int(np.count_nonzero(self._dual))
        return min(max(tuning.first_size, wanted), tuning.max_first_size)

    def _start_at_bounds(self) -> None:
        """Set all variables to the bounds that the last sample indicates.

        The variables of the sample that stay at their bounds have the product that indicated them, but for a factor.
        """
        state, sample = self.state, self._sample
        problem, part = state.problem, len(self._sample) / state.problem.size
        start = self._place_at_bounds(problem, np.arange(problem.size))
        state.add(Counters(kernel_evaluations=start.evaluations))
        known = None
        if problem.matrix.features() is None:  # else a product takes two passes over the data
            point = np.zeros(problem.size)
            point[sample] = self._dual * part
            ends = np.where(self._dual > 0, problem.upper[sample], problem.lower[sample])
            bounded = np.abs(point[sample] - ends) <= BOUND_TOLERANCE * np.abs(ends)
            point[sample[bounded]] = ends[bounded]
            known = KnownProduct(point, part * start.product)
        state.set_dual(start.dual, known=known)

    def _solve_sample(self, posed: DualProblem, sample: Indices, callback: SharedCallback) -> Solution:
        """Solve the problem of a sample roughly, from the solution of the sample before."""
        start = self._place_at_bounds(posed, sample).dual if self._dual.any() else None
        solver: SampleSolver = replace(  # type: ignore[type-var]  # a dataclass
            self.solver, nested_above=self.state.problem.size, stopping=self._rule(posed.size), audits=False
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

    def _place_at_bounds(self, problem: DualProblem, variables: Indices) -> BoundStart:
        """Return the start of a problem of some variables by the last sample."""
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
        problem, point = self.state.problem, self.state.dual
        if len(self._sample):
            point = extend(problem, self._sample, self._dual)
        if point.any():
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


def filled_fraction(problem: DualProblem) -> float:
    """Return the fraction of all variables that are at a bound away from 0 where the sums are reached by the fewest."""
    if not problem.total.any():
        return 0.0
    return float(np.abs(problem.total).sum() / np.maximum(problem.upper, -problem.lower).sum())


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


def bounded_fraction(problem: DualProblem, dual: Floats) -> float:
    """Return the fraction of the variables that are support vectors at a bound."""
    return float(np.mean((dual != 0) & ((dual == problem.lower) | (dual == problem.upper))))


def extend(problem: DualProblem, sample: Indices, dual: Floats) -> Floats:
    """Return the feasible point with the solution of a sample, within the bounds of the whole, and 0 elsewhere.

    It is the answer when a limit ends the solve before the whole problem was started.
    """
    point = np.zeros(problem.size)
    point[sample] = dual * (len(sample) / problem.size)
    return feasible_start(problem, point)
