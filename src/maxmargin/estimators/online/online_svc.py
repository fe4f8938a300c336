"""`OnlineSVC`: support vector classification from a stream."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.estimators.online.batch_finish import finish
from maxmargin.estimators.online.online_certificate import LabelledSamples, certify_memory, certify_on_data
from maxmargin.estimators.online.online_estimator import OnlineEstimator
from maxmargin.estimators.online.stream_classes import StreamClasses, factors_in_stream
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_choice, check_flag, check_number
from maxmargin.machines.validation.training_data import (
    check_costs,
    check_sample_weights,
    class_factors,
    single_class_message,
)
from maxmargin.models import KernelExpansions, OneVsOneVote, OneVsRestArgmax
from maxmargin.online import OnlineLearner
from maxmargin.problems import Certificate
from maxmargin.training import TrainedModel


class OnlineSVC(ClassifierMixin, OnlineEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Online support vector classification: one pass over a stream, in which only support vectors are kept.

    LASVM (Bordes et al. 2005) with second-order steps (Glasmachers & Igel 2008). ``partial_fit`` takes batches of one
    or more samples; ``fit`` makes passes over a table. The objective is that of ``SVC``, and ``certificate_`` bounds
    the distance to its optimum.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack.
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function ``k(X, Z)`` that
        returns the block of values of the rows of X and Z.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"}, float or array-like of shape (n_features,), default="scale"
        Coefficient of the kernels other than "linear". ``"scale"`` and ``"auto"`` are computed from the data given
        to ``fit``, or from the first batch of a stream, and then kept: for small batches set a number. An array has
        one for each feature, for "rbf", "laplacian" and "chi_squared": 0 ignores a feature.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    selection : {"second_order", "most_violating_pair"}, default="second_order"
        Working-set selection: by gain or by violation.
    epochs : int, default=1
        Passes over the data in ``fit``, each in a different order; a sample counts once.
    finishing : bool, default=False
        Whether ``fit`` solves the batch problem, as ``SVC`` does, and ``partial_fit`` the problem of the samples in
        memory, to ``tol``.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    multi_class : {"ovr", "ovo"}, default="ovr"
        Multi-class strategy: a model for each class against the rest, or for each pair of classes. They share
        support vectors and kernel values.
    budget : int, default=None
        The maximum number of samples in memory. The least useful are removed; ``budget_loss_`` is the loss in dual
        value.
    budget_strategy : {"remove", "project", "merge"}, default="project"
        How a sample is removed: its dual variable is distributed, it is projected on the most similar samples, or
        it is merged with one of its class (Gaussian kernel, dense data).
    forget : int, default=None
        Remove samples after this many others have followed: for streams that drift. Until then all of them are
        kept, so the memory holds this many samples.
    tol : float, default=1e-3
        Violation of the optimality conditions above which a pair is updated.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    class_weight : dict or "balanced", default=None
        Factors on C by class; "balanced" only in ``fit``.
    random_state : int, RandomState or None, default=None
        Order of the samples in ``fit``.
    max_seconds : float, default=None
        Limit on the time of a call; a warning says how many rows were used.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.

    Attributes
    ----------
    certificate_ : Certificate, or a list with one per binary model
        With respect to the samples in memory; after ``fit`` with ``finishing`` to all. ``certify`` is for any data set.
    support_vectors_, dual_coef_, intercept_, n_support_, classes_, n_features_in_, feature_names_in_
        As in ``SVC``.
    support_ : int array
        Indices of the support vectors in the stream, or rows of ``fit``; −1 for merged samples.
    n_samples_seen_, n_iter_ : int
        Samples observed and steps taken.
    budget_loss_ : float
        The decrease of the dual objective caused by the budget.

    Examples
    --------
    >>> from maxmargin import OnlineSVC
    >>> from maxmargin.datasets import chessboard
    >>> X, y = chessboard(2000)
    >>> model = OnlineSVC(C=100, gamma=2.0)
    >>> for start in range(0, 2000, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> model.score(*chessboard(1000, seed=1)) > 0.93
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
        selection: str = "second_order",
        epochs: int = 1,
        finishing: bool = False,
        fit_intercept: bool = True,
        multi_class: str = "ovr",
        budget: int | None = None,
        budget_strategy: str = "project",
        forget: int | None = None,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        random_state: Any = None,
        max_seconds: float | None = None,
        callback: Any = None,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.selection = selection
        self.epochs = epochs
        self.finishing = finishing
        self.fit_intercept = fit_intercept
        self.multi_class = multi_class
        self.budget = budget
        self.budget_strategy = budget_strategy
        self.forget = forget
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.callback = callback
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineSVC:
        """Learn from samples `X` with labels `y` in ``epochs`` passes; an earlier model is discarded.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C for each sample; rows with a weight of at most 0 are ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        self._check_parameters()
        if self.finishing and (self.budget is not None or self.forget is not None):
            raise ValueError(
                "finishing=True in fit keeps all support vectors; it cannot be combined with budget or forget"
            )
        X, y, weights = self._check_batch(X, y, sample_weight, first=True)
        rows = np.flatnonzero(weights > 0)
        labels = np.unique(y[rows])
        if len(labels) < 2:
            raise ValueError(single_class_message(labels.tolist()[0]))
        kernel = self._make_stream_kernel(X, weights)
        classes, learner = StreamClasses(self.multi_class), self._make_learner(kernel, X, self.fit_intercept)
        classes.add(labels, learner)
        numbers = np.zeros(len(y), dtype=np.int64)
        numbers[rows] = classes.numbers(y[rows])
        factors = class_factors(self.class_weight, labels, numbers[rows], weights[rows])
        costs = self._costs(weights, factors[numbers])
        random = check_random_state(self.random_state)
        with self._monitoring(learner, started) as monitor:
            taken = self._observe_epochs(learner, X, numbers, costs, rows, random, monitor)
        self._keep(kernel, classes, learner)
        self._warn_if_stopped(monitor, taken, int(self.epochs) * len(rows), "passes", stacklevel=4)
        if self.finishing:
            models = finish(self, classes, X, rows, numbers, costs, monitor.deadline)
            self._keep(kernel, classes, learner, models)
            if monitor.status is None:  # else there was a warning already
                self._warn_if_unconverged(
                    self._solver_options().rule, "classes" if self.multi_class == "ovr" else "pairs of classes"
                )
        return self

    @following_samples
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineSVC:
        """Learn from a batch of a stream, row by row.

        The whole batch is validated first; if it is rejected, the model is unchanged. If a limit or Ctrl-C ends the
        call early, the model is valid, and the warning or error has the number of processed rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            One sample or more.
        y : array-like of shape (n_samples,)
            Labels; new classes may appear at any time.
        classes : array-like, optional
            Labels that may occur later.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C for each sample; rows with a weight of at most 0 are ignored.

        Returns
        -------
        self
            The estimator.
        """
        started = perf_counter()
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' is not supported by partial_fit; use a dict of weights")
        first = "_learner_" not in self.__dict__
        X, y, weights = self._check_batch(X, y, sample_weight, first)
        rows = np.flatnonzero(weights > 0)
        known = StreamClasses(self.multi_class) if first else self._classes_
        new = known.unknown(y[rows] if classes is None else np.concatenate([np.unique(classes), y[rows]]))
        if classes is not None and not np.isin(y[rows], np.concatenate([known.labels, np.unique(classes)])).all():
            raise ValueError("y has a label that is not in classes; omit classes to add labels as they appear")
        labels = np.concatenate([known.labels, new]) if len(known) else new
        factors = factors_in_stream(self.class_weight, labels)
        if first:
            kernel = self._make_stream_kernel(X, weights)
            learner = self._make_learner(kernel, X, self.fit_intercept)
        else:
            kernel, learner = self._kernel_, self._learner_
            self._check_kernel_of(kernel, X)
        order = np.argsort(labels, kind="stable")
        numbers = np.zeros(len(y), dtype=np.int64)
        numbers[rows] = order[np.searchsorted(labels, y[rows], sorter=order)]
        costs = self._costs(weights, factors[numbers])
        with self._monitoring(learner, started) as monitor:
            known.add(new, learner)
            taken = self._observe_batch(learner, X, numbers, costs, rows, monitor)
            if check_flag("finishing", self.finishing) and monitor.status is None:
                learner.finish(monitor)
            self._keep(kernel, known, learner)
        self._warn_if_stopped(monitor, taken, X.shape[0], "batch")
        return self

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return decision values: for two classes one per sample, positive for ``classes_[1]``; else one per class."""
        decisions = self._decide(X)
        return decisions.ravel() if len(self.classes_) <= 2 else self._model().scores(decisions)

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return the class of each sample."""
        decisions = self._decide(X)
        if len(self.classes_) == 1:
            return np.full(len(decisions), self.classes_[0])
        if len(self.classes_) == 2:
            return self.classes_[(decisions.ravel() >= 0).astype(np.intp)]
        return self.classes_[self._model().predicted_class(decisions)]

    @following_samples
    def certify(self, X: Any, y: Any, sample_weight: Any = None) -> Certificate | list[Certificate]:
        """Return the certificate of the model with respect to these samples, or a list with one per binary model.

        The primal value is that of the decision function. The dual value is that of the samples in memory that are rows
        of `X`, made feasible. For data that the model has not seen the bound is valid, but loose.
        """
        check_is_fitted(self)
        X, y = self._check_samples(X), column_or_1d(y)
        check_consistent_length(X, y)
        weights = check_sample_weights(sample_weight, X)
        if len(self._classes_.unknown(y[weights > 0])):
            raise ValueError(f"y has labels that are not in classes_, {self.classes_.tolist()}")
        rows = np.flatnonzero(weights > 0)
        numbers = np.zeros(len(y), dtype=np.int64)
        numbers[rows] = self._classes_.numbers(y[rows])
        costs = self._costs(
            weights, self._classes_.factors_of(self.class_weight, numbers[rows], weights[rows])[numbers]
        )
        layout, support, offsets = self._classes_.layout(self._learner_), self._support(), self.intercept_
        coefficients = np.array([sign * self._learner_.dual[m, support] for m, sign in layout])
        threads = self._prediction_threads(X.shape[0])
        decisions = KernelExpansions(coefficients, offsets).decision_values(self._kernel_blocks(X), threads)
        data = LabelledSamples(Points.wrap(X), rows, numbers, costs)
        found = certify_on_data(self._learner_, layout, support, data, decisions, offsets, threads)
        return found[0] if len(found) == 1 else found

    @property
    def certificate_(self) -> Any:
        """The certificate of the model, or a list with one per binary model."""
        learner = self._memory("certificate_")
        if self._models_ is not None:
            return self._per_model([model.certificate for model in self._models_])
        if "certificates" not in self._lazy_:
            self._lazy_["certificates"] = [certify_memory(learner, *one) for one in self._classes_.layout(learner)]
        return self._per_model(self._lazy_["certificates"])

    @property
    def classes_(self) -> Any:
        """The known labels, sorted."""
        self._memory("classes_")
        return self._classes_.sorted

    @property
    def n_support_(self) -> Any:
        """The number of support vectors of each class."""
        learner = self._memory("n_support_")
        of_class = self._classes_.rank[learner.slots.label[self._support()]]
        return np.bincount(of_class, minlength=len(self._classes_)).astype(np.int32)

    @property
    def intercept_(self) -> Floats:
        """The bias of each binary model."""
        learner = self._memory("intercept_")
        if self._models_ is not None:
            return np.array([model.expansion.offset for model in self._models_])
        return self._classes_.offsets(learner)

    @property
    def dual_coef_(self) -> Any:
        """The coefficients of the support vectors, in the layout of ``SVC``."""
        learner = self._memory("dual_coef_")
        coefficients = self._classes_.coefficients(learner, self._support())
        return sparse.csr_matrix(coefficients) if learner.samples.sparse else coefficients

    def _check_parameters(self) -> None:
        self._check_stream_parameters()
        check_flag("fit_intercept", self.fit_intercept)
        check_flag("finishing", self.finishing)
        check_choice("multi_class", self.multi_class, ("ovr", "ovo"))
        if isinstance(self.C, float) and np.isposinf(self.C):
            raise ValueError(
                "OnlineSVC has no hard margin (C=inf): a single step would be unbounded; use SVC, or a finite C"
            )
        check_number("C", self.C, above=0)

    def _check_batch(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, Any, Floats]:
        self._check_table(X)
        X, y = self._validate_pairs(X, y, reset=first)
        check_classification_targets(y)
        return X, y, check_sample_weights(sample_weight, X)

    def _make_stream_kernel(self, X: Any, weights: Floats) -> Kernel:
        kernel = self._make_kernel(X, weights)
        assert kernel is not None
        self._check_kernel_of(kernel, X)
        return kernel

    def _costs(self, weights: Floats, factors: Floats) -> Floats:
        return check_costs(float(self.C), weights * factors)

    def _keep(
        self, kernel: Kernel, classes: StreamClasses, learner: OnlineLearner, models: list[TrainedModel] | None = None
    ) -> None:
        self._kernel_, self._classes_, self._learner_ = kernel, classes, learner
        self._models_: Any = models  # of the batch problem, if it was solved
        self._lazy_: dict[str, Any] = {}

    def _support(self) -> Indices:
        """Return the slots of the support vectors, sorted by class."""
        slots = super()._support()
        return slots[np.argsort(self._classes_.rank[self._learner_.slots.label[slots]], kind="stable")]

    def _model(self) -> OneVsOneVote | OneVsRestArgmax:
        if "model" not in self._lazy_:
            coefficients = self._classes_.coefficients(self._learner_, self._support())
            self._lazy_["model"] = self._classes_.model(coefficients, self.intercept_, self.n_support_)
        model: OneVsOneVote | OneVsRestArgmax = self._lazy_["model"]
        return model

    def _decide(self, X: Any) -> Floats:
        X = self._check_samples(X)
        return self._model().decision_values(self._kernel_blocks(X), self._prediction_threads(X.shape[0]))
