"""Fits of linear machines on blocks of rows (`maxmargin.blocks`), which need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.blocks import RowBlock, RowBlocks
from maxmargin.kernels import Linear
from maxmargin.machines.linear.block_data import BlockData, ClassCounts
from maxmargin.machines.linear.stochastic_updates import factors_of
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.training_data import check_costs, class_factors
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit, thread_count
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.training import Session, TrainedLinearModel
from maxmargin.training.block_training import (
    PoseBlock,
    TrainingBlock,
    evaluate_pass,
    new_run,
    start_of_sample,
    train_by_passes,
)

def is_blocks(X: Any) -> bool:
    """Whether data are blocks of rows."""
    return isinstance(X, RowBlocks)


def check_options(estimator: Any, **needed: Any) -> None:
    """Raise if a parameter has another value than blocks of rows need."""
    for name, value in needed.items():
        if (given := getattr(estimator, name)) != value:
            raise ValueError(
                f"fit on blocks of rows needs {name}={value!r}, not {given!r}; load the data into memory for the others"
            )


class BlockFit:
    """The fit of a linear machine on blocks of rows.

    Parameters
    ----------
    estimator : LinearEstimator
    blocks : RowBlocks
    rule : StoppingRule
    """

    def __init__(self, estimator: Any, blocks: RowBlocks, rule: StoppingRule) -> None:
        if not blocks.has_labels:
            raise ValueError(f"{blocks.name} has no labels: give them to blocks.open, or as y")
        self.estimator, self.rule, self.started = estimator, rule, perf_counter()
        self.intercept: bool = estimator._exact_intercept
        self.data = BlockData(blocks, thread_count(estimator.n_jobs), estimator._check_intercept(), read_blocks)

    def classes(self, cost: float, formulation: Any) -> tuple[list[TrainedLinearModel], Any, Floats]:
        """Train each class against the rest; return the models, the classes and their factors."""
        counts = ClassCounts()

        def inspect(y: np.ndarray[Any, Any], weights: Floats) -> None:
            self.estimator._validate_labels(y)
            counts(y, weights)

        def pose(block: TrainingBlock, number: int) -> DualProblem:
            numbers = np.searchsorted(classes, block.targets)
            signs = np.where(numbers == (number if len(classes) > 2 else 1), 1.0, -1.0)
            costs = check_costs(cost, factors_of(number, numbers, factors, block.weights))
            problem: DualProblem = formulation.pose(_matrix(block), signs, costs, self.intercept)
            return problem

        with self._session() as session:
            self.data.scan(inspect)
            classes = counts.classes
            weights = np.array([counts.weights[label] for label in classes.tolist()])
            factors = class_factors(self.estimator.class_weight, classes, np.arange(len(classes)), weights)
            models = self._train(pose, len(classes) if len(classes) > 2 else 1, session)
        return models, classes, factors

    def outputs(self, pose: Callable[[TrainingBlock], DualProblem], min_gap: Any) -> list[TrainedLinearModel]:
        """Train a regression of one output."""
        with self._session() as session:
            self.data.scan(_check_targets)
            return self._train(lambda block, _: pose(block), 1, session, min_gap)

    def _session(self) -> Any:
        """Return a context with the session of the fit."""
        return _SessionContext(self)

    def _train(
        self, pose: PoseBlock, count: int, session: Session, min_gap: Callable[[DualProblem], float] | None = None
    ) -> list[TrainedLinearModel]:
        """Start from the solutions of a sample, and continue by passes over all blocks."""
        data = self.data
        sample = data.sample
        scale = data.total_weight / data.sample_weight
        larger = sample._replace(weights=scale * sample.weights)
        runs: list[NewtonByPasses] = []
        with session.deadline.in_force(), blas_thread_limit(1):
            for number in range(count):
                problem = pose(larger, number)
                gap = None if min_gap is None else min_gap(problem)
                rule = StoppingRule(
                    self.rule.violation, gap, self.rule.max_iterations, self.rule.max_seconds, self.rule.relative_gap
                )
                scalable = not problem.bounded
                runs.append(new_run(self._start(problem, sample, scale), rule, scalable, sample.rows, data.origin))

        def evaluate(points: dict[int, PassPoint]) -> Any:
            return evaluate_pass(data, pose, points, data.origin)

        models = train_by_passes(evaluate, runs, session, data.blocks.n_rows)
        self.estimator.n_passes_ = data.passes
        return models

    def _start(self, problem: DualProblem, sample: TrainingBlock, scale: float) -> PassPoint:
        rule = StoppingRule(self.rule.violation, relative_gap=self.rule.relative_gap)
        return start_of_sample(problem, sample.rows, LinearSolver(stopping=rule), scale, self.data.blocks.n_rows)


class _SessionContext:
    """The observers of a fit, which are closed at its end."""

    def __init__(self, fit: BlockFit) -> None:
        self.fit, self._reporting = fit, reporting(fit.estimator)

    def __enter__(self) -> Session:
        return Session.begin(self._reporting.__enter__(), self.fit.rule.max_seconds, self.fit.started)

    def __exit__(self, *error: Any) -> Any:
        return self._reporting.__exit__(*error)


def read_blocks(blocks: RowBlocks) -> Iterator[RowBlock]:
    """Read all blocks once."""
    return iter(blocks)


def decide_blocks(estimator: Any, blocks: RowBlocks) -> Floats:
    """Return the decision values of all rows."""
    return np.concatenate([estimator._decide(block.X) for block in read_blocks(blocks)])


def _matrix(block: TrainingBlock) -> KernelMatrix:
    return KernelMatrix(Linear(), block.rows.points, block.rows.threads)


def _check_targets(y: np.ndarray[Any, Any], weights: Floats) -> None:
    if y.ndim != 1 or y.dtype.kind not in "biuf" or not np.isfinite(y.astype(np.float64)).all():
        raise ValueError("the targets of a regression on blocks must be one finite number for each row")
