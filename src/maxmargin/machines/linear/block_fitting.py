"""Fits of linear machines on blocks of rows (`maxmargin.blocks`), which need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from types import MappingProxyType
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.blocks.read_ahead import read_ahead
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.machines.linear.block_data import BlockData, ClassCounts
from maxmargin.machines.linear.block_posing import ClassPose
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.training_data import class_factors
from maxmargin.matrices.numerics import inner
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

    def __init__(self, estimator: Any, blocks: RowBlocks, rule: StoppingRule, labelled: bool = True) -> None:
        self.estimator, self.rule, self.started = estimator, rule, perf_counter()
        self.intercept: bool = estimator._exact_intercept
        constant = estimator._check_intercept()
        self.data = BlockData(blocks, thread_count(estimator.n_jobs), constant, read_ahead, labelled)

    def classes(self, cost: float, formulation: Any) -> tuple[list[TrainedLinearModel], Any, Floats]:
        """Train each class against the rest; return the models, the classes and their factors."""
        counts = ClassCounts()

        def inspect(y: np.ndarray[Any, Any], weights: Floats) -> None:
            self.estimator._validate_labels(y)
            counts(y, weights)

        with self._session() as session:
            self.data.scan(inspect)
            classes = counts.classes
            weights = np.array([counts.weights[label] for label in classes.tolist()])
            factors = class_factors(self.estimator.class_weight, classes, np.arange(len(classes)), weights)
            pose = ClassPose(formulation, cost, self.intercept, classes, factors)
            models = self._train(pose, pose.count, session)
        return models, classes, factors

    def regression(
        self, pose: Callable[[TrainingBlock, float], DualProblem], min_gap: Callable[[DualProblem], float]
    ) -> tuple[TrainedLinearModel, float]:
        """Train a regression; return the model of targets minus their mean, where the intercept is free, and that."""
        sums = np.zeros(2)

        def inspect(y: np.ndarray[Any, Any], weights: Floats) -> None:
            if y.ndim != 1 or y.dtype.kind not in "biuf" or not np.isfinite(y).all():
                raise ValueError(f"{self.data.blocks.name}: targets must be one finite number for each row")
            sums[:] += inner(weights, y.astype(np.float64)), weights.sum()

        with self._session() as session:
            self.data.scan(inspect)
            centre = float(sums[0] / sums[1]) if self.intercept else 0.0
            return self._train(lambda block, _: pose(block, centre), 1, session, min_gap)[0], centre

    def one_class(
        self, pose: Callable[[TrainingBlock], DualProblem], min_gap: Callable[[DualProblem], float]
    ) -> TrainedLinearModel:
        """Train a one-class machine, whose dual variables have a positive sum."""
        with self._session() as session:
            self.data.scan(lambda y, weights: None)
            return self._train(lambda block, _: pose(block), 1, session, min_gap)[0]

    def _session(self) -> Any:
        """Return a context with the session of the fit."""
        return _SessionContext(self)

    def _train(
        self, pose: PoseBlock, count: int, session: Session, min_gap: Callable[[DualProblem], float] | None = None
    ) -> list[TrainedLinearModel]:
        """Start from the solutions of a sample, and continue by passes over all blocks."""
        data = self.data
        runs, origin = sample_runs(pose, count, data, data.blocks.n_rows, self.rule, session, min_gap)

        def evaluate(points: dict[int, PassPoint]) -> Any:
            return evaluate_pass(data, pose, points, origin)

        models = train_by_passes(evaluate, runs, session, data.blocks.n_rows)
        self.estimator.n_passes_ = data.passes
        return models


class _SessionContext:
    """The observers of a fit, which are closed at its end."""

    def __init__(self, fit: BlockFit) -> None:
        self.fit, self._reporting = fit, reporting(fit.estimator)

    def __enter__(self) -> Session:
        return Session.begin(self._reporting.__enter__(), self.fit.rule.max_seconds, self.fit.started)

    def __exit__(self, *error: Any) -> Any:
        return self._reporting.__exit__(*error)


def sample_runs(
    pose: PoseBlock,
    count: int,
    data: Any,
    n_rows: int,
    rule: StoppingRule,
    session: Session,
    min_gap: Callable[[DualProblem], float] | None = None,
    known: Mapping[int, PassPoint] = MappingProxyType({}),
) -> tuple[list[NewtonByPasses], Floats | None]:
    """Return the runs of all problems, and what moments are about; starts that are not known are those of a sample.

    `data` has the sample and the weights of `BlockData`; `n_rows` is the number of all rows.
    """
    sample: TrainingBlock = data.sample
    scale = data.total_weight / data.sample_weight
    larger = sample._replace(weights=scale * sample.weights)
    solver = LinearSolver(stopping=StoppingRule(rule.violation, relative_gap=rule.relative_gap))
    runs: list[NewtonByPasses] = []
    origin: Floats | None = None
    with session.deadline.in_force(), blas_thread_limit(1):
        for number in range(count):
            problem = pose(larger, number)
            gap = None if min_gap is None else min_gap(problem)
            own = StoppingRule(rule.violation, gap, rule.max_iterations, rule.max_seconds, rule.relative_gap)
            start = known.get(number) or start_of_sample(problem, sample.rows, solver, scale, n_rows)
            origin = data.origin if problem.groups else None  # with a free offset rows are centred
            runs.append(new_run(start, own, data.constraints(problem), sample.rows, origin))
    return runs, origin
