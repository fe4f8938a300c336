"""From a block of rows to the problem of a class or of a regression; for blocks also in other processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.kernels import Linear
from maxmargin.machines.linear.stochastic_updates import factors_of
from maxmargin.machines.validation.training_data import check_costs
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.problems import DualProblem
from maxmargin.training.block_training import KindPose, TrainingBlock


@dataclass(frozen=True)
class ClassPose(KindPose):
    """The problem of a class against the rest, or the only one of two classes.

    Parameters
    ----------
    formulation : module of `formulations`
    cost : float
    intercept : bool
        Whether there is an intercept that is not regularised.
    classes : array
        The labels in ascending order.
    factors : float array
        The factor on the cost of each class.
    """

    formulation: Any
    cost: float
    intercept: bool
    classes: np.ndarray[Any, Any]
    factors: Floats

    @property
    def count(self) -> int:
        """The number of problems."""
        return len(self.classes) if len(self.classes) > 2 else 1

    def __call__(self, block: TrainingBlock, number: int) -> DualProblem:
        """Return the problem of a block."""
        numbers = self._numbers(block).astype(np.intp, copy=False)
        signs = np.where(numbers == (number if len(self.classes) > 2 else 1), 1.0, -1.0)
        costs = check_costs(self.cost, factors_of(number, numbers, self.factors, block.weights))
        problem: DualProblem = self.formulation.pose(matrix_of(block), signs, costs, self.intercept)
        return problem

    def kinds(self, block: TrainingBlock) -> NDArray[np.int32] | None:
        """Return the number of the class of each sample, None if weights differ or there are no samples."""
        weights = block.weights
        same = len(weights) > 0 and weights.min() == weights.max()
        return self._numbers(block).astype(np.int32) if same else None

    def one_of_each(self, block: TrainingBlock) -> TrainingBlock:
        """Return a block with one sample of each class."""
        count = len(self.classes)
        rows = block.rows.take(np.zeros(count, dtype=np.intp))
        return block._replace(rows=rows, targets=self.classes, weights=np.repeat(block.weights[:1], count))

    def _numbers(self, block: TrainingBlock) -> NDArray[Any]:
        """Return the number of the class of each sample."""
        if len(self.classes) == 2:  # to compare is faster than to search
            return np.asarray(block.targets == self.classes[1])
        return np.searchsorted(self.classes, block.targets)


@dataclass(frozen=True)
class RegressionPose:
    """The problem of a regression on targets minus `centre`."""

    formulation: Any
    cost: float
    intercept: bool
    epsilon: float
    centre: float

    @property
    def count(self) -> int:
        """The number of problems."""
        return 1

    def __call__(self, block: TrainingBlock, _: int) -> DualProblem:
        """Return the problem of a block."""
        costs, targets = check_costs(self.cost, block.weights), block.targets.astype(np.float64) - self.centre
        problem: DualProblem = self.formulation.pose(matrix_of(block), targets, costs, self.epsilon, self.intercept)
        return problem


def matrix_of(block: TrainingBlock) -> SymmetricMatrix:
    """Return the linear kernel matrix of the rows of a block; a regularised intercept is a constant feature."""
    matrix = KernelMatrix(Linear(), block.rows.points, block.rows.threads)
    return BiasAugmentedMatrix(matrix, block.rows.constant**2) if block.rows.constant else matrix
