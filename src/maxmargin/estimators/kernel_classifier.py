"""Classifiers with kernels: a machine for each pair of classes, and scikit-learn's attributes read off them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.estimators.kernel_machine import KernelMachine
from maxmargin.estimators.pairs import train_pairs
from maxmargin.estimators.parameters import check_choice, check_flag
from maxmargin.estimators.reports import reporting
from maxmargin.estimators.samples import points_of
from maxmargin.estimators.small_pairs import BoxFormulation, train_small_pairs
from maxmargin.estimators.weights import check_sample_weights, class_factors
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels import Kernel
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import SymmetricMatrix, WholeKernel
from maxmargin.matrices.shared_kernel import SharedKernel
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.models import OneVersusOne
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import thread_count
from maxmargin.solvers import BlockSolver
from maxmargin.training import Machine, Solver

#: Up to this many samples, pairs of classes are trained sooner than a second thread starts.
WORTH_THREADS = 2000


class KernelClassifier(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # scikit-learn has no type hints
    """Base of the kernel classifiers. They say what one pair of classes is; the rest is here."""

    # Set by the constructors of the estimators.
    class_weight: Any
    decision_function_shape: Any
    break_ties: Any
    probability: Any
    warm_start: Any
    callback: Any
    verbose: Any
    fit_intercept: Any

    @property
    def _formulation(self) -> Formulation:
        """How a solution is read."""
        raise NotImplementedError

    def _cost(self) -> float:
        """Return the cost of slack before weights; parameters of the formulation are checked here."""
        raise NotImplementedError

    def _pose(self, matrix: SymmetricMatrix, signs: Floats, costs: Floats) -> DualProblem:
        """Return the problem of two classes."""
        raise NotImplementedError

    def _lone_class(self, label: Any) -> str:
        """Return the sentence about data of a single class."""
        return (
            "Invalid input - all samples with positive weights belong to the same class: training needs at least two "
            f"classes, but there is only one class, {label!r}"
        )

    def _check_feasible(self, classes: Any, costs: list[Floats]) -> None:
        """Raise before any work is done if a pair of classes with these costs has no solution."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        cost = self._cost()
        X, y = self._check_training_data(X, y)
        if y.dtype.kind not in "biuUS":  # numbers with a fraction are no labels
            check_classification_targets(y)
        weights = check_sample_weights(sample_weight, X)
        taking_part = np.flatnonzero(weights > 0)
        classes, codes = np.unique(y[taking_part], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(self._lone_class(classes.tolist()[0]))
        members = [taking_part[codes == c] for c in range(len(classes))]
        labels = np.full(len(y), -1)
        labels[taking_part] = codes
        factors = class_factors(self.class_weight, classes, codes, weights[taking_part])
        costs = self._costs(cost, factors, labels, weights)
        self._check_feasible(classes, [costs[rows] for rows in members])
        kernel = self._make_kernel(X, weights)
        threads = thread_count(1 if self.n_jobs is None and X.shape[0] <= WORTH_THREADS else self.n_jobs)
        if X.shape[0] <= WORTH_THREADS:
            threads = 1
        if kernel is not None and not kernel.vectorised:
            threads = 1  # a function of the user's that two threads must not call at once
        # Two classes: all threads work on the one problem. More: each works on a problem of its own.
        side_by_side = 1 if len(classes) == 2 else min(threads, len(classes) * (len(classes) - 1) // 2)
        inside = max(1, threads // side_by_side)
        cache_bytes = self._cache_bytes(X.shape[0])
        bounded = bool(np.isfinite(cost))
        solver = self._make_solver(X.shape[0], bounded, cache_bytes // side_by_side, inside)
        order = taking_part if len(classes) == 2 else np.concatenate(members)
        matrix_of = self._make_matrix_of(kernel, X, order, cache_bytes, inside)
        shared = self._share_rows(kernel, X, members, solver, cache_bytes, inside) if len(classes) > 2 else None
        if shared is not None and isinstance(solver, BlockSolver):
            solver = replace(solver, cache_bytes=(cache_bytes - shared.bytes) // side_by_side)
        starts = self._starts(classes, members, X.shape)
        # In the only pair of a two-class problem the second class is the positive one, as in scikit-learn.
        first_sign = -1.0 if len(classes) == 2 else 1.0

        def of_pair(a: int, b: int) -> tuple[Indices, Floats]:
            samples = taking_part if len(classes) == 2 else np.concatenate([members[a], members[b]])
            return samples, np.where(labels[samples] == a, first_sign, -first_sign)

        def pose(a: int, b: int) -> tuple[DualProblem, Indices]:
            samples, signs = of_pair(a, b)
            matrix = matrix_of(samples) if shared is None else shared.pair(a, b)
            return self._pose(matrix, signs, costs[samples]), samples

        small = self._box_formulation if starts is None and self._may_be_solved_at_once(solver) and bounded else None
        with reporting(self) as report:
            if report is None and isinstance(matrix_of, WholeKernel) and small is not None:
                pairs = [of_pair(a, b) for a, b in combinations(range(len(classes)), 2)]
                samples, signs = map(list, zip(*pairs, strict=True))
                machines = train_small_pairs(matrix_of, samples, signs, costs, small, self.fit_intercept, solver)
            else:
                machines = train_pairs(pose, len(classes), solver, self._formulation, starts, report, side_by_side)
        if any(machine.status is Status.UNBOUNDED for machine in machines):
            raise ValueError(
                "the classes cannot be separated by this kernel, at least not with a margin above a millionth of the "
                "extent of the data, so there is no hard margin (C=inf) to find; use a finite C for a soft margin, "
                "another kernel, or scale the features if they differ much in size"
            )
        self.classes_ = classes
        self.class_weight_ = factors
        self.shape_fit_ = X.shape
        self._kernel_ = kernel
        self._machines_ = machines
        self._collect(X, members, labels)
        self._speak_up(solver.stopping.violation)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return how far each sample is on the side of each class.

        Two classes: one value per sample, positive for ``classes_[1]``. More: one column per class ("ovr"), or one per
        pair of classes ("ovo"), positive for the first of the pair.
        """
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            return decisions.ravel()
        if check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo")) == "ovo":
            return decisions
        return self._model().scores(decisions)

    def predict(self, X: Any) -> Any:
        """Return the class of each sample."""
        ties = check_flag("break_ties", self.break_ties)
        if ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        decisions = self._decide(X)
        if len(self.classes_) == 2:
            winners = (decisions.ravel() >= 0).astype(np.intp)
        elif ties:
            winners = np.argmax(self._model().scores(decisions), axis=1)
        else:
            winners = self._model().vote(decisions)
        return self.classes_[winners]

    @property
    def certificate_(self) -> Any:
        """What is proved about the solution: one certificate, or a list with one per pair of classes."""
        return self._per_pair("certificate_", [machine.certificate for machine in self._trained("certificate_")])

    @property
    def geometry_(self) -> Any:
        """Support vectors, slacks and margin: one, or a list with one per pair of classes."""
        return self._per_pair("geometry_", [machine.geometry for machine in self._trained("geometry_")])

    @property
    def status_(self) -> Any:
        """How the solver ended: one, or a list with one per pair of classes."""
        return self._per_pair("status_", [machine.status for machine in self._trained("status_")])

    @property
    def coef_(self) -> Any:
        """The weight vector w of each pair of classes; only for a linear kernel."""
        self._trained("coef_")
        if not self._is_linear:
            raise AttributeError("coef_ is only available with a linear kernel")
        edges = np.concatenate([[0], np.cumsum(self.n_support_)])
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        rows = []
        for a, b in combinations(range(len(self.classes_)), 2):
            of_a, of_b = slice(edges[a], edges[a + 1]), slice(edges[b], edges[b + 1])
            rows.append(
                coefficients[b - 1, of_a] @ self.support_vectors_[of_a]
                + coefficients[a, of_b] @ self.support_vectors_[of_b]
            )
        weights = np.vstack(rows)
        weights.flags.writeable = False
        return sparse.csr_matrix(weights) if sparse.issparse(self.support_vectors_) else weights

    # What happens inside.

    @property
    def _box_formulation(self) -> BoxFormulation | None:
        """The formulation, if small problems of it can be solved in one native call."""
        return None

    def _may_be_solved_at_once(self, solver: Solver) -> bool:
        """Whether nobody wants to choose the algorithm or to stop before the end."""
        rule = solver.stopping
        unlimited = rule.gap is None and rule.max_iterations is None and rule.max_seconds is None
        as_it_comes = isinstance(self.solver, str) and self.solver == "auto" and self.selection == "second_order"
        return as_it_comes and unlimited

    def _check_parameters(self) -> None:
        if self.probability not in (False, "deprecated"):
            raise ValueError(
                "probability=True is not offered; for probabilities fit "
                f"sklearn.calibration.CalibratedClassifierCV({type(self).__name__}(...), ensemble=False)"
            )
        check_flag("warm_start", self.warm_start)
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))

    def _share_rows(
        self, kernel: Kernel | None, X: Any, members: list[Indices], solver: Solver, cache_bytes: int, threads: int
    ) -> SharedKernel | None:
        """Return kernel rows for all pairs of classes, if the solver reads rows and half of the cache holds them."""
        if kernel is None or not isinstance(solver, BlockSolver):
            return None
        points = points_of(X)
        if SharedKernel.bytes_for(members) > cache_bytes // 2 or not SharedKernel.serves(kernel, points, threads):
            return None
        return SharedKernel(kernel, points, members, threads)

    def _costs(self, cost: float, factors: Floats, labels: Indices, weights: Floats) -> Floats:
        """Return the cost of slack of each sample: C times the factor of its class times its weight."""
        with np.errstate(over="ignore", invalid="ignore"):  # ∞ · 0 for rows that are left out
            costs: Floats = cost * factors[labels] * weights
        if np.isfinite(cost) and not np.isfinite(costs).all():
            raise ValueError("C times the weights is too large for a number; use C=inf for a hard margin")
        return costs

    def _starts(self, classes: Any, members: list[Indices], shape: tuple[int, ...]) -> list[Floats] | None:
        """Return the previous solution as a start for each pair, if there is one that fits."""
        machines: list[Machine] | None = getattr(self, "_machines_", None)
        if not self.warm_start or machines is None:
            return None
        if shape[0] != self.shape_fit_[0] or not np.array_equal(classes, self.classes_):
            return None
        starts = []
        for machine, (a, b) in zip(machines, combinations(range(len(classes)), 2), strict=True):
            by_sample = np.zeros(shape[0])
            by_sample[machine.samples] = machine.dual
            samples = np.concatenate([members[a], members[b]])
            starts.append(by_sample[np.sort(samples) if len(classes) == 2 else samples])
        return starts

    def _collect(self, X: Any, members: list[Indices], labels: Indices) -> None:
        """Gather the machines of all pairs into scikit-learn's arrays."""
        count = len(self.classes_)
        machines = self._machines_
        coefficients = np.zeros((count - 1, self.shape_fit_[0]))
        for machine, (a, b) in zip(machines, combinations(range(count), 2), strict=True):
            row = np.where(labels[machine.samples] == a, b - 1, a)
            coefficients[row, machine.samples] = machine.expansion.coefficients
        in_use = np.asarray(coefficients.any(axis=0))
        support = [rows[in_use[rows]] for rows in members]
        order = np.concatenate(support)
        self.support_ = order.astype(np.int32)
        self.n_support_ = np.array([len(rows) for rows in support], dtype=np.int32)
        self.dual_coef_: Any = coefficients[:, order]
        self.intercept_ = np.array([machine.expansion.offset for machine in machines])
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else rows_of(X, order)
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.n_iter_ = np.array([machine.counters.iterations for machine in machines], dtype=np.int32)
        self.fit_status_ = int(not all(machine.status.converged for machine in machines))

    def _model(self) -> OneVersusOne:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return OneVersusOne(coefficients, self.intercept_, self.n_support_)

    def _decide(self, X: Any) -> Floats:
        X = self._check_samples(X)
        return self._model().decide(self._make_blocks(X), self._prediction_threads(X.shape[0]))

    def _per_pair(self, attribute: str, values: list[Any]) -> Any:
        return values[0] if len(self.classes_) == 2 else values
