"""Training of linear models on blocks of rows: Newton's method, one pass over the data for each step.

All problems of a fit (classes against the rest, outputs of a regression) share each pass. The objective bounds of a
pass are the certificate: they are computed in float64 from the data and the weights, with proven bounds on rounding
errors (`solvers.linear.pass_sums`), and no further pass is needed to verify a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.deadline import Deadline, TimeLimitReachedError, check_deadline
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features, Moments
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.losses import conjugate, excess, residuals
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers.linear.linear_point import features_of, minimise_over_offset
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses
from maxmargin.solvers.linear.pass_bounds import DualConstraints
from maxmargin.solvers.linear.pass_sums import PassPoint, PassSums, evaluate_block
from maxmargin.solvers.linear.smoothed_primal import mean_squared_norm
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.stopping import StoppingRule
from maxmargin.training.pipeline import Session, Solver
from maxmargin.training.proximal_centres import ProximalCentres
from maxmargin.training.trained_model import TrainedLinearModel

#: The first σ is the largest whose smoothing leaves a gap of this fraction of the tolerance, if it lets so many samples
#: per feature be free: with fewer, the Newton equations do not determine the weights.
SMOOTHING_FRACTION, FREE_PER_FEATURE = 0.3, 4

#: The error of slacks at the solution of m rows with d weights, relative to their mean: about √(d/m), of which this
#: fraction is enough for Newton steps to find the free samples.
SAMPLE_ERROR = 0.2

#: Second moments of a sample take the place of those of all rows if it has so many rows per weight: they are off by
#: about 10 % then, and so is a Newton step.
MIN_SAMPLE_PER_WEIGHT = 100

#: The least σ relative to the mean squared norm of a row: where the optimum is 0, slacks have no scale.
MIN_RELATIVE_SIGMA = 1e-9

#: Halvings in the search for that σ.
SIGMA_HALVINGS = 40

#: With more features than this, the Newton equations are solved by products with the Hessian, a pass each.
MAX_SECOND_MOMENTS = 3000


class TrainingBlock(NamedTuple):
    """Rows with a positive weight.

    Attributes
    ----------
    rows : Features
    targets : array
        The number of the class of each row, or its targets.
    weights : float array
    largest_norm : float
        No row has a larger norm.
    first : int
        The position of the first row among all that are read here.
    """

    rows: Features
    targets: np.ndarray[Any, Any]
    weights: Floats
    largest_norm: float
    first: int = 0


#: From a block and the number of a class or output to the problem of its samples.
PoseBlock = Callable[[TrainingBlock, int], DualProblem]


class KindPose(ABC):
    """A `PoseBlock` of samples that differ in their kind alone, unless they have weights."""

    @abstractmethod
    def __call__(self, block: TrainingBlock, number: int) -> DualProblem:
        """Return the problem of all samples."""

    @abstractmethod
    def kinds(self, block: TrainingBlock) -> NDArray[np.int32] | None:
        """Return the kind of each sample, None if they differ otherwise, too."""

    @abstractmethod
    def one_of_each(self, block: TrainingBlock) -> TrainingBlock:
        """Return a block with one sample of each kind, whose rows are arbitrary."""


#: From points of problems, by number, to the sums over all samples.
EvaluatePass = Callable[[dict[int, PassPoint]], dict[int, PassSums]]

#: What overflows leaves no bound, or is an error.
ignoring_overflow = np.errstate(over="ignore", invalid="ignore")


@ignoring_overflow
def evaluate_pass(
    blocks: Iterable[TrainingBlock],
    pose: PoseBlock,
    points: dict[int, PassPoint],
    origin: Floats | None,
    centres: ProximalCentres,
) -> dict[int, PassSums]:
    """Return the sums over all blocks at a point of each problem; `centres` are kept from pass to pass."""
    totals: dict[int, PassSums] = {}
    for number, point in points.items():
        centres.begin(number, point)
    for block in blocks:
        at = slice(block.first, block.first + block.rows.size)
        kinds = pose.kinds(block) if isinstance(pose, KindPose) else None
        posed = pose.one_of_each(block) if isinstance(pose, KindPose) and kinds is not None else block
        for number, point in points.items():
            check_deadline()
            problem, centre = pose(posed, number), centres.centre(number, at)
            sums, response = evaluate_block(problem, block.rows, point, block.largest_norm, origin, centre, kinds)
            centres.keep(number, at, response)
            totals[number] = totals[number] + sums if number in totals else sums
    return totals


def solve_sample(problem: DualProblem, solver: Solver, deadline: Deadline) -> tuple[Floats, Floats]:
    """Return the weights and offsets of a problem in memory, as good as they are at the deadline."""
    posed = SplitProblem.of(problem).problem if problem.kinked else problem  # linear solvers take no kinks
    rows = features_of(posed, "LinearSolver")
    try:
        with deadline.in_force():
            solution: Solution = solver.solve(posed)
        weights = rows.weights(solution.dual) if solution.weights is None else solution.weights
    except (TimeLimitReachedError, ValueError):  # before the first point; numbers that overflow, perhaps not in passes
        weights = np.zeros(rows.dimension)
    offset, _ = minimise_over_offset(posed, rows, weights, posed.linear - rows.decisions(weights))
    return weights, offset


def smoothed_point(
    problem: DualProblem, rows: Features, weights: Floats, offset: Floats, tolerance: float, scale: float, count: int
) -> PassPoint:
    """Return weights and offsets as a point of the passes over `count` rows, with a σ that suits the tolerance.

    `problem` is that of a sample, whose costs are larger by the factor `scale`.
    """
    if not problem.bounded or problem.ridge.any():
        return PassPoint(weights, offset)
    slack = problem.minus_groups(problem.linear - rows.decisions(weights), offset)
    primal = 0.5 * inner(weights, weights) + float(conjugate(problem, slack).sum()) + float(offset @ problem.total)
    gap = SMOOTHING_FRACTION * tolerance * abs(primal)
    # As many samples as there are weights are at their kinks, where the solution of the sample has put them.
    least_free = rows.dimension / rows.size + FREE_PER_FEATURE * rows.dimension / count
    error = SAMPLE_ERROR * float(np.abs(slack).mean()) * sqrt(rows.dimension / rows.size)
    sigma = _first_sigma(problem, slack, gap, least_free, error if rows.size < count else 0.0)
    return PassPoint(weights, offset, max(scale * sigma, MIN_RELATIVE_SIGMA * mean_squared_norm(rows)))


def _first_sigma(problem: DualProblem, slack: Floats, gap: float, least_free: float, error: float) -> float:
    """Return the σ with which smoothing leaves this gap at some slacks.

    It is larger if that let less than a fraction `least_free` of the samples be free, or if the kinks of the smoothed
    losses were closer to each other than the `error` of the slacks.
    """
    beyond = np.abs(excess(problem, slack))
    width = float((problem.upper - problem.lower).mean())
    largest = 2.0 * float(beyond.max(initial=0.0)) / width
    least = 2.0 * max(float(np.quantile(beyond, min(1.0, least_free))), error) / width
    sigma = largest
    for _ in range(SIGMA_HALVINGS):
        response = np.clip(excess(problem, slack) / sigma, problem.lower, problem.upper) if sigma > 0 else slack
        if sigma <= least or float(residuals(problem, response, slack).sum()) <= gap:
            break
        sigma *= 0.5
    return max(sigma, least)


@ignoring_overflow
def train_by_passes(
    evaluate: EvaluatePass,
    runs: Sequence[NewtonByPasses],
    session: Session,
    rows: int,
    after_pass: Callable[[], None] = lambda: None,
) -> list[TrainedLinearModel]:
    """Return the trained models, one for each run; `after_pass` is called after every pass.

    Limits hold from the second pass on: without the first there are no bounds.
    """
    monitor = Monitor(runs[0].rule, session.callback)
    status = Status.CONVERGED
    passes = 0
    try:
        while unfinished := {number: run for number, run in enumerate(runs) if run.status is None}:
            if passes and (limit := monitor.limit_reached(passes)) is not None:
                status = limit
                break
            overflow = np.errstate(over="ignore", invalid="ignore")  # makes the bounds infinite
            with session.deadline.in_force() if passes else nullcontext(), overflow:
                found = evaluate({number: run.point for number, run in unfinished.items()})
                for number, run in unfinished.items():
                    run.receive(found[number])
            passes += 1
            after_pass()
            if monitor.report(lambda: _progress(runs, passes, rows, monitor), now=True):  # noqa: B023
                status = Status.STOPPED
                break
    except Interruption as interruption:
        status = status_of(interruption)
    return [_trained(run, status if run.status is None else run.status, monitor.seconds) for run in runs]


def _progress(runs: Sequence[NewtonByPasses], passes: int, rows: int, monitor: Monitor) -> Progress:
    """Return the progress of the problem with the largest gap."""
    worst = max(runs, key=lambda run: run.gap)
    return Progress(passes, np.inf, worst.primal, worst.dual, rows, monitor.seconds)


def _trained(run: NewtonByPasses, status: Status, seconds: float) -> TrainedLinearModel:
    """Return the model of the best weights, without the arrays that have an entry for each sample."""
    if status is Status.PRECISION and run.primal == np.inf:
        raise ValueError(NON_FINITE_MESSAGE)
    weights, offset = run.weights, run.offset
    shift = float(offset[0]) if len(offset) else run.constant * float(weights[-1])
    certificate = Certificate(
        primal=run.primal,
        dual=run.dual,
        gap=run.gap,
        rounding=run.rounding,
        violation=np.nan,
        infeasibility=0.0,
        squared_norm=inner(weights, weights),
        offset=offset,
        offset_interval=np.repeat(offset[:, None], 2, axis=1),
        slack=np.empty(0),
        residual=np.empty(0),
    )
    counters = Counters(iterations=run.passes, rounds=run.passes, seconds=seconds)
    nothing = np.empty(0, dtype=np.int64)
    return TrainedLinearModel(weights[:-1], shift, np.empty(0), nothing, certificate, status, counters)


def new_run(
    start: PassPoint,
    rule: StoppingRule,
    constraints: DualConstraints,
    rows: Features,
    origin: Floats | None,
    sample_moments: Callable[[PassPoint], Moments] | None = None,
) -> NewtonByPasses:
    """Return the run of a problem of rows like these."""
    about = np.zeros(rows.width) if origin is None else origin
    by_products = rows.width > MAX_SECOND_MOMENTS
    return NewtonByPasses(
        start, rule, constraints, rows.constant, about, by_products, None if by_products else sample_moments
    )


def moments_of_sample(
    problem: DualProblem, rows: Features, largest_norm: float, origin: Floats | None, count: int
) -> Callable[[PassPoint], Moments] | None:
    """Return a function from a point to the moments of a sample of `count` rows, None if they are not good enough.

    Where a loss is not squared, few samples are free: then those of all rows cost little, and those of a sample would
    be too few.
    """
    if not problem.ridged or rows.size == count or rows.size < MIN_SAMPLE_PER_WEIGHT * rows.dimension:
        return None

    def moments(point: PassPoint) -> Moments:
        sums, _ = evaluate_block(problem, rows, point._replace(curvature=True), largest_norm, origin)
        assert sums.moments is not None
        return sums.moments

    return moments
