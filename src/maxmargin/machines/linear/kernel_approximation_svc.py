"""`KernelApproximationSVC`: kernel classification of very many samples, as a linear model of Nyström features.

The problem is that of `SVC`, with w among the combinations of B landmarks alone:

    minimise ½‖w‖² + C Σ ξ_i    over  w = Σ_j a_j Φ(z_j)  and b,   f(x) = Σ_j a_j k(z_j, x) + b.

In the features φ of `models/landmark_features.py`, which are orthonormal coordinates of that span, it is a linear
problem: n rows of B numbers in place of n² kernel values (LPD-SVM, Glasmachers 2022). So its objective at w is that of
the exact problem at the same w, and only a w outside of the span could be better.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.blocks.row_blocks import RowBlocks, is_blocks
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.deadline import Deadline
from maxmargin.kernels import Points
from maxmargin.machines.base import Machine, warn_if_unvalidated
from maxmargin.machines.calibration.probabilities import LinearProbabilities
from maxmargin.machines.devices import kernel_blocks
from maxmargin.machines.linear import landmark_blocks
from maxmargin.machines.linear.block_data import as_blocks
from maxmargin.machines.linear.exact_bounds import ExactProblems, check_certify
from maxmargin.machines.linear.exact_polish import check_polish, joined_expansions, polish_models
from maxmargin.machines.linear.landmark_samples import Samples, fit_samples
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_number
from maxmargin.machines.validation.training_data import check_sample_weights, number_classes, single_class_message
from maxmargin.models import KernelExpansions, LandmarkFeatures
from maxmargin.models.device_blocks import in_host_memory
from maxmargin.models.kernel_blocks import MIN_VALUES_FOR_THREADS
from maxmargin.problems import Status
from maxmargin.resources import thread_count

#: Fitted attributes that not every fit sets.
OPTIONAL_ATTRIBUTES = ("exact_primal_", "exact_certificate_", "landmark_certificate_", "polish_status_", "n_passes_")


class KernelApproximationSVC(LinearProbabilities, Machine):
    """Classify 10⁵ to 10⁶ samples with a kernel: a linear model of Nyström features.

    Memory is 4 bytes · samples · landmarks, and a pass over the samples takes as long as reading that. More than two
    classes are trained one-vs-rest.

    Parameters
    ----------
    C : float, default=1.0
        Cost of slack.
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function ``k(X, Z)`` that
        returns the block of values of the rows of X and Z.
    gamma : {"scale", "auto"}, float or array-like of shape (n_features,), default="scale"
        Coefficient of the kernels other than "linear". ``"scale"`` is 1 / (n_features · variance of X, by sample
        weights), ``"auto"`` is 1 / n_features. An array has one for each feature, for "rbf", "laplacian" and
        "chi_squared": 0 ignores a feature.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    n_components : int, default=1000
        The number of landmarks: more approximate `SVC` better; at most the number of samples is used.
    landmarks : {"sample", "kmeans"} or array-like of shape (n_landmarks, n_features), default="sample"
        Samples drawn at random, k-means centres (a better approximation that takes longer), or given rows.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Σ C ξ_i or Σ C ξ_i².
    class_weight : dict or "balanced", default=None
        Factors on C by class. In the problem of one class against the rest the factor applies to the samples of
        that class, the rest have a factor of 1, as in LIBLINEAR. "balanced" counts samples by their weight.
    tol : float, default=1e-3
        Tolerance on the relative duality gap of the linear problem.
    probability : bool, default=False
        Whether to fit class probabilities by cross-validation, for ``predict_proba``. ``predict`` then returns the
        most probable class.
    certify : {None, "exact"}, default=None
        Whether to bound the distance from the exact kernel machine, ``exact_certificate_``, in ``fit``. "exact"
        takes kernel values between the support vectors, which may take longer than the fit; ``max_seconds`` limits
        it, and ``certify_exact`` does the same later.
    polish : bool, default=False
        Whether to continue from these bounds with the block solver on the exact kernel, as `SVC` is trained, until
        the violation of its optimality conditions is below ``tol``, or the time is up. The model then predicts with
        the support vectors of the exact problem, class by class if that has the smaller objective.
    polish_seconds : float, default=None
        Limit on the time of the block solver in all classes; None for ``max_seconds`` alone, half of what is left
        of it. The certificate that follows is not included.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. Half of it is for landmarks and
        features, of samples in random order: if time runs out, the fit uses what was computed so far, or 100
        landmarks, and warns. See docs/fitting.md.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The last digits of the result may depend
        on it.
    random_state : int, RandomState or None, default=None
        Chooses landmarks, the samples on which errors are estimated, and the folds of the cross-validation.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    verbose : bool, default=0
        Show a progress line on the terminal for fits longer than a second.
    checkpoint : path, default=None
        A file in which the state of the fit is stored every ``checkpoint_seconds``. If the process is killed, the
        next fit with the same data and parameters resumes from the file; a file of another fit is an error. A fit
        that ends removes it; one that a limit or an interruption ends keeps it. See docs/checkpoints.md.
    checkpoint_seconds : float, default=60.0
        The time between two writes of the checkpoint: the most that is lost.
    device : str, default="cpu"
        Where features, and kernel values of predictions, are computed: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an
        NVIDIA GPU; ``pip install 'maxmargin[cuda13]'``), or ``"auto"``, which takes the GPU where it pays. The
        linear problem is solved on the CPU; see docs/gpu.md.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (n_landmarks, n_features)
        With ``polish=True`` the support vectors of the exact problem (of all classes), after the landmarks if some
        class keeps their function.
    dual_coef_ : array of shape (1, n_landmarks), or (n_classes, n_landmarks)
        a of each function.
    intercept_ : array of shape (1,), or (n_classes,)
        b of each function.
    certificate_ : Certificate, or a list with one per class
        The certificate of the linear problem: how near w is to the best one in the span of the landmarks.
    status_ : Status, or a list with one per class
        How the solver ended; ``status_.value`` describes it.
    rank_ : int
        The number of features.
    approximation_error_ : float
        The mean of k(x, x) − ‖φ(x)‖² over up to 1,000 training samples, as in `NystroemMap`: what the span misses.
    exact_primal_ : float, or a list with one per class
        The objective of the exact problem, that of `SVC`, at this function, in double precision: the primal
        of the certificate, plus what ½ aᵀ K_zz a differs from ½‖w‖², plus what the losses of up to 10,000 training
        samples differ (drawn at random, and scaled up to all). The optimum of the exact problem is at most that.
    exact_certificate_ : ExactCertificate, or a list with one per class
        With ``certify="exact"``: proven bounds on the optimum of the exact problem from both sides, ``primal`` and
        ``dual``, and on its objective at this function, ``model_primal``.
    landmark_certificate_ : ExactCertificate, or a list with one per class
        With ``polish=True``: what ``exact_certificate_`` was before the polish.
    polish_status_ : Status, or a list with one per class
        With ``polish=True``: how the block solver ended.
    probA_, probB_ : arrays with a number for each class, or one if there are two
        With ``probability=True``: as in `LinearSVC`.
    device_ : str
        Where the features were computed: ``"cpu"``, or the name of the GPU.
    n_passes_ : int
        After a fit on blocks of rows: how often they were read.
    classes_, class_weight_, n_iter_, fit_status_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import KernelApproximationSVC
    >>> from maxmargin.datasets import chessboard
    >>> X, y = chessboard(5000, noise=0.0)
    >>> model = KernelApproximationSVC(C=100, gamma=2.0, n_components=200, random_state=0).fit(X, y)
    >>> model.certificate_.relative_gap < 1e-3
    True
    >>> print(f"{model.score(X, y):.2f}")
    0.99
    """

    _fitted_attribute = "dual_coef_"

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        n_components: Any = 1000,
        landmarks: Any = "sample",
        loss: Any = "hinge",
        class_weight: Any = None,
        tol: Any = 1e-3,
        probability: Any = False,
        certify: Any = None,
        polish: Any = False,
        polish_seconds: Any = None,
        max_seconds: Any = None,
        n_jobs: Any = None,
        random_state: Any = None,
        callback: Any = None,
        verbose: Any = 0,
        checkpoint: Any = None,
        checkpoint_seconds: Any = 60.0,
        device: Any = "cpu",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.landmarks = landmarks
        self.loss = loss
        self.class_weight = class_weight
        self.tol = tol
        self.probability = probability
        self.certify = certify
        self.polish = polish
        self.polish_seconds = polish_seconds
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelApproximationSVC:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Blocks of rows (`maxmargin.blocks.open`) need not fit into memory: landmarks and ``gamma="scale"`` are then
            those of random rows, and features are computed anew in each pass.
        y : array-like of shape (n_samples,), optional
            Labels of any type; None if blocks of rows have them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        seconds, polish = self._seconds(), check_polish(self)
        exactly = check_certify(self.certify) or polish
        linear = LinearSVC(loss=self.loss, tol=self.tol, C=self.C, class_weight=self.class_weight)
        linear.set_params(callback=self.callback, verbose=self.verbose, n_jobs=self.n_jobs)
        linear.set_params(probability=self.probability, random_state=self.random_state)
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            deadline = Deadline.after(seconds, started)
            return self._fit_blocks(blocks, linear.set_params(max_seconds=seconds), deadline, polish)
        X, y = self._validate_pairs(X, y)
        samples = self._taking_part(X, y, check_sample_weights(sample_weight, X))
        deadline = Deadline.after(seconds, started)
        with checkpointing(self, samples.X, samples.labels.numbers, samples.weights, ("random_state",)) as checkpoint:
            used = fit_samples(self, samples, linear, deadline, checkpoint)
            if exactly and all(model.status is not Status.INTERRUPTED for model in self._models_):
                self._bound_exactly(samples, used.rows, deadline, polish)
            if used.few or len(used.rows) < samples.X.shape[0]:
                self._warn_of_unused_samples(len(used.rows), samples.X.shape[0], used.few)
                return self
        self._warn_if_unconverged(used.rule, "classes")
        warn_if_unvalidated(self, used.ended, stacklevel=3)
        return self

    def _fit_blocks(
        self, blocks: RowBlocks, linear: LinearSVC, deadline: Deadline, polish: bool
    ) -> KernelApproximationSVC:
        """Train on blocks of rows."""
        if polish:
            raise ValueError("polish=True needs the data in memory; fit on blocks of rows with polish=False")
        ended, rule, features = landmark_blocks.fit_blocks(self, blocks, linear)
        self._set_fitted(features, linear)
        self.n_features_in_, self.n_passes_ = blocks.n_features, linear.n_passes_
        if self.certify is not None and all(model.status is not Status.INTERRUPTED for model in self._models_):
            self.exact_certificate_ = self._per_model(landmark_blocks.bound_blocks(self, blocks, deadline))
            self.n_passes_ += 1
        self._warn_if_unconverged(rule, "classes")
        warn_if_unvalidated(self, ended, stacklevel=3)
        return self

    def certify_exact(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return bounds on the optimum of the exact kernel problem, that of `SVC`, on the training data.

        The bounds hold for the problem of the data that are given. They are close only for those of the fit.

        Parameters
        ----------
        X : array-like, sparse matrix or blocks of rows of shape (n_samples, n_features)
            The training samples.
        y : array-like of shape (n_samples,), optional
            Their labels; None if blocks of rows have them.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.

        Returns
        -------
        certificate : ExactCertificate, or a list with one per class
            As in ``exact_certificate_``. With ``max_seconds``, it takes about that time at most.
        """
        self._check_fitted()
        deadline = Deadline.after(self._seconds())
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            return self._per_model(landmark_blocks.bound_blocks(self, blocks, deadline))
        X, y = self._validate_pairs(X, y, reset=False)
        weights = check_sample_weights(sample_weight, X)
        if not self._models_[0].dual.size:  # trained on blocks of rows
            from maxmargin.blocks import open as open_blocks  # few fits need it

            return self._per_model(landmark_blocks.bound_blocks(self, open_blocks(X, y, weights), deadline))
        X, _, weights, labels = self._taking_part(X, y, weights)
        exact = ExactProblems(self, Points(X), labels, weights, np.arange(X.shape[0]))
        return self._per_model([found.certificate for found in exact.bounds(deadline)])

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return a value for each sample, positive for ``classes_[1]``; of more than two classes a column each.

        It is computed from kernel values with the landmarks, a block at a time: there are no features.
        """
        decisions = self._decide(X)
        return decisions.ravel() if decisions.shape[1] == 1 else decisions

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return the class of each sample; with ``probability=True`` the one that is most probable."""
        if self._knows_probabilities:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        decisions = self.decision_function(X)
        winners = (decisions > 0).astype(np.intp) if decisions.ndim == 1 else np.argmax(decisions, axis=1)
        return self.classes_[winners]

    def _seconds(self) -> float | None:
        return None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)

    def _bound_exactly(self, samples: Samples, rows: Indices, deadline: Deadline, polish: bool) -> None:
        """Bound the optima of the exact problems, and polish their solutions."""
        exact = ExactProblems(self, Points(samples.X), samples.labels, samples.weights, rows)
        bounds = exact.bounds(deadline)
        self.exact_certificate_ = self._per_model([found.certificate for found in bounds])
        if not polish or any(model.status is Status.STOPPED for model in self._models_):
            return
        self.landmark_certificate_ = self.exact_certificate_
        polished = polish_models(self, exact, bounds, deadline)
        self.exact_certificate_ = self._per_model([one.certificate for one in polished])
        self.polish_status_ = self._per_model([one.status for one in polished])
        self.landmarks_, self.dual_coef_, self.intercept_ = joined_expansions(self, samples.X, polished)
        self.exact_primal_ = self._per_model([one.certificate.model_primal for one in polished])
        if any(one.status is Status.INTERRUPTED for one in polished):
            raise KeyboardInterrupt(
                "fit was interrupted during the polish; the model is usable, see exact_certificate_ for how good it is"
            )

    def _taking_part(self, X: Any, y: Any, weights: Floats) -> Samples:
        """Return samples, labels and weights without the rows that have no weight, and the labels by number."""
        self._validate_labels(y)
        labels = number_classes(y, weights, single_class_message)
        if len(labels.taking_part) == len(weights):
            return Samples(X, y, weights, labels)
        X, y, weights = X[labels.taking_part], y[labels.taking_part], weights[labels.taking_part]
        return Samples(X, y, weights, number_classes(y, weights, single_class_message))

    def _set_fitted(self, features: LandmarkFeatures, linear: LinearSVC) -> None:
        """Set the fitted attributes."""
        for optional in OPTIONAL_ATTRIBUTES:  # of an earlier fit
            self.__dict__.pop(optional, None)
        self.device_ = features.device
        self.rank_, self.landmarks_, self._kernel_ = features.rank, features.landmarks.data, features.kernel
        self.dual_coef_, self.intercept_ = features.expand(linear.coef_), linear.intercept_
        self.classes_, self.class_weight_ = linear.classes_, linear.class_weight_
        self.n_iter_, self._models_ = linear.n_iter_, linear._models_
        self.fit_status_, self._sigmoids_ = linear.fit_status_, linear._sigmoids_

    def _decide(self, X: Any) -> Floats:
        """Return the value of each function for each sample."""
        self._check_fitted()
        if is_blocks(X):
            return np.concatenate([self._decide(block.X) for block in X])
        if isinstance(X, DeviceTable):
            return self._values(X.check(self.n_features_in_, type(self).__name__), self.device)
        return self._values(self._validate_samples(X, reset=False), self.device)

    def _values(self, X: Any, device: str = "cpu") -> Floats:
        alone = not self._kernel_.vectorised or X.shape[0] * self.dual_coef_.shape[1] < MIN_VALUES_FOR_THREADS
        threads = 1 if alone else thread_count(self.n_jobs)
        blocks = kernel_blocks(device, self._kernel_, X, Points(self.landmarks_))
        functions = KernelExpansions(self.dual_coef_, self.intercept_)
        values: Floats = in_host_memory(functions.decision_values(blocks, threads))
        return values

    def _warn_of_unused_samples(self, used: int, samples: int, few: bool) -> None:
        self._models_ = [replace(model, status=Status.MAX_SECONDS) for model in self._models_]
        self.fit_status_ = 1
        landmarks = f" with {self.landmarks_.shape[0]:,} landmarks, for more of which there was no time," if few else ""
        warnings.warn(
            f"KernelApproximationSVC computed the features{landmarks} of {used:,} of {samples:,} samples in half of "
            "max_seconds, and was trained on those; raise max_seconds or lower n_components to use all. Relative "
            f"duality gap on these {max(model.certificate.relative_gap for model in self._models_):.2g}.",
            self._convergence_warning,
            stacklevel=4,
        )
