"""`OneClassSVM`: novelty detection in place of `sklearn.svm.OneClassSVM`."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Indices
from maxmargin.deadline import TimeLimitReachedError
from maxmargin.formulations import one_class
from maxmargin.kernels import Kernel
from maxmargin.machines.calibration.cross_validation import CrossValidation
from maxmargin.machines.calibration.novelty_detector import NoveltyDetector, rounded
from maxmargin.machines.kernel.function_estimator import FunctionEstimator
from maxmargin.machines.validation.parameters import check_flag, check_fraction
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.matrices import SymmetricMatrix
from maxmargin.models.calibration import density_marks
from maxmargin.problems import DualProblem, Status
from maxmargin.training import TrainedModel


class OneClassSVM(NoveltyDetector, FunctionEstimator):
    """Estimate the support of the data: a region that contains all but a fraction ν of the samples.

    A drop-in for ``sklearn.svm.OneClassSVM``, with ``certificate_``.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1: an upper bound on the fraction of training samples outside, and a lower bound on the
        fraction of support vectors.
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
    probability : bool, default=False
        Whether to fit probabilities for ``predict_proba``; this takes little time.
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
    certificate_ : Certificate
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each variable's share of the gap.
        Computed when first read; an error if the training data were changed since.
    geometry_ : NoveltyGeometry
        Samples inside, on the boundary and outside, by how much, ‖w‖², offset.
    status_ : Status
        How the solver ended; ``status_.value`` describes it.
    density_marks_ : array of shape (11,)
        With ``probability=True``: the decision values at which the probability to be inside is 0, 0.1, …, 1.
    offset_, support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, fit_status_, n_iter_, shape_fit_,
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import OneClassSVM
    >>> model = OneClassSVM(nu=0.5, gamma=1.0).fit([[0.0], [0.1], [-0.1], [0.2]])
    >>> model.predict([[0.05], [5.0]])
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
        tol: float = 1e-3,
        shrinking: bool = True,
        cache_size: Any = "auto",
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        selection: str = "second_order",
        probability: bool = False,
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
        self.probability = probability
        self.max_seconds = max_seconds
        self.gap_tol = gap_tol
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> OneClassSVM:
        """Train on samples `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values; with a function as kernel, samples of
            any kind.
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
        check_flag("probability", self.probability)
        X = self._check_training_samples(X)
        weights = check_costs(1.0, check_sample_weights(sample_weight, X))

        def pose(matrix: SymmetricMatrix, rows: Indices, output: int) -> DualProblem:
            return one_class.pose(matrix, weights[rows], nu)

        def after(problems: list[DualProblem], validation: CrossValidation) -> Status:
            self.__dict__.pop("density_marks_", None)
            if self.probability:
                model, problem, ended = self._models_[0], problems[0], Status.CONVERGED
                try:
                    with validation.session.deadline.in_force():
                        values = model.expansion.offset - model.gradient_for(
                            problem
                        )  # the linear term of the dual is 0
                except TimeLimitReachedError:
                    values, ended = model.training_values(problem, one_class, problem.size), Status.MAX_SECONDS
                valued = np.isfinite(values)
                self.density_marks_ = density_marks(
                    rounded(values[valued], self.intercept_), weights[model.samples][valued]
                )
                return ended
            return Status.CONVERGED

        self._fit_outputs(X, weights, pose, one_class, variables=1, after=after, started=started)
        return self

    def _set_fitted(self, X: Any, kernel: Kernel | None, models: Sequence[TrainedModel], outputs: int | None) -> None:
        super()._set_fitted(X, kernel, models, outputs)
        self.offset_ = -self.intercept_
