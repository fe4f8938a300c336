"""Probabilities of the classes, for classifiers with a linear machine for each class against the rest.

A sigmoid for each class is fitted to decision values of samples that its machine has not seen (`linear_held_out`), and
the probabilities of all classes are divided by their sum (Zadrozny & Elkan 2002). `predict` answers with the most
probable class, so that the two cannot contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maxmargin._typing import Floats
from maxmargin.estimators.calibration.cross_validation import deal
from maxmargin.estimators.calibration.linear_cross_validation import held_out_values
from maxmargin.estimators.calibration.probabilities import ClassProbabilities, seed_of
from maxmargin.estimators.linear.linear_estimator import Run
from maxmargin.estimators.multiclass.parallel_training import side_by_side
from maxmargin.estimators.validation.labels import Labels
from maxmargin.formulations.formulation import Formulation
from maxmargin.linear_training import LinearMachine
from maxmargin.models.calibration import PlattSigmoid, fit_sigmoid
from maxmargin.problems import DualProblem, Status

#: From the number of a class to its problem and the weights of its samples as counts.
PoseClass = Callable[[int], tuple[DualProblem, Floats]]


class LinearProbabilities(ClassProbabilities):
    """Probabilities by machines of one class against the rest."""

    _machines_: list[LinearMachine]  # of the classifier

    def _together(self, probabilities: Floats) -> Floats:
        likely = np.maximum(probabilities, np.finfo(float).tiny)
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def _fit_sigmoids(self, pose: PoseClass, labels: Labels, formulation: Formulation, run: Run, beside: int) -> Status:
        """Fit the sigmoid of each machine, and return how the least finished cross-validation ended."""
        machines = self._machines_
        if any(machine.status is Status.INTERRUPTED for machine in machines):
            return Status.CONVERGED
        rows = labels.taking_part
        folds = deal(labels.members, len(labels.numbers), seed_of(self.random_state))[rows]

        def fit_class(number: int) -> tuple[PlattSigmoid | None, Status]:
            problem, counts = pose(number)
            values, status = held_out_values(problem, machines[number], formulation, folds, run)
            if status is Status.INTERRUPTED:
                return None, status
            # The only machine of two classes has its second class positive, and its sigmoid is that of the first.
            toward = -1.0 if len(machines) == 1 else 1.0
            return fit_sigmoid(toward * values, labels.numbers[rows] == number, counts), status

        fitted, interrupted = side_by_side(fit_class, len(machines), run.watch, beside)
        sigmoids = [sigmoid for sigmoid, _ in fitted if sigmoid is not None]
        if interrupted or len(sigmoids) < len(machines):
            return Status.INTERRUPTED
        self._sigmoids_ = sigmoids
        return next((status for _, status in fitted if not status.converged), Status.CONVERGED)
