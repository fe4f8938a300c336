"""The base of estimators with one decision function, or one per output: regression, novelty detection, ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Kernel
from maxmargin.kernels.points import rows_of
from maxmargin.machines.base import no_solution_message, warn_if_unvalidated
from maxmargin.machines.calibration.cross_validation import CrossValidation, stratified_folds
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_flag
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights, check_targets
from maxmargin.matrices import SymmetricMatrix
from maxmargin.models import KernelExpansions
from maxmargin.models.calibration import noise_scale
from maxmargin.problems import DualProblem, Status
from maxmargin.training import Subproblem, TrainedModel

#: From the problems of all outputs and a cross-validation of them to its status.
AfterTraining = Callable[[list[DualProblem], CrossValidation], Status]

#: From a matrix, its training rows and the number of the output to the problem.
PoseOutput = Callable[[SymmetricMatrix, Indices, int], DualProblem]


class Regression(NamedTuple):
    """A formulation of regression with its parameters fixed.

    Attributes
    ----------
    formulation : Formulation
    cost : float
        Before sample weights; infinite if errors are forbidden.
    variables : int
        The number of dual variables per sample.
    pose : callable
        From a matrix, the targets and the costs of its samples to the dual problem.
    levels : tuple of callables, optional
        In place of `pose`: one for each of several functions of the same targets.
    """

    formulation: Formulation
    cost: float
    variables: int
    pose: Callable[[SymmetricMatrix, Floats, Floats], DualProblem]
    levels: tuple[Callable[[SymmetricMatrix, Floats, Floats], DualProblem], ...] = ()

    def functions(self, targets: Floats) -> int | None:
        """Return how many functions there are, None for a single one."""
        if not self.levels:
            return None if targets.ndim == 1 else int(targets.shape[1])
        if targets.ndim > 1:
            raise ValueError(
                f"several quantiles are functions of one target, but y has {targets.shape[1]} columns: fit one to "
                "each, for example with sklearn.multioutput.MultiOutputRegressor"
            )
        return len(self.levels)

    def pose_function(self, matrix: SymmetricMatrix, columns: Floats, costs: Floats, number: int) -> DualProblem:
        """Return the problem of one of the functions; `columns` has the targets of each, or one column for all."""
        if self.levels:
            return self.levels[number](matrix, columns[:, 0], costs)
        return self.pose(matrix, columns[:, number], costs)


class FunctionEstimator(KernelEstimator):
    """Base of the estimators whose decision function is one expansion over the support vectors, or one per output."""

    # Set by the constructors of the estimators.
    warm_start: Any

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors, in an array as in scikit-learn."""
        return np.array([len(self.support_)], dtype=np.int32)

    def _fit_outputs(
        self,
        X: Any,
        weights: Floats,
        pose: PoseOutput,
        formulation: Formulation,
        variables: int,
        outputs: int | None = None,
        bounded: bool = True,
        after: AfterTraining | None = None,
        y: Any = None,
        started: float | None = None,
    ) -> None:
        """Train on the rows with a positive weight; `pose` has `variables` variables for each.

        `outputs` is None for a single function. `after` gets the problems of all outputs and a cross-validation of
        them, and returns its status. `y` are the targets, for a checkpoint. The time limit counts from `started`, a
        reading of ``time.perf_counter``, by default now.
        """
        started = perf_counter() if started is None else started
        check_flag("warm_start", self.warm_start)
        rows = np.flatnonzero(weights > 0)
        count = 1 if outputs is None else outputs
        kernel, ended = self._make_kernel(X, weights), Status.CONVERGED
        with reporting(self) as callback, checkpointing(self, X, y, weights) as checkpoint:
            context = self._fit_context(X, kernel, callback, started, checkpoint)
            workers, inside = context.divide_threads(X, count)
            cache_bytes = context.cache_bytes(X.shape[0])
            solver = context.solver(variables * len(rows), bounded, cache_bytes // workers, inside)
            solver, matrix = context.shared_matrix(X, rows, solver, count, workers, inside)
            problems = [pose(matrix, rows, output) for output in range(count)]
            starts = self._starts(rows, X.shape, outputs)
            if starts is not None and len(starts[0]) != problems[0].size:
                starts = None  # of a model file that an earlier version wrote, with other variables
            subproblems = [
                Subproblem.posed(problem, rows, None if starts is None else starts[output])
                for output, problem in enumerate(problems)
            ]
            models = context.train(subproblems, solver, formulation, workers)
            self._set_fitted(X, kernel, models, outputs)
            if after is not None:
                ended = after(problems, CrossValidation(solver, cache_bytes, workers * inside, context.session))
        self._warn_if_unconverged(solver.stopping, "outputs", stacklevel=4)
        warn_if_unvalidated(self, ended, stacklevel=4)

    def _starts(self, rows: Indices, shape: tuple[int, ...], outputs: int | None) -> list[Floats] | None:
        """Return the previous solution of each output as a start, None if there is none that fits."""
        models: Sequence[TrainedModel] | None = getattr(self, "_models_", None)
        if not self.warm_start or models is None or shape != self.shape_fit_ or outputs != self._outputs_:
            return None
        return [model.dual for model in models] if np.array_equal(models[0].samples, rows) else None

    def _set_fitted(self, X: Any, kernel: Kernel | None, models: Sequence[TrainedModel], outputs: int | None) -> None:
        """Set the fitted attributes in scikit-learn's layout, or raise if there is no solution."""
        if any(model.status is Status.UNBOUNDED for model in models):
            hard = (
                "no function of this kernel keeps every target within epsilon, so there is no hard tube (C=inf); use a "
                "finite C, a larger epsilon, or another kernel"
            )
            raise ValueError(no_solution_message(self, hard))
        self.shape_fit_ = X.shape
        self._kernel_ = kernel
        self._outputs_ = outputs
        self._models_ = models
        coefficients = np.array([model.expansion.coefficients for model in models])
        used = np.flatnonzero(coefficients.any(axis=0))
        samples = models[0].samples[used]
        self.support_ = samples.astype(np.int32)
        self.dual_coef_: Any = coefficients[:, used]
        self.intercept_ = np.array([model.expansion.offset for model in models])
        threads = self._prediction_threads(len(samples))
        self.support_vectors_ = np.empty((0, 0)) if kernel is None else rows_of(X, samples, threads)
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        steps = [model.counters.iterations for model in models]
        self.n_iter_ = steps[0] if outputs is None else np.array(steps, dtype=np.int32)
        self.fit_status_ = int(not all(model.status.converged for model in models))

    def _per_model(self, values: list[Any]) -> Any:
        return values[0] if self._outputs_ is None else values

    def _decide(self, X: Any) -> Floats:
        """Return the value of the function for each sample, a column for each of several outputs."""
        return self._evaluate(self._check_samples(X))

    def _evaluate(self, X: Any) -> Floats:
        values = super()._evaluate(X)
        return values.ravel() if self._outputs_ is None else values

    def _model(self) -> KernelExpansions:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return KernelExpansions(coefficients, self.intercept_)


class KernelRegressor(FunctionEstimator):
    """Base of the kernel regressors: one problem per output, on shared kernel values."""

    fit_intercept: Any
    noise: Any = False  # of regressors without this parameter

    @following_samples
    def predict(self, X: Any) -> Floats:
        """Return the value of the function for each sample, a column for each of several outputs."""
        return np.asarray(self._decide(X))

    def _regression(self) -> Regression:
        """Return the formulation, after validating the parameters."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on samples `X` with targets `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. Each column of a table is a problem of its own; kernel values are shared.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        check_flag("noise", self.noise)
        check_flag("fit_intercept", self.fit_intercept)
        regression = self._regression()
        X, targets = check_targets(self._check_training_data, X, y)
        weights = check_sample_weights(sample_weight, X)
        costs, columns = check_costs(regression.cost, weights), targets.reshape(len(targets), -1)
        self._fit_outputs(
            X,
            weights,
            lambda matrix, rows, output: regression.pose_function(matrix, columns[rows], costs[rows], output),
            regression.formulation,
            regression.variables,
            regression.functions(targets),
            bool(np.isfinite(regression.cost)),
            lambda problems, validation: self._estimate_noise(
                problems, regression.formulation, columns, weights, validation
            ),
            targets,
            started,
        )
        return self

    def _estimate_noise(
        self,
        problems: list[DualProblem],
        formulation: Formulation,
        targets: Floats,
        weights: Floats,
        validation: CrossValidation,
    ) -> Status:
        """Set ``noise_scale_`` if asked for; return the status of the least converged cross-validation."""
        self.__dict__.pop("noise_scale_", None)
        if not self.noise or any(model.status is Status.INTERRUPTED for model in self._models_):
            return Status.CONVERGED
        rows = self._models_[0].samples
        folds = stratified_folds([np.arange(len(rows))], len(rows), seed=0)
        scales, worst = [], Status.CONVERGED
        for output, (problem, model) in enumerate(zip(problems, self._models_, strict=True)):
            values, status = validation.values(problem, model, formulation, folds)
            if status is Status.INTERRUPTED:
                return status
            valued = np.isfinite(values)  # all, or a part if there was no time
            scales.append(noise_scale((targets[rows, output] - values)[valued], weights[rows][valued]))
            worst = worst if status.converged else status
        self.noise_scale_ = scales[0] if self._outputs_ is None else np.array(scales)
        return worst
