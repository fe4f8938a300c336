"""`NuSVR`: regression with a tube of fitted width, in place of `sklearn.svm.NuSVR`."""

from __future__ import annotations

from functools import partial
from typing import Any

from maxmargin.formulations import nu_regression
from maxmargin.machines.calibration.noise_scale import NoiseIntervals
from maxmargin.machines.kernel.function_estimator import KernelRegressor, Regression
from maxmargin.machines.validation.parameters import check_fraction, check_number


class NuSVR(NoiseIntervals, KernelRegressor):
    """Fit a flat function with a tube just wide enough that at most a fraction ν of the samples lies outside.

    The model is that of `SVR` with the resulting ε (``geometry_.epsilon``). A drop-in for ``sklearn.svm.NuSVR``,
    with ``certificate_``.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1: an upper bound on the fraction of samples outside the tube, and a lower bound on the
        fraction of support vectors.
    C : float, default=1.0
        Cost of an error beyond the tube.
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
    noise : bool, default=False
        Whether to estimate the noise of the targets by cross-validation, for ``predict_interval``. The fit takes
        about twice as long.
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
    certificate_ : Certificate, or a list with one per output
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each variable's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : TubeGeometry, or a list with one per output
        Half-width of the tube; samples in it, on its edge and outside, distance of every sample, ‖w‖², offset.
    status_ : Status, or a list with one per output
        How the solver ended; ``status_.value`` describes it.
    noise_scale_ : float, or an array with one number per output
        With ``noise=True``: σ of a Laplace distribution, exp(−|z|/σ) / (2σ), of the errors z on samples held out of
        training, without outliers.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn; of several outputs, ``dual_coef_``, ``intercept_``, ``coef_`` and ``n_iter_`` have a line or
        a number for each, and ``support_`` is for all.

    Examples
    --------
    >>> from maxmargin import NuSVR
    >>> model = NuSVR(kernel="linear", C=100, nu=0.5).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> abs(model.predict([[1.5]])[0] - 1.5) < 0.01
    np.True_
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
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
        noise: bool = False,
        max_seconds: float | None = None,
        gap_tol: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
        device: str = "cpu",
    ) -> None:
        self.nu = nu
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
        self.noise = noise
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.device = device

    def _regression(self) -> Regression:
        cost, nu = check_number("C", self.C, above=0), check_fraction("nu", self.nu)
        pose = partial(nu_regression.pose, nu=nu, fit_intercept=self.fit_intercept)
        return Regression(nu_regression, cost, 2, pose)
