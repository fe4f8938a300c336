"""`MKLSVR`: support vector regression with a weighted sum of kernels, whose weights are learned."""

from __future__ import annotations

from functools import partial
from typing import Any

from maxmargin.formulations import epsilon_regression
from maxmargin.machines.kernel.function_estimator import KernelRegressor, Regression
from maxmargin.machines.kernel.multiple_kernels import MultipleKernelFunctions
from maxmargin.machines.validation.parameters import check_number


class MKLSVR(MultipleKernelFunctions, KernelRegressor):
    """Fit a flat function with a tube and a weighted sum of kernels, and learn the weights (multiple kernel learning).

    The weights d of a convex combination Σ d_m K_m minimise the objective of the regression, ½‖w‖² + C Σ max(0, |y_i −
    f(x_i)| − ε), ‖d‖_p ≤ 1. Several outputs share the weights.

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
        Cost of an error beyond the tube.
    epsilon : float, default=0.1
        Half the width of the tube: smaller errors cost nothing.
    norm : float, default=1.0
        p ≥ 1 of the norm ‖d‖_p ≤ 1 that bounds the weights d of the kernels. 1 gives few kernels a weight; the
        larger p, the more even the weights.
    normalize : {"trace", "diagonal"}, default="trace"
        Scale of the kernels before they are weighted: "trace" divides each by the mean of its diagonal over the
        training samples, "diagonal" makes k(x, x) = 1 for every sample, None leaves them as they are.
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
    geometry_ : TubeGeometry, or a list with one per output
        Samples in the tube, on its edge and outside, distance of every sample and offset, at these weights.
    status_ : Status
        How the fit ended; ``status_.value`` describes it.
    n_iter_ : int
        How often the weights were changed.
    dual_coef_, intercept_, support_, support_vectors_, n_support_, fit_status_, shape_fit_, n_features_in_,
    feature_names_in_
        As of ``SVR``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import MKLSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(100, 2))
    >>> model = MKLSVR([{"kernel": "rbf", "features": "each"}], C=10).fit(X, np.sin(X[:, 0]))
    >>> int(model.kernel_weights_.argmax())
    0
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        norm: float = 1.0,
        normalize: str | None = "trace",
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
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.callback = callback
        self.n_jobs = n_jobs

    def _regression(self) -> Regression:
        cost = check_number("C", self.C, above=0)
        epsilon = check_number("epsilon", self.epsilon, least=0)
        pose = partial(epsilon_regression.pose, epsilon=epsilon, fit_intercept=self.fit_intercept)
        return Regression(epsilon_regression, cost, 1, pose)
