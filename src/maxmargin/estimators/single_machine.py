"""Estimators with one machine for all samples: regression and novelty detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.parameters import check_flag
from maxmargin.estimators.reports import reporting
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import SymmetricMatrix
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import Certificate, DualProblem, Status
from maxmargin.resources import thread_count
from maxmargin.training import Machine, train

Pose = Callable[[SymmetricMatrix, Indices], DualProblem]


class SingleMachine(KernelMachine):
    """Base of the estimators whose decision function is one expansion over the support vectors."""

    # Set by the constructors of the estimators.
    callback: Any
    verbose: Any
    warm_start: Any

    @property
    def certificate_(self) -> Certificate:
        """What is proved about the solution."""
        return self._trained("certificate_")[0].certificate

    @property
    def geometry_(self) -> Any:
        """What the solution looks like."""
        return self._trained("geometry_")[0].geometry

    @property
    def status_(self) -> Status:
        """How the solver ended."""
        return self._trained("status_")[0].status

    @property
    def coef_(self) -> Any:
        """The weight vector w; only for a linear kernel."""
        self._trained("coef_")
        if not self._is_linear:
            raise AttributeError("coef_ is only available with a linear kernel")
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        weights = coefficients @ self.support_vectors_
        weights.flags.writeable = False
        return sparse.csr_matrix(weights) if sparse.issparse(self.support_vectors_) else weights

    @property
    def n_support_(self) -> np.ndarray:
        """The number of support vectors, in an array as scikit-learn has it."""
        return np.array([len(self.support_)], dtype=np.int32)

    def _fit_single(
        self, X: Any, weights: Floats, pose: Pose, formulation: Formulation, variables: int, bounded: bool = True
    ) -> None:
        """Train on the rows with a weight; `pose` gets their matrix and numbers, and has so many variables for each."""
        check_flag("warm_start", self.warm_start)
        rows = np.flatnonzero(weights > 0)
        kernel = self._make_kernel(X, weights)
        threads = 1 if kernel is not None and not kernel.vectorised else thread_count(self.n_jobs)
        cache_bytes = self._cache_bytes(X.shape[0])
        solver = self._make_solver(variables * len(rows), bounded, cache_bytes, threads)
        matrix = self._make_matrix_of(kernel, X, rows, cache_bytes, threads)(rows)
        start = self._start(rows, X.shape)
        with reporting(self) as report:
            machine = train(pose(matrix, rows), solver, rows, formulation, start, report)
        if machine.status is Status.UNBOUNDED:
            raise ValueError(
                "no function of this kernel keeps every target within epsilon, so there is no hard tube (C=inf) "
                "to find; use a finite C, a larger epsilon, or another kernel"
            )
        self.shape_fit_ = X.shape
        self._kernel_ = kernel
        self._machines_ = [machine]
        self._collect(X, machine)
        self._speak_up(solver.stopping.violation, stacklevel=4)

    def _start(self, rows: Indices, shape: tuple[int, ...]) -> Floats | None:
        """Return the previous solution as a start, if there is one that fits."""
        machines: list[Machine] | None = getattr(self, "_machines_", None)
        if not self.warm_start or machines is None or shape != self.shape_fit_:
            return None
        return machines[0].dual if np.array_equal(machines[0].samples, rows) else None

    def _collect(self, X: Any, machine: Machine) -> None:
        """Set scikit-learn's attributes."""
        expansion = machine.expansion
        used = np.flatnonzero(expansion.coefficients)
        self.support_ = machine.samples[used].astype(np.int32)
        self.dual_coef_: Any = expansion.coefficients[used][None, :]
        self.intercept_ = np.array([expansion.offset])
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else rows_of(X, machine.samples[used])
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.n_iter_ = machine.counters.iterations
        self.fit_status_ = int(not machine.status.converged)

    def _decide(self, X: Any) -> Floats:
        """Return the value of the expansion for each sample."""
        return self._expand(self._check_samples(X))

    def _expand(self, X: Any) -> Floats:
        """Return the value of the expansion for samples that were checked."""
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        if not coefficients.shape[1]:
            return np.full(X.shape[0], self.intercept_[0])
        threads = self._prediction_threads(X.shape[0])
        values: Floats = self._make_blocks(X).combine(coefficients[0], threads) + self.intercept_[0]
        return values
