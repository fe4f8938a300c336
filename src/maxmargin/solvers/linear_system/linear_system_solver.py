"""Linear equations in place of an iteration over pairs: for problems without bounds, such as least squares machines.

Without a box the optimum of the one problem is where every gradient equals the offset of its group (Suykens &
Vandewalle 1999):

    (M + diag(ridge)) b + ρ of the group = linear,      Σ_{i in group g} b_i = total_g

They are solved by conjugate gradients among the vectors that keep the sums (Gould, Hribar & Nocedal 2001). With
Cholesky's factor of the matrix as the preconditioner, one or two steps are the end: that is the way of small problems,
and of hard ones where the memory holds the factor. Else it is a factor of a few columns, and the products with the
matrix are computed in blocks and in single precision. Either way
the gradient is computed afresh in double precision before a point is called optimal, and the equations are solved again
for what remains: iterative refinement. What that cannot reach, double precision cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.precision import NEGATIVE_CURVATURE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.problems.certificate import of_samples
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.linear_system.factors import Factor, partial_factor, whole_factor
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: In single precision, the part of the violation at which the gradient is computed afresh.
REFRESH = 1e-3

#: A refinement must bring the violation down to this part of what it was, or more digits are needed than there are.
PROGRESS = 0.5

#: Steps of conjugate gradients within which the least violation must halve.
PATIENCE = 1000

#: More steps than anybody waits for.
MOST_STEPS = 2**62

#: Up to so many variables the whole factor is computed at once. Beyond it easy problems are done sooner with a few
#: columns, and those that take as many steps as the whole factor takes time show that they are not easy.
AT_ONCE = 2048

#: The most columns of a partial factor, and the least where memory is short.
MOST_COLUMNS, FEWEST_COLUMNS = 2048, 64

INDEFINITE = (
    "the kernel is indefinite, and with these costs the least squares have no minimum; "
    "use a positive semi-definite kernel such as 'rbf', or a smaller C"
)


@dataclass(frozen=True)
class LinearSystemSolver:
    """Cholesky's factor, or conjugate gradients with a factor of a few columns.

    Parameters
    ----------
    cache_bytes : int
        Memory for the factor. The whole one takes 8 n² bytes; where that is more, a few columns must do.
    stopping : StoppingRule
        When to stop; steps of conjugate gradients are its iterations.
    """

    cache_bytes: int = 2**30
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = True

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        if np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any() or not problem.coercive:
            raise ValueError(
                "the linear system solver is for problems without bounds and with a ridge on every variable, such as "
                "those of LSSVC and LSSVR; for others use the pairwise or the block solver"
            )
        monitor = Monitor(self.stopping, callback)
        run = _Run(problem, feasible_start(problem, start), monitor, self.cache_bytes)
        try:
            status = run.solve()
            monitor.report(run.progress, now=True)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        dual, gradient = run.point
        counters = Counters(run.iterations, run.evaluations, rounds=run.rounds, seconds=monitor.seconds)
        return Solution(dual, gradient, status, counters, trace=monitor.trace)


class _Run:
    """One run of the solver.

    Attributes
    ----------
    point : tuple of float arrays
        Dual and gradient; replaced at once, so that Ctrl-C cannot come in between.
    iterations, rounds, evaluations : int
        Steps of conjugate gradients, gradients computed afresh, matrix values computed.
    """

    def __init__(self, problem: DualProblem, dual: Floats, monitor: Monitor, cache_bytes: int) -> None:
        self.problem, self.monitor, self.rule, self.cache_bytes = problem, monitor, monitor.rule, cache_bytes
        self.iterations = self.rounds = self.evaluations = 0
        self.point = dual, problem.linear - problem.ridge * dual
        self._everything = np.arange(problem.size)

    def solve(self) -> Status:
        """Work until the point is optimal, a limit is reached or rounding is all that is left."""
        try:
            return self._refine()
        except SolverStoppedError as ended:
            return ended.status

    def progress(self) -> Progress:
        """Return where the solver stands."""
        dual, gradient = self.point
        value = 0.5 * float(dual @ (self.problem.linear + gradient))
        return progress_snapshot(self.problem, self.point, value, self.monitor, self.iterations, self.evaluations)

    def _refine(self) -> Status:
        """Solve the equations for what the gradient computed afresh still lacks, again and again."""
        ways = self._ways()
        way: _Way | None = None
        last, best = np.inf, (np.inf, self.point)
        while True:
            self._refresh()
            violation = self._violation()
            if violation <= self.rule.violation or self._gap_reached():
                return Status.CONVERGED
            if violation < best[0]:
                best = violation, self.point
            self._look()
            if way is None or violation > PROGRESS * last or self.iterations >= way.until:
                way, self.point = next(ways, None), best[1]
                if way is None:
                    return Status.PRECISION
            last = best[0]
            self._descend(way)

    def _refresh(self) -> None:
        """Compute the gradient afresh."""
        problem, dual = self.problem, self.point[0]
        members = np.maximum(problem.group_sums(np.ones(problem.size)), 1.0)
        missing = (problem.total - problem.group_sums(dual)) / members
        dual = dual + of_samples(problem, missing)  # what rounding took from the sums
        gradient = problem.gradient(dual)
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        self.evaluations += problem.size * int(np.count_nonzero(dual))
        self.rounds += 1
        self.point = dual, gradient

    def _ways(self) -> Iterator[_Way]:
        """Yield how to take steps: the way that is likely to be the quickest, then those for what it cannot reach."""
        problem, matrix, size = self.problem, self.problem.matrix, self.problem.size
        fits = 8 * size**2 <= self.cache_bytes
        if size > AT_ONCE or not fits:
            projection = _Projection(problem, self._few_columns())
            everything = np.arange(size)
            values = matrix.float32_columns(everything)
            until = self.iterations + size // (3 * matrix.cost) if fits else MOST_STEPS
            yield _Way(projection, lambda vector: values.combine(everything, vector)[0], True, REFRESH, until)
            if not fits:
                yield _Way(projection, matrix.matvec)
                return
        self.evaluations += size**2 // 2
        whole = whole_factor(matrix, problem.ridge, self._look)
        if whole is not None:
            yield _Way(_Projection(problem, whole), matrix.matvec, refresh=1.0)
        else:
            yield _Way(_Projection(problem, self._few_columns()), matrix.matvec)

    def _few_columns(self) -> Factor:
        """Return a partial factor of as many columns as take about as long as one product with the matrix."""
        problem, size = self.problem, self.problem.size
        count = min(MOST_COLUMNS, int(np.sqrt(size * problem.matrix.cost)), self.cache_bytes // (32 * size))
        count = min(size, max(FEWEST_COLUMNS, count))
        self.evaluations += size * count
        return partial_factor(problem.matrix, problem.ridge, count, self._look)

    def _descend(self, way: _Way) -> None:
        """Take steps of conjugate gradients until the violation is small enough or does not fall any more."""
        problem, projection = self.problem, way.projection
        target = max(0.5 * self.rule.violation, way.refresh * self._violation())
        remainder = projection.remainder(self.point[1])
        step = towards = projection.solve(remainder)
        slope = float(remainder @ towards)
        stall = StallDetector(PATIENCE, step=self.iterations)
        while slope > 0:
            image = way.product(step) + problem.ridge * step
            bend = float(step @ image)
            if not bend > 0:
                if not way.single:
                    _check_definite(problem, step, bend)
                return
            length = float(remainder @ step) / bend
            dual, gradient = self.point
            self.point = dual + length * step, gradient - length * image
            self.iterations += 1
            self.evaluations += problem.size**2
            violation = self._violation()
            stalled = stall.stalled(violation, self.iterations)
            tired = self.iterations >= way.until or stalled
            if violation <= target or way.refresh == 1.0 or tired or self._gap_reached():
                return
            self._look()
            before, remainder = remainder, projection.remainder(self.point[1])
            towards = projection.solve(remainder)
            turn = float((remainder - before) @ towards) / slope  # as Polak and Ribière: products have rounding errors
            slope = float(remainder @ towards)
            step = towards + max(0.0, turn) * step

    def _look(self) -> None:
        """Tell the callback, and end the run if it says so or a limit is reached."""
        if (stop := self.monitor.limit_reached(self.iterations)) is not None:
            raise SolverStoppedError(stop)
        if self.monitor.report(self.progress):
            raise SolverStoppedError(Status.STOPPED)

    def _violation(self) -> float:
        return known_violation(self.problem, *self.point)

    def _gap_reached(self) -> bool:
        return self.rule.gap is not None and known_gap(self.problem, *self.point) <= self.rule.gap


@dataclass(frozen=True)
class _Way:
    """How to take steps: the preconditioner, the product, and when to do something else.

    Attributes
    ----------
    projection : _Projection
    product : function
        Multiplies a vector by the matrix.
    single : bool
        Whether the product is in single precision.
    refresh : float
        The part of the violation at which the gradient is computed afresh: 1 is after every step.
    until : int
        The number of steps, of the whole run, after which another way is better.
    """

    projection: _Projection
    product: Callable[[Floats], Floats]
    single: bool = False
    refresh: float = 0.0
    until: int = MOST_STEPS


class _Projection:
    """Solves P d + ρ of the group = remainder with Σ d = 0 in every group, where P⁻¹ is a factor's."""

    def __init__(self, problem: DualProblem, factor: Factor) -> None:
        self._problem, self._factor = problem, factor
        members = (problem.group[:, None] == np.arange(problem.groups)).astype(np.float64)
        self._counts = np.maximum(members.sum(axis=0), 1.0)
        self._shifts = factor.solve(members) if problem.groups else members
        self._inverse = np.linalg.pinv(members.T @ self._shifts)  # of as many rows as there are groups

    def remainder(self, gradient: Floats) -> Floats:
        """Return the gradient without the mean of each group, which no step can change."""
        return gradient - of_samples(self._problem, self._problem.group_sums(gradient) / self._counts)

    def solve(self, remainder: Floats) -> Floats:
        """Return d."""
        step = self._factor.solve(remainder)
        return np.asarray(step - self._shifts @ (self._inverse @ self._problem.group_sums(step)))


def _check_definite(problem: DualProblem, step: Floats, bend: float) -> None:
    """Raise if the curvature along a step is negative beyond rounding."""
    largest = float(np.abs(problem.curvature).max())
    if bend < -NEGATIVE_CURVATURE * largest * float(np.abs(step).sum()) ** 2:
        raise ValueError(INDEFINITE)
