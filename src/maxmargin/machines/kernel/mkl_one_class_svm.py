"""`MKLOneClassSVM`: novelty detection with a weighted sum of kernels, whose weights are learned."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from maxmargin._typing import Indices
from maxmargin.formulations import one_class
from maxmargin.kernels import Kernel
from maxmargin.machines.calibration.novelty_detector import NoveltyDetector
from maxmargin.machines.kernel.multiple_kernels import MultipleKernelFunctions
from maxmargin.machines.validation.parameters import check_fraction
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.matrices import SymmetricMatrix
from maxmargin.problems import DualProblem
from maxmargin.training import TrainedModel


class MKLOneClassSVM(NoveltyDetector, MultipleKernelFunctions):
    """Estimate the support of the data with a weighted sum of kernels whose weights are learned, too.

    The weights d of a convex combination Σ d_m K_m minimise the objective of the one-class SVM, ‖d‖_p ≤ 1: they prefer
    the kernels in which the samples are closest to the origin. (With ``norm=1`` that is often a single kernel.)

    Parameters
    ----------
    kernels : list, "precomputed" or None, default=None
        The kernels: names such as ``"linear"``, kernel objects such as ``Gaussian(0.5)``, functions ``k(X, Z)``,
        and dicts for families, one kernel for each combination of values: ``{"kernel": "rbf", "gamma": [0.1, 1,
        10]}``, ``{"kernel": "rbf", "gamma_factors": [0.5, 1, 2]}`` (times "scale"), ``{"kernel": "linear",
        "features": [[0, 1], [2, 3]]}`` (a list for each group, of numbers or names; ``"each"``), ``"degree"`` and
        ``"coef0"`` of "poly". None: linear, and Gaussians with γ of 1/16, 1/4, 1, 4 and 16 times "scale".
        ``"precomputed"``: X is a list of matrices, or an array of shape (n_samples, n_training_samples, n_kernels).
    nu : float, default=0.5
        Above 0 and at most 1: an upper bound on the fraction of training samples outside, and a lower bound on the
        fraction of support vectors.
    norm : float, default=1.0
        p ≥ 1 of the norm ‖d‖_p ≤ 1 that bounds the weights d of the kernels. 1 gives few kernels a weight; the
        larger p, the more even the weights.
    normalize : {"trace", "diagonal"}, default="trace"
        Scale of the kernels before they are weighted: "trace" divides each by the mean of its diagonal over the
        training samples, "diagonal" makes k(x, x) = 1 for every sample, None leaves them as they are.
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
    geometry_ : NoveltyGeometry
        Samples inside, on the boundary and outside, by how much, and offset, at these weights.
    status_ : Status
        How the fit ended; ``status_.value`` describes it.
    n_iter_ : int
        How often the weights were changed.
    offset_, support_, support_vectors_, n_support_, dual_coef_, intercept_, fit_status_, shape_fit_, n_features_in_,
    feature_names_in_
        As of ``OneClassSVM``.

    Examples
    --------
    >>> from maxmargin import MKLOneClassSVM
    >>> model = MKLOneClassSVM([{"kernel": "rbf", "gamma": [0.1, 1.0]}], norm=2).fit([[0.0], [0.1], [-0.1], [0.2]])
    >>> model.predict([[0.05], [5.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        nu: float = 0.5,
        norm: float = 1.0,
        normalize: str | None = "trace",
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
        self.nu = nu
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MKLOneClassSVM:
        """Train on samples `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernels="precomputed"``, a list of symmetric matrices of kernel values, or an array of shape
            (n_samples, n_samples, n_kernels).
        y : ignored
            There for scikit-learn's conventions.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        nu = check_fraction("nu", self.nu)
        X = self._check_training_samples(X)
        weights = check_costs(1.0, check_sample_weights(sample_weight, X))

        def pose(matrix: SymmetricMatrix, rows: Indices, output: int) -> DualProblem:
            return one_class.pose(matrix, weights[rows], nu)

        self._fit_outputs(X, weights, pose, one_class, variables=1, started=started)
        return self

    def _set_fitted(self, X: Any, kernel: Kernel | None, models: Sequence[TrainedModel], outputs: int | None) -> None:
        super()._set_fitted(X, kernel, models, outputs)
        self.offset_ = -self.intercept_
