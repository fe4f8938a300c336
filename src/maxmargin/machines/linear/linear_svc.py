"""`LinearSVC`: linear classification in place of `sklearn.svm.LinearSVC`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.formulations import crammer_singer
from maxmargin.machines.base import warn_if_unvalidated
from maxmargin.machines.calibration.probabilities import LinearProbabilities
from maxmargin.machines.kernel.svc import LOSSES
from maxmargin.machines.linear.block_data import as_blocks
from maxmargin.machines.linear.block_fitting import BlockFit, check_options
from maxmargin.machines.linear.linear_estimator import (
    ALL_IN_ONE_SOLVERS,
    LINEAR_SOLVERS,
    SPARSE_SOLVERS,
    LinearEstimator,
)
from maxmargin.machines.linear.stochastic_updates import StreamingClassifier, factors_of
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.checkpoints import checkpointing
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_choice, check_flag
from maxmargin.machines.validation.training_data import (
    Labels,
    check_costs,
    check_sample_weights,
    class_factors,
    number_classes,
    single_class_message,
)
from maxmargin.matrices import BiasAugmentedMatrix, SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem, Status
from maxmargin.solvers import StoppingRule
from maxmargin.training import Session, Solver, TrainedLinearModel
from maxmargin.training.checkpoint import Checkpoint
from maxmargin.training.linear_verification import AllInOneVerifier
from maxmargin.training.pipeline import solve_and_verify


class LinearSVC(StreamingClassifier, LinearProbabilities, LinearEstimator):
    """Classify with linear functions: minimise ½‖w‖² + C Σ max(0, 1 − y_i (w·x_i + b))².

    A drop-in for ``sklearn.svm.LinearSVC``, with ``certificate_``. Three things differ. The intercept is not
    regularised unless ``intercept_scaling`` is a number. ``tol`` is a bound on the distance from the optimum, which the
    certificate proves. And there is no limit on iterations unless one is set.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        ½‖w‖², or Σ |w_j|, which makes most weights exactly 0 and needs ``loss="squared_hinge"`` and
        ``multi_class="ovr"``. The latter takes a copy of `X` stored by columns.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Σ C ξ_i² or Σ C ξ_i; ignored with ``multi_class="crammer_singer"``.
    dual : "auto" or bool, default="auto"
        The algorithm of ``solver="auto"``: True is coordinate ascent on the dual, False is Newton's method on the
        primal; "auto" chooses by cost. Both solve both losses. ``penalty="l1"`` is solved in the primal only.
    tol : float, default=1e-4
        Tolerance on the relative duality gap: primal − dual ≤ tol · the larger of the two.
    C : float, default=1.0
        Cost of slack.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        Multi-class strategy: a model for each class against the rest, or one problem for all classes.
    fit_intercept : bool, default=True
        Whether the decision function has an offset b.
    intercept_scaling : float, default=None
        None: the offset b is not regularised. A number: b is regularised, as the weight of a constant feature of
        this value; scikit-learn's default is 1. ``multi_class="crammer_singer"`` takes None as 1.
    class_weight : dict or "balanced", default=None
        Factors on C by class. In the problem of one class against the rest the factor applies to the samples of
        that class, the rest have a factor of 1, as in LIBLINEAR. "balanced" counts samples by their weight.
    verbose : bool, default=0
        Show a progress line on the terminal for fits longer than a second.
    random_state : int, RandomState or None, default=None
        The folds of the cross-validation with ``probability=True``; None always gives the same folds. Nothing else
        is random.
    max_iter : int, default=None
        Limit on the iterations of each problem: passes over the samples, or Newton steps. None for no limit.
    solver : str or solver object, default="auto"
        The algorithm: "dual_coordinate_ascent", "semismooth_newton", "subgradient", "stochastic_subgradient",
        "pairwise", "primal_quadratic_program", or "auto", which chooses by cost; with ``penalty="l1"`` it is
        "coordinate_descent". A solver object has its own tolerance and limits.
    probability : bool, default=False
        Whether to fit class probabilities by cross-validation, for ``predict_proba``. ``predict`` then returns the
        most probable class. Only with ``multi_class="ovr"``.
    max_seconds : float, default=None
        Limit on the time of the whole fit, within a tenth of it or half a second. The model is then valid, and a
        warning says how far it is. See docs/fitting.md.
    callback : callable, default=None
        Called with the progress (iteration, violation, primal, dual, gap, active, seconds) up to ten times a
        second; returning True stops the fit with a valid model. It never changes the result otherwise.
    warm_start : bool, default=False
        Start from the solution of the previous fit, if it had the same number of samples and the same classes.
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
    certificate_ : Certificate, or a list with one per class
        ``primal``, ``dual``, ``gap`` and ``violation`` of the solution, and each sample's share of the gap.
    status_ : Status, or a list with one per class
        How the solver ended; ``status_.value`` describes it.
    coef_ : array of shape (1, n_features), or (n_classes, n_features)
        Weights.
    intercept_ : array of shape (1,), or (n_classes,)
        b of each function.
    probA_, probB_ : arrays with a number for each class, or one if there are two
        With ``probability=True``: the probability of a class against the rest is 1 / (1 + exp(A f + B)), with f its
        decision value (the negative of the decision function, and the first class, if there are only two).
        Else empty.
    n_iter_ : int
        The largest number of iterations of any problem.
    n_passes_ : int
        After a fit on blocks of rows: how often they were read.
    classes_, class_weight_, fit_status_, n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from maxmargin import LinearSVC
    >>> model = LinearSVC(C=10).fit([[0, 0], [1, 1], [2, 0], [3, 1]], [0, 0, 1, 1])
    >>> model.predict([[0.5, 0], [2.5, 0]])
    array([0, 1])
    >>> model.certificate_.relative_gap < 1e-4
    True
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
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
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.solver = solver
        self.probability = probability
        self.max_seconds = max_seconds
        self.callback = callback
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LinearSVC:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Used as it is in C order or as CSR, in float32 or float64; other forms are converted once. Many dense values
            that are mostly zeros are compressed, which takes less than half as much memory as they have. Blocks of rows
            (`maxmargin.blocks.open`) need not fit into memory; a memory map beside which there is no room is read in
            blocks, too.
        y : array-like of shape (n_samples,), optional
            Labels of any type; None if blocks of rows have them.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample. 0 or less leaves a row out, 2 counts it twice.

        Returns
        -------
        self
            The fitted estimator.
        """
        ended, rule = self._fit(X, y, sample_weight)
        self._warn_if_unconverged(rule, "classes")
        warn_if_unvalidated(self, ended, stacklevel=3)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, checkpoint: Checkpoint | None = None
    ) -> tuple[Status, StoppingRule]:
        """Train; return the status of the least converged cross-validation, and the stopping rule."""
        started = perf_counter()
        cost = self._check_parameters()
        solver = self._make_solver(self._solvers)
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            return self._fit_blocks(blocks, cost, solver.stopping), solver.stopping
        X, y = self._validate_pairs(X, y)
        weights = check_sample_weights(sample_weight, X)
        self._validate_labels(y)
        labels = number_classes(y, weights, single_class_message)
        rows = labels.taking_part
        factors = class_factors(self.class_weight, labels.classes, labels.numbers[rows], weights[rows])
        with reporting(self) as callback, self._checkpointing(X, labels, weights, checkpoint) as checkpoint:
            session = Session.begin(callback, solver.stopping.max_seconds, started, checkpoint)
            train = self._train_all_in_one if self.multi_class == "crammer_singer" else self._train_classes
            return train(X, labels, cost, factors, weights, solver, session), solver.stopping

    def _fit_blocks(self, blocks: RowBlocks, cost: float, rule: StoppingRule) -> Status:
        """Train on blocks of rows."""
        needed = {"penalty": "l2", "multi_class": "ovr", "solver": "auto", "probability": False}
        check_options(self, **needed)
        fit = BlockFit(self, blocks, rule)
        models, classes, factors = fit.classes(cost, self._formulation)
        nothing = np.empty(0, dtype=np.int64)
        self._set_classes(models, Labels(classes, nothing, nothing), factors)
        self.n_features_in_, self.n_passes_ = blocks.n_features, fit.data.passes
        self.__dict__.pop("feature_names_in_", None)
        return Status.CONVERGED

    def _certify_blocks(self, blocks: RowBlocks) -> list[Certificate]:
        """Return the certificates of the weights as a solution on blocks of rows."""
        self._check_fitted()
        check_options(self, penalty="l2")
        fit = BlockFit(self, blocks, self._make_solver(LINEAR_SOLVERS).stopping, fitted=True)
        models, _, _ = fit.classes(self._check_parameters(), self._formulation, self.classes_)
        return [model.certificate for model in models]

    def _checkpointing(
        self, X: Any, labels: Labels, weights: Floats, given: Checkpoint | None
    ) -> AbstractContextManager[Checkpoint | None]:
        """Return the checkpoint of the fit: that of another estimator, of which this one is a part, or its own."""
        return checkpointing(self, X, labels.numbers, weights) if given is None else nullcontext(given)

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return a value for each sample, positive for ``classes_[1]``; of more than two classes a column each."""
        decisions: Floats = self._decide(X)
        return decisions.ravel() if decisions.shape[1] == 1 else decisions

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return the class of each sample; with ``probability=True`` the one that is most probable."""
        if self._knows_probabilities:
            return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        decisions = self._decide(X)
        winners = decisions[:, 0] > 0 if decisions.shape[1] == 1 else np.argmax(decisions, axis=1)
        return self.classes_[winners.astype(np.intp)]

    @property
    def _formulation(self) -> Any:
        return LOSSES[self.loss]

    @property
    def _solvers(self) -> dict[str, Any]:
        if self.penalty == "l1":
            return SPARSE_SOLVERS
        return ALL_IN_ONE_SOLVERS if self.multi_class == "crammer_singer" else LINEAR_SOLVERS

    def _check_parameters(self) -> float:
        """Return C, after validating all parameters."""
        check_choice("penalty", self.penalty, ("l1", "l2"))
        check_choice("loss", self.loss, tuple(LOSSES))
        check_choice("multi_class", self.multi_class, ("ovr", "crammer_singer"))
        if self.penalty == "l1" and (self.loss != "squared_hinge" or self.multi_class != "ovr" or self.dual is True):
            raise ValueError(
                "penalty='l1' needs loss='squared_hinge', multi_class='ovr' and dual='auto' or False; use "
                "penalty='l2' for the others"
            )
        if check_flag("probability", self.probability) and self.multi_class != "ovr":
            raise ValueError("probability=True needs a model for each class: use multi_class='ovr'")
        self._check_intercept()
        return self._check_cost()

    def _train_classes(
        self, X: Any, labels: Labels, cost: float, factors: Floats, weights: Floats, solver: Solver, session: Session
    ) -> Status:
        """Train each class against the rest, or the only problem of two classes; then fit their sigmoids."""
        rows, several = labels.taking_part, len(labels.classes) > 2
        count = len(labels.classes) if several else 1
        numbers, formulation = labels.numbers[rows], self._formulation

        def pose(matrix: SymmetricMatrix, number: int) -> DualProblem:
            signs = np.where(numbers == (number if several else 1), 1.0, -1.0)
            costs = check_costs(cost, factors_of(number, numbers, factors, weights[rows]))
            problem: DualProblem = formulation.pose(matrix, signs, costs, self._exact_intercept)
            return problem

        starts = self._starts_of(labels, count, len(rows))
        models = self._train(X, rows, pose, count, formulation, solver, session, starts)
        self._set_classes(models, labels, factors)
        if not self.probability:
            return Status.CONVERGED
        workers, matrix = self._make_matrix(X, rows, count)
        return self._fit_sigmoids(
            lambda number: (pose(matrix, number), factors_of(number, numbers, factors, weights[rows])),
            labels,
            formulation,
            solver,
            session,
            workers,
        )

    def _train_all_in_one(
        self, X: Any, labels: Labels, cost: float, factors: Floats, weights: Floats, solver: Solver, session: Session
    ) -> Status:
        """Train the problem of all classes; of two, which are opposites, the difference is the decision function."""
        rows, count = labels.taking_part, len(labels.classes)
        _, matrix = self._make_matrix(X, rows, 1)
        if self._exact_intercept:
            matrix = BiasAugmentedMatrix(matrix)  # features with a constant that has no weight yet
        features = matrix.features()
        assert features is not None
        costs = check_costs(cost, weights * factors[labels.numbers])
        problem = crammer_singer.pose(matrix, labels.numbers[rows], count, costs[rows], fit_intercept=False)
        starts = self._starts_of(labels, 1, problem.size)
        start = None if starts is None else starts[0]
        solver = self._adapt(solver, problem)
        verifier = AllInOneVerifier(problem, rows, crammer_singer, solver.stopping, features)
        model: TrainedLinearModel = solve_and_verify(problem, solver, verifier, start, session)
        if count == 2:
            model = replace(model, weights=np.diff(model.weights, axis=0), offset=np.diff(model.offset))
        self._set_classes([model], labels, factors)
        return Status.CONVERGED

    def _set_classes(self, models: list[TrainedLinearModel], labels: Labels, factors: Floats) -> None:
        """Set the fitted attributes."""
        self._set_fitted(models)
        self.classes_ = labels.classes
        self.class_weight_ = factors
        self._sigmoids_ = None
        self.__dict__.pop("_streams_", None)

    def _starts_of(self, labels: Labels, count: int, variables: int) -> list[Floats] | None:
        """Return the previous solutions as starts, if they are of the same classes."""
        same = np.array_equal(labels.classes, getattr(self, "classes_", ()))
        return self._starts(labels.taking_part, count, variables) if same else None
