"""`LSSVR`: least squares regression, trained by linear equations."""

from __future__ import annotations

from functools import partial
from typing import Any

import maxmargin.solvers.linear_system.linear_system_solver  # noqa: F401  # the solver: imported here, not in the first fit
from maxmargin.formulations import least_squares_regression
from maxmargin.machines.kernel.function_estimator import KernelRegressor, Regression
from maxmargin.machines.kernel.kernel_estimator import CLASSICAL_SOLVERS
from maxmargin.machines.validation.parameters import check_number


class LSSVR(KernelRegressor):
    """Fit a flat function by least squares: minimise ½‖w‖² + ½ C Σ (y_i − f(x_i))².

    The least squares support vector machine (Suykens & Vandewalle 1999). Its dual is one system of linear equations,
    solved exactly for small data and by conjugate gradients for large. Every sample is a support vector. Without an
    offset (``fit_intercept=False``) it is scikit-learn's ``KernelRidge(alpha=1/C)``.

    Parameters
    ----------
    C : float, default=1.0
        Cost of half the squared error.
    kernel : str, Kernel or callable, default="rbf"
        ``"linear"``, ``"poly"``, ``"rbf"`` (also ``"gaussian"``), ``"sigmoid"``, ``"laplacian"``,
        ``"chi_squared"``, ``"precomputed"``; a kernel object such as ``Gaussian(0.5) + Linear()``; or a function
        ``k(X, Z)`` that returns the block of values of the rows of X and Z.
    degree : int, default=3
        Degree of the polynomial kernel.
    gamma : {"scale", "auto"}, float or array-like of shape (n_features,), default="scale"
        Coefficient of the kernels other than "linear". ``"scale"`` is 1 / (n_features · variance of X, by sample
        weights), ``"auto"`` is 1 / n_features. An array has one for each feature, for "rbf", "laplacian" and
        "chi_squared": 0 ignores a feature.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions: the residual of the equations.
    cache_size : float or "auto", default="auto"
        Megabytes for a Cholesky factor of the matrix; "auto" is a quarter of the memory available to the process.
        Where the factor does not fit (8 n² bytes), conjugate gradients are preconditioned by a few columns.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the iterations of conjugate gradients of each problem, −1 for none.
    solver : str or solver object, default="auto"
        The algorithm: "auto" is "linear_system". "pairwise", "block", "quadratic_program", "chunking" and
        "decomposition" find the same model more slowly. A solver object has its own tolerance, cache and limits.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a
        warning says how far it is. See docs/fitting.md.
    gap_tol : float, default=None
        Duality gap at which to stop even if the violation is above ``tol``. Small problems that are solved in a
        batch always reach ``tol``.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    warm_start : bool, default=False
        Start from the solution of the previous fit, if the shape of the data is the same.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The result does not depend on it.
    checkpoint : path, default=None
        A file in which the state of the fit is stored every ``checkpoint_seconds``. If the process is killed, the
        next fit with the same data and parameters resumes from the file; a file of another fit is an error. A fit
        that ends removes it; one that a limit or an interruption ends keeps it. See docs/checkpoints.md.
    checkpoint_seconds : float, default=60.0
        The time between two writes of the checkpoint: the most that is lost.

    Attributes
    ----------
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each sample's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : ErrorGeometry
        Error of every sample, ‖w‖², offset.
    status_ : Status
        How the solver ended; ``status_.value`` describes it.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn's ``SVR``.

    Examples
    --------
    >>> from maxmargin import LSSVR
    >>> model = LSSVR(kernel="linear", C=1000).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> abs(model.predict([[1.5]])[0] - 4.0) < 0.01
    np.True_
    """

    _solvers = ("linear_system", "pairwise", "block", *CLASSICAL_SOLVERS)
    _auto_solver = "linear_system"

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds

    def _regression(self) -> Regression:
        pose = partial(least_squares_regression.pose, fit_intercept=self.fit_intercept)
        return Regression(least_squares_regression, check_number("C", self.C, above=0), 1, pose)
