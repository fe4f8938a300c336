"""Fits of linear machines on blocks of rows (`maxmargin.blocks`), which need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.blocks.read_ahead import read_ahead
from maxmargin.blocks.row_blocks import RowBlocks, is_blocks
from maxmargin.kernels import Linear
from maxmargin.machines.linear.block_data import BlockData, ClassCounts
from maxmargin.machines.linear.stochastic_updates import factors_of
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.training_data import check_costs, class_factors
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem
from maxmargin.resources import available_memory, blas_thread_limit, thread_count
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

#: Memory maps that are larger than this fraction of the available memory are read block by block.
MAX_MAPPED_FRACTION = 0.5


def as_blocks(X: Any, y: Any = None, sample_weight: Any = None) -> RowBlocks | None:
    """Return data that are read block by block, None for others: blocks, and memory maps beside which there is no room.

    Labels and weights that are given apart take the place of those of the blocks.
    """
    large = isinstance(X, np.memmap) and X.nbytes > MAX_MAPPED_FRACTION * available_memory()
    if not is_blocks(X) and not large:
        return None
    from maxmargin.blocks import open as open_blocks  # few fits need it

    return open_blocks(X, y, sample_weight)


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

        def pose(block: TrainingBlock, number: int) -> DualProblem:
            numbers = np.searchsorted(classes, block.targets)
            signs = np.where(numbers == (number if len(classes) > 2 else 1), 1.0, -1.0)
            costs = check_costs(cost, factors_of(number, numbers, factors, block.weights))
            problem: DualProblem = formulation.pose(matrix_of(block), signs, costs, self.intercept)
            return problem

        with self._session() as session:
            self.data.scan(inspect)
            classes = counts.classes
            weights = np.array([counts.weights[label] for label in classes.tolist()])
            factors = class_factors(self.estimator.class_weight, classes, np.arange(len(classes)), weights)
            models = self._train(pose, len(classes) if len(classes) > 2 else 1, session)
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
        sample = data.sample
        scale = data.total_weight / data.sample_weight
        larger = sample._replace(weights=scale * sample.weights)
        runs: list[NewtonByPasses] = []
        origin: Floats | None = None
        with session.deadline.in_force(), blas_thread_limit(1):
            for number in range(count):
                problem = pose(larger, number)
                gap = None if min_gap is None else min_gap(problem)
                rule = StoppingRule(
                    self.rule.violation, gap, self.rule.max_iterations, self.rule.max_seconds, self.rule.relative_gap
                )
                start = self._start(problem, sample, scale)
                origin = data.origin if problem.groups else None  # with a free offset rows are centred
                runs.append(new_run(start, rule, data.constraints(problem), sample.rows, origin))

        def evaluate(points: dict[int, PassPoint]) -> Any:
            return evaluate_pass(data, pose, points, origin)

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


def matrix_of(block: TrainingBlock) -> SymmetricMatrix:
    """Return the linear kernel matrix of the rows of a block; a regularised intercept is a constant feature."""
    matrix = KernelMatrix(Linear(), block.rows.points, block.rows.threads)
    return BiasAugmentedMatrix(matrix, block.rows.constant**2) if block.rows.constant else matrix
