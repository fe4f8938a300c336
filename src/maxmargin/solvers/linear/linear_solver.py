"""The quickest way to train a linear machine: coordinate ascent, Newton's method, or one after the other.

Few features for many samples: Newton's method, begun on a sample of the samples with weights that count for all. Its
solution is nearly that of the whole, so that a few steps with all data are left. Otherwise coordinate ascent comes
first. How the gaps of the samples fall from pass to pass tells how many passes are left, and how many samples are
between their bounds what Newton's method would cost instead: when that is less, it goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.problems import Counters, DualProblem, InfeasibleProblemError, Solution, Status
from maxmargin.solvers.linear.dual_coordinate_ascent import AscentRun
from maxmargin.solvers.linear.linear_point import LinearPoint, features_of
from maxmargin.solvers.linear.newton_equations import EXACT
from maxmargin.solvers.linear.newton_start import Beginning, near
from maxmargin.solvers.linear.semismooth_newton import NewtonRun
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, StoppingRule

#: A sample of the samples has at least so many, and so many for each feature; and it is this part of all.
FEWEST, FOR_EACH_FEATURE, PART = 1000, 20, 16

#: A sample is worth it if there are so many times more samples than it needs.
ENOUGH = 20

#: The relative gap to which a sample is solved.
ROUGH = 1e-2

#: Multiplications that a matrix product does in the time of one of a sparse product, and that a factorisation does.
BLAS_GAIN, FACTOR_GAIN = 8.0, 32.0

#: If a Newton step costs less than so many passes, coordinate ascent is left out.
CHEAP_STEP = 12.0

#: Steps that Newton's method takes about, where samples have a ridge and where it needs rounding, and passes of each.
STEPS, ROUNDED_STEPS, PASSES_A_STEP = 6, 25, 1.5

#: So it takes at least so many passes.
LEAST_PRICE = STEPS * PASSES_A_STEP

#: Passes that are taken where Newton's method has found no way, and the most multiplications of all of them.
LAST_PASSES, LAST_RESORT = 3000, 3 * 10**8

#: Before that pairs of variables are tried if samples are so few: so many steps for each, to one violation after the
#: other.
FEW, PAIR_STEPS, VIOLATIONS = 2000, 100, (1e-2, 1e-4, 1e-6, 1e-8)

#: Passes of coordinate ascent where Newton's equations are large in every respect.
MOST_PASSES = 300


@dataclass(frozen=True)
class LinearSolver:
    """Chooses how to train a linear machine.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass of coordinate ascent or a Newton step.
    seed : int
        For the order of the samples and the choice of some.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem whose matrix is a product of features."""
        rows = features_of(problem, "linear")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        begin, spent = Beginning(point), Counters()
        if point.accepted(self.stopping):
            return point.solution(Status.CONVERGED, spent, monitor)
        monitor.report_start(lambda: point.progress(0, monitor))
        cheap = step_price(rows) <= CHEAP_STEP
        if start is None and cheap:
            found, spent, ended = solution_of_a_sample(problem, rows, monitor, self.seed)
            if found is not None:
                begin = near(problem, rows, found.weights, found.offset, self.stopping)
            if ended is not None:
                return point.or_better(begin.point).solution(ended, spent, monitor)
        elif start is not None and cheap:
            begin = near(problem, rows, point.weights, point.offset, self.stopping)._replace(point=point)
        else:
            run_up = AscentRun(problem, rows, point, monitor, self.seed)
            status = ascend(run_up)
            point, spent = run_up.point, run_up.counters()
            if status is not None:
                return point.solution(status, spent, monitor)
            begin = Beginning(point)
        run = NewtonRun(problem, rows, begin, monitor)
        run.point = point.or_better(begin.point)
        run.iterations = spent.iterations
        status, point = run.solve(), run.point
        spent = replace(run.counters(), rounds=run.rounds + spent.rounds)
        if status is Status.PRECISION:
            status, point, spent = self._last_resorts(problem, rows, point, spent, monitor)
        return point.solution(status, spent, monitor)

    def _last_resorts(
        self, problem: DualProblem, rows: Features, point: LinearPoint, spent: Counters, monitor: Monitor
    ) -> tuple[Status, LinearPoint, Counters]:
        """Try what is left where rounding has brought Newton's method to a halt: pairs, a new start, single steps."""
        status, point, passes = by_pairs(problem, rows, point, spent.iterations, monitor)
        spent = replace(spent, iterations=spent.iterations + passes)
        if status is not Status.PRECISION:
            return status, point, spent
        rule, least = self.stopping, LinearPoint.start(problem, rows, None, self.stopping)
        newton = NewtonRun(problem, rows, Beginning(least), monitor)
        newton.point, newton.iterations = point.or_better(least), spent.iterations
        status, point = newton.solve(), newton.point
        spent = replace(newton.counters(), rounds=newton.rounds + spent.rounds)
        if status is not Status.PRECISION:
            return status, point, spent
        start = LinearPoint.start(problem, rows, point.dual, rule)
        ascent = AscentRun(problem, rows, start, monitor, self.seed)
        ascent.iterations = spent.iterations
        last = spent.iterations + min(LAST_PASSES, LAST_RESORT // max(1, rows.stored))
        ended = ascent.solve(lambda: ascent.iterations < last)
        point = point.or_better(ascent.point)
        if ended is None or ended is Status.PRECISION:
            ended = Status.CONVERGED if point.accepted(rule) else Status.PRECISION
        return ended, point, replace(ascent.counters(), rounds=ascent.looks + spent.rounds)


def by_pairs(
    problem: DualProblem, rows: Features, point: LinearPoint, iterations: int, monitor: Monitor
) -> tuple[Status, LinearPoint, int]:
    """Solve a problem of few samples along pairs of variables, whose gradients are kept one by one.

    Nearly hard margins of about as many features as samples are easy for that, and hard for weights. As many pair steps
    as there are samples count as one iteration; the number of these is returned, too.
    """
    rule, dual, steps = monitor.rule, None, 0
    if problem.size > FEW:
        return Status.PRECISION, point, 0
    for violation in VIOLATIONS:
        left = monitor.iterations_left(iterations + -(-steps // problem.size))
        most = PAIR_STEPS * problem.size
        allowed = most if left is None else min(most, left * problem.size)
        stopping = StoppingRule(violation, None, allowed, monitor.seconds_left())
        solution = PairwiseSolver(stopping=stopping).solve(problem, dual, monitor.nested_callback)
        dual, steps = solution.dual, steps + solution.counters.iterations
        point = point.or_better(LinearPoint.start(problem, rows, dual, rule))
        passes = -(-steps // problem.size)
        if point.accepted(rule):
            return Status.CONVERGED, point, passes
        if solution.status in (Status.INTERRUPTED, Status.STOPPED, Status.MAX_SECONDS):
            return solution.status, point, passes
        if solution.status is Status.MAX_ITERATIONS and allowed < most:
            return Status.MAX_ITERATIONS, point, passes
        if solution.status is not Status.CONVERGED:
            break
    return Status.PRECISION, point, -(-steps // problem.size)


def step_price(rows: Features) -> float:
    """Return what Newton's first step costs, in passes over the data, if all samples are between their bounds."""
    if min(rows.dimension, rows.size) > EXACT:
        return np.inf
    if rows.dimension > rows.size:
        return 4.0 + rows.size / BLAS_GAIN
    dense = rows.stored >= rows.size * rows.width
    per_row = rows.stored / max(1, rows.size)
    return 4.0 + (rows.width / BLAS_GAIN if dense else 0.5 * per_row) + _factor_price(rows, rows.dimension)


def price_from_here(problem: DualProblem, rows: Features, between: int) -> float:
    """Return what Newton's method costs, in passes over the data, with so many samples between their bounds.

    Only the first step sums up the products of their features; later ones correct the sums.
    """
    least = min(rows.dimension, between)
    if least > EXACT:
        return np.inf  # conjugate gradients
    steps = STEPS if float(problem.ridge.min(initial=1.0)) > 0 else ROUNDED_STEPS
    sums = least / BLAS_GAIN * between / max(1, rows.size)
    return steps * (PASSES_A_STEP + _factor_price(rows, least)) + sums


def _factor_price(rows: Features, size: int) -> float:
    """Return what Cholesky's factor of so many equations costs, in passes over the data."""
    return size**3 / (3 * FACTOR_GAIN * max(1, rows.stored))


def solution_of_a_sample(
    problem: DualProblem, rows: Features, monitor: Monitor, seed: int
) -> tuple[LinearPoint | None, Counters, Status | None]:
    """Return where a sample of the samples leads to, itself begun on a smaller one; None if all are few.

    Besides, what it cost, and how the whole fit ends if somebody or a limit ended it meanwhile.
    """
    least = max(FEWEST, FOR_EACH_FEATURE * rows.dimension)
    if problem.size < ENOUGH * least:
        return None, Counters(), None
    count = max(least, problem.size // PART)
    chosen = np.sort(np.random.default_rng(seed).choice(problem.size, count, replace=False))
    times = problem.size / count
    try:
        some = DualProblem(
            problem.matrix.take(chosen),
            problem.linear[chosen],
            problem.lower[chosen] * times,
            problem.upper[chosen] * times,
            problem.ridge[chosen] / times,
            problem.group[chosen],
            problem.total,
        )
    except InfeasibleProblemError:  # the sample cannot keep a sum that all together can
        return None, Counters(), None
    rule = StoppingRule(np.finfo(float).tiny, None, monitor.iterations_left(0), monitor.seconds_left(), ROUGH)
    few = features_of(some, "linear")
    found, spent, ended = solution_of_a_sample(some, few, monitor, seed + 1)
    if ended is not None:
        return found, spent, ended
    point = LinearPoint.start(some, few, None, rule)
    begin = Beginning(point) if found is None else near(some, few, found.weights, found.offset, rule)
    run = NewtonRun(some, few, begin, Monitor(rule, monitor.nested_callback))
    run.point = point.or_better(begin.point)
    run.iterations = spent.iterations
    status = run.solve()
    ended = (
        status if status in (Status.INTERRUPTED, Status.STOPPED, Status.MAX_ITERATIONS, Status.MAX_SECONDS) else None
    )
    return run.point, run.counters(), ended


def ascend(run: AscentRun) -> Status | None:
    """Take passes as long as they promise to end sooner than Newton's method would; return how the run ends, if so."""
    problem = run.problem

    def worth_it() -> bool:
        left = run.passes_left()
        if left <= LEAST_PRICE or run.iterations >= MOST_PASSES:
            return run.iterations < MOST_PASSES
        between = int(np.count_nonzero((run.dual > problem.lower) & (run.dual < problem.upper)))
        return left <= price_from_here(problem, run.rows, between)

    return run.solve(worth_it)
