"""Bounds on the distance of a machine on landmarks from the exact kernel machine: the exact problem of each class."""

from __future__ import annotations

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
from maxmargin.training.exact_certificate import ExactCertificate, LandmarkFunction, bound_exact_optimum


def check_certify(value: Any) -> bool:
    """Return whether the exact problem is to be bounded, or raise."""
    if value is None or (isinstance(value, str) and value == "exact"):
        return value is not None
    raise ValueError(f"certify must be None or 'exact', not {value!r}")


def certify_exactly(
    machine: Any,
    points: Points,
    labels: Labels,
    weights: Floats,
    deadline: Deadline,
    rows: Indices | None = None,
) -> list[ExactCertificate]:
    """Return bounds on the exact optimum for each model of a machine that was fitted to these samples.

    `rows` are the samples that it was trained on, by default all.
    """
    size, models = len(points), machine._trained("exact_certificate_")
    rows = np.arange(size) if rows is None else rows
    if len(models[0].dual) != len(rows):
        raise ValueError(
            f"the model was trained on {len(models[0].dual):,} samples, but there are {len(rows):,}: X, y and "
            "sample_weight must be those of fit"
        )
    kernel = machine._kernel_
    kernel.check(points)
    threads = thread_count(machine.n_jobs) if kernel.vectorised else 1
    matrix = KernelMatrix(kernel, points, threads)
    landmarks = KernelMatrix(kernel, Points(machine.landmarks_), threads)

    certificates = []
    for number, model in enumerate(models):
        problem = _pose(machine, matrix, labels, weights, number)
        dual = np.zeros(size)
        dual[rows] = model.dual * (len(rows) / size)  # each sample was weighted by the inverse of that
        function = LandmarkFunction(landmarks, machine.dual_coef_[number], float(machine.intercept_[number]))
        with deadline.in_force():
            certificates.append(bound_exact_optimum(problem, feasible_start(problem, dual), function))
    return certificates


def _pose(machine: Any, matrix: KernelMatrix, labels: Labels, weights: Floats, number: int) -> DualProblem:
    """Return the exact problem of one class against the rest, or of the only two classes."""
    positive = labels.numbers == (number if len(machine._models_) > 1 else 1)
    costs = check_costs(float(machine.C), factors_of(number, labels.numbers, machine.class_weight_, weights))
    problem: DualProblem = LOSSES[machine.loss].pose(matrix, np.where(positive, 1.0, -1.0), costs)
    return problem
