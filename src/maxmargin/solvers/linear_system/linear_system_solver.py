"""A linear system instead of an iteration over pairs: for problems without bounds, such as least squares.

Without a box the optimum of the dual problem is where every gradient equals the offset of its group (Suykens &
Vandewalle 1999):

    (M + diag(ridge)) b + ρ of the group = linear,      Σ_{i in group g} b_i = total_g

It is solved by conjugate gradients within the vectors that keep the sums (projected conjugate gradients: Gould, Hribar
& Nocedal 2001). With the Cholesky factor of the matrix as preconditioner, one or two steps suffice: this is used for
small problems, and for hard ones if memory holds the factor. Otherwise the preconditioner is a factor of a few columns,
and the products with the matrix are computed in blocks and in single precision. Either way the gradient is recomputed
in double precision before a point is called optimal, and the system is solved again for the residual: iterative
refinement. What that cannot reach is beyond double precision.
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
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.linear_system.preconditioners import Preconditioner, partial_cholesky, whole_cholesky
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, GapSchedule, StoppingRule

#: In single precision, the fraction of the violation at which the gradient is recomputed.
REFRESH_FRACTION = 1e-3

#: A refinement must reduce the violation to this fraction, or the tolerance is beyond double precision.
REFINEMENT_RATIO = 0.5

#: Steps of conjugate gradients within which the violation must halve.
STALL_STEPS = 1000

#: No limit on the steps of a method.
UNLIMITED = 2**62

#: Up to so many variables the whole factor is computed at once. Above it, easy problems are solved faster with a few
#: columns, and hard ones are recognised by taking as many steps as the whole factor would cost.
MAX_DIRECT_SIZE = 2048

#: Limits on the columns of a partial factor; the lower one holds even if memory is short.
MAX_COLUMNS, MIN_COLUMNS = 2048, 64

INDEFINITE_MESSAGE = (
    "the kernel is indefinite, and with these costs the least squares have no minimum; "
    "use a positive semi-definite kernel such as 'rbf', or a smaller C"
)


@dataclass(frozen=True)
class LinearSystemSolver:
    """Conjugate gradients, preconditioned by a whole or a partial Cholesky factor.

    Parameters
    ----------
    cache_bytes : int
        Memory for the factor. The whole one takes 8 n² bytes; if that is more, a partial one is used.
    stopping : StoppingRule
        When to stop; its iterations are steps of conjugate gradients.
    """

    cache_bytes: int = 2**30
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = True

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        bounded = np.isfinite(problem.lower).any() or np.isfinite(problem.upper).any()
        if bounded or not problem.coercive or problem.kinked:
            raise ValueError(
                "the linear system solver is for problems without bounds and with a ridge on every variable, and no "
                "kink, such as those of LSSVC and LSSVR; for others use the pairwise or the block solver"
            )
        monitor = Monitor(self.stopping, callback)
        run = _LinearSystemRun(problem, feasible_start(problem, start), monitor, self.cache_bytes)
        try:
            status = run.solve()
            monitor.report(run.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        dual, gradient = run.point
        counters = Counters(run.iterations, run.evaluations, rounds=run.rounds, seconds=monitor.seconds)
        return Solution(dual, gradient, status, counters, trace=monitor.trace)


class _LinearSystemRun:
    """One run of the solver.

    Attributes
    ----------
    point : tuple of float arrays
        Dual and gradient; replaced in one assignment, so that Ctrl-C leaves a consistent pair.
    iterations, rounds, evaluations : int
        Steps of conjugate gradients, recomputed gradients, matrix values computed.
    """

    def __init__(self, problem: DualProblem, dual: Floats, monitor: Monitor, cache_bytes: int) -> None:
        self.problem, self.monitor, self.rule, self.cache_bytes = problem, monitor, monitor.rule, cache_bytes
        self.iterations = self.rounds = self.evaluations = 0
        self.point = dual, problem.linear if not dual.any() else np.full(problem.size, np.nan)  # not known yet
        self._gap_schedule = GapSchedule()

    def solve(self) -> Status:
        """Iterate until the point is optimal, a limit is reached or double precision is exhausted."""
        try:
            return self._refine()
        except SolverStoppedError as stopped:
            return stopped.status

    def progress(self) -> Progress:
        """Return the progress report."""
        dual, gradient = self.point
        value = self.problem.value(dual, gradient)
        return progress_snapshot(self.problem, self.point, value, self.monitor, self.iterations, self.evaluations)

    def _refine(self) -> Status:
        """Solve the system for the residual of the recomputed gradient, repeatedly."""
        methods = self._methods()
        method: _Method | None = None
        last, best = np.inf, (np.inf, self.point)
        while True:
            self.point = self._recomputed()
            self.rounds += 1
            violation = self._violation()
            if violation <= self.rule.violation or self._meets_gap(self.point):
                return Status.CONVERGED
            if violation < best[0]:
                best = violation, self.point
            self._check_limits()
            if method is None or violation > REFINEMENT_RATIO * last or self.iterations >= method.until:
                method, self.point = next(methods, None), best[1]
                if method is None:
                    return Status.PRECISION
            last = best[0]
            self._conjugate_gradients(method)

    def _recomputed(self) -> tuple[Floats, Floats]:
        """Return the point with its sums repaired and its gradient recomputed from the matrix."""
        problem, dual = self.problem, self.point[0]
        members = np.maximum(problem.group_sums(np.ones(problem.size)), 1.0)
        missing = (problem.total - problem.group_sums(dual)) / members
        dual = dual + problem.expand_groups(missing)
        gradient = problem.gradient(dual)
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        self.evaluations += problem.size * int(np.count_nonzero(dual))
        return dual, gradient

    def _methods(self) -> Iterator[_Method]:
        """Yield the methods: first the one that is likely to be the fastest, then those for what it cannot reach."""
        problem, matrix, size = self.problem, self.problem.matrix, self.problem.size
        fits = 8 * size**2 <= self.cache_bytes
        if size > MAX_DIRECT_SIZE or not fits:
            projection = _Projection(problem, self._partial_factor())
            everything = np.arange(size)
            values = matrix.float32_columns(everything)
            until = self.iterations + size // (3 * matrix.cost) if fits else UNLIMITED
            yield _Method(projection, lambda v: values.combine(everything, v)[0], True, REFRESH_FRACTION, until)
            if not fits:
                yield _Method(projection, matrix.matvec)
                return
        self.evaluations += size**2 // 2
        whole = whole_cholesky(matrix, problem.ridge, self._check_limits)
        if whole is not None:
            yield _Method(_Projection(problem, whole), matrix.matvec, refresh_fraction=1.0)
        else:
            yield _Method(_Projection(problem, self._partial_factor()), matrix.matvec)

    def _partial_factor(self) -> Preconditioner:
        """Return a partial factor of as many columns as cost about as much as one product with the matrix."""
        problem, size = self.problem, self.problem.size
        count = min(MAX_COLUMNS, int(np.sqrt(size * problem.matrix.cost)), self.cache_bytes // (32 * size))
        count = min(size, max(MIN_COLUMNS, count))
        self.evaluations += size * count
        return partial_cholesky(problem.matrix, problem.ridge, count, self._check_limits)

    def _conjugate_gradients(self, method: _Method) -> None:
        """Take steps of conjugate gradients until the violation is small enough or does not fall any more."""
        problem, projection = self.problem, method.projection
        target = max(0.5 * self.rule.violation, method.refresh_fraction * self._violation())
        residual = projection.residual(self.point[1])
        step = preconditioned = projection.solve(residual)
        slope = float(residual @ preconditioned)
        stall = StallDetector(STALL_STEPS, step=self.iterations)
        while 0 < slope < np.inf:
            with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows ends the method
                image = method.product(step) + problem.ridge * step
                curvature = float(step @ image)
            if not 0 < curvature < np.inf:
                if not method.single_precision:
                    _check_definite(problem, step, curvature)
                return
            length = float(residual @ step) / curvature
            dual, gradient = self.point
            self.point = dual + length * step, gradient - length * image
            self.iterations += 1
            self.evaluations += problem.size**2
            violation = self._violation()
            stalled = stall.stalled(violation, self.iterations) or self.iterations >= method.until
            if violation <= target or method.refresh_fraction == 1.0 or stalled:
                return
            self._check_gap()
            self._check_limits()
            before, residual = residual, projection.residual(self.point[1])
            preconditioned = projection.solve(residual)
            # As Polak and Ribière: the products have rounding errors.
            beta = float((residual - before) @ preconditioned) / slope
            slope = float(residual @ preconditioned)
            step = preconditioned + max(0.0, beta) * step

    def _check_limits(self) -> None:
        """Report progress, and stop the run at a limit or if the callback requests it."""
        if (status := self.monitor.limit_reached(self.iterations)) is not None:
            raise SolverStoppedError(status)
        if self.monitor.report(self.progress):
            raise SolverStoppedError(Status.STOPPED)

    def _violation(self) -> float:
        return known_violation(self.problem, *self.point)

    def _meets_gap(self, point: tuple[Floats, Floats]) -> bool:
        return self.rule.gap is not None and known_gap(self.problem, *point) <= self.rule.gap

    def _check_gap(self) -> None:
        """Stop the run if the gap is within its tolerance, also with a recomputed gradient.

        Otherwise the point stays as it is, and the gradient is recomputed for the gap at ever larger intervals.
        """
        if not (self._gap_schedule.is_due(self.iterations) and self._meets_gap(self.point)):
            return
        point = self._recomputed()
        if self._meets_gap(point):
            self.point = point
            raise SolverStoppedError(Status.CONVERGED)
        self._gap_schedule.postpone(self.iterations)


@dataclass(frozen=True)
class _Method:
    """A way to take steps.

    Attributes
    ----------
    projection : _Projection
        Preconditioner and projection.
    product : function
        Multiplies a vector by the matrix.
    single_precision : bool
        Whether the product is in single precision.
    refresh_fraction : float
        The fraction of the violation at which the gradient is recomputed: 1 is after every step.
    until : int
        The number of steps, of the whole run, after which another method is better.
    """

    projection: _Projection
    product: Callable[[Floats], Floats]
    single_precision: bool = False
    refresh_fraction: float = 0.0
    until: int = UNLIMITED


class _Projection:
    """Solves P d + ρ of the group = residual with Σ d = 0 in every group, where P⁻¹ is a preconditioner."""

    def __init__(self, problem: DualProblem, preconditioner: Preconditioner) -> None:
        self._problem, self._preconditioner = problem, preconditioner
        members = (problem.group[:, None] == np.arange(problem.groups)).astype(np.float64)
        self._counts = np.maximum(members.sum(axis=0), 1.0)
        self._shifts = preconditioner.solve(members) if problem.groups else members
        self._inverse = np.linalg.pinv(members.T @ self._shifts)  # of as many rows as there are groups

    def residual(self, gradient: Floats) -> Floats:
        """Return the gradient without the mean of each group, which no step can change."""
        return gradient - self._problem.expand_groups(self._problem.group_sums(gradient) / self._counts)

    def solve(self, residual: Floats) -> Floats:
        """Return d."""
        step = self._preconditioner.solve(residual)
        return np.asarray(step - self._shifts @ (self._inverse @ self._problem.group_sums(step)))


def _check_definite(problem: DualProblem, step: Floats, curvature: float) -> None:
    """Raise if the curvature along a step is negative beyond rounding."""
    largest = float(np.abs(problem.curvature).max())
    if curvature < -NEGATIVE_CURVATURE * largest * float(np.abs(step).sum()) ** 2:
        raise ValueError(INDEFINITE_MESSAGE)
