"""The tasks of a fit: Newton's method on the worker at the root of the tree, loops on the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from distributed import get_worker, secede

from maxmargin._typing import Floats
from maxmargin.dask.packed_sums import Sums, unpacked
from maxmargin.dask.partitions import Partition, training_blocks
from maxmargin.dask.worker_loop import FitEndedError, LostWorkerError, Node, Request
from maxmargin.machines.linear.block_data import joined_sample
from maxmargin.machines.linear.block_fitting import new_runs
from maxmargin.problems import DualProblem, Progress
from maxmargin.resources import thread_count
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.linear.pass_bounds import DualConstraints
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.training import Session, TrainedLinearModel
from maxmargin.training.block_training import (
    PoseBlock,
    TrainingBlock,
    smoothed_point,
    solve_sample,
    train_by_passes,
)


@dataclass(frozen=True)
class Plan:
    """What the workers need to know of a fit.

    Attributes
    ----------
    pose : callable
        From a block of rows and a number to a problem.
    count : int
        The number of problems.
    rule : StoppingRule
    min_gap : callable or None
        From a problem to a gap that is always small enough.
    constant : float
        The value of the constant feature of a regularised intercept, 0 for none.
    n_jobs : int or None
        Threads of a worker; None for those that Dask has given it.
    n_rows : int
    total_weight, largest_norm : float
        Of all rows.
    starts : dict
        Where problems start that an earlier attempt has begun.
    reports : bool
        Whether the client takes reports of progress, as events of the topic of the fit.
    """

    pose: PoseBlock
    count: int
    rule: StoppingRule
    min_gap: Callable[[DualProblem], float] | None
    constant: float
    n_jobs: int | None
    n_rows: int
    total_weight: float
    largest_norm: float
    starts: dict[int, PassPoint] = field(default_factory=dict)
    reports: bool = False


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: with models, or with a lost worker and why it is known to be lost."""

    models: list[TrainedLinearModel]
    passes: int
    lost: str | None = None


@dataclass
class SampleData:
    """The sample of a fit as `new_runs` takes it."""

    sample: TrainingBlock
    sample_weight: float
    origin: Floats | None
    total_weight: float
    n_rows: int

    def constraints(self, problem: DualProblem) -> DualConstraints:
        """Return the constraints of a problem."""
        return DualConstraints(problem.total, scalable=not problem.bounded)


def run_loop(name: str, plan: Plan, parts: Sequence[Partition], sample: Sequence[Any] | None) -> Outcome | None:
    """Evaluate passes over the partitions of this worker until the fit ends; with a sample, drive the fit."""
    worker = get_worker()
    node: Node | None = worker.extensions.get(name)
    if node is None:  # the fit has ended before the task began
        return None
    node.start()
    secede()  # other fits and tasks go on: loops of two fits that wait for each other's workers would never end
    threads = worker.state.nthreads if plan.n_jobs is None else thread_count(plan.n_jobs)
    try:
        blocks = training_blocks(parts, plan.constant, threads)
        if sample is not None:
            return _drive(node, plan, blocks, sample, threads)
        node.serve(blocks, plan.pose)
    except FitEndedError:
        return None
    finally:
        worker.loop.add_callback(node.end)
    return None


def _drive(node: Node, plan: Plan, blocks: list[TrainingBlock], sample: Sequence[Any], threads: int) -> Outcome:
    """Train all problems; return the models so far if the client ends the fit."""
    drawn = [part for part in sample if part is not None]
    data = SampleData(*joined_sample(drawn, plan.constant, threads, plan.largest_norm), plan.total_weight, plan.n_rows)
    session = Session.begin(_reporter(node, plan), plan.rule.max_seconds)
    start = partial(_start, plan, data, session)
    runs, origin = new_runs(plan.pose, plan.count, data, plan.rule, start, plan.min_gap)
    width = data.sample.rows.width

    def evaluate(points: dict[int, PassPoint]) -> Sums:
        try:
            return unpacked(node.evaluate_tree(blocks, plan.pose, Request(points, origin)), width)
        except FitEndedError:
            raise KeyboardInterrupt from None  # the training returns the models so far

    try:
        models = train_by_passes(evaluate, runs, session, plan.n_rows)
    except LostWorkerError as error:
        return Outcome([], node.passes, str(error))
    return Outcome(models, node.passes)


def _start(plan: Plan, data: SampleData, session: Session, problem: DualProblem, number: int) -> PassPoint:
    """Return where an earlier attempt has left a problem, or the solution of the sample."""
    if number in plan.starts:
        return plan.starts[number]
    tolerance = plan.rule.relative_gap or 0.0
    rule = StoppingRule(plan.rule.violation, relative_gap=tolerance)
    weights, offset = solve_sample(problem, LinearSolver(stopping=rule), session.deadline)
    scale = data.total_weight / data.sample_weight
    return smoothed_point(problem, data.sample.rows, weights, offset, tolerance, scale, plan.n_rows)


def _reporter(node: Node, plan: Plan) -> Callable[[Progress], bool] | None:
    """Return a callback that sends the progress to the client."""
    if not plan.reports:
        return None

    def report(progress: Progress) -> bool:
        values = progress.iteration, progress.primal, progress.dual, progress.active, progress.seconds
        node.worker.log_event(node.name, [float(value) for value in values])
        return False

    return report
