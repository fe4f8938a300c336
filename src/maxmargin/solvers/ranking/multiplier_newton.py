"""The method of multipliers for pairwise ranking, with semismooth Newton steps.

A ranking has a variable for each pair, but its score function is one of n samples. With multipliers a and a width δ,
scores s determine responses of the pairs, from which the coefficients of the samples follow:

    α_p(s) = C_p clip(a_p/C_p + (1 − (s_i − s_j))/δ, 0, 1)        β(s) = Dᵀ α(s)

An inner iteration solves s = K β(s), n equations, by Newton steps with a line search (the equations are the gradient
of a convex function). An outer iteration replaces a by α(s): the proximal point method on the dual, which
converges for any δ, the faster the smaller (Rockafellar 1976; Li, Sun & Toh 2018 for this combination). So the width
falls as long as few Newton steps suffice, and rises where they do not. Every α(s) is a feasible dual vector.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import ClassVar

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, feasible_start
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.block.block_solver import BlockSolver
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.ranking.line_search import step_length
from maxmargin.solvers.ranking.newton_equations import KernelEquations, equations_for, pair_laplacian
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Initial width: a pair with equal scores is half-way to its bound.
INITIAL_WIDTH = 2.0

#: For large costs, the width at least gives responses of this fraction of 1 / K_ii to a slack of 1.
INITIAL_RIDGE = 0.01

#: Newton steps until the equations hold to this fraction of the width, and of the violation.
EQUATION_FRACTION, VIOLATION_FRACTION = 0.1, 0.2

#: Limit on the Newton steps of an inner iteration; of the first, which starts from nothing.
MAX_STEPS, MAX_FIRST_STEPS = 12, 40

#: Up to this number of steps, the width falls by at most this factor.
EASY_STEPS, SMALLEST_FACTOR = 6, 0.3

#: The factor by which the width rises if Newton steps failed without its having fallen before.
GROWTH = 2.5

#: After so many inner iterations in a row that failed, the equations are beyond double precision.
MAX_FAILURES = 8

#: Newton steps and inner iterations within which the violation must halve.
STALL_STEPS = 300

#: The equations of so many samples are solved directly; a larger system takes minutes a step.
MAX_SAMPLES = 8192

#: Up to this many samples a second thread costs more than it saves.
MAX_SINGLE_THREAD_SAMPLES = 1000

#: Within the tolerance, iterations continue up to this relative gap as long as they halve the violation: for few
#: samples they are cheap, and the model is then the same for weights and repetitions to seven digits.
FINAL_GAP, FINAL_GAP_OF_SMALL = 1e-6, 1e-9


@dataclass(frozen=True)
class MultiplierNewtonSolver:
    """The method of multipliers with Newton steps, for rankings.

    Parameters
    ----------
    cache_bytes : int
        Memory for the kernel values of all samples. If they do not fit, or the kernel is indefinite, the block solver
        takes over.
    stopping : StoppingRule
        When to stop; its iterations are Newton steps.
    threads : int
        Number of threads; the result does not depend on it.
    """

    cache_bytes: int = 2**28
    stopping: StoppingRule = field(default_factory=StoppingRule)
    threads: int = 1
    audited: ClassVar[bool] = True

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from 0."""
        if problem.groups or problem.ridge.any() or problem.lower.any() or not problem.bounded or problem.kinked:
            raise ValueError("this solver is for rankings: problems of pairs of samples, finite costs, no groups")
        if not self._suits(problem):
            return self._block_solver(self.stopping).solve(problem, start, callback)
        monitor = Monitor(self.stopping, callback)
        assert isinstance(problem.matrix, DifferenceMatrix)
        run = _MultiplierRun(problem, problem.matrix, feasible_start(problem, start), monitor, self.threads)
        small = run.matrix.base.size <= MAX_SINGLE_THREAD_SAMPLES
        try:
            with blas_thread_limit(1) if small else nullcontext():  # threads that wait would slow small systems down
                status = run.solve()
            monitor.report(run.progress, now=True)
        except SolverStoppedError as stopped:
            status = stopped.status
        except Interruption as interruption:
            status = status_of(interruption)
        best = run.best
        counters = Counters(run.steps, run.evaluations, rounds=run.rounds, seconds=monitor.seconds)
        solution = Solution(best.dual, best.gradient, status, counters, trace=monitor.trace)
        if status is not Status.PRECISION:
            return solution
        left = StoppingRule(
            self.stopping.violation, self.stopping.gap, monitor.iterations_left(run.steps), monitor.seconds_left()
        )
        found = self._block_solver(left).solve(problem, best.dual, monitor.nested_callback)
        return replace(found, counters=counters + found.counters, trace=monitor.trace)

    def _suits(self, problem: DualProblem) -> bool:
        """Whether the kernel values of all samples fit the memory, or there are few features."""
        matrix = problem.matrix
        if not isinstance(matrix, DifferenceMatrix) or not (problem.linear == 1.0).all():
            return False  # scaled because of extreme magnitudes
        size, features = matrix.base.size, matrix.base.features()
        few = features is not None and features.width < size
        return few or matrix.base.in_memory() is not None or (size <= MAX_SAMPLES and 8 * size**2 <= self.cache_bytes)

    def _block_solver(self, rule: StoppingRule) -> BlockSolver:
        """Return the solver for large kernels, and for indefinite ones, on which Newton steps fail."""
        return BlockSolver(cache_bytes=self.cache_bytes, stopping=rule, threads=self.threads)


class _MultiplierRun:
    """One run of the solver.

    Attributes
    ----------
    best : DualPoint
        The point of the largest dual value so far.
    steps, rounds, evaluations : int
        Newton steps, inner iterations, kernel values computed.
    indefinite : bool
        Whether a direction of negative curvature was met.
    """

    def __init__(
        self, problem: DualProblem, matrix: DifferenceMatrix, dual: Floats, monitor: Monitor, threads: int
    ) -> None:
        self.problem, self.matrix, self.monitor, self.threads = problem, matrix, monitor, threads
        self.first = np.ascontiguousarray(matrix.first, dtype=np.int64)
        self.second = np.ascontiguousarray(matrix.second, dtype=np.int64)
        self.steps = self.rounds = 0
        self.indefinite = False
        self.best = DualPoint(problem, dual, problem.linear.copy())  # replaced before the first step
        self.equations = equations_for(matrix.base)
        self.evaluations = matrix.base.size**2
        self.centre = dual
        self.coefficients = matrix.sample_coefficients(dual)
        self.scores = self.equations.product(self.coefficients)
        if not np.isfinite(self.scores).all():
            raise ValueError(NON_FINITE_MESSAGE)
        self.best = self._point(dual, self.scores)
        self._largest_cost = float(problem.upper.max())

    def progress(self) -> Progress:
        """Return the progress report."""
        return self.best.progress(self.monitor, self.steps, self.evaluations)

    def solve(self) -> Status:
        """Iterate until the point is optimal or double precision is exhausted."""
        self.monitor.report_start(self.progress)
        width, factor, fell, failures = self._initial_width(), SMALLEST_FACTOR, False, 0
        violation = previous = np.inf
        stall = StallDetector(STALL_STEPS)
        limit, finishing = MAX_FIRST_STEPS, self.best.meets(self.monitor.rule)
        while not finishing or self._worth_finishing(violation, previous):
            state = self.coefficients, self.scores
            tolerance = min(EQUATION_FRACTION * min(width, 1.0), VIOLATION_FRACTION * violation)
            point, steps = self._inner(width, tolerance, limit)
            self.rounds += 1
            limit = MAX_STEPS
            if point is None:
                self.coefficients, self.scores = state
                failures += 1
                if finishing or self.indefinite or failures > MAX_FAILURES:
                    break
                width, factor = (width / factor, sqrt(factor)) if fell else (width * GROWTH, factor)
                fell = False
                continue
            failures = 0
            self.centre, previous, violation = point.dual, violation, point.violation
            if stall.stalled(violation, self.steps + self.rounds):
                break
            if point.value >= self.best.value:
                self.best = point
            finishing = point.meets(self.monitor.rule) or finishing
            fell = steps <= EASY_STEPS and violation > 0.1 * previous
            if fell:
                factor = max(SMALLEST_FACTOR, factor * factor)
                width *= factor
        return Status.CONVERGED if self.best.meets(self.monitor.rule) else Status.PRECISION

    def _worth_finishing(self, violation: float, previous: float) -> bool:
        """Return whether a point within the tolerance can be improved at little cost."""
        best = self.best
        few = len(self.scores) <= MAX_SINGLE_THREAD_SAMPLES
        if best.gap <= (FINAL_GAP_OF_SMALL if few else FINAL_GAP) * abs(best.value) or not np.isfinite(violation):
            return False
        return violation <= 0.5 * previous or not best.meets(self.monitor.rule)

    def _inner(self, width: float, tolerance: float, limit: int) -> tuple[DualPoint | None, int]:
        """Solve s = K β(s) to the tolerance; return the point, None if so many steps do not suffice, and the steps."""
        pairs = _native.PairArrays(
            first=self.first,
            second=self.second,
            centre=self.centre,
            upper=self.problem.upper,
            stiffness=1.0 / width,
        )
        responses, answer = np.empty(self.problem.size), np.empty(len(self.scores))
        last = np.inf
        for step in range(limit + 1):
            _native.pair_responses(pairs, self.scores, responses, answer)
            residual = self.coefficients - answer
            product = self.equations.product(residual)
            error = float(np.abs(product).max())
            rounding = 64 * DOUBLE_EPSILON * float(np.abs(self.scores).max() + np.abs(answer).max())
            if not np.isfinite(error):
                return None, step
            if error <= tolerance or (error <= rounding and error > 0.5 * last):
                return self._point(responses, self.scores - product), step
            if step == limit:
                break
            last = error
            self._check_limits(responses, product)
            free = np.flatnonzero((responses > 0.0) & (responses < self.problem.upper))
            change, direction = self._direction(residual, product, free, width)
            own, square = inner(self.coefficients, direction), inner(change, direction)
            slope = own - inner(answer, direction)
            self.indefinite = square < -rounding * float(np.abs(change).sum())
            if self.indefinite or not (np.isfinite(square) and slope < 0.0):
                return None, step

            def slope_at(t: float, along: Floats = direction, own: float = own, square: float = square) -> float:
                return own + t * square - _native.pair_slope(pairs, self.scores, along, t, self.threads)

            t = step_length(slope_at, slope)
            self.coefficients = self.coefficients + t * change
            self.scores = self.scores + t * direction
            self.steps += 1
        return None, limit

    def _direction(self, residual: Floats, product: Floats, free: Indices, width: float) -> tuple[Floats, Floats]:
        """Return the Newton direction of coefficients and scores."""
        if not len(free):
            return -residual, -product
        weights = self.problem.upper[free] / width
        dense = isinstance(self.equations, KernelEquations)
        laplacian = pair_laplacian(self.first[free], self.second[free], weights, len(residual), dense)
        return self.equations.step(residual, product, laplacian)

    def _point(self, dual: Floats, scores: Floats) -> DualPoint:
        """Return the point of a dual vector whose scores are known."""
        return DualPoint(self.problem, dual, 1.0 - (scores[self.first] - scores[self.second]))

    def _check_limits(self, responses: Floats, product: Floats) -> None:
        """Report progress; at a limit, keep the present responses if they are better than the best point."""
        try:
            self.monitor.check(self.progress, self.steps)
        except SolverStoppedError:
            present = self._point(responses.copy(), self.scores - product)
            if present.value > self.best.value:
                self.best = present
            raise

    def _initial_width(self) -> float:
        scale = float(np.mean(self.matrix.base.diagonal()))
        return max(INITIAL_WIDTH, INITIAL_RIDGE * scale * self._largest_cost)
