"""One-versus-rest: a machine for each class against all others. All have the same samples, so kernel work is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.multiclass.parallel_training import train_several
from maxmargin.estimators.multiclass.strategy import LabelledData, Trained, check_no_probabilities, check_shape
from maxmargin.kernels import Kernel
from maxmargin.models import OneVsRestArgmax
from maxmargin.problems import DualProblem
from maxmargin.solvers import Callback
from maxmargin.training import Machine

if TYPE_CHECKING:
    from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier


class RestStrategy:
    """A machine for each class against the rest; the largest decision value wins."""

    each = "classes"

    def check(self, classifier: KernelClassifier) -> None:
        """Refuse decision values of pairs, and probabilities, which are made of them."""
        check_shape(classifier)
        check_no_probabilities(classifier)

    def train(
        self, classifier: KernelClassifier, data: LabelledData, kernel: Kernel | None, report: Callback | None
    ) -> Trained:
        """Train all classes."""
        count, rows = len(data.classes), data.taking_part
        size = data.X.shape[0]
        side_by_side, inside = classifier._divide_threads(kernel, size, count)
        solver = classifier._make_solver(size, data.bounded, classifier._cache_bytes(size) // side_by_side, inside)
        solver, matrix = classifier._make_shared(kernel, data.X, rows, solver, count, side_by_side, inside)

        def pose(c: int) -> tuple[DualProblem, Indices]:
            signs = np.where(data.labels[rows] == c, 1.0, -1.0)
            return classifier._pose(matrix, signs, data.costs[rows]), rows

        starts = classifier._starts(data, [rows] * count)
        machines = train_several(pose, count, solver, classifier._formulation, starts, report, side_by_side)
        return Trained(machines, solver)

    def lay_out(self, machines: list[Machine], data: LabelledData) -> tuple[Floats, Floats]:
        """Return a line of coefficients for each class."""
        coefficients = np.zeros((len(machines), len(data.labels)))
        for line, machine in zip(coefficients, machines, strict=True):
            line[machine.samples] = machine.expansion.coefficients
        return coefficients, np.array([machine.expansion.offset for machine in machines])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsRestArgmax:
        """Return what predicts."""
        return OneVsRestArgmax(coefficients, offsets)
