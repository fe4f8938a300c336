"""`SVC`: support vector classification in place of `sklearn.svm.SVC`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets

from maxmargin.estimators.kernel_machine import KernelMachine, reporting
from maxmargin.estimators.pairs import train_pairs
from maxmargin.estimators.parameters import check_choice, check_flag, check_number
from maxmargin.estimators.weights import check_sample_weights, class_factors
from maxmargin.formulations import c_classification
from maxmargin.kernels import Kernel, Points
from maxmargin.matrices.shared_kernel import SharedKernel
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.models import OneVersusOne
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import thread_count
from maxmargin.solvers import BlockSolver
from maxmargin.training import BinaryMachine, Solver

#: Up to this many samples, pairs of classes are trained sooner than a second thread starts.
WORTH_THREADS = 2000


class SVC(ClassifierMixin, KernelMachine):  # type: ignore[misc]  # scikit-learn has no type hints
    """Classify with the widest margin: minimise ½‖w‖² + C Σ ξ_i subject to y_i (w·Φ(x_i) + b) ≥ 1 − ξ_i.

    A drop-in for ``sklearn.svm.SVC``: same parameters, attributes, signs and shapes. Every fit comes with
    ``certificate_``, a proof of how close to the optimum it is, computed independently of the solver.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack. ``C=inf`` asks for a hard margin, and is an error if the classes cannot be separated. (Classes
        that overlap under a wide gaussian kernel are separable in theory only: set ``max_seconds``, or a large C.)
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function
        ``k(X, Z)`` that returns the block of values for the rows of X and Z. It is called on blocks as needed.
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the kernels that have one. ``"scale"`` is 1 / (n_features · variance of X, by sample weights), ``"auto"``
        1 / n_features.
    coef0 : float, default=0.0
        Of the polynomial and sigmoid kernels.
    shrinking : bool, default=True
        Leave settled samples out of the iterations; all are checked before the end.
    probability : bool, default=False
        Only False: wrap the classifier in ``sklearn.calibration.CalibratedClassifierCV`` for probabilities.
    tol : float, default=1e-3
        Largest violation of the optimality criterion that is accepted.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel rows; "auto" is a quarter of the memory that the process may use. Only as much as there are
        rows is taken. Less makes it slower, not different beyond the tolerance.
    class_weight : dict or "balanced", default=None
        Factors on C by class. "balanced" counts samples by their weight.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the steps of each binary problem, −1 for none.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of ``decision_function`` with more than two classes; training is one-versus-one always.
    break_ties : bool, default=False
        Let ``decision_function`` decide between classes with equal votes (with "ovr").
    random_state : int, RandomState or None, default=None
        Accepted for compatibility; nothing here is random.
    solver : {"auto", "pairwise", "block"} or solver object, default="auto"
        The algorithm: "pairwise" for up to 2048 samples (of two classes) and for hard margins, else "block".
        A solver object brings its own options for tolerance, cache and limits.
    selection : {"second_order", "most_violating_pair", "maximum_gain"}, default="second_order"
        How the pairwise solver chooses its next pair.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    max_seconds : float, default=None
        Limit on the time of the whole fit.
    gap_tol : float, default=None
        Duality gap at which to stop even if the violation is still above ``tol``.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model.
    warm_start : bool, default=False
        Start from the solution of the previous fit, if that had as many samples and the same classes.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores this process may use, or fewer where BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.

    Attributes
    ----------
    certificate_ : Certificate, or a list with one per pair of classes
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each sample's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : MarginGeometry, or a list with one per pair of classes
        Free and bounded support vectors, slack of every sample, margin, ‖w‖², offset and its interval.
    status_ : Status, or a list with one per pair of classes
        How the solver ended; ``status_.value`` is a sentence.
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, class_weight_, fit_status_,
    n_iter_, shape_fit_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> model = SVC(kernel="linear", C=10).fit([[0, 0], [1, 1], [2, 0], [3, 1]], [0, 0, 1, 1])
    >>> model.predict([[0.5, 0], [2.5, 0]])
    array([0, 1])
    >>> model.certificate_.violation < 1e-3
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        solver: Any = "auto",
        selection: str = "second_order",
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.solver = solver
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 leaves a row out, 2 counts it twice.

        Returns
        -------
        SVC
            The fitted estimator.
        """
        cost = self._check_parameters()
        X, y = self._check_training_data(X, y)
        check_classification_targets(y)
        weights = check_sample_weights(sample_weight, X)
        taking_part = np.flatnonzero(weights > 0)
        if not len(taking_part):
            raise ValueError("sample_weight must contain at least one non-zero number")
        classes, codes = np.unique(y[taking_part], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"training needs samples of at least two classes, but there is only one class, {classes.tolist()[0]!r}"
            )
        members = [taking_part[codes == c] for c in range(len(classes))]
        labels = np.full(len(y), -1)
        labels[taking_part] = codes
        factors = class_factors(self.class_weight, classes, codes, weights[taking_part])
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

        costs = self._costs(cost, factors, labels, weights)
        # In the only pair of a two-class problem the second class is the positive one, as in scikit-learn.
        first_sign = -1.0 if len(classes) == 2 else 1.0

        def pose(a: int, b: int) -> tuple[DualProblem, Indices]:
            samples = np.concatenate([members[a], members[b]])
            if len(classes) == 2:
                samples = np.sort(samples)
            matrix = matrix_of(samples) if shared is None else shared.pair(a, b)
            signs = np.where(labels[samples] == a, first_sign, -first_sign)
            return c_classification.pose(matrix, signs, costs[samples], self.fit_intercept), samples

        with reporting(self.callback, self.verbose) as report:
            machines = train_pairs(pose, len(classes), solver, starts, report, side_by_side)
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

    def _check_parameters(self) -> float:
        if self.probability not in (False, "deprecated"):
            raise ValueError(
                "probability=True is not offered; for probabilities fit "
                "sklearn.calibration.CalibratedClassifierCV(SVC(...), ensemble=False)"
            )
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("warm_start", self.warm_start)
        check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        return check_number("C", self.C, above=0, infinite=True)

    def _share_rows(
        self, kernel: Kernel | None, X: Any, members: list[Indices], solver: Solver, cache_bytes: int, threads: int
    ) -> SharedKernel | None:
        """Return kernel rows for all pairs of classes, if the solver reads rows and half of the cache holds them."""
        if kernel is None or not isinstance(solver, BlockSolver):
            return None
        points = Points(X)
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
        machines: list[BinaryMachine] | None = getattr(self, "_machines_", None)
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
            coefficients[row, machine.samples] = machine.dual
        in_use = np.asarray(coefficients.any(axis=0))
        support = [rows[in_use[rows]] for rows in members]
        order = np.concatenate(support)
        self.support_ = order.astype(np.int32)
        self.n_support_ = np.array([len(rows) for rows in support], dtype=np.int32)
        self.dual_coef_: Any = coefficients[:, order]
        self.intercept_ = np.array([machine.offset for machine in machines])
        self.support_vectors_ = np.empty((0, 0)) if self._kernel_ is None else X[order]
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_matrix(self.dual_coef_)
        self.n_iter_ = np.array([machine.counters.iterations for machine in machines], dtype=np.int32)
        self.fit_status_ = int(not all(machine.status.converged for machine in machines))

    def _speak_up(self, tolerance: float) -> None:
        """Raise after an interruption, warn of a limit that was hit; the model is in place by now."""
        unfinished = [machine for machine in self._machines_ if not machine.status.converged]
        if not unfinished:
            return
        if any(machine.status is Status.INTERRUPTED for machine in unfinished):
            raise KeyboardInterrupt(
                "fit was interrupted; the model so far is usable, see certificate_ for how good it is"
            )
        worst = max(unfinished, key=lambda machine: machine.certificate.violation)
        which = "" if len(self._machines_) == 1 else f" in {len(unfinished)} of {len(self._machines_)} pairs of classes"
        warnings.warn(
            f"SVC stopped before the tolerance{which}: {worst.status.value}. "
            f"Violation {worst.certificate.violation:.3g} (tolerance {tolerance:g}), "
            f"duality gap {worst.certificate.gap:.3g} ({worst.certificate.relative_gap:.2g} of the objective) remain.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _model(self) -> OneVersusOne:
        coefficients = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        return OneVersusOne(coefficients, self.intercept_, self.n_support_)

    def _decide(self, X: Any) -> Floats:
        X = self._check_samples(X)
        return self._model().decide(self._make_blocks(X), self._prediction_threads(X.shape[0]))

    def _trained(self, attribute: str) -> list[BinaryMachine]:
        if "_machines_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")
        return self._machines_

    def _per_pair(self, attribute: str, values: list[Any]) -> Any:
        return values[0] if len(self.classes_) == 2 else values
