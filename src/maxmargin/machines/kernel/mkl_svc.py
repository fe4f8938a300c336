"""`MKLSVC`: support vector classification with a weighted sum of kernels, whose weights are learned."""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

from maxmargin._typing import Indices
from maxmargin.formulations import c_classification
from maxmargin.machines.kernel.kernel_classifier import STRATEGIES, KernelClassifier
from maxmargin.machines.kernel.multiple_kernels import MultipleKernels
from maxmargin.machines.multiclass.strategy import LabelledData
from maxmargin.machines.validation.parameters import check_choice, check_flag, check_number
from maxmargin.matrices import SymmetricMatrix
from maxmargin.problems import DualProblem
from maxmargin.training.kernel_subproblem import KernelSubproblem
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


class MKLSVC(MultipleKernels, KernelClassifier):
    """Classify with a weighted sum of kernels and learn the weights with the classifier (multiple kernel learning).

    Which kernel, which γ, which group of features: given many, the fit finds a convex combination Σ d_m K_m whose
    support vector machine has the least objective, minimise over d, ½‖w‖² + C Σ ξ_i, ‖d‖_p ≤ 1. Several classes share
    the weights: the objective is the sum over pairs of classes, or classes.

    Parameters
    ----------
    kernels : list, "precomputed" or None, default=None
        The kernels: names such as ``"linear"``, kernel objects such as ``Gaussian(0.5)``, functions ``k(X, Z)``,
        and dicts for families, one kernel for each combination of values: ``{"kernel": "rbf", "gamma": [0.1, 1,
        10]}``, ``{"kernel": "rbf", "gamma_factors": [0.5, 1, 2]}`` (times "scale"), ``{"kernel": "linear",
        "features": [[0, 1], [2, 3]]}`` (a list for each group, of numbers or names; ``"each"``), ``"degree"`` and
        ``"coef0"`` of "poly". None: linear, and Gaussians with γ of 1/16, 1/4, 1, 4 and 16 times "scale".
        ``"precomputed"``: X is a list of matrices, or an array of shape (n_samples, n_training_samples, n_kernels).
    C : float, default=1.0
        Cost of slack.
    norm : float, default=1.0
        p ≥ 1 of the norm ‖d‖_p ≤ 1 that bounds the weights d of the kernels. 1 gives few kernels a weight; the
        larger p, the more even the weights.
    normalize : {"trace", "diagonal"}, default="trace"
        Scale of the kernels before they are weighted: "trace" divides each by the mean of its diagonal over the
        training samples, "diagonal" makes k(x, x) = 1 for every sample, None leaves them as they are.
    class_weight : dict or "balanced", default=None
        Factors on C by class. "balanced" counts samples by their weight.
    multi_class : {"ovo", "ovr"}, default="ovo"
        Multi-class strategy: a model for each pair of classes, or for each class against the rest, all with the
        same weights of the kernels.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Shape of ``decision_function`` with more than two classes; "ovo" needs ``multi_class="ovo"``.
    break_ties : bool, default=False
        Whether the decision values break ties between classes with equal votes (with "ovr").
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    tol : float, default=1e-3
        Tolerance on the relative duality gap of weights and dual variables together: primal − dual ≤ tol · the
        larger of the two.
    cache_size : float or "auto", default="auto"
        Megabytes for the matrices of the kernels; "auto" is a quarter of the memory available to the process. What
        does not fit is computed again where it is needed.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the changes of the weights, −1 for none.
    max_seconds : float, default=None
        Limit on the time of the search for weights; the certificate of what it has found comes after it. The model
        is then valid, and a warning says how far it is.
    callback : callable, default=None
        Called after every change of the weights with the progress (iteration, violation, primal, dual, gap,
        seconds, and active, the number of kernels with a weight); returning True stops the fit with a valid model.
        It never changes the result otherwise.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.

    Attributes
    ----------
    kernel_weights_ : array of shape (n_kernels,)
        The weight of each kernel, after normalisation; their sum is 1.
    kernel_coefficients_ : array of shape (n_kernels,)
        The factor of each kernel in the sum K = Σ kernel_coefficients_[m] K_m, which is a solution of norm 1 times the
        factors of ``normalize="trace"``.
    kernels_ : list of Kernel
        The kernels, families in full; empty if they are precomputed.
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``violation`` of the weights and all dual variables together.
    geometry_ : MarginGeometry, or a list of them
        Free and bounded support vectors, slack of every sample, margin and offset, at these weights.
    status_ : Status
        How the fit ended; ``status_.value`` describes it.
    n_iter_ : int
        How often the weights were changed.
    dual_coef_, intercept_, classes_, support_, support_vectors_, n_support_, class_weight_, fit_status_, shape_fit_,
    n_features_in_, feature_names_in_
        As of ``SVC``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import MKLSVC
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = MKLSVC([{"kernel": "rbf", "features": "each"}], C=10).fit(X, X[:, 1] ** 2 > 0.5)
    >>> int(model.kernel_weights_.argmax())
    1
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        norm: float = 1.0,
        normalize: str | None = "trace",
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        max_seconds: float | None = None,
        callback: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernels = kernels
        self.norm = norm
        self.normalize = normalize
        self.C = C
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLSVC:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernels="precomputed"``, a list of symmetric matrices of kernel values, or an array of shape
            (n_samples, n_samples, n_kernels).
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        self._check_parameters()
        check_choice("multi_class", self.multi_class, ("ovo", "ovr"))
        data, factors, weights = self._check_labelled_data(X, y, sample_weight)
        name, two_class = self._strategy_name(data.classes), self._two_class()
        subproblems = [_subproblem(part, data, two_class) for part in STRATEGIES[name].parts(data)]
        rows, formulation = data.rows, two_class.formulation
        kernel, trained = self._train_kernels(
            data.X, weights, rows, subproblems, data.labels[rows], formulation, started
        )
        self._set_fitted(data, kernel, name, trained.models)
        self.class_weight_, self._sigmoids_ = factors, None
        self._warn_unless_converged(trained.iterations, stacklevel=3)
        return self

    def _cost(self) -> float:
        check_flag("fit_intercept", self.fit_intercept)
        return check_number("C", self.C, above=0)

    def _two_class(self) -> TwoClassFormulation:
        pose = partial(c_classification.pose, fit_intercept=self.fit_intercept)
        return TwoClassFormulation(c_classification, pose, self.fit_intercept, elementwise=True)


def _subproblem(part: TwoClassSamples, data: LabelledData, two_class: TwoClassFormulation) -> KernelSubproblem:
    """Return the subproblem of two classes, or of a class against the rest."""
    samples, signs = part

    def pose(matrix: SymmetricMatrix, at: Indices) -> DualProblem:
        return two_class.pose(matrix, signs[at], data.costs[samples[at]])

    return KernelSubproblem(data.rows.searchsorted(samples), pose)
