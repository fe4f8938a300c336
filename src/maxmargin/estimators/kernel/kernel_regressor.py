"""Regressors with kernels: one machine for each output, on shared kernel values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import CrossValidation
from maxmargin.estimators.kernel.function_estimator import SingleMachine
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices import SymmetricMatrix
from maxmargin.problems import DualProblem, Status

#: From a matrix, the targets of its samples and their rows to the problem.
PoseTargets = Callable[[SymmetricMatrix, Floats, Indices], DualProblem]


class KernelRegressor(RegressorMixin, SingleMachine):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base of the kernel regressors. They say what the problem of one output is; the rest is here."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Return the value of the function for each sample; of several outputs a column each."""
        return np.asarray(self._decide(X))

    def _check_targets(self, X: Any, y: Any) -> tuple[Any, Floats]:
        """Return samples and targets, checked: a vector, or a table if there are several outputs."""
        if sparse.issparse(y):
            raise TypeError("targets must be dense; convert them with .toarray()")
        shape = np.asarray(y).shape
        several = len(shape) == 2 and shape[1] > 1  # a single column is taken as a vector, with scikit-learn's warning
        X, targets = self._check_training_data(X, y, y_numeric=True, multi_output=several)
        return X, np.asarray(targets, dtype=np.float64)

    def _fit_targets(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        pose: PoseTargets,
        formulation: Formulation,
        variables: int,
        bounded: bool = True,
    ) -> None:
        """Train on the rows with a weight, one machine for each column of the targets."""
        columns = targets.reshape(len(targets), -1)

        def pose_output(matrix: SymmetricMatrix, rows: Indices, output: int) -> DualProblem:
            return pose(matrix, columns[rows, output], rows)

        outputs = None if targets.ndim == 1 else targets.shape[1]

        def afterwards(problems: list[DualProblem], validation: CrossValidation) -> Status:
            return self._estimate_noise(problems, formulation, columns, weights, validation)

        self._fit_single(X, weights, pose_output, formulation, variables, outputs, bounded, afterwards)

    def _estimate_noise(
        self,
        problems: list[DualProblem],
        formulation: Formulation,
        targets: Floats,
        weights: Floats,
        validation: CrossValidation,
    ) -> Status:
        """Find out how far targets lie from the function, if that is wanted; return how it ended."""
        return Status.CONVERGED
