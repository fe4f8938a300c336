"""`OnlineOneClassSVM`: novelty detection in a stream."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.estimators.online.online_certificate import certify_memory
from maxmargin.estimators.online.online_estimator import OnlineEstimator
from maxmargin.kernels import Kernel
from maxmargin.machines.calibration.novelty_detector import rounded
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_flag, check_fraction
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.models import KernelExpansions
from maxmargin.online import NoveltyDetection, OnlineLearner
from maxmargin.problems import Certificate


class OnlineOneClassSVM(OutlierMixin, OnlineEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Online novelty detection: a region that contains all but a fraction ν of the samples seen.

    LASVM (Bordes et al. 2005; Glasmachers & Igel 2008) on the problem of ``OneClassSVM``. About a fraction ν of all
    samples are support vectors, so that the memory grows with the stream; ``forget`` or ``budget`` limit it.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1: an upper bound on the fraction of training samples outside, and a lower bound on the
        fraction of support vectors.
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
        Whether ``fit`` and ``partial_fit`` solve the problem of the samples in memory, to ``tol``.
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
    certificate_ : Certificate
        With respect to the samples in memory.
    offset_ : float array of shape (1,)
        The difference of ``score_samples`` and ``decision_function``.
    support_vectors_, dual_coef_, intercept_, n_support_, support_, n_samples_seen_, n_iter_, budget_loss_,
    n_features_in_, feature_names_in_
        As in ``OnlineSVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import OnlineOneClassSVM
    >>> stream = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = OnlineOneClassSVM(nu=0.2, gamma=0.2, forget=500)
    >>> for start in range(0, 1000, 50):
    ...     model = model.partial_fit(stream[start : start + 50])
    >>> model.predict([[0.0, 0.0], [6.0, 6.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        selection: str = "second_order",
        epochs: int = 1,
        finishing: bool = False,
        budget: int | None = None,
        budget_strategy: str = "project",
        forget: int | None = None,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        random_state: Any = None,
        max_seconds: float | None = None,
        callback: Any = None,
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.selection = selection
        self.epochs = epochs
        self.finishing = finishing
        self.budget = budget
        self.budget_strategy = budget_strategy
        self.forget = forget
        self.tol = tol
        self.cache_size = cache_size
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.callback = callback
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineOneClassSVM:
        """Learn from samples `X` in ``epochs`` passes; an earlier model is discarded.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost of each sample; rows with a weight of at most 0 are ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        X, weights = self._check_batch(X, sample_weight, first=True)
        rows = np.flatnonzero(weights > 0)
        learner = self._new_learner(X, weights)
        random, labels = check_random_state(self.random_state), np.zeros(X.shape[0], dtype=np.int64)
        with self._monitoring(learner, started) as monitor:
            taken = self._observe_epochs(learner, X, labels, weights, rows, random, monitor)
            if self.finishing and monitor.status is None:
                learner.finish(monitor)
            self._keep(learner)
        self._warn_if_stopped(monitor, taken, int(self.epochs) * len(rows), "passes", stacklevel=4)
        return self

    @following_samples
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OnlineOneClassSVM:
        """Learn from a batch of a stream, row by row.

        The whole batch is validated first; if it is rejected, the model is unchanged. If a limit or Ctrl-C ends the
        call early, the model is valid, and the warning or error has the number of processed rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            One sample or more.
        y : ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost of each sample; rows with a weight of at most 0 are ignored.

        Returns
        -------
        self
            The estimator.
        """
        started, first = perf_counter(), "_learner_" not in self.__dict__
        X, weights = self._check_batch(X, sample_weight, first)
        if first:
            learner = self._new_learner(X, weights)
        else:
            learner = self._learner_
            self._check_kernel_of(learner.kernel, X)
        rows, labels = np.flatnonzero(weights > 0), np.zeros(X.shape[0], dtype=np.int64)
        with self._monitoring(learner, started) as monitor:
            taken = self._observe_batch(learner, X, labels, weights, rows, monitor)
            if self.finishing and monitor.status is None:
                learner.finish(monitor)
            self._keep(learner)
        self._warn_if_stopped(monitor, taken, X.shape[0], "batch")
        return self

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return the decision function: positive inside the region, negative outside, 0 on the boundary."""
        X = self._check_samples(X)
        dual, offset = self._learner_.dual[:, self._support()], self.intercept_
        threads = self._prediction_threads(X.shape[0])
        values = KernelExpansions(dual, offset).decision_values(self._kernel_blocks(X), threads)
        return rounded(values.ravel(), self.offset_)

    @following_samples
    def score_samples(self, X: Any) -> Floats:
        """Return the decision function without its offset."""
        return np.asarray(self.decision_function(X) + self.offset_)

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return 1 for samples inside, −1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    @property
    def certificate_(self) -> Certificate:
        """The certificate with respect to the samples in memory."""
        learner = self._memory("certificate_")
        if not self._certificates_:
            self._certificates_.append(certify_memory(learner, 0))
        return self._certificates_[0]

    @property
    def intercept_(self) -> Floats:
        """The constant of the decision function."""
        return np.array([self._memory("intercept_").offset(0)])

    @property
    def offset_(self) -> Floats:
        """The difference of ``score_samples`` and ``decision_function``."""
        return -self.intercept_

    @property
    def n_support_(self) -> Any:
        """The number of support vectors, in an array as in scikit-learn."""
        self._memory("n_support_")
        return np.array([len(self._support())], dtype=np.int32)

    @property
    def dual_coef_(self) -> Any:
        """The coefficients of the support vectors."""
        learner = self._memory("dual_coef_")
        coefficients = learner.dual[:, self._support()]
        return sparse.csr_matrix(coefficients) if learner.samples.sparse else coefficients

    def _check_batch(self, X: Any, sample_weight: Any, first: bool) -> tuple[Any, Floats]:
        check_fraction("nu", self.nu)
        check_flag("finishing", self.finishing)
        self._check_stream_parameters()
        self._check_table(X)
        X = self._validate_samples(X, reset=first)
        return X, check_costs(1.0, check_sample_weights(sample_weight, X))

    def _new_learner(self, X: Any, weights: Floats) -> OnlineLearner:
        kernel: Kernel | None = self._make_kernel(X, weights)
        assert kernel is not None
        self._check_kernel_of(kernel, X)
        learner = self._make_learner(kernel, X, bias=True)
        learner.add_subproblem(NoveltyDetection(float(self.nu)))
        return learner

    def _keep(self, learner: OnlineLearner) -> None:
        self._learner_, self._kernel_ = learner, learner.kernel
        self._certificates_: list[Certificate] = []  # computed on demand
