"""All-in-one machines: one problem with a weight vector for each class; see `maxmargin.formulations.all_in_one`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.kernel.kernel_estimator import SMALL
from maxmargin.estimators.multiclass.parallel_training import train_several
from maxmargin.estimators.multiclass.strategy import LabelledData, Trained, check_no_probabilities, check_shape
from maxmargin.kernels import Kernel
from maxmargin.models import OneVsRestArgmax
from maxmargin.problems import DualProblem
from maxmargin.solvers import Callback
from maxmargin.training import Machine

if TYPE_CHECKING:
    from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier


@dataclass(frozen=True)
class AllInOneStrategy:
    """One machine for all classes; the largest decision value wins."""

    formulation: Any
    each = "problems"

    def check(self, classifier: KernelClassifier) -> None:
        """Refuse what has no all-in-one machine: squared slack, hard margins, what is about pairs."""
        check_shape(classifier)
        check_no_probabilities(classifier)
        cost = classifier._cost()  # C and loss are what they should be
        if classifier.loss != "hinge":
            raise ValueError(
                f"multi_class={classifier.multi_class!r} has loss='hinge' only; "
                f"for loss={classifier.loss!r} use multi_class='ovo' or 'ovr'"
            )
        if not np.isfinite(cost):
            raise ValueError(
                f"multi_class={classifier.multi_class!r} needs a finite C; for a hard margin use multi_class='ovo' or "
                "'ovr', or a large C"
            )

    def train(
        self, classifier: KernelClassifier, data: LabelledData, kernel: Kernel | None, report: Callback | None
    ) -> Trained:
        """Train the one machine."""
        count, rows = len(data.classes), data.taking_part
        size, variables = data.X.shape[0], count * len(rows)
        _, threads = classifier._divide_threads(kernel, size, 1)
        # Solved by pairs, there is a row for each variable; by blocks, one for each sample.
        cache_bytes = classifier._cache_bytes(variables if variables <= SMALL else size)
        solver = classifier._make_solver(variables, True, cache_bytes, threads, few=SMALL)
        matrix = classifier._make_matrix_of(kernel, data.X, rows, cache_bytes, threads, count)(rows)

        def pose(_: int) -> tuple[DualProblem, Indices]:
            problem: DualProblem = self.formulation.pose(
                matrix, data.labels[rows], count, data.costs[rows], classifier.fit_intercept
            )
            return problem, rows

        starts = classifier._starts(data, [rows])
        return Trained(train_several(pose, 1, solver, self.formulation, starts, report, 1), solver)

    def lay_out(self, machines: list[Machine], data: LabelledData) -> tuple[Floats, Floats]:
        """Return a line of coefficients for each class; of two classes, which are opposites, the difference."""
        columns, offsets = machines[0].expansion
        coefficients = np.zeros((columns.shape[1], len(data.labels)))
        coefficients[:, machines[0].samples] = columns.T
        if len(data.classes) == 2:  # one decision function, as LinearSVC(multi_class="crammer_singer") has it
            return np.diff(coefficients, axis=0), np.diff(offsets)
        return coefficients, np.asarray(offsets)

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsRestArgmax:
        """Return what predicts."""
        return OneVsRestArgmax(coefficients, offsets)
