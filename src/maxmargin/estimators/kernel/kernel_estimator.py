"""What all kernel machines share at the door: data, kernel, gamma, solver."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, validate_data

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.validation.callbacks import Reporting, trained_elsewhere
from maxmargin.estimators.validation.parameters import check_choice, check_count, check_flag, check_number
from maxmargin.estimators.validation.samples import as_objects, is_table, points_of, resolve_gamma
from maxmargin.kernels import FunctionKernel, Kernel, Linear, make_kernel
from maxmargin.matrices import FullKernelMatrix, KernelMatrix, PrecomputedMatrix, SharedCacheMatrix, SymmetricMatrix
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES
from maxmargin.models import ComputedKernelBlocks, KernelBlocks, PrecomputedKernelBlocks
from maxmargin.models.kernel_blocks import MIN_VALUES_FOR_THREADS
from maxmargin.problems import Status
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule, make_solver
from maxmargin.solvers.smo.working_set import selection_code
from maxmargin.training import Machine, Solver

#: Up to this many samples the whole kernel matrix is computed at once.
SMALL = 2048

#: Up to this many variables a problem is left to pair steps on rows in double precision.
FEW = 500

#: Up to this many samples a second thread does not pay.
WORTH_THREADS = 1000

#: How far a precomputed matrix may be from symmetric, relative to its largest value.
ASYMMETRY = 1e-6

#: Methods of the literature by name: they train every machine, for comparison.
CLASSICAL = ("quadratic_program", "chunking", "decomposition", "gradient_projection", "active_set", "platt")

#: What helps most fits that run into their limit on steps.
SCALE_THE_DATA = "Consider pre-processing your data with StandardScaler or MinMaxScaler."


class KernelMachine(Reporting, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base of the kernel estimators: turns parameters and data into kernels, matrices and solvers."""

    # Set by the constructors of the estimators.
    kernel: Any
    degree: Any
    gamma: Any
    coef0: Any
    tol: Any
    shrinking: Any
    cache_size: Any
    max_iter: Any
    solver: Any
    selection: Any
    gap_tol: Any
    max_seconds: Any
    n_jobs: Any

    #: The names of solvers that can train this machine.
    _solvers: tuple[str, ...] = ("pairwise", "block", *CLASSICAL, "primal_quadratic_program")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _own_function(self) -> bool:
        """Whether the kernel is a function of the user's, which may be about anything."""
        return isinstance(self.kernel, FunctionKernel) or (
            callable(self.kernel) and not isinstance(self.kernel, Kernel)
        )

    @property
    def _table(self) -> dict[str, Any]:
        """What is asked of a table of numbers."""
        return {
            "dtype": (np.float64, np.float32),
            "order": None if self._precomputed else "C",
            "accept_sparse": "csr",
            "accept_large_sparse": True,
        }

    def _check_training_data(self, X: Any, y: Any = "no_validation", **about_targets: bool) -> tuple[Any, Any]:
        """Return the data, checked."""
        if self._precomputed and sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: they must be dense; convert with .toarray()")
        if self._own_function and not is_table(X):
            if not isinstance(y, str):
                y = validate_data(self, "no_validation", y, **about_targets)
                check_consistent_length(X, y)
            X = self._check_objects(X, reset=True)
        else:
            checked = validate_data(self, X, y, **self._table, **about_targets)
            X, y = checked if isinstance(checked, tuple) else (checked, None)
        if self._precomputed:
            _check_precomputed(X)
        return X, y

    def _check_objects(self, X: Any, reset: bool) -> Any:
        """Return samples that are no table of numbers, for a user's own kernel function."""
        X = as_objects(X)
        if reset:
            self.__dict__.pop("n_features_in_", None)  # of an earlier fit; strings have none
        if not _num_samples(X):
            raise ValueError("there must be at least one sample, but X has 0 samples")
        return validate_data(self, X, reset=reset, skip_check_array=True)

    def _check_samples(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._kernel_ is None and sparse.issparse(X):
            raise TypeError("kernel values for a precomputed machine must be dense; convert them with .toarray()")
        if self._own_function and not is_table(X):
            return self._check_objects(X, reset=False)
        return validate_data(self, X, reset=False, **self._table)

    def _make_kernel(self, X: Any, sample_weight: Floats) -> Kernel | None:
        """Return the kernel, or None where the user computed it."""
        degree = check_count("degree", self.degree, 0)
        coef0 = check_number("coef0", self.coef0)
        self._gamma = self._resolve_gamma(X, sample_weight)
        return None if self._precomputed else make_kernel(self.kernel, self._gamma, coef0, degree)

    def _resolve_gamma(self, X: Any, sample_weight: Floats) -> float:
        if isinstance(self.gamma, str) and (self._precomputed or not isinstance(self.kernel, str)):
            check_choice("gamma", self.gamma, ("scale", "auto"))
            return 0.0  # these do not ask for it
        return resolve_gamma(self.gamma, X, sample_weight)

    def _cache_bytes(self, size: int) -> int:
        """Return the memory for kernel rows of a problem of so many samples."""
        if not isinstance(self.cache_size, str):
            return int(check_number("cache_size", self.cache_size, above=0) * 2**20)
        if self.cache_size != "auto":
            raise ValueError(f"cache_size must be a number of megabytes above 0, or 'auto', not {self.cache_size!r}")
        return 8 * size**2 if size <= SMALL else default_cache_bytes()

    def _divide_threads(self, kernel: Kernel | None, size: int, machines: int) -> tuple[int, int]:
        """Return how many machines are trained side by side, and on how many threads each."""
        threads = thread_count(1 if self.n_jobs is None and size <= WORTH_THREADS else self.n_jobs)
        if size <= WORTH_THREADS or (kernel is not None and not kernel.vectorised):
            return 1, 1  # a function of the user's must not be called by two threads at once
        side_by_side = min(threads, machines)
        return side_by_side, max(1, threads // side_by_side)

    def _make_matrix_of(
        self, kernel: Kernel | None, X: Any, order: Indices, cache_bytes: int, threads: int, readers: int = 1
    ) -> FullKernelMatrix | Callable[[Indices], SymmetricMatrix]:
        """Return all kernel values of few samples, else a function from training rows to their kernel matrix.

        Rows that are asked for together should be neighbours in `order`. A function of the user's is only called for
        what is needed, unless there are several `readers` who would each ask again.
        """
        if kernel is None:
            return lambda rows: PrecomputedMatrix(X, rows)
        points = points_of(X)
        kernel.check(points)
        if (kernel.vectorised or readers > 1) and len(points) <= SMALL and 8 * len(points) ** 2 <= cache_bytes:
            _, threads = self._divide_threads(kernel, len(points), 1)
            return FullKernelMatrix.of(kernel, points, order, threads)
        return lambda rows: KernelMatrix(kernel, points.take(rows), threads)

    def _make_shared(
        self,
        kernel: Kernel | None,
        X: Any,
        rows: Indices,
        solver: Solver,
        machines: int,
        side_by_side: int,
        threads: int,
    ) -> tuple[Solver, SymmetricMatrix]:
        """Return a solver and the matrix of some rows for several machines, whose values are computed once for all.

        Of the memory for rows, one half is for those that all share, the rest for those that each machine works with.
        """
        cache_bytes = self._cache_bytes(X.shape[0])
        matrix = self._make_matrix_of(kernel, X, rows, cache_bytes, threads, machines)(rows)
        if machines == 1 or not isinstance(matrix, KernelMatrix) or not isinstance(solver, BlockSolver):
            return solver, matrix
        shared = SharedCacheMatrix(matrix, cache_bytes // 2, threads)
        if solver is self.solver:  # an object of the user's keeps its options
            return solver, shared
        return replace(solver, cache_bytes=(cache_bytes - shared.bytes) // side_by_side), shared

    def _make_blocks(self, X: Any) -> KernelBlocks:
        """Return the kernel values of samples with the support vectors."""
        if self._kernel_ is None:
            return PrecomputedKernelBlocks(X, self.support_)
        points = points_of(X)
        self._kernel_.check(points)
        return ComputedKernelBlocks(self._kernel_, points, points_of(self.support_vectors_))

    def _make_solver(self, size: int, bounded: bool, cache_bytes: int, threads: int, few: int = FEW) -> Solver:
        """Return the solver for problems of up to `size` variables; with `few`, pair steps are thought good enough."""
        stopping = self._stopping_rule()
        shrinking = check_flag("shrinking", self.shrinking)
        selection_code(self.selection)  # an unknown one is an error, whichever solver it will be
        name = self._solver_name()
        if not isinstance(name, str):
            return name
        if name == "auto":
            # Few variables make no blocks. A hard margin and the other selection rules are the pairwise solver's.
            pairwise = size <= few or not bounded or self.selection != "second_order"
            name = "pairwise" if pairwise else "block"
        if name == "pairwise":
            return PairwiseSolver(self.selection, shrinking, cache_bytes, stopping)
        if name == "block":
            return BlockSolver(shrinking=shrinking, cache_bytes=cache_bytes, stopping=stopping, threads=threads)
        return cast(Solver, make_solver(name, cache_bytes=cache_bytes, stopping=stopping))

    def _stopping_rule(self) -> StoppingRule:
        limit = check_count("max_iter", self.max_iter, -1)
        seconds = None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)
        return StoppingRule(
            violation=check_number("tol", self.tol, above=0),
            gap=None if self.gap_tol is None else check_number("gap_tol", self.gap_tol, above=0),
            max_iterations=None if limit == -1 else limit,
            max_seconds=seconds,
        )

    def _solver_name(self) -> str | Solver:
        """Return the name of a solver, "auto", or the solver itself where one was given."""
        if not hasattr(self.solver, "solve"):
            return check_choice("solver", self.solver, ("auto", *self._solvers))
        if not is_dataclass(self.solver) or not hasattr(self.solver, "stopping"):
            raise ValueError("a solver object must be a dataclass with a field `stopping` and a method `solve`")
        return cast(Solver, self.solver)

    def _prediction_threads(self, samples: int) -> int:
        """Return how many threads predict; a user's own function is never called by two at once."""
        own_function = self._kernel_ is not None and not self._kernel_.vectorised
        few = samples * len(self.support_) < MIN_VALUES_FOR_THREADS
        return 1 if own_function or few else thread_count(self.n_jobs)

    def _speak_up(self, tolerance: float, each: str, stacklevel: int = 3) -> None:
        """Raise after an interruption, warn of a limit that was hit; the model is in place by now."""
        unfinished = [machine for machine in self._machines_ if not machine.status.converged]
        if not unfinished:
            return
        if any(machine.status is Status.INTERRUPTED for machine in unfinished):
            raise KeyboardInterrupt(
                "fit was interrupted; the model so far is usable, see certificate_ for how good it is"
            )
        worst = max(unfinished, key=lambda machine: machine.certificate.violation)
        advice = ""
        if worst.status is Status.MAX_ITERATIONS:
            advice = f"Solver terminated early (max_iter={self.max_iter}).  {SCALE_THE_DATA} "
        which = "" if len(self._machines_) == 1 else f" in {len(unfinished)} of {len(self._machines_)} {each}"
        warnings.warn(
            f"{advice}{type(self).__name__} stopped before the tolerance{which}: {worst.status.value}. "
            f"Violation {worst.certificate.violation:.3g} (tolerance {tolerance:g}), "
            f"duality gap {worst.certificate.gap:.3g} ({worst.certificate.relative_gap:.2g} of the objective) remain.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )

    def _trained(self, attribute: str) -> list[Machine]:
        """Return the machines, if `fit` has trained any."""
        self._check_fitted(attribute)
        if "_machines_" not in self.__dict__:
            raise AttributeError(trained_elsewhere(self, attribute))
        machines: list[Machine] = self._machines_
        return machines

    def _check_fitted(self, attribute: str) -> None:
        if "support_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")

    @property
    def _is_linear(self) -> bool:
        return isinstance(self._kernel_, Linear)


def _check_precomputed(K: Any) -> None:
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "a precomputed kernel matrix must be square, one row and one column per training sample; "
            f"this one is {K.shape[0]} x {K.shape[1]}"
        )
    largest = difference = 0.0
    step = max(1, BLOCK_BYTES // (8 * len(K)))
    for start in range(0, len(K), step):
        part = slice(start, start + step)
        largest = max(largest, float(np.abs(K[part]).max()))
        difference = max(difference, float(np.abs(K[part] - K[:, part].T).max()))
    if difference > ASYMMETRY * largest:
        raise ValueError(
            "a precomputed kernel matrix must be symmetric, but K[i, j] and K[j, i] differ by up to "
            f"{difference:.3g}; average it with its transpose if that is rounding"
        )
