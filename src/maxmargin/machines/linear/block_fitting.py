"""Fits of linear machines on blocks of rows (`maxmargin.blocks`), which need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.blocks.read_ahead import read_ahead
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.machines.linear.block_checkpoint import BlockCheckpoint, checkpoint_options
from maxmargin.machines.linear.block_data import BlockData, ClassCounts
from maxmargin.machines.linear.block_posing import ClassPose
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.training_data import class_factors
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit, thread_count
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses
from maxmargin.solvers.linear.pass_sums import PassPoint, PassSums
from maxmargin.training import Session, TrainedLinearModel
from maxmargin.training.block_training import (
    PoseBlock,
    TrainingBlock,
    evaluate_pass,
    ignoring_overflow,
    moments_of_sample,
    new_run,
    smoothed_point,
    solve_sample,
    train_by_passes,
)
from maxmargin.training.proximal_centres import ProximalCentres


def check_options(estimator: Any, **needed: Any) -> None:
    """Raise if a parameter has another value than blocks of rows need."""
    for name, value in needed.items():
        if (given := getattr(estimator, name)) != value:
            raise ValueError(
                f"blocks of rows need {name}={value!r}, not {given!r}; load the data into memory for other values"
            )


class BlockFit:
    """The fit of a linear machine on blocks of rows.

    Parameters
    ----------
    estimator : LinearEstimator
    blocks : RowBlocks
    rule : StoppingRule
    labelled : bool
        Whether the machine takes labels or targets.
    fitted : bool
        Whether only to evaluate the weights of the estimator, in one pass, for their certificate.
    """

    def __init__(
        self, estimator: Any, blocks: RowBlocks, rule: StoppingRule, labelled: bool = True, fitted: bool = False
    ) -> None:
        self.estimator, self.started, self.fitted = estimator, perf_counter(), fitted
        self.rule = replace(rule, max_iterations=1, max_seconds=None) if fitted else rule
        self.centre = 0.0
        if not fitted and estimator.checkpoint is not None:
            checkpoint_options(estimator)
        self.intercept: bool = estimator._exact_intercept  # a free offset
        constant = estimator._check_intercept()
        self.data = BlockData(blocks, thread_count(estimator.n_jobs), constant, read_ahead, labelled)

    def classes(self, cost: float, formulation: Any, known: Any = None) -> tuple[list[TrainedLinearModel], Any, Floats]:
        """Train each class against the rest; return the models, the classes and their factors.

        `known` are the classes if they must be those of an earlier fit.
        """
        counts = ClassCounts()

        def inspect(y: np.ndarray[Any, Any], weights: Floats) -> None:
            self.estimator._validate_labels(y)
            counts(y, weights)

        with self._session() as session:
            self.data.scan(inspect)
            classes = counts.classes if known is None else counts.among(known, self.data.blocks.name)
            weights = np.array([counts.weights.get(label, 0.0) for label in classes.tolist()])
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
            self.centre = float(sums[0] / sums[1]) if self.intercept else 0.0
            return self._train(lambda block, _: pose(block, self.centre), 1, session, min_gap)[0], self.centre

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
        file = None if self.fitted or self.estimator.checkpoint is None else BlockCheckpoint(self.estimator, data.facts)

        def start(problem: DualProblem, number: int) -> PassPoint:
            kept = None if file is None else file.start(number, data.sample.rows.dimension, problem.groups)
            return self._start(problem, number, session) if kept is None else kept

        runs, origin = new_runs(pose, count, data, self.rule, start, min_gap)
        centres = ProximalCentres(data.blocks.n_rows)

        def evaluate(points: dict[int, PassPoint]) -> dict[int, PassSums]:
            return evaluate_pass(data, pose, points, origin, centres)

        if file is None:
            return train_by_passes(evaluate, runs, session, data.blocks.n_rows)
        models = train_by_passes(evaluate, runs, session, data.blocks.n_rows, lambda: file.save(runs))
        file.finish(runs)
        return models

    def _start(self, problem: DualProblem, number: int, session: Session) -> PassPoint:
        """Return where the passes start: at the weights of the estimator, or at the solution of the sample."""
        data, tolerance = self.data, self.rule.relative_gap or 0.0
        if self.fitted:
            weights, offset = self._weights_of_estimator(number)
        else:
            rule = StoppingRule(self.rule.violation, relative_gap=tolerance)
            weights, offset = solve_sample(problem, LinearSolver(stopping=rule), session.deadline)
        scale = data.total_weight / data.sample_weight
        return smoothed_point(problem, data.sample.rows, weights, offset, tolerance, scale, data.blocks.n_rows)

    def _weights_of_estimator(self, number: int) -> tuple[Floats, Floats]:
        """Return the weights, the last for the constant feature, and the offsets of a function of the estimator."""
        offset, constant = float(np.atleast_1d(self.estimator.intercept_)[number]), self.data.constant
        dense = self.estimator.coef_.toarray() if sparse.issparse(self.estimator.coef_) else self.estimator.coef_
        weights = np.append(np.atleast_2d(dense)[number], offset / constant if constant else 0.0)
        return weights, np.empty(0) if constant or not self.estimator.fit_intercept else np.array(
            [offset - self.centre]
        )


class _SessionContext:
    """The observers of a fit, which are closed at its end."""

    def __init__(self, fit: BlockFit) -> None:
        self.fit, self._reporting = fit, reporting(fit.estimator)

    def __enter__(self) -> Session:
        return Session.begin(self._reporting.__enter__(), self.fit.rule.max_seconds, self.fit.started)

    def __exit__(self, *error: Any) -> Any:
        return self._reporting.__exit__(*error)


@ignoring_overflow
def new_runs(
    pose: PoseBlock,
    count: int,
    data: Any,
    rule: StoppingRule,
    start: Callable[[DualProblem, int], PassPoint],
    min_gap: Callable[[DualProblem], float] | None = None,
) -> tuple[list[NewtonByPasses], Floats | None]:
    """Return the runs of all problems, and what moments are about.

    `data` has the sample, the weights and the constraints of `BlockData`. `start` returns where a problem starts; its
    arguments are the problem of the sample, with the costs of all rows, and its number.
    """
    sample: TrainingBlock = data.sample
    larger = sample._replace(weights=data.total_weight / data.sample_weight * sample.weights)
    runs: list[NewtonByPasses] = []
    origin: Floats | None = None
    with blas_thread_limit(1):
        for number in range(count):
            problem = pose(larger, number)
            own = replace(rule, gap=None if min_gap is None else min_gap(problem))
            origin = data.origin if problem.groups else None  # with a free offset rows are centred
            moments = moments_of_sample(problem, sample.rows, sample.largest_norm, origin, data.n_rows)
            point, constraints = start(problem, number), data.constraints(problem)
            runs.append(new_run(point, own, constraints, sample.rows, origin, moments))
    return runs, origin
