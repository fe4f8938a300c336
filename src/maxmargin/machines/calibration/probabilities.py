"""Class probabilities by Platt's sigmoids on cross-validated decision values.

    PairwiseProbabilities    a sigmoid for each pair of classes; pairwise coupling (`models.calibration`)
    LinearProbabilities      a sigmoid for each class against the rest; normalised (Zadrozny & Elkan 2002)

`predict` returns the most probable class, so that it never contradicts `predict_proba`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import Deadline, TimeLimitReachedError
from maxmargin.formulations.formulation import Formulation
from maxmargin.machines.base import wants_probabilities
from maxmargin.machines.calibration.cross_validation import (
    FOLD_TOLERANCE_FACTOR,
    CrossValidation,
    linear_held_out_values,
    stratified_folds,
)
from maxmargin.machines.multiclass.strategy import LabelledData, TrainedClasses
from maxmargin.machines.validation.availability import available_if
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.machines.validation.training_data import Labels
from maxmargin.models.calibration import PlattSigmoid, binary_probabilities, couple_pairwise, fit_sigmoid
from maxmargin.problems import DualProblem, Status
from maxmargin.training import Session, Solver, TrainedLinearModel
from maxmargin.training.fit_context import FitContext
from maxmargin.training.pipeline import run_parallel

#: The most samples that a sigmoid is fitted to when there is no time left.
MAX_LATE_SAMPLES = 10_000

#: From the number of a class to its problem and the weights of its samples as counts.
PoseClass = Callable[[int], tuple[DualProblem, Floats]]


def check_probabilities(estimator: Any) -> bool:
    """Raise scikit-learn's error unless the estimator was asked for probabilities."""
    if not wants_probabilities(estimator):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


def seed_of(random_state: Any) -> int:
    """Return the seed of the folds; a fixed one for None."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def _fit_in_time(
    values: Floats, first: np.ndarray, weights: Floats, status: Status, deadline: Deadline
) -> tuple[PlattSigmoid, Status]:
    """Return the sigmoid of the samples that have a value, and the status; after the deadline, of some of them."""
    used = np.flatnonzero(np.isfinite(values))
    try:
        with deadline.in_force():
            return fit_sigmoid(values[used], first[used], weights[used]), status
    except TimeLimitReachedError:
        used = used[np.argsort(first[used], kind="stable")]  # some of both classes
        used = used[np.unique(np.linspace(0, len(used) - 1, MAX_LATE_SAMPLES).astype(np.int64))]
        return fit_sigmoid(values[used], first[used], weights[used]), Status.MAX_SECONDS


class ClassProbabilities:
    """Methods of classifiers with ``probability=True``."""

    # Defined by the classifier.
    classes_: Any
    probability: Any
    random_state: Any
    _decide: Any
    _two_class: Any
    _not_fitted_error: type[Exception]

    # One for each pair or class; None without probability=True, or if fit was interrupted before they were fitted.
    _sigmoids_: list[PlattSigmoid] | None

    @available_if(check_probabilities)
    @following_samples
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each sample, in the order of ``classes_``."""
        decisions = self._decide(X)
        sigmoids = self._sigmoids_
        if sigmoids is None:
            raise self._not_fitted_error(
                "predict_proba is not available when fitted with probability=False, or when fit was interrupted"
            )
        if len(self.classes_) == 2:
            return binary_probabilities(-decisions[:, 0], sigmoids[0])
        each = [binary_probabilities(decisions[:, column], sigmoid)[:, 0] for column, sigmoid in enumerate(sigmoids)]
        return self._combine(np.column_stack(each))

    def _combine(self, probabilities: Floats) -> Floats:
        """Return the probabilities of all classes, given those of the sigmoids."""
        raise NotImplementedError

    @available_if(check_probabilities)
    @following_samples
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))

    @property
    def probA_(self) -> Floats:  # noqa: N802  # scikit-learn's name
        """The slope of each sigmoid; empty without ``probability=True``."""
        return self._sigmoid_parameter("probA_", 0)

    @property
    def probB_(self) -> Floats:  # noqa: N802  # scikit-learn's name
        """The shift of each sigmoid; empty without ``probability=True``."""
        return self._sigmoid_parameter("probB_", 1)

    def _sigmoid_parameter(self, attribute: str, number: int) -> Floats:
        if "_sigmoids_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")
        return np.array([sigmoid[number] for sigmoid in self._sigmoids_ or ()], dtype=np.float64)

    def _keep_sigmoids(self, fitted: list[tuple[PlattSigmoid | None, Status]], interrupted: bool) -> Status:
        """Keep the sigmoids if all were fitted; return the status of the least converged cross-validation."""
        sigmoids = [sigmoid for sigmoid, _ in fitted if sigmoid is not None]
        if interrupted or len(sigmoids) < len(fitted):
            return Status.INTERRUPTED
        self._sigmoids_ = sigmoids
        return next((status for _, status in fitted if not status.converged), Status.CONVERGED)

    @property
    def _knows_probabilities(self) -> bool:
        return wants_probabilities(self) and self.__dict__.get("_sigmoids_") is not None


class PairwiseProbabilities(ClassProbabilities):
    """Probabilities from a model for each pair of classes."""

    def _combine(self, probabilities: Floats) -> Floats:
        return couple_pairwise(probabilities, len(self.classes_))

    def _fit_sigmoids(
        self, context: FitContext, trained: TrainedClasses, data: LabelledData, weights: Floats
    ) -> Status:
        """Fit the sigmoid of each pair to samples counted by `weights`; return the status of the cross-validation."""
        if trained.problem is None or any(model.status is Status.INTERRUPTED for model in trained.models):
            return Status.CONVERGED
        problem, session, formulation = trained.problem, context.session, self._two_class().formulation
        pairs = list(combinations(range(len(data.members)), 2))
        folds = stratified_folds(data.members, len(weights), seed_of(self.random_state))
        toward_first = -1.0 if len(pairs) == 1 else 1.0  # the only pair has its second class positive
        tolerance = FOLD_TOLERANCE_FACTOR * trained.solver.stopping.violation
        try:
            known = None if trained.held_out_values is None else trained.held_out_values(folds, tolerance)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        cache_bytes = context.cache_bytes(len(weights)) // trained.workers
        validation = CrossValidation(trained.solver, cache_bytes, trained.threads, session)

        def fit_pair(position: int) -> tuple[PlattSigmoid | None, Status]:
            model, status = trained.models[position], Status.CONVERGED
            samples = model.samples
            if known is None:
                values, status = validation.values(problem(position), model, formulation, folds[samples])
            else:
                values = known[position]
            if status is Status.INTERRUPTED:
                session.callback.stopped.set()
                return None, status
            first, _ = pairs[position]
            of_first = data.labels[samples] == first
            return _fit_in_time(toward_first * values, of_first, weights[samples], status, session.deadline)

        return self._keep_sigmoids(*run_parallel(fit_pair, len(pairs), session.callback, trained.workers))


class LinearProbabilities(ClassProbabilities):
    """Probabilities from a linear model for each class against the rest."""

    _models_: Sequence[TrainedLinearModel]  # of the classifier

    def _combine(self, probabilities: Floats) -> Floats:
        likely = np.maximum(probabilities, np.finfo(float).tiny)
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def _fit_sigmoids(
        self, pose: PoseClass, labels: Labels, formulation: Formulation, solver: Solver, session: Session, workers: int
    ) -> Status:
        """Fit the sigmoid of each model; return the status of the least converged cross-validation."""
        models = self._models_
        if any(model.status is Status.INTERRUPTED for model in models):
            return Status.CONVERGED
        rows = labels.taking_part
        folds = stratified_folds(labels.members, len(labels.numbers), seed_of(self.random_state))[rows]

        def fit_class(number: int) -> tuple[PlattSigmoid | None, Status]:
            problem, counts = pose(number)
            values, status = linear_held_out_values(problem, models[number], formulation, folds, solver, session)
            if status is Status.INTERRUPTED:
                return None, status
            # The only model of two classes has its second class positive, and its sigmoid is that of the first.
            toward, of_class = -1.0 if len(models) == 1 else 1.0, labels.numbers[rows] == number
            return _fit_in_time(toward * values, of_class, counts, status, session.deadline)

        return self._keep_sigmoids(*run_parallel(fit_class, len(models), session.callback, workers))
