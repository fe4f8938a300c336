"""The engine of a cross-validated search: folds at many values of C, trained on shared kernel values.

A *path* is a fold at all values of C, with the other parameters fixed. Paths are independent; each is solved by one
thread, without the interpreter, so they use all cores. The result of a path depends on nothing but its points.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import FunctionKernel, Kernel
from maxmargin.machines.base import wants_probabilities
from maxmargin.machines.calibration.novelty_detector import BOUNDARY_ROUNDING
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.validation.training_data import check_sample_weights
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.resources import available_memory
from maxmargin.selection.fold_path import (
    MAX_COPIED_VALUES,
    MAX_FREE,
    ROUNDING,
    FoldPath,
    PathMemory,
    PathValues,
    can_solve,
)
from maxmargin.selection.fold_problems import FoldProblems, fold_problems
from maxmargin.selection.held_out_models import HeldOutModel
from maxmargin.selection.kernel_matrices import KernelMatrices, matrix_bytes
from maxmargin.training.fit_context import MAX_FULL_KERNEL_ROWS

#: Memory of a thread besides the kernel matrices: copied rows, and the equations of the free variables.
THREAD_BYTES = 4 * MAX_COPIED_VALUES + 24 * MAX_FREE**2

#: The most other samples of which values are wanted, relative to the samples. The matrix has all pairs of them, too.
MAX_OTHERS = 2

#: Parameters that change how, or how far, a single fit is solved.
OF_SINGLE_FITS: Mapping[str, Any] = {
    "solver": "auto", "selection": "second_order", "max_iter": -1, "gap_tol": None, "max_seconds": None,
    "checkpoint": None, "device": "cpu", "noise": False,
}  # fmt: skip


def why_independent(estimator: Any, X: Any, y: Any, budget: int, threads: int, others: int = 0) -> str | None:
    """Return why the models of a search must be trained one by one, None if the engine trains them.

    `others` is the number of other samples of which values are wanted.

    This is the only place that decides: all else falls back to independent fits.
    """
    detects = isinstance(estimator, OneClassSVM)
    if not isinstance(estimator, KernelClassifier | KernelRegressor) and not detects:
        return "the estimator is no kernel classifier, regressor or one-class SVM"
    if isinstance(estimator, KernelClassifier) and estimator.multi_class not in ("ovo", "ovr"):
        return "all classes are one problem"
    if not isinstance(estimator, KernelRegressor) and wants_probabilities(estimator):
        return "probabilities are calibrated for each model"
    for name, value in OF_SINGLE_FITS.items():
        given = getattr(estimator, name, value)
        if given is not value and (not isinstance(given, type(value)) or given != value):
            return f"{name} is for single fits"
    if isinstance(estimator.kernel, FunctionKernel) or (
        callable(estimator.kernel) and not isinstance(estimator.kernel, Kernel)
    ):
        return "the kernel is a function of the user"
    if not hasattr(X, "shape") or len(X.shape) != 2 or (np.ndim(y) != 1 and not detects):
        return "the samples are no table, or there are several outputs"
    if detects and X.shape[0] > MAX_FULL_KERNEL_ROWS:
        return "a one-class SVM of many samples needs the kernel values of its support vectors only"
    if others > MAX_OTHERS * X.shape[0]:
        return "most kernel values would be those between other samples"
    needed = matrix_bytes(X.shape[0] + others)
    if needed > budget or needed + threads * THREAD_BYTES > available_memory():
        return "the kernel matrix of all samples exceeds the memory for kernel values"
    return None


class Fold(NamedTuple):
    """The training and the held-out samples of a split."""

    train: Indices
    test: Indices


class FoldPaths:
    """All folds of a search.

    Parameters
    ----------
    estimator : estimator
        Defines all parameters that are not searched for; `why_independent` returns None for it.
    X, y : arrays
        All samples; a one-class SVM needs no `y`.
    folds : sequence of Fold
    weights : array or None
        The weight of each sample in training.
    budget : int
        Memory for kernel matrices in bytes.
    threads : int
        For kernel matrices.
    several : bool
        Whether there will be more than one kernel.
    others : array or sparse matrix, optional
        Samples in no fold, of which novelty detectors shall know their values, too.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        folds: Sequence[Fold],
        weights: Any,
        budget: int,
        threads: int,
        several: bool,
        others: Any = None,
    ) -> None:
        self.estimator = copy(estimator)
        self._y: Any
        if isinstance(estimator, OneClassSVM):
            self._X, self._y = self.estimator._check_training_samples(X), None
        else:
            self._X, self._y = self.estimator._check_training_data(X, y)
        if isinstance(estimator, KernelRegressor):
            self._y = np.asarray(self._y, dtype=np.float64)
        self._weights = None if weights is None else check_sample_weights(weights, self._X)
        self._others = self._X[:0] if others is None else others
        order = np.concatenate([self._order(folds), self._rows_of_others])
        self._place = np.empty(len(order), dtype=np.int64)
        self._place[order] = np.arange(len(order))
        # In the order of the rows, so that the variables of a problem are a few runs of them.
        self._folds = [Fold(train[np.argsort(self._place[train], kind="stable")], test) for train, test in folds]
        self._matrices = KernelMatrices(self._with_others(), order, budget, threads, several)
        self._problems: dict[int, FoldProblems] = {}
        self._memory = PathMemory()
        self._lock = threading.Lock()
        self._cancelled = np.zeros(1, dtype=np.int32)

    def cancel(self) -> None:
        """End the paths that are being solved."""
        self._cancelled[0] = 1

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return bool(self._cancelled[0])

    def models(self, fold: int, points: Sequence[Mapping[str, float]]) -> Iterator[HeldOutModel | None]:
        """Yield the model of a fold at each point, None where it is not solved: by an independent fit, it will be.

        Points differ in C only, and ascend. Nothing is yielded after `cancel`.
        """
        estimators = [self._at(point) for point in points]
        problems = self._problems_of(fold)
        kernel = self._kernel(estimators[0], fold)
        outside = np.concatenate([self._folds[fold].test, self._rows_of_others])
        test, tolerance = self._place[outside], float(self.estimator.tol)
        with self._matrices.of(kernel) as values:

            def matrix_of(samples: Indices) -> PrecomputedMatrix:
                return PrecomputedMatrix(values, self._place[samples])

            paths = [FoldPath(test, tolerance, self._memory, self._cancelled) for _ in range(problems.count)]
            for estimator in estimators:
                found: list[Floats] = []
                for part, path in enumerate(paths):
                    posed = problems.pose(part, estimator, matrix_of)
                    own = self._decided(path.solve(posed)) if can_solve(posed.problem) else None
                    if self.cancelled:
                        return
                    if own is not None:
                        found.append(own)
                yield problems.model(estimator, np.column_stack(found)) if len(found) == problems.count else None

    def _decided(self, found: PathValues) -> Floats | None:
        """Return the values of the held-out samples, None if an independent fit shall say what they are."""
        if not found.solved or not np.isfinite(found.values).all():
            return None
        if isinstance(self.estimator, KernelClassifier) and (np.abs(found.values) < found.error).any():
            return None  # rounding errors decide on a class, as for equal samples of both classes
        boundary = max(1.0, BOUNDARY_ROUNDING / ROUNDING) * found.error
        if isinstance(self.estimator, OneClassSVM) and (np.abs(found.values) <= boundary).any():
            return None
        return found.values

    @property
    def _rows_of_others(self) -> Indices:
        samples = self._X.shape[0]
        return np.arange(samples, samples + self._others.shape[0])

    def _with_others(self) -> Any:
        """Return all samples and the other ones."""
        if self._others.shape[0] == 0:
            return self._X
        stack = sparse.vstack if sparse.issparse(self._X) else np.vstack
        return stack([self._X, self._others])

    def _at(self, point: Mapping[str, float]) -> Any:
        estimator = copy(self.estimator)
        for name, value in point.items():
            setattr(estimator, name, value)
        return estimator

    def _problems_of(self, fold: int) -> FoldProblems:
        with self._lock:
            if fold not in self._problems:
                train = self._folds[fold].train
                self._problems[fold] = fold_problems(self.estimator, self._y, train, self._weights, self._others)
            return self._problems[fold]

    def _kernel(self, estimator: Any, fold: int) -> Kernel | None:
        """Return the kernel of a fold; γ may depend on the training samples."""
        if not isinstance(estimator.gamma, str) or estimator._precomputed or not isinstance(estimator.kernel, str):
            made: Kernel | None = estimator._make_kernel(self._X, np.ones(self._X.shape[0]))
            return made
        train = self._folds[fold].train
        weights = np.ones(len(train)) if self._weights is None else self._weights[train]
        scaled: Kernel | None = estimator._make_kernel(self._X[train], weights)
        return scaled

    def _order(self, folds: Sequence[Fold]) -> Indices:
        """Return the samples by class, and those of a class by the fold that holds them out: in few runs of rows."""
        fold_of = np.zeros(self._X.shape[0], dtype=np.int64)
        for number, (_, test) in enumerate(folds):
            fold_of[test] = number
        pairs = isinstance(self.estimator, KernelClassifier) and self.estimator.multi_class == "ovo"
        labels = np.unique(self._y, return_inverse=True)[1] if pairs else np.zeros(len(fold_of), dtype=np.int64)
        return np.lexsort((np.arange(len(fold_of)), fold_of, labels))
