"""The base of the kernel estimators: input validation, kernel, solver options, kernel values for prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.kernels import FunctionKernel, Kernel, Linear, Points, make_kernel
from maxmargin.machines.base import Machine
from maxmargin.machines.devices import choose_device, kernel_blocks, trains_in_place
from maxmargin.machines.validation.parameters import check_choice, check_count, check_flag, check_number
from maxmargin.machines.validation.training_data import (
    as_objects,
    check_lengths,
    count_samples,
    is_table,
    refuse_array,
    resolve_gamma,
)
from maxmargin.models import KernelBlocks, PrecomputedKernelBlocks
from maxmargin.models.device_blocks import DeviceKernelBlocks, in_host_memory
from maxmargin.models.kernel_blocks import MIN_VALUES_FOR_THREADS
from maxmargin.resources import thread_count
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.solvers.smo.smo_state import selection_code
from maxmargin.training import Session, Solver
from maxmargin.training.checkpoint import Checkpoint
from maxmargin.training.fit_context import PROBLEMS_ON_DEVICE, FitContext, SolverOptions

#: How far a precomputed matrix may be from symmetric, relative to its largest value.
MAX_ASYMMETRY = 1e-6

#: A large matrix is read once if its product with a random vector is that of its transpose up to rounding, about 1e-12
#: of the largest value. A pair of values that differ by more than `MAX_ASYMMETRY` changes two entries of the product;
#: if other pairs differ, too, each of the two is as small as this with a probability of 1e-4.
MIN_ROWS_OF_PRODUCT, MAX_PRODUCT_ASYMMETRY = 1000, 1e-10

#: Costs outside of this, a hard margin among them, are for the CPU.
MIN_COST_FOR_GPU, MAX_COST_FOR_GPU = 1e-15, 1e15

#: Methods of the literature by name: they train every kernel estimator, for comparison.
CLASSICAL_SOLVERS = ("quadratic_program", "chunking", "decomposition", "gradient_projection", "active_set", "platt")


class KernelEstimator(Machine):
    """Base of the kernel estimators: from parameters and data to a kernel and a `FitContext`."""

    # Set by the constructors of the estimators.
    kernel: Any
    degree: Any
    gamma: Any
    coef0: Any
    tol: Any
    shrinking: Any = True
    cache_size: Any
    solver: Any
    selection: Any = "second_order"
    gap_tol: Any
    max_seconds: Any
    n_jobs: Any
    device: Any = "cpu"

    #: The most problems of a fit at the same time on a GPU: fewer for a trial of a search, which has others beside it.
    _problems_on_device: int = PROBLEMS_ON_DEVICE

    # Set by fit; the classes by classifiers.
    classes_: Any
    device_: str
    _kernel_: Any
    support_: Any
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Any

    #: The names of solvers that can train this estimator, and the one that "auto" stands for.
    _solvers: tuple[str, ...] = ("pairwise", "block", *CLASSICAL_SOLVERS, "primal_quadratic_program")
    _auto_solver: str | None = None

    _fitted_attribute = "support_"
    _scaling_advice = "Consider pre-processing your data with StandardScaler or MinMaxScaler."

    @property
    def geometry_(self) -> Any:
        """Support vectors, slacks and margin: one, or a list with one per problem."""
        return self._per_model([model.geometry for model in self._trained("geometry_")])

    @property
    def coef_(self) -> Any:
        """The weight vector w of each decision function; only for a linear kernel."""
        if "support_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'coef_' before fit")
        if not isinstance(self._kernel_, Linear):
            raise AttributeError("coef_ is only available with a linear kernel")
        weights = self._model().weights(self.support_vectors_)
        weights.flags.writeable = False
        return sparse.csr_matrix(weights) if sparse.issparse(self.support_vectors_) else weights

    # Input validation.

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _own_function(self) -> bool:
        """Whether the kernel is a user's function, which accepts samples of any type."""
        return isinstance(self.kernel, FunctionKernel) or (
            callable(self.kernel) and not isinstance(self.kernel, Kernel)
        )

    def _takes_objects(self, X: Any) -> bool:
        """Whether samples are no table of numbers, but go to a user's own function."""
        if self._precomputed and sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: they must be dense; convert with .toarray()")
        return self._own_function and not is_table(X)

    def _check_training_samples(self, X: Any) -> Any:
        """Return validated samples without targets."""
        if isinstance(X, DeviceTable):
            return self._check_device_table(X)
        X = self._check_objects(X, reset=True) if self._takes_objects(X) else self._validate_samples(X, reset=True)
        if self._precomputed:
            check_precomputed(X, thread_count(self.n_jobs))
        return X

    def _check_training_data(self, X: Any, y: Any, **about_targets: bool) -> tuple[Any, Any]:
        """Return validated samples and targets."""
        if isinstance(X, DeviceTable):
            X, y = self._check_device_table(X), self._validate_targets(y, **about_targets)
            check_lengths(X, y)
            return X, y
        if self._takes_objects(X):
            y = self._validate_targets(y, **about_targets)
            check_lengths(X, y)
            X = self._check_objects(X, reset=True)
        else:
            X, y = self._validate_pairs(X, y, **about_targets)
        if self._precomputed:
            check_precomputed(X, thread_count(self.n_jobs))
        return X, y

    def _check_device_table(self, table: DeviceTable) -> DeviceTable:
        """Return validated training samples on a GPU."""
        table = table.check(None, type(self).__name__)
        self.n_features_in_ = table.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        return table

    def _trains_in_place(self, table: DeviceTable) -> bool:
        return trains_in_place(self.device, self.kernel, table, self._trains_on_a_gpu())

    def _check_objects(self, X: Any, reset: bool) -> Any:
        """Return samples that are not a table of numbers, for a user's own kernel function."""
        X = as_objects(X)
        if reset:
            self.__dict__.pop("n_features_in_", None)  # of an earlier fit; strings have none
        if not count_samples(X):
            raise ValueError("there must be at least one sample, but X has 0 samples")
        return self._validate_objects(X, reset)

    def _check_samples(self, X: Any) -> Any:
        self._check_fitted()
        if isinstance(X, DeviceTable) and self._kernel_ is None and self.device == "auto":
            X = X.in_host_memory()
        if isinstance(X, DeviceTable):
            if self._kernel_ is None:
                raise TypeError("precomputed kernel values must be in host memory")
            return X.check(self.__dict__.get("n_features_in_"), type(self).__name__)
        if self._kernel_ is None and sparse.issparse(X):
            raise TypeError("precomputed kernel values must be dense; convert them with .toarray()")
        if self._own_function and not is_table(X):
            return self._check_objects(X, reset=False)
        return self._validate_samples(X, reset=False)

    # The context of a fit.

    def _fit_context(
        self,
        X: Any,
        kernel: Kernel | None,
        callback: Callback | None,
        started: float | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> FitContext:
        """Return what training of these samples needs besides the formulation; `started` is when the fit began."""
        options = self._solver_options()
        self.device_ = "cpu" if self.device == "cpu" else choose_device(self.device, kernel, X, self._trains_on_a_gpu())
        session = Session.begin(callback, options.stopping.max_seconds, started, checkpoint)
        memory, most = self._cache_budget(), self._problems_on_device
        return FitContext(kernel, options, memory, self.n_jobs, session, self.device_, most)

    def _trains_on_a_gpu(self) -> bool:
        """Whether a GPU can solve the problems of these parameters, if it computes the kernel."""
        by_blocks = self.solver in ("auto", "block") and self._auto_solver is None and self.selection == "second_order"
        together = getattr(self, "multi_class", None) in ("crammer_singer", "weston_watkins")
        extreme = not MIN_COST_FOR_GPU <= getattr(self, "C", 1.0) <= MAX_COST_FOR_GPU
        return by_blocks and not together and not extreme

    def _make_kernel(self, X: Any, sample_weight: Floats) -> Kernel | None:
        """Return the kernel, None for a precomputed matrix."""
        degree = check_count("degree", self.degree, 0)
        coef0 = check_number("coef0", self.coef0)
        self._gamma = self._resolve_gamma(X, sample_weight)
        return None if self._precomputed else make_kernel(self.kernel, self._gamma, coef0, degree)

    def _resolve_gamma(self, X: Any, sample_weight: Floats) -> float | Floats:
        if self._precomputed or not isinstance(self.kernel, str):
            refuse_array(self.gamma, self.kernel)
        if isinstance(self.gamma, str) and (self._precomputed or not isinstance(self.kernel, str)):
            check_choice("gamma", self.gamma, ("scale", "auto"))
            return 0.0  # not used by these kernels
        return resolve_gamma(self.gamma, X, sample_weight, lambda: thread_count(self.n_jobs))

    def _cache_budget(self) -> int | None:
        """Return the bytes for kernel values that the user allows, None for "auto"."""
        if not isinstance(self.cache_size, str):
            return int(check_number("cache_size", self.cache_size, above=0) * 2**20)
        if self.cache_size != "auto":
            raise ValueError(f"cache_size must be a number of megabytes above 0, or 'auto', not {self.cache_size!r}")
        return None

    def _solver_options(self) -> SolverOptions:
        selection_code(self.selection)  # raises if unknown, also where it is not used
        shrinking = check_flag("shrinking", self.shrinking)
        return SolverOptions(self._solver_name(), self._stopping_rule(), self.selection, shrinking, self._auto_solver)

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
        """Return the name of a solver, "auto", or the solver object that was given."""
        if hasattr(self.solver, "solve"):
            return self._check_solver(self.solver)
        return check_choice("solver", self.solver, ("auto", *self._solvers))

    # Prediction.

    def _model(self) -> Any:
        """Return the predictor."""
        raise NotImplementedError

    def _evaluate(self, X: Any) -> Floats:
        """Return the value of each decision function for samples that were validated."""
        blocks = self._kernel_blocks(X)
        values: Floats = in_host_memory(self._model().decision_values(blocks, self._prediction_threads(X.shape[0])))
        return values

    def _kernel_blocks(self, X: Any) -> KernelBlocks | DeviceKernelBlocks:
        """Return the kernel values of samples with the support vectors."""
        if self._kernel_ is None:
            return PrecomputedKernelBlocks(X, self.support_)
        return kernel_blocks(self.device, self._kernel_, X, Points.wrap(self.support_vectors_))

    def _prediction_threads(self, samples: int) -> int:
        """Return how many threads predict; a user's function is called by one at a time."""
        own_function = self._kernel_ is not None and not self._kernel_.vectorised
        few = samples * len(self.support_) < MIN_VALUES_FOR_THREADS
        return 1 if own_function or few else thread_count(self.n_jobs)


def check_precomputed(K: Any, threads: int) -> None:
    """Raise unless a matrix of kernel values is square, symmetric and finite."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            "a precomputed kernel matrix must be square, one row and one column per training sample; "
            f"this one is {K.shape[0]} x {K.shape[1]}"
        )
    in_rows = K.T if K.flags.f_contiguous else np.ascontiguousarray(K)
    if _has_symmetric_product(in_rows, threads):
        return
    largest, difference = _native.asymmetry(in_rows, threads)
    if difference <= MAX_ASYMMETRY * largest:
        return
    if not np.isfinite(in_rows).all():
        raise ValueError("Input X contains NaN or infinity; a precomputed kernel matrix must be finite")
    raise ValueError(
        "a precomputed kernel matrix must be symmetric, but K[i, j] and K[j, i] differ by up to "
        f"{difference:.3g}; average it with its transpose if that is rounding"
    )


def _has_symmetric_product(K: Floats, threads: int) -> bool:
    """Whether the product of a large matrix with a random vector, always the same, is that of its transpose."""
    if len(K) < MIN_ROWS_OF_PRODUCT or K.dtype != np.float64:
        return False
    random = np.random.default_rng(len(K))
    vector = random.uniform(0.5, 1.5, len(K)) * random.choice((-1.0, 1.0), len(K))
    largest, difference = _native.product_asymmetry(K, vector, threads)
    return difference <= MAX_PRODUCT_ASYMMETRY * largest
