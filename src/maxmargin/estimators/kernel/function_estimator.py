"""Estimators with one machine for all samples, or one for each output: regression and novelty detection."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import CrossValidation, deadline_of, warn_of_limit
from maxmargin.estimators.kernel.kernel_estimator import WORTH_THREADS, KernelMachine
from maxmargin.estimators.multiclass.parallel_training import train_several
from maxmargin.estimators.validation.callbacks import reporting
from maxmargin.estimators.validation.parameters import check_flag
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Kernel
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import SymmetricMatrix
from maxmargin.models import KernelExpansions
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import thread_count
from maxmargin.solvers import SharedCallback
from maxmargin.training import Machine

#: From the problems of all outputs and means to cross-validate them to how that ended.
Afterwards = Callable[[list[DualProblem], CrossValidation], Status]

#: From a matrix, its training rows and the number of the output to the problem.
Pose = Callable[[SymmetricMatrix, Indices, int], DualProblem]


class SingleMachine(KernelMachine):
    """Base of the estimators whose decision function is one expansion over the support vectors, or one per output."""

    # Set by the constructors of the estimators.
    callback: Any
    verbose: Any
    warm_start: Any

    @property
    def certificate_(self) -> Any:
        """What is proved about the solution; of several outputs a list."""
        return self._per_output([machine.certificate for machine in self._trained("certificate_")])

    @property
    def geometry_(self) -> Any:
        """What the solution looks like; of several outputs a list."""
        return self._per_output([machine.geometry for machine in self._trained("geometry_")])

    @property
    def status_(self) -> Any:
        """How the solver ended; of several outputs a list."""
        return self._per_output([machine.status for machine in self._trained("status_")])

    @property
    def coef_(self) -> Any:
        """The weight vector w of each output; only for a linear kernel."""
        self._check_fitted("coef_")
        if not self._is_linear:
            raise AttributeError("coef_ is only available with a linear kernel")
        weights = self._model().weights(self.support_vectors_)
        weights.flags.writeable = False
        return sparse.csr_matrix(weights) if sparse.issparse(self.support_vectors_) else weights

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors, in an array as scikit-learn has it."""
        return np.array([len(self.support_)], dtype=np.int32)

    def _fit_single(
        self,
        X: Any,
        weights: Floats,
        pose: Pose,
        formulation: Formulation,
        variables: int,
        outputs: int | None = None,
        bounded: bool = True,
        afterwards: Afterwards | None = None,
    ) -> None:
        """Train on the rows with a weight; `pose` has so many variables for each. Outputs are numbered, or None.

        `afterwards` gets the problems of all outputs and means to cross-validate them, and returns how that ended.
        """
        started = perf_counter()
        check_flag("warm_start", self.warm_start)
        rows = np.flatnonzero(weights > 0)
        count = 1 if outputs is None else outputs
        kernel = self._make_kernel(X, weights)
        threads = 1 if kernel is not None and not kernel.vectorised else thread_count(self.n_jobs)
        side_by_side = 1 if len(rows) <= WORTH_THREADS else min(threads, count)
        inside = max(1, threads // side_by_side)
        cache_bytes = self._cache_bytes(X.shape[0])
        solver = self._make_solver(variables * len(rows), bounded, cache_bytes // side_by_side, inside)
        solver, matrix = self._make_shared(kernel, X, rows, solver, count, side_by_side, inside)
        starts = self._starts(rows, X.shape, outputs)
        problems, ended = [pose(matrix, rows, output) for output in range(count)], Status.CONVERGED
        with reporting(self) as report:
            machines = train_several(
                lambda output: (problems[output], rows), count, solver, formulation, starts, report, side_by_side
            )
            self._keep(X, kernel, machines, outputs)
            if afterwards is not None:
                deadline, watch = deadline_of(solver, started), SharedCallback(report)
                ended = afterwards(problems, CrossValidation(solver, cache_bytes, threads, deadline, watch))
        self._speak_up(solver.stopping.violation, "outputs", stacklevel=5)
        warn_of_limit(self, ended, stacklevel=5)

    def _keep(self, X: Any, kernel: Kernel | None, machines: list[Machine], outputs: int | None) -> None:
        """Take over what was trained, if there is a solution."""
        if any(machine.status is Status.UNBOUNDED for machine in machines):
            raise ValueError(
                "no function of this kernel keeps every target within epsilon, so there is no hard tube (C=inf) "
                "to find; use a finite C, a larger epsilon, or another kernel"
            )
        self.shape_fit_ = X.shape
        self._kernel_ = kernel
        self._outputs_ = outputs
        self._machines_ = machines
        self._collect(X, machines)

    def _starts(self, rows: Indices, shape: tuple[int, ...], outputs: int | None) -> list[Floats] | None:
        """Return the previous solution as a start, if there is one that fits."""
        machines: list[Machine] | None = getattr(self, "_machines_", None)
        if not self.warm_start or machines is None or shape != self.shape_fit_ or outputs != self._outputs_:
            return None
        return [machine.dual for machine in machines] if np.array_equal(machines[0].samples, rows) else None

    def _collect(self, X: Any, machines: list[Machine]) -> None:
        """Set scikit-learn's attributes."""
        coefficients = np.array([machine.expansion.coefficients for machine in machines])
        used = np.flatnonzero(coefficients.any(axis=0))
        samples = machines[0].samples[used]
        self.support_ = samples.astype(np.int32)
        self.dual_coef_: Any = coefficients[:, used]
        self.intercept_ = np.array([machine.expansion.offset for machine in machines])
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else rows_of(X, samples)
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        steps = [machine.counters.iterations for machine in machines]
        self.n_iter_ = steps[0] if self._outputs_ is None else np.array(steps, dtype=np.int32)
        self.fit_status_ = int(not all(machine.status.converged for machine in machines))

    def _per_output(self, values: list[Any]) -> Any:
        return values[0] if self._outputs_ is None else values

    def _decide(self, X: Any) -> Floats:
        """Return the value of the expansion for each sample, of several outputs a column each."""
        return self._expand(self._check_samples(X))

    def _expand(self, X: Any) -> Floats:
        """Return the value of the expansion for samples that were checked."""
        values = self._model().decision_values(self._make_blocks(X), self._prediction_threads(X.shape[0]))
        return values.ravel() if self._outputs_ is None else values

    def _model(self) -> KernelExpansions:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return KernelExpansions(coefficients, self.intercept_)
