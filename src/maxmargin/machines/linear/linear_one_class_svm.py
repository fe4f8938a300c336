"""`LinearOneClassSVM`: novelty detection by a half-space."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.formulations import one_class
from maxmargin.machines.calibration.novelty_detector import NoveltyDetector, rounded
from maxmargin.machines.linear.block_data import as_blocks
from maxmargin.machines.linear.block_fitting import BlockFit, check_options
from maxmargin.machines.linear.block_posing import matrix_of
from maxmargin.machines.linear.linear_estimator import LINEAR_SOLVERS, LinearEstimator
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.parameters import check_flag, check_fraction
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights
from maxmargin.matrices import SymmetricMatrix
from maxmargin.models.calibration import density_marks
from maxmargin.problems import DualProblem
from maxmargin.solvers import StoppingRule
from maxmargin.training import Session
from maxmargin.training.block_training import TrainingBlock

#: A gap of this fraction of the largest possible objective, times the tolerance, is accepted: the optimum is 0 if no
#: half-space separates the samples from the origin.
MIN_GAP_FRACTION = 1e-10


class LinearOneClassSVM(NoveltyDetector, LinearEstimator):
    """Learn a half-space, far from the origin, that contains all but a fraction ν of the samples.

    minimise ½‖w‖² − ν n ρ + Σ max(0, ρ − w·x_i), inside where w·x ≥ ρ. ``OneClassSVM(kernel="linear")`` for large data
    in many dimensions, such as texts or the features of a map. The origin matters: data that surround it have no such
    half-space, so that w = 0. Do not centre them, or use `OneClassSVM` with another kernel.

    Parameters
    ----------
    nu : float, default=0.5
        Above 0 and at most 1: an upper bound on the fraction of training samples outside, and a lower bound on the
        fraction of support vectors.
    tol : float, default=1e-4
        Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two. The optimum may be 0:
        then a gap that is negligible next to the objective without a model is accepted.
    verbose : bool, default=0
        Show a progress line on the terminal for fits longer than a second.
    max_iter : int, default=None
        Limit on the iterations of each problem: passes over the samples, or Newton steps. None for no limit.
    solver : str or solver object, default="auto"
        The algorithm: "dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient",
        "pairwise", "primal_quadratic_program", or "auto", which chooses by cost. A solver object has its own
        tolerance and limits.
    probability : bool, default=False
        Whether to fit probabilities for ``predict_proba``; this takes little time.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a
        warning says how far it is. See docs/fitting.md.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    warm_start : bool, default=False
        Start from the solution of the previous fit, if it had the same rows.
    n_jobs : int, default=None
        Threads for training and prediction. None: the cores available to the process, or fewer if BLAS is limited
        (``OMP_NUM_THREADS``, threadpoolctl, workers of joblib and Dask). The last digits of the result may depend
        on it.
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
    status_ : Status
        How the solver ended; ``status_.value`` describes it.
    coef_ : array of shape (1, n_features)
        w.
    intercept_, offset_ : arrays of shape (1,)
        −ρ and ρ.
    density_marks_ : array of shape (11,)
        With ``probability=True``: the decision values at which the probability to be inside is 0, 0.1, …, 1.
    n_passes_ : int
        After a fit on blocks of rows: how often they were read.
    n_iter_, fit_status_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import LinearOneClassSVM
    >>> model = LinearOneClassSVM(nu=0.5).fit([[2.0, 2.1], [2.1, 2.0], [2.0, 2.0], [1.9, 2.1]])
    >>> model.predict([[2.5, 2.5], [0.5, 0.5]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        tol: float = 1e-4,
        verbose: int = 0,
        max_iter: int | None = None,
        solver: Any = "auto",
        probability: bool = False,
        max_seconds: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        self.nu = nu
        self.tol = tol
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.probability = probability
        self.max_seconds = max_seconds
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearOneClassSVM:
        """Train on samples `X`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Used as it is in C order or as CSR, in float32 or float64; other forms are converted once. Many dense values
            that are mostly zeros are compressed, which takes less than half as much memory as they have. Blocks of rows
            (`maxmargin.blocks.open`) need not fit into memory; a memory map beside which there is no room is read in
            blocks, too.
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
        solver = self._make_solver(LINEAR_SOLVERS)
        if (blocks := as_blocks(X, None, sample_weight)) is not None:
            return self._fit_blocks(blocks, nu, solver.stopping)
        X = self._validate_samples(X, reset=True)
        weights = check_costs(1.0, check_sample_weights(sample_weight, X))
        rows = np.flatnonzero(weights > 0)

        def pose(matrix: SymmetricMatrix, _: int) -> DualProblem:
            return one_class.pose(matrix, weights[rows], nu)

        starts = self._starts(rows, 1, len(rows))
        with reporting(self) as callback, checkpointing(self, X, None, weights) as checkpoint:
            session = Session.begin(callback, solver.stopping.max_seconds, started, checkpoint)
            self._set_fitted(self._train(X, rows, pose, 1, one_class, solver, session, starts, self._min_gap))
        self.offset_ = -self.intercept_
        self.__dict__.pop("density_marks_", None)
        if self.probability:
            values = -self._models_[0].certificate.slack  # of the training rows: the linear term of the dual is 0
            self.density_marks_ = density_marks(rounded(values, self.offset_), weights[rows])
        self._warn_if_unconverged(solver.stopping, "problems")
        return self

    def _min_gap(self, problem: DualProblem) -> float:
        features = problem.matrix.features()
        assert features is not None
        with np.errstate(over="ignore"):
            longest = 0.5 * float(np.square(problem.total[0])) * float(features.squared_norms().mean())
        return MIN_GAP_FRACTION * float(self.tol) * longest

    def _fit_blocks(self, blocks: RowBlocks, nu: float, rule: StoppingRule) -> LinearOneClassSVM:
        """Train on blocks of rows."""
        check_options(self, solver="auto", probability=False)

        def pose(block: TrainingBlock) -> DualProblem:
            return one_class.pose(matrix_of(block), block.weights, nu)

        fit = BlockFit(self, blocks, rule, labelled=False)
        self._set_fitted([fit.one_class(pose, self._min_gap)])
        self.offset_, self.n_features_in_, self.n_passes_ = -self.intercept_, blocks.n_features, fit.data.passes
        for name in ("density_marks_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._warn_if_unconverged(rule, "problems")
        return self
