"""Probabilities of the classes, for classifiers with a machine for each pair of them.

A sigmoid for each pair is fitted to decision values of samples that its machine has not seen (`held_out`), and the
probabilities of all pairs are coupled (`models.calibration`). `predict` answers with the most probable class, so that
the two cannot contradict each other.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from maxmargin._typing import Floats
from maxmargin.estimators.calibration.cross_validation import CrossValidation, deadline_of, deal
from maxmargin.estimators.multiclass.parallel_training import side_by_side
from maxmargin.estimators.multiclass.strategy import LabelledData, Trained, wants_probabilities
from maxmargin.formulations.formulation import Formulation
from maxmargin.models.calibration import PlattSigmoid, binary_probabilities, couple_pairwise, fit_sigmoid
from maxmargin.problems import Status
from maxmargin.solvers import Callback, SharedCallback


def check_probabilities(estimator: Any) -> bool:
    """Raise scikit-learn's error unless the estimator was asked for probabilities."""
    if not wants_probabilities(estimator):
        raise AttributeError("predict_proba is not available when probability=False")
    return True


def seed_of(random_state: Any) -> int:
    """Return the seed that decides which samples are held out together; always the same one for None."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


class ClassProbabilities:
    """What classifiers with ``probability=True`` can do besides."""

    # Of the classifier.
    classes_: Any
    probability: Any
    random_state: Any
    _decide: Any

    # One for each pair, or each class; None without probability=True, or if fit was interrupted before they were known.
    _sigmoids_: list[PlattSigmoid] | None

    @available_if(check_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no type hints
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for each sample, in the order of ``classes_``."""
        decisions = self._decide(X)
        sigmoids = self._sigmoids_
        if sigmoids is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, or when fit was interrupted"
            )
        if len(self.classes_) == 2:
            return binary_probabilities(-decisions[:, 0], sigmoids[0])
        each = [binary_probabilities(decisions[:, column], sigmoid)[:, 0] for column, sigmoid in enumerate(sigmoids)]
        return self._together(np.column_stack(each))

    def _together(self, probabilities: Floats) -> Floats:
        """Return the probabilities of all classes, given those that the sigmoids say."""
        raise NotImplementedError

    @available_if(check_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no type hints
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the probabilities."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny)))

    @property
    def probA_(self) -> Floats:  # noqa: N802  # scikit-learn's name
        """The slope of each sigmoid."""
        return self._of_sigmoids("probA_", 0)

    @property
    def probB_(self) -> Floats:  # noqa: N802  # scikit-learn's name
        """The shift of each sigmoid."""
        return self._of_sigmoids("probB_", 1)

    def _of_sigmoids(self, attribute: str, number: int) -> Floats:
        sigmoids = self.__dict__.get("_sigmoids_")
        if sigmoids is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {attribute!r} before fit with probability=True"
            )
        return np.array([sigmoid[number] for sigmoid in sigmoids])

    @property
    def _knows_probabilities(self) -> bool:
        return wants_probabilities(self) and self.__dict__.get("_sigmoids_") is not None


class PairwiseProbabilities(ClassProbabilities):
    """Probabilities by machines of pairs of classes."""

    _cache_bytes: Any  # of the classifier

    @property
    def _formulation(self) -> Formulation:
        raise NotImplementedError

    def _together(self, probabilities: Floats) -> Floats:
        return couple_pairwise(probabilities, len(self.classes_))

    def _fit_sigmoids(
        self, trained: Trained, data: LabelledData, weights: Floats, report: Callback | None, started: float
    ) -> Status:
        """Fit the sigmoid of each pair of classes, and return how the least finished cross-validation ended.

        `weights` count the samples; `started` is when the fit began.
        """
        self._sigmoids_ = None
        interrupted = any(machine.status is Status.INTERRUPTED for machine in trained.machines)
        if trained.pose is None or not wants_probabilities(self) or interrupted:
            return Status.CONVERGED
        pose, members = trained.pose, data.members
        pairs = list(combinations(range(len(members)), 2))
        folds = deal(members, len(weights), seed_of(self.random_state))
        toward_first = -1.0 if len(pairs) == 1 else 1.0  # the only pair has its second class positive
        try:
            known = None if trained.held_out is None else trained.held_out(folds)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        watch = SharedCallback(report)
        cache_bytes = self._cache_bytes(len(weights)) // trained.side_by_side
        validation = CrossValidation(
            trained.solver, cache_bytes, trained.threads, deadline_of(trained.solver, started), watch
        )

        def fit_pair(position: int) -> tuple[PlattSigmoid | None, Status]:
            first, _ = pairs[position]
            machine, status = trained.machines[position], Status.CONVERGED
            samples = machine.samples
            if known is None:
                problem, _ = pose(*pairs[position])
                values, status = validation.values(problem, machine, self._formulation, folds[samples])
            else:
                values = known[position]
            if status is Status.INTERRUPTED:
                watch.stopped.set()
                return None, status
            return fit_sigmoid(toward_first * values, data.labels[samples] == first, weights[samples]), status

        fitted, interrupted = side_by_side(fit_pair, len(pairs), watch, trained.side_by_side)
        sigmoids = [sigmoid for sigmoid, _ in fitted if sigmoid is not None]
        if interrupted or len(sigmoids) < len(pairs):
            return Status.INTERRUPTED
        self._sigmoids_ = sigmoids
        return next((status for _, status in fitted if not status.converged), Status.CONVERGED)
