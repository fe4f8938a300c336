"""Default solver for the linear kernel: dual coordinate ascent, the semismooth Newton method, or both.

With few features for many samples the Newton method is used, started at the solution of a random subsample with scaled
costs, which is nearly optimal for all samples, so that few steps on all data remain. Otherwise coordinate ascent comes
first. The decrease of the gap from pass to pass gives the estimated number of remaining passes, the number of free
samples the cost of the Newton method, and the number of support vectors that of block decomposition on kernel values,
which suits the hinge with a large C on text, whose features are too many for the Newton method. As soon as one of the
two is cheaper than the remaining passes, it takes over. All estimates are operation counts, so that the choice depends
on the data alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.matrices.float32_row_cache import MAX_COST_OF_RECOMPUTING
from maxmargin.precision import SMALLEST_DOUBLE
from maxmargin.problems import Counters, DualProblem, InfeasibleProblemError, Solution, Status
from maxmargin.solvers.block.block_solver import BlockSolver
from maxmargin.solvers.linear.dual_coordinate_ascent import CoordinateAscentRun
from maxmargin.solvers.linear.linear_point import LinearPoint, features_of
from maxmargin.solvers.linear.newton_equations import MAX_FACTORISED
from maxmargin.solvers.linear.semismooth_newton import SemismoothNewtonRun
from maxmargin.solvers.linear.smoothed_primal import NewtonStart, start_near
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The size of a subsample: at least this many samples, this many for each feature, and one in this many of all.
MIN_SUBSAMPLE, SUBSAMPLE_PER_FEATURE, SUBSAMPLE_ONE_IN = 1000, 20, 16

#: A subsample is used if there are at least this many times more samples than its minimum size.
MIN_SUBSAMPLE_RATIO = 20

#: The relative gap to which a subsample is solved.
SUBSAMPLE_RELATIVE_GAP = 1e-2

#: Multiplications of a matrix product, and of a factorisation, in the time of one of a sparse product.
BLAS_SPEEDUP, FACTORISATION_SPEEDUP = 8.0, 32.0

#: If the first Newton step costs at most this many passes, coordinate ascent is skipped.
MAX_CHEAP_STEP_PASSES = 12.0

#: Typical Newton steps with a ridge and with smoothing, and passes over the data of each step.
NEWTON_STEPS, SMOOTHED_NEWTON_STEPS, PASSES_PER_STEP = 6, 25, 1.5

#: The least cost of the Newton method in passes.
MIN_NEWTON_PASSES = NEWTON_STEPS * PASSES_PER_STEP

#: The most passes of coordinate ascent after the Newton method has stalled, and their most multiplications.
MAX_FALLBACK_PASSES, MAX_FALLBACK_MULTIPLICATIONS = 3000, 3 * 10**8

#: The pairwise solver is the first fallback for at most this many samples, with this limit on the steps per
#: sample for each of these tolerances on the violation.
MAX_PAIRWISE_SAMPLES, PAIRWISE_STEPS_PER_SAMPLE, PAIRWISE_VIOLATIONS = 2000, 100, (1e-2, 1e-4, 1e-6, 1e-8)

#: The most passes of coordinate ascent before the Newton method.
MAX_PASSES_BEFORE_NEWTON = 300

#: Kernel values of so many support vectors with all samples are computed in the time of a pass; measured on generated
#: text of 60 and 150 words a document.
SUPPORT_VECTORS_PER_PASS = 5.5

#: Its rows of kernel values must fit into this memory.
MAX_KERNEL_BYTES = 2**30

#: Coordinate ascent often becomes faster: it continues for at least this fraction of the cost of block decomposition.
MIN_FRACTION_BEFORE_KERNEL = 0.25

#: Kernel values are used until the gap that the violation lets expect is this fraction of the tolerance.
KERNEL_GAP_FRACTION = 0.5


@dataclass(frozen=True)
class LinearSolver:
    """Dual coordinate ascent and the semismooth Newton method, chosen by estimated cost.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass of coordinate ascent, a Newton step, or as many pair steps as there are samples.
    seed : int
        Seed of the order of the samples and of the subsample.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem with the linear kernel."""
        rows = features_of(problem, "linear")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        newton_start, spent = NewtonStart(point), Counters()
        if point.accepted(self.stopping):
            return point.solution(Status.CONVERGED, spent, monitor)
        monitor.report_start(lambda: point.progress(0, monitor))
        cheap = first_step_cost(rows) <= MAX_CHEAP_STEP_PASSES
        if start is None and cheap:
            found, spent, ended = solve_subsample(problem, rows, monitor, self.seed)
            if found is not None:
                try:
                    newton_start = start_near(problem, rows, found.weights, found.offset, self.stopping)
                except Interruption as interruption:  # then the weights of the subsample are the best ones
                    ended, point = status_of(interruption), replace(point, weights=found.weights)
            if ended is not None:
                return point.or_better(newton_start.point).solution(ended, spent, monitor)
        elif start is not None and cheap:
            near = start_near(problem, rows, point.weights, point.offset, self.stopping)
            newton_start = near._replace(point=point)
        else:
            ascent = CoordinateAscentRun(problem, rows, point, monitor, self.seed)
            status = ascend_while_cheaper(ascent)
            point, spent = ascent.point, ascent.counters()
            if status is None and np.isfinite(kernel_cost(ascent)):
                status, point, passes = solve_by_kernel_values(problem, rows, point, spent.iterations, monitor)
                spent = replace(spent, iterations=spent.iterations + passes)
                status = None if status is Status.PRECISION else status
            if status is not None:
                return point.solution(status, spent, monitor)
            newton_start = NewtonStart(point)
        status, point, spent = _newton(problem, rows, newton_start, point, spent, monitor)
        if status is Status.PRECISION:
            status, point, spent = self._solve_after_stall(problem, rows, point, spent, monitor)
        return point.solution(status, spent, monitor)

    def _solve_after_stall(
        self, problem: DualProblem, rows: Features, point: LinearPoint, spent: Counters, monitor: Monitor
    ) -> tuple[Status, LinearPoint, Counters]:
        """Try the pairwise solver, the Newton method from another start, and coordinate ascent, in this order."""
        status, point, passes = solve_pairwise(problem, rows, point, spent.iterations, monitor)
        spent = replace(spent, iterations=spent.iterations + passes)
        if status is not Status.PRECISION:
            return status, point, spent
        rule, default = self.stopping, LinearPoint.start(problem, rows, None, self.stopping)
        status, point, spent = _newton(problem, rows, NewtonStart(default), point, spent, monitor)
        if status is not Status.PRECISION:
            return status, point, spent
        start = LinearPoint.start(problem, rows, point.dual, rule)
        ascent = CoordinateAscentRun(problem, rows, start, monitor, self.seed)
        ascent.iterations = spent.iterations
        last = spent.iterations + min(MAX_FALLBACK_PASSES, MAX_FALLBACK_MULTIPLICATIONS // max(1, rows.stored))
        ended = ascent.solve(lambda: ascent.iterations < last)
        point = point.or_better(ascent.point)
        if ended is None or ended is Status.PRECISION:
            ended = Status.CONVERGED if point.accepted(rule) else Status.PRECISION
        return ended, point, replace(ascent.counters(), rounds=ascent.evaluations + spent.rounds)


def _newton(
    problem: DualProblem, rows: Features, start: NewtonStart, best: LinearPoint, spent: Counters, monitor: Monitor
) -> tuple[Status, LinearPoint, Counters]:
    """Run the Newton method; return its status, the best point including `best`, and the counters so far."""
    run = SemismoothNewtonRun(problem, rows, start, monitor)
    run.point = best.or_better(start.point)
    run.iterations = spent.iterations
    status = run.solve()
    return status, run.point, replace(run.counters(), rounds=run.rounds + spent.rounds)


def solve_pairwise(
    problem: DualProblem, rows: Features, point: LinearPoint, iterations: int, monitor: Monitor
) -> tuple[Status, LinearPoint, int]:
    """Solve a small problem by SMO, which keeps a gradient for each sample; return also the iterations it counts as.

    This suits nearly hard margins with about as many features as samples, where methods on the weights stall. As many
    pair steps as there are samples count as one iteration.
    """
    rule, dual, steps = monitor.rule, None, 0
    if problem.size > MAX_PAIRWISE_SAMPLES:
        return Status.PRECISION, point, 0
    passes, most = 0, PAIRWISE_STEPS_PER_SAMPLE * problem.size
    for violation in PAIRWISE_VIOLATIONS:
        left = monitor.iterations_left(iterations + passes)
        allowed = most if left is None else min(most, left * problem.size)
        stopping = StoppingRule(violation, None, allowed, monitor.seconds_left())
        solution = PairwiseSolver(stopping=stopping).solve(problem, dual, monitor.nested_callback)
        dual, steps = solution.dual, steps + solution.counters.iterations
        passes = -(-steps // problem.size)
        point = point.or_better(LinearPoint.start(problem, rows, dual, rule))
        if point.accepted(rule):
            return Status.CONVERGED, point, passes
        if solution.status in (Status.INTERRUPTED, Status.STOPPED, Status.MAX_SECONDS):
            return solution.status, point, passes
        if solution.status is Status.MAX_ITERATIONS and allowed < most:
            return Status.MAX_ITERATIONS, point, passes
        if solution.status is not Status.CONVERGED:
            break
    return Status.PRECISION, point, passes


def solve_by_kernel_values(
    problem: DualProblem, rows: Features, point: LinearPoint, iterations: int, monitor: Monitor
) -> tuple[Status, LinearPoint, int]:
    """Solve by block decomposition from a point; return also the iterations it counts as.

    As many pair steps as there are samples count as one iteration. The status PRECISION means that the gap of the
    weights is not within the tolerance.
    """
    rule, left = monitor.rule, monitor.iterations_left(iterations)
    allowed = None if left is None else left * problem.size
    # A gap is about the violation times Σ|b|, and evaluated seldom, by weights: the violation costs nothing.
    tolerated = (rule.relative_gap or 0.0) * point.dual_value / float(np.abs(point.dual).sum())
    stopping = StoppingRule(KERNEL_GAP_FRACTION * tolerated, None, allowed, monitor.seconds_left())
    solver = BlockSolver(stopping=stopping, cache_bytes=MAX_KERNEL_BYTES, threads=rows.threads)
    solution = solver.solve(problem, point.dual, monitor.nested_callback)
    point = point.or_better(LinearPoint.start(problem, rows, solution.dual, rule))
    passes = -(-solution.counters.iterations // problem.size)
    if point.accepted(rule):
        return Status.CONVERGED, point, passes
    ended = solution.status not in (Status.CONVERGED, Status.PRECISION)
    return solution.status if ended else Status.PRECISION, point, passes


def kernel_cost(run: CoordinateAscentRun) -> float:
    """Return the cost of block decomposition in passes over the data, given a dual vector near the optimum.

    It is infinite for problems that other methods solve sooner: those whose Newton equations can be factorised; with a
    ridge, where conjugate gradients are fast; without a group, where coordinate ascent is; and with short rows, which
    the block solver does not keep but computes again.
    """
    problem, support = run.problem, int(np.count_nonzero(run.dual))
    suitable = problem.groups == 1 and run.rule.relative_gap is not None and run.point.dual_value > 0
    if not suitable or problem.ridge.any() or problem.matrix.cost <= MAX_COST_OF_RECOMPUTING:
        return np.inf
    if min(run.rows.dimension, run.count_free()) <= MAX_FACTORISED:
        return np.inf
    return support / SUPPORT_VECTORS_PER_PASS if 4 * support * problem.size <= MAX_KERNEL_BYTES else np.inf


def first_step_cost(rows: Features) -> float:
    """Return the cost of the first Newton step in passes over the data, if all samples are free."""
    if min(rows.dimension, rows.size) > MAX_FACTORISED:
        return np.inf
    if rows.dimension > rows.size:
        return 4.0 + rows.size / BLAS_SPEEDUP
    dense = rows.stored >= rows.size * rows.width
    per_row = rows.stored / max(1, rows.size)
    products = rows.width / BLAS_SPEEDUP if dense else 0.5 * per_row
    return 4.0 + products + _factorisation_cost(rows, rows.dimension)


def newton_cost(problem: DualProblem, rows: Features, free: int) -> float:
    """Return the cost of the Newton method in passes over the data, given the number of free samples.

    Only the first step computes the moments of the features; later ones update them.
    """
    least = min(rows.dimension, free)
    if least > MAX_FACTORISED:
        return np.inf  # conjugate gradients
    steps = NEWTON_STEPS if float(problem.ridge.min(initial=1.0)) > 0 else SMOOTHED_NEWTON_STEPS
    moments = least / BLAS_SPEEDUP * free / max(1, rows.size)
    return steps * (PASSES_PER_STEP + _factorisation_cost(rows, least)) + moments


def _factorisation_cost(rows: Features, size: int) -> float:
    """Return the cost of a Cholesky factorisation of this size, in passes over the data."""
    return size**3 / (3 * FACTORISATION_SPEEDUP * max(1, rows.stored))


def solve_subsample(
    problem: DualProblem, rows: Features, monitor: Monitor, seed: int
) -> tuple[LinearPoint | None, Counters, Status | None]:
    """Solve a random subsample, itself started at a smaller one; return its solution, None if there are few samples.

    The counters are returned as well, and a status if a limit, the callback or an interrupt ends the fit meanwhile.
    """
    least = max(MIN_SUBSAMPLE, SUBSAMPLE_PER_FEATURE * rows.dimension)
    if problem.size < MIN_SUBSAMPLE_RATIO * least:
        return None, Counters(), None
    count = max(least, problem.size // SUBSAMPLE_ONE_IN)
    chosen = np.sort(np.random.default_rng(seed).choice(problem.size, count, replace=False))
    scale = problem.size / count
    try:
        subproblem = DualProblem(
            problem.matrix.take(chosen),
            problem.linear[chosen],
            problem.lower[chosen] * scale,
            problem.upper[chosen] * scale,
            problem.ridge[chosen] / scale,
            problem.group[chosen],
            problem.total,
        )
    except InfeasibleProblemError:  # the subsample cannot satisfy an equality constraint
        return None, Counters(), None
    limits = monitor.iterations_left(0), monitor.seconds_left()
    rule = StoppingRule(SMALLEST_DOUBLE, None, *limits, SUBSAMPLE_RELATIVE_GAP)
    chosen_rows = features_of(subproblem, "linear")
    found, spent, ended = solve_subsample(subproblem, chosen_rows, monitor, seed + 1)
    if ended is not None:
        return found, spent, ended
    point = LinearPoint.start(subproblem, chosen_rows, None, rule)
    start = NewtonStart(point)
    if found is not None:
        start = start_near(subproblem, chosen_rows, found.weights, found.offset, rule)
    status, point, spent = _newton(
        subproblem, chosen_rows, start, point, replace(spent, rounds=0), Monitor(rule, monitor.nested_callback)
    )
    limits_reached = (Status.INTERRUPTED, Status.STOPPED, Status.MAX_ITERATIONS, Status.MAX_SECONDS)
    return point, spent, status if status in limits_reached else None


def ascend_while_cheaper(run: CoordinateAscentRun) -> Status | None:
    """Take passes while they are estimated to be cheaper than the other methods; return a status if the run ends."""
    problem = run.problem

    def cheaper() -> bool:
        remaining = run.remaining_passes()
        if remaining <= MIN_NEWTON_PASSES or run.iterations >= MAX_PASSES_BEFORE_NEWTON:
            return run.iterations < MAX_PASSES_BEFORE_NEWTON
        kernel = kernel_cost(run)
        if np.isfinite(kernel):
            return remaining <= kernel or run.iterations < MIN_FRACTION_BEFORE_KERNEL * kernel
        return remaining <= newton_cost(problem, run.rows, run.count_free())

    return run.solve(cheaper)
