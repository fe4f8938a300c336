"""The dual problems of a fold: what an estimator solves when it is trained on the training samples of a split.

Class weights, feasibility and errors are those of a fit on the training samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import one_class
from maxmargin.formulations.formulation import Formulation
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import STRATEGIES, KernelClassifier
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.validation.parameters import check_fraction
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.models import OneVsOneVote
from maxmargin.problems import DualProblem
from maxmargin.selection.held_out_models import HeldOutClassifier, HeldOutDetector, HeldOutModel, HeldOutRegressor

#: From training samples, by their numbers among all, to the matrix of their kernel values.
MatrixOf = Callable[[Indices], PrecomputedMatrix]


class Subproblem(NamedTuple):
    """A problem of a fold, and the formulation that reads its solution."""

    problem: DualProblem
    formulation: Formulation


class FoldProblems(Protocol):
    """The problems of a fold at any point of a grid, which differ in their bounds, not in their variables."""

    @property
    def count(self) -> int:
        """The number of problems at a point."""
        ...

    def pose(self, part: int, estimator: Any, matrix_of: MatrixOf) -> Subproblem:
        """Return one of the problems with the parameters of an estimator."""
        ...

    def model(self, estimator: Any, values: Floats) -> HeldOutModel:
        """Return the model with these values of the held-out samples, a column for each problem."""
        ...


def fold_problems(estimator: Any, y: Any, train: Indices, weights: Floats | None, others: Any) -> FoldProblems:
    """Return the problems of a fold.

    `y` are the labels or targets of all samples, validated, `train` the training samples, and `weights` those of all
    samples. `others` are samples of which a novelty detector shall know its values, too.
    """
    own = None if weights is None else weights[train]
    if isinstance(estimator, OneClassSVM):
        return DetectorFold(train, own, others)
    if isinstance(estimator, KernelClassifier):
        return ClassifierFold(estimator, y[train], train, own)
    return RegressorFold(estimator, y[train], train, own)


class ClassifierFold:
    """The two-class problems of a classifier."""

    def __init__(self, estimator: KernelClassifier, y: Any, train: Indices, weights: Floats | None) -> None:
        self._train = train
        self._data, self._factors, self._weights = estimator._labelled(train[:, None], y, weights)
        self._strategy = STRATEGIES[estimator._strategy_name(self._data.classes)]
        self._parts: Sequence[Any] = self._strategy.parts(self._data)

    @property
    def count(self) -> int:
        """The number of problems at a point."""
        return len(self._parts)

    def pose(self, part: int, estimator: KernelClassifier, matrix_of: MatrixOf) -> Subproblem:
        """Return the problem of one part."""
        data, two_class = self._data, estimator._two_class()
        costs = estimator._costs(estimator._cost(), self._factors, data.labels, self._weights)
        if part == 0:
            estimator._check_feasible(data.classes, [costs[members] for members in data.members])
        samples, signs = self._parts[part]
        return Subproblem(two_class.pose(matrix_of(self._train[samples]), signs, costs[samples]), two_class.formulation)

    def model(self, estimator: KernelClassifier, values: Floats) -> HeldOutClassifier:
        """Return the classifier with these decision values."""
        classes = self._data.classes
        empty = np.empty((values.shape[1], 0))
        vote = self._strategy.model(empty, np.zeros(values.shape[1]), np.zeros(len(classes), dtype=np.int64))
        if isinstance(vote, OneVsOneVote):
            vote = replace(vote, coefficients=np.empty((len(classes) - 1, 0)))
        return HeldOutClassifier(estimator, values, classes, vote)


class DetectorFold:
    """The problem of a one-class SVM."""

    count = 1

    def __init__(self, train: Indices, weights: Floats | None, others: Any) -> None:
        costs = check_costs(1.0, check_sample_weights(weights, train[:, None]))
        rows = np.flatnonzero(costs > 0)
        self._train, self._costs, self._others = train[rows], costs[rows], others

    def pose(self, part: int, estimator: OneClassSVM, matrix_of: MatrixOf) -> Subproblem:
        """Return the problem."""
        nu = check_fraction("nu", estimator.nu)
        return Subproblem(one_class.pose(matrix_of(self._train), self._costs, nu), one_class)

    def model(self, estimator: OneClassSVM, values: Floats) -> HeldOutDetector:
        """Return the detector."""
        return HeldOutDetector(estimator, values, self._others)


class RegressorFold:
    """The problem of a regression."""

    count = 1

    def __init__(self, estimator: KernelRegressor, y: Floats, train: Indices, weights: Floats | None) -> None:
        self._weights = check_sample_weights(weights, train[:, None])
        self._rows = np.flatnonzero(self._weights > 0)
        self._train, self._targets = train, y

    def pose(self, part: int, estimator: KernelRegressor, matrix_of: MatrixOf) -> Subproblem:
        """Return the problem."""
        regression, rows = estimator._regression(), self._rows
        costs = check_costs(regression.cost, self._weights)
        problem = regression.pose(matrix_of(self._train[rows]), self._targets[rows], costs[rows])
        return Subproblem(problem, regression.formulation)

    def model(self, estimator: KernelRegressor, values: Floats) -> HeldOutRegressor:
        """Return the regression function."""
        return HeldOutRegressor(estimator, values)
