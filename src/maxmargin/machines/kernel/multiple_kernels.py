"""What the estimators of multiple kernel learning share: kernels, precomputed matrices, training, fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Combination, Kernel, OnFeatures, Points, UnitDiagonal
from maxmargin.machines.kernel.function_estimator import FunctionEstimator, PoseOutput
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator, check_precomputed
from maxmargin.machines.kernel.kernel_list import TrainingTable, make_kernels
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.parameters import check_choice, check_count, check_number
from maxmargin.machines.validation.training_data import check_lengths
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix, SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem, Status
from maxmargin.resources import thread_count
from maxmargin.solvers import StoppingRule
from maxmargin.training.kernel_subproblem import KernelSubproblem
from maxmargin.training.multiple_kernels import TrainedCombination, train_combination

#: The choices of `normalize` besides None.
NORMALISATIONS = ("trace", "diagonal")


@dataclass(frozen=True)
class KernelTables:
    """Precomputed matrices, one for each kernel, of the same samples and training rows."""

    matrices: list[Floats]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of samples and of training rows."""
        return self.matrices[0].shape[0], self.matrices[0].shape[1]

    @classmethod
    def of(cls, X: Any) -> KernelTables:
        """Return the matrices in a list, or in an array of shape (n_samples, n_training_samples, n_kernels)."""
        if isinstance(X, np.ndarray) and X.ndim == 3:
            X = [X[:, :, m] for m in range(X.shape[2])]
        if not isinstance(X, list | tuple) or not len(X):
            raise ValueError(
                "with kernels='precomputed', X must be a list with a matrix of kernel values for each kernel, or an "
                f"array of shape (n_samples, n_training_samples, n_kernels), not {type(X).__name__}"
            )
        matrices = [np.asarray(one) for one in X]
        shapes = sorted({one.shape for one in matrices})
        if len(shapes) > 1 or len(shapes[0]) != 2 or 0 in shapes[0]:
            raise ValueError(f"the matrices of all kernels must be two-dimensional, of one shape, not of {shapes}")
        if any(one.dtype.kind not in "fiub" for one in matrices):
            raise ValueError("matrices of kernel values must be real numbers")
        matrices = [one.astype(np.float64, copy=False) for one in matrices]
        for m, one in enumerate(matrices):
            if not np.isfinite(one).all():
                raise ValueError(f"Input X contains NaN or infinity, in the matrix of kernel {m}")
        return cls(matrices)

    def combined(self, coefficients: Floats) -> Floats:
        """Return the sum of the matrices times their coefficients."""
        total = np.zeros(self.shape)
        for m in np.flatnonzero(coefficients):
            total += coefficients[m] * self.matrices[m]
        return total


class MultipleKernels(KernelEstimator):
    """Mixin of the estimators that learn the weights of kernels, in front of the class of their task."""

    # Set by the constructors of the estimators.
    kernels: Any
    norm: Any
    normalize: Any

    # What these estimators have no parameters for.
    solver: Any = "auto"
    gap_tol: Any = None
    warm_start: Any = False
    probability: Any = False
    checkpoint: Any = None

    # Set by fit.
    n_iter_: Any
    kernels_: list[Kernel]
    kernel_weights_: Floats
    kernel_coefficients_: Floats
    _joint_certificate_: Certificate

    @property
    def kernel(self) -> str | None:
        """What the methods of other kernel estimators ask: whether the kernel is precomputed."""
        return "precomputed" if self._precomputed else None

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the weights and all dual vectors together."""
        self._trained("certificate_")
        return self._joint_certificate_

    @property
    def status_(self) -> Status:
        """How the fit ended."""
        status: Status = self._trained("status_")[0].status
        return status

    # Validation.

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernels, str) and self.kernels == "precomputed"

    @property
    def _own_function(self) -> bool:
        return False

    def _check_training_data(self, X: Any, y: Any, **about_targets: bool) -> tuple[Any, Any]:
        if not self._precomputed:
            return super()._check_training_data(X, y, **about_targets)
        y = self._validate_targets(y, **about_targets)
        tables = self._check_training_samples(X)
        check_lengths(tables, y)
        return tables, y

    def _check_training_samples(self, X: Any) -> Any:
        if not self._precomputed:
            return super()._check_training_samples(X)
        tables = KernelTables.of(X)
        for m, matrix in enumerate(tables.matrices):
            try:
                check_precomputed(matrix, thread_count(self.n_jobs))
            except ValueError as error:
                raise ValueError(f"kernel {m}: {error}") from None
        self.n_features_in_ = tables.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        return tables

    def _check_samples(self, X: Any) -> Any:
        if not self._precomputed:
            return super()._check_samples(X)
        self._check_fitted()
        tables = KernelTables.of(X)
        expected = (len(self.kernel_weights_), self.n_features_in_)
        if (len(tables.matrices), tables.shape[1]) != expected:
            raise ValueError(
                f"X has {len(tables.matrices)} kernels with {tables.shape[1]} training samples, but "
                f"{type(self).__name__} is expecting {expected[0]} kernels with {expected[1]}"
            )
        return tables.combined(self.kernel_coefficients_)

    def _stopping_rule(self) -> StoppingRule:
        limit = check_count("max_iter", self.max_iter, -1)
        seconds = None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)
        tolerance = check_number("tol", self.tol, above=0)
        return StoppingRule(relative_gap=tolerance, max_iterations=None if limit == -1 else limit, max_seconds=seconds)

    # Training.

    def _train_kernels(
        self,
        X: Any,
        weights: Floats,
        rows: Indices,
        subproblems: Sequence[KernelSubproblem],
        strata: Indices,
        formulation: Formulation,
        started: float,
    ) -> tuple[Kernel | None, TrainedCombination]:
        """Train the subproblems of the samples `rows`; return the kernel, None for precomputed matrices, and models."""
        p = check_number("norm", self.norm, least=1)
        threads = thread_count(self.n_jobs) if len(rows) > 1000 else 1
        kernels, sources = self._sources(X, weights, rows, threads)
        scales = self._scales(sources, weights[rows])
        with reporting(self) as callback:
            context = self._fit_context(X, None, callback, started)
            if not all(one.vectorised for one in kernels):
                threads = 1
            trained = train_combination(sources, scales, subproblems, rows, strata, formulation, p, context, threads)
        self._gamma, self.kernels_ = 0.0, kernels
        self.kernel_weights_ = trained.weights / trained.weights.sum()
        self.kernel_coefficients_ = trained.weights * scales
        self._joint_certificate_ = trained.certificate
        if not kernels:
            return None, trained
        used = np.flatnonzero(self.kernel_coefficients_)
        used = used if len(used) else np.arange(1)
        chosen = tuple(float(value) for value in self.kernel_coefficients_[used])
        return Combination(tuple(kernels[m] for m in used), chosen), trained

    def _sources(
        self, X: Any, weights: Floats, rows: Indices, threads: int
    ) -> tuple[list[Kernel], list[SymmetricMatrix]]:
        """Return the kernels, none if they are precomputed, and their matrices of some rows."""
        unit = self.normalize is not None and check_choice("normalize", self.normalize, NORMALISATIONS) == "diagonal"
        if isinstance(X, KernelTables):
            if unit:
                raise ValueError(
                    "normalize='diagonal' needs k(x, x) of the samples to predict, which precomputed matrices do not "
                    "have: divide them by the roots of both diagonals yourself, or use normalize='trace'"
                )
            return [], [PrecomputedMatrix(matrix, rows) for matrix in X.matrices]
        names = self.__dict__.get("feature_names_in_")
        kernels = make_kernels(self.kernels, TrainingTable(X, weights, names))
        if unit:
            kernels = [UnitDiagonal(kernel) for kernel in kernels]
        points = Points.wrap(X).take(rows)
        return kernels, [_kernel_matrix(kernel, points, threads) for kernel in kernels]

    def _scales(self, sources: Sequence[SymmetricMatrix], weights: Floats) -> Floats:
        """Return the factor of each kernel that makes the mean of its diagonal 1, if that is asked for."""
        if self.normalize != "trace":
            return np.ones(len(sources))
        means = np.array([float(source.diagonal() @ weights) / float(weights.sum()) for source in sources])
        if (means < 0).any():
            m = int(np.argmin(means))
            raise ValueError(
                f"kernel {m} has a negative mean diagonal, {means[m]:.3g}: it is not positive semi-definite; use "
                "another kernel, or normalize=None"
            )
        if not np.isfinite(means).all():
            raise ValueError("the kernel gave values that are not finite; scale the data, or choose a smaller gamma")
        return np.where(means > 0, 1.0 / np.where(means > 0, means, 1.0), 1.0)

    def _warn_unless_converged(self, steps: int, stacklevel: int) -> None:
        """Raise after an interruption, warn if a limit was reached; the fitted attributes are set before."""
        self.n_iter_ = steps
        status = self.status_
        if status.converged:
            return
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt(
                "fit was interrupted; the model so far is usable, see certificate_ for how good it is"
            )
        warnings.warn(
            f"{type(self).__name__} stopped before the tolerance: {status.value}. Relative duality gap "
            f"{self._joint_certificate_.relative_gap:.2g} (tolerance {self.tol:g}).",
            self._convergence_warning,
            stacklevel=stacklevel + 1,  # for `keeping_previous_fit`
        )


def _kernel_matrix(kernel: Kernel, points: Points, threads: int) -> KernelMatrix:
    """Return the matrix of a kernel; that of some features is computed as one of all features of fewer."""
    kernel.check(points)
    if isinstance(kernel, OnFeatures):
        return KernelMatrix(kernel.kernel, kernel.restricted(points), threads)
    return KernelMatrix(kernel, points, threads)


class MultipleKernelFunctions(MultipleKernels, FunctionEstimator):
    """Mixin of regression and novelty detection: subproblems are outputs."""

    def _fit_outputs(
        self,
        X: Any,
        weights: Floats,
        pose: PoseOutput,
        formulation: Formulation,
        variables: int,
        outputs: int | None = None,
        bounded: bool = True,
        after: Any = None,
        y: Any = None,
        started: float | None = None,
    ) -> None:
        rows = np.flatnonzero(weights > 0)
        places = np.arange(len(rows))

        def pose_some(output: int, matrix: SymmetricMatrix, at: Indices) -> DualProblem:
            return pose(matrix, rows[at], output)

        count = 1 if outputs is None else outputs
        subproblems = [KernelSubproblem(places, partial(pose_some, output)) for output in range(count)]
        begun = perf_counter() if started is None else started
        strata = np.zeros(len(rows), dtype=np.int64)
        kernel, trained = self._train_kernels(X, weights, rows, subproblems, strata, formulation, begun)
        self._set_fitted(X, kernel, trained.models, outputs)
        self._warn_unless_converged(trained.iterations, stacklevel=4)
