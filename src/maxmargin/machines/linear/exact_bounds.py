"""The exact problem of each class of a machine on landmarks: its objective there, and bounds on its optimum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline
from maxmargin.kernels import Points
from maxmargin.machines.kernel.svc import LOSSES
from maxmargin.machines.linear.stochastic_updates import factors_of
from maxmargin.machines.validation.training_data import Labels, check_costs
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, feasible_start
from maxmargin.resources import thread_count
from maxmargin.training.exact_certificate import BoundedOptimum, LandmarkFunction, bound_exact_optimum


def check_certify(value: Any) -> bool:
    """Return whether the exact problem is to be bounded, or raise."""
    if value is None or (isinstance(value, str) and value == "exact"):
        return value is not None
    raise ValueError(f"certify must be None or 'exact', not {value!r}")


@dataclass(frozen=True)
class ExactProblems:
    """The exact problems of a machine on landmarks: of each class against the rest, or of the only two classes.

    Attributes
    ----------
    machine : KernelApproximationSVC
        Fitted to the samples.
    points : Points
    labels : Labels
    weights : float array
    rows : int array
        The samples that the machine was trained on.
    """

    machine: Any
    points: Points
    labels: Labels
    weights: Floats
    rows: Indices

    @property
    def count(self) -> int:
        """The number of problems."""
        return len(self.machine.dual_coef_)

    @cached_property
    def matrix(self) -> KernelMatrix:
        """The kernel matrix of the samples; its values are computed when they are needed."""
        kernel = self.machine._kernel_
        kernel.check(self.points)
        return KernelMatrix(kernel, self.points, self._threads)

    @property
    def _threads(self) -> int:
        return thread_count(self.machine.n_jobs) if self.machine._kernel_.vectorised else 1

    def is_positive(self, number: int) -> Any:
        """Return whether samples belong to the positive class of a problem."""
        return self.labels.numbers == (number if self.count > 1 else 1)

    def costs(self, number: int) -> Floats:
        """Return the cost of slack of each sample."""
        machine = self.machine
        factors = factors_of(number, self.labels.numbers, machine.class_weight_, self.weights)
        return check_costs(float(machine.C), factors)

    def problem(self, number: int) -> DualProblem:
        """Return the dual problem."""
        signs = np.where(self.is_positive(number), 1.0, -1.0)
        problem: DualProblem = LOSSES[self.machine.loss].pose(self.matrix, signs, self.costs(number))
        return problem

    def bounds(self, deadline: Deadline) -> list[BoundedOptimum]:
        """Return bounds on the optimum of each problem."""
        machine, size = self.machine, len(self.points)
        models = machine._trained("exact_certificate_")
        if len(models[0].dual) != len(self.rows):
            raise ValueError(
                f"the model was trained on {len(models[0].dual):,} samples, but there are {len(self.rows):,}: X, y and "
                "sample_weight must be those of fit"
            )
        landmarks = KernelMatrix(machine._kernel_, Points(machine.landmarks_), self._threads)
        found = []
        for number, model in enumerate(models):
            problem, dual = self.problem(number), np.zeros(size)
            dual[self.rows] = model.dual * (len(self.rows) / size)  # each sample was weighted by the inverse of that
            function = LandmarkFunction(landmarks, machine.dual_coef_[number], float(machine.intercept_[number]))
            with deadline.in_force():
                found.append(bound_exact_optimum(problem, feasible_start(problem, dual), function))
        return found

    def estimate_primal(self, rows: Indices, approximate: Floats) -> list[float]:
        """Return the objective of each problem at the function of the machine.

        It is that of the linear model plus the difference between kernel values in double precision and the features:
        in the norm, and in the loss of some rows, whose decision values by features are `approximate`.
        """
        machine = self.machine
        exact = machine._values(self.points.data[rows])
        approximate = approximate.reshape(exact.shape)
        landmarks = Points(machine.landmarks_)
        values = machine._kernel_.evaluate(landmarks, landmarks)
        primal = []
        for number, model in enumerate(machine._models_):
            signs = np.where(self.is_positive(number)[rows], 1.0, -1.0)
            costs = self.costs(number)[rows] * (len(self.points) / len(rows))
            more_loss = _losses(machine, signs * exact[:, number]) - _losses(machine, signs * approximate[:, number])
            coefficients = machine.dual_coef_[number]
            more_norm = 0.5 * float(coefficients @ values @ coefficients - model.weights @ model.weights)
            primal.append(model.certificate.primal + more_norm + float(costs @ more_loss))
        return primal


def _losses(machine: Any, margins: Floats) -> Floats:
    slack = np.maximum(0.0, 1.0 - margins)
    return slack if machine.loss == "hinge" else slack**2
