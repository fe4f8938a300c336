"""`LinearSVR`: linear regression in place of `sklearn.svm.LinearSVR`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.machines.base import warn_if_unvalidated
from maxmargin.machines.calibration.cross_validation import linear_held_out_values, stratified_folds
from maxmargin.machines.calibration.noise_scale import NoiseIntervals
from maxmargin.machines.kernel.svr import LOSSES
from maxmargin.machines.linear.block_data import as_blocks
from maxmargin.machines.linear.block_fitting import BlockFit, check_options
from maxmargin.machines.linear.block_posing import RegressionPose
from maxmargin.machines.linear.linear_estimator import LINEAR_SOLVERS, LinearEstimator
from maxmargin.machines.linear.stochastic_updates import StreamingRegressor
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_choice, check_flag, check_number
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights, check_targets
from maxmargin.matrices import SymmetricMatrix
from maxmargin.matrices.numerics import ordinary_weights
from maxmargin.models.calibration import noise_scale
from maxmargin.problems import Certificate, DualProblem, Status
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import StoppingRule
from maxmargin.training import Session, Solver, TrainedLinearModel
from maxmargin.training.block_training import TrainingBlock

#: A gap of this fraction of the loss of the zero function is rounding: the optimum is 0 if all targets lie in the tube.
#: The second is for squared losses, whose rounding errors are squared.
MIN_GAP_FRACTION, MIN_SQUARED_GAP_FRACTION = 1e-15, 1e-30


class LinearSVR(StreamingRegressor, NoiseIntervals, LinearEstimator):
    """Fit a linear function with a tube: minimise ½‖w‖² + C Σ max(0, |y_i − w·x_i − b| − ε).

    A drop-in for ``sklearn.svm.LinearSVR``, with ``certificate_``. Three things differ. The intercept is not
    regularised unless ``intercept_scaling`` is a number. ``tol`` is a bound on the distance from the optimum, which the
    certificate proves. And there is no limit on iterations unless one is set.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube: smaller errors cost nothing.
    tol : float, default=1e-4
        Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two. The optimum may be 0:
        then a gap that is negligible next to the objective without a model is accepted.
    C : float, default=1.0
        Cost of an error beyond the tube.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
        The distance from the tube, or its square.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    intercept_scaling : float, default=None
        None: the offset b is not regularised. A number: b is regularised, as the weight of a constant feature of
        this value; scikit-learn's default is 1.
    dual : "auto" or bool, default="auto"
        The algorithm of ``solver="auto"``: True is coordinate ascent on the dual, False is Newton's method on the
        primal; "auto" chooses by cost. Both solve both losses.
    verbose : bool, default=0
        Show a progress line on the terminal for fits longer than a second.
    random_state : int, RandomState or None, default=None
        Accepted for compatibility with scikit-learn; the result does not depend on it.
    max_iter : int, default=None
        Limit on the iterations of each problem: passes over the samples, or Newton steps. None for no limit.
    solver : str or solver object, default="auto"
        The algorithm: "dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient",
        "pairwise", "primal_quadratic_program", or "auto", which chooses by cost. A solver object has its own
        tolerance and limits.
    noise : bool, default=False
        Whether to estimate the noise of the targets by cross-validation, for ``predict_interval``. The fit takes
        about twice as long.
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
    certificate_ : Certificate, or a list with one per output
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each variable's share of the gap.
    status_ : Status, or a list with one per output
        How the solver ended; ``status_.value`` describes it.
    coef_ : array of shape (n_features,), or (n_outputs, n_features)
        Weights.
    intercept_ : array of shape (1,), or (n_outputs,)
        b of each function.
    noise_scale_ : float, or an array with one number per output
        With ``noise=True``: σ of a Laplace distribution, exp(−|z|/σ) / (2σ), of the errors z on samples held out of
        training, without outliers.
    n_iter_ : int
        The most iterations of any output.
    n_passes_ : int
        After a fit on blocks of rows: how often they were read.
    fit_status_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import LinearSVR
    >>> model = LinearSVR(C=100).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.predict([[3.0]]).round(3)
    array([7.])
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        dual: Any = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int | None = None,
        solver: Any = "auto",
        noise: bool = False,
        max_seconds: float | None = None,
        callback: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        checkpoint: Any = None,
        checkpoint_seconds: float = 60.0,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.noise = noise
        self.max_seconds = max_seconds
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVR:
        """Train on samples `X` with targets `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Used as it is in C order or as CSR, in float32 or float64; other forms are converted once. Many dense values
            that are mostly zeros are compressed, which takes less than half as much memory as they have. Blocks of rows
            (`maxmargin.blocks.open`) need not fit into memory; a memory map beside which there is no room is read in
            blocks, too.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Targets. Each column of a table is a problem of its own. None if blocks of rows have them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        started = perf_counter()
        cost, epsilon = self._check_parameters()
        formulation, solver = self._formulation, self._make_solver(LINEAR_SOLVERS)
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            return self._fit_blocks(blocks, cost, epsilon, solver.stopping)
        X, targets = self._check_targets(X, y)
        weights = check_sample_weights(sample_weight, X)
        costs, rows = check_costs(cost, weights), np.flatnonzero(weights > 0)
        columns = targets.reshape(len(targets), -1)[rows]
        centre = _centre(columns, weights[rows], self._exact_intercept)
        columns, count = columns - centre, columns.shape[1]

        def pose(matrix: SymmetricMatrix, output: int) -> DualProblem:
            problem = formulation.pose(matrix, columns[:, output], costs[rows], epsilon, self._exact_intercept)
            return SplitProblem.of(problem).problem  # linear solvers take no kinks

        starts = self._starts(rows, count, (2 if epsilon > 0 else 1) * len(rows))
        with reporting(self) as callback, checkpointing(self, X, targets, weights) as checkpoint:
            session = Session.begin(callback, solver.stopping.max_seconds, started, checkpoint)
            models = self._train(X, rows, pose, count, formulation, solver, session, starts, min_gap)
            self._set_fitted([shifted(model, by) for model, by in zip(models, centre, strict=True)])
            self._outputs_ = None if targets.ndim == 1 else count
            self.__dict__.pop("_streams_", None)
            if self._outputs_ is None:
                self.coef_ = self.coef_.ravel()
            ended = self._estimate_noise(X, rows, pose, formulation, columns, weights[rows], solver, session)
        self._warn_if_unconverged(solver.stopping, "outputs")
        warn_if_unvalidated(self, ended, stacklevel=3)
        return self

    def _fit_blocks(self, blocks: RowBlocks, cost: float, epsilon: float, rule: StoppingRule) -> LinearSVR:
        """Train on blocks of rows."""
        check_options(self, solver="auto", noise=False)
        fit = BlockFit(self, blocks, rule)
        model, centre = fit.regression(self._pose_block(cost, epsilon), min_gap)
        self._set_fitted([shifted(model, centre)])
        self.coef_, self._outputs_ = self.coef_.ravel(), None
        self.n_features_in_, self.n_passes_ = blocks.n_features, fit.data.passes
        for name in ("_streams_", "noise_scale_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._warn_if_unconverged(rule, "outputs")
        return self

    def _certify_blocks(self, blocks: RowBlocks) -> list[Certificate]:
        """Return the certificate of the weights as a solution on blocks of rows, as a list of one."""
        self._check_fitted()
        if self._outputs_ is not None:
            raise ValueError("blocks of rows have one target for each row, and this model has several outputs")
        fit = BlockFit(self, blocks, self._make_solver(LINEAR_SOLVERS).stopping, fitted=True)
        model, centre = fit.regression(self._pose_block(*self._check_parameters()), min_gap)
        return [shifted(model, centre).certificate]

    def _pose_block(self, cost: float, epsilon: float) -> Callable[[TrainingBlock, float], DualProblem]:
        formulation = self._formulation

        def pose(block: TrainingBlock, centre: float) -> DualProblem:
            return RegressionPose(formulation, cost, self._exact_intercept, epsilon, centre)(block, 0)

        return pose

    @following_samples
    def predict(self, X: Any) -> Floats:
        """Return the value of the function for each sample; of several outputs a column each."""
        values = self._decide(X)
        return values.ravel() if self._outputs_ is None else values

    @property
    def _formulation(self) -> Any:
        return LOSSES[self.loss]

    def _check_parameters(self) -> tuple[float, float]:
        """Return C and ε, after validating all parameters."""
        check_flag("noise", self.noise)
        check_choice("loss", self.loss, tuple(LOSSES))
        self._check_intercept()
        return self._check_cost(), check_number("epsilon", self.epsilon, least=0)

    def _check_targets(self, X: Any, y: Any, reset: bool = True) -> tuple[Any, Floats]:
        """Return validated samples and targets: a vector, or a table if there are several outputs."""
        return check_targets(self._validate_pairs, X, y, reset=reset)

    def _estimate_noise(
        self,
        X: Any,
        rows: Indices,
        pose: Any,
        formulation: Any,
        targets: Floats,
        weights: Floats,
        solver: Solver,
        session: Session,
    ) -> Status:
        """Set ``noise_scale_`` if asked for; return the status of the least converged cross-validation."""
        self.__dict__.pop("noise_scale_", None)
        if not self.noise or any(model.status is Status.INTERRUPTED for model in self._models_):
            return Status.CONVERGED
        _, matrix = self._make_matrix(X, rows, 1)
        folds = stratified_folds([np.arange(len(rows))], len(rows), seed=0)
        scales, worst = [], Status.CONVERGED
        for output, model in enumerate(self._models_):
            values, status = linear_held_out_values(pose(matrix, output), model, formulation, folds, solver, session)
            if status is Status.INTERRUPTED:
                return status
            scales.append(noise_scale(targets[:, output] - values, weights))
            worst = worst if status.converged else status
        self.noise_scale_ = scales[0] if self._outputs_ is None else np.array(scales)
        return worst


def min_gap(problem: DualProblem) -> float:
    """Return the gap that is rounding: a fraction of the loss of the zero function, 0 if that overflows."""
    problem = SplitProblem.of(problem).problem if problem.kinked else problem
    fraction = MIN_SQUARED_GAP_FRACTION if problem.ridge.any() else MIN_GAP_FRACTION
    loss = _native.total_loss(problem.linear, problem.lower, problem.upper, problem.ridge, 1)
    return fraction * loss if 0.0 <= loss < np.inf else 0.0


def _centre(columns: Floats, weights: Floats, intercept: bool) -> Floats:
    """Return what is subtracted from targets: where the intercept is free, their mean.

    Targets near 0 make the same problem, without lost digits. Those near the largest double stay as they are.
    """
    if not intercept:
        return np.zeros(columns.shape[1])
    weights = ordinary_weights(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        centre: Floats = weights @ columns / weights.sum()
        representable = np.isfinite(columns - centre).all(axis=0)
    return np.where(representable, centre, 0.0)


def shifted(model: TrainedLinearModel, by: float) -> TrainedLinearModel:
    """Return the model of targets that are larger by a number."""
    certificate = model.certificate
    interval = certificate.offset_interval + by
    certificate = replace(certificate, offset=certificate.offset + by, offset_interval=interval)
    return replace(model, offset=model.offset + by, certificate=certificate)
