"""`QuantileSVR`: the median, or any other quantile, of the targets as a function of the samples."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.formulations import quantile_regression
from maxmargin.machines.kernel.function_estimator import KernelRegressor, Regression
from maxmargin.machines.validation.parameters import check_number


class QuantileSVR(KernelRegressor):
    """Fit a flat function that a part τ of the targets lies below.

    Minimise ½‖w‖² + C Σ ρ_τ(y_i − f(x_i)) with the pinball loss ρ_τ(e) = τ e where e > 0, else (τ − 1) e. Two of them
    make a prediction interval. scikit-learn has it for linear functions only (``QuantileRegressor``).

    With several quantiles there is a function for each, on shared kernel values. Functions of a higher quantile may
    fall below those of a lower one; predictions are therefore sorted (Chernozhukov, Fernández-Val & Galichon 2010). So
    they never cross, for any sample, and the sum of their pinball losses is at most that of the functions, for any
    target.

    Parameters
    ----------
    quantile : float or list of float, default=0.5
        The quantile τ, between 0 and 1; or several, increasing, of which `predict` returns a column each.
    C : float, default=1.0
        Cost of an error.
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
        Tolerance on the violation of the optimality conditions.
    shrinking : bool, default=True
        Leave variables that are likely to stay at a bound out of the iterations; all are checked before the end.
    cache_size : float or "auto", default="auto"
        Megabytes for kernel values; "auto" is a quarter of the memory available to the process. Only what is needed
        is allocated. Less memory makes the fit slower; the result differs only within the tolerance.
    verbose : bool, default=False
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=-1
        Limit on the iterations of each problem, −1 for none.
    solver : str or solver object, default="auto"
        The algorithm. "auto": up to 2,048 samples all problems in one batch of sequential minimal optimisation;
        problems that take many steps, and larger data, "pairwise" up to 500 variables, else "block". Classical
        algorithms for comparison: "quadratic_program", "chunking", "decomposition", "gradient_projection",
        "active_set", "platt", and with the linear kernel "primal_quadratic_program". A solver object has its own
        tolerance, cache and limits.
    selection : {"second_order", "most_violating_pair", "maximum_gain"}, default="second_order"
        Working-set selection of the pairwise solver.
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
    device : str, default="cpu"
        Where kernel values are computed and problems are solved: ``"cpu"``, ``"cuda"`` or ``"cuda:1"`` (an NVIDIA
        GPU; ``pip install 'maxmargin[cuda13]'``), or ``"auto"``, which takes the GPU where it pays. The tolerance
        and the certificate are the same; see docs/gpu.md.

    Attributes
    ----------
    certificate_ : Certificate, or a list with one per output or quantile
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each variable's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : QuantileGeometry, or a list with one per output
        Samples above, below and on the function, error of every sample, ‖w‖², offset.
    status_ : Status, or a list with one per output
        How the solver ended; ``status_.value`` describes it.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn; of several outputs, ``dual_coef_``, ``intercept_``, ``coef_`` and ``n_iter_`` have a line or
        a number for each, and ``support_`` is for all.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import QuantileSVR
    >>> X = np.zeros((100, 1))
    >>> model = QuantileSVR(quantile=0.9).fit(X, np.arange(100.0))
    >>> bool(88 <= model.predict([[0.0]])[0] <= 90)
    True
    """

    def __init__(
        self,
        *,
        quantile: Any = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        selection: str = "second_order",
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        device: str = "cpu",
    ) -> None:
        self.quantile = quantile
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.device = device

    @property
    def _several(self) -> bool:
        """Whether there is a function for each of several quantiles."""
        return np.ndim(self.quantile) > 0

    def _decide(self, X: Any) -> Floats:
        values = super()._decide(X)
        return np.sort(values, axis=1) if self._several else values

    def _regression(self) -> Regression:
        cost = check_number("C", self.C, above=0)
        levels = [_check_quantile(level) for level in (self.quantile if self._several else [self.quantile])]
        if not levels or np.any(np.diff(levels) <= 0):
            raise ValueError(f"several quantiles must be increasing numbers, not {self.quantile!r}")
        poses = [
            partial(quantile_regression.pose, quantile=level, fit_intercept=self.fit_intercept) for level in levels
        ]
        return Regression(quantile_regression, cost, 1, poses[0], tuple(poses) if self._several else ())


def _check_quantile(value: Any) -> float:
    quantile = check_number("quantile", value, above=0)
    if not quantile < 1:
        raise ValueError(f"quantile must be a number above 0 and below 1, not {value!r}")
    return quantile
