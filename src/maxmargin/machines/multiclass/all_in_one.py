"""All-in-one strategies: one problem with a weight vector for each class (`maxmargin.formulations.all_in_one`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.multiclass.strategy import LabelledData, TrainedClasses
from maxmargin.models import OneVsRestArgmax
from maxmargin.problems import DualProblem
from maxmargin.training import Subproblem, TrainedModel, train_problems
from maxmargin.training.fit_context import MAX_FULL_KERNEL_ROWS, FitContext
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


@dataclass(frozen=True)
class AllInOneStrategy:
    """One problem for all classes; the largest decision value wins."""

    formulation: Any
    each = "problems"
    pairwise = False

    def parts(self, data: LabelledData) -> list[TwoClassSamples]:
        """Return all rows; there are no signs."""
        return [TwoClassSamples(data.rows, np.empty(0))]

    def train(
        self,
        context: FitContext,
        two_class: TwoClassFormulation,
        data: LabelledData,
        parts: Sequence[TwoClassSamples],
        starts: Sequence[Floats | None],
    ) -> TrainedClasses:
        """Train the problem of all classes."""
        count, rows = len(data.classes), data.rows
        size, variables = data.X.shape[0], count * len(rows)
        _, threads = context.divide_threads(data.X, 1)
        # The pairwise solver stores a row for each variable, the block solver one for each sample.
        cache_bytes = context.cache_bytes(variables if variables <= MAX_FULL_KERNEL_ROWS else size)
        solver = context.solver(variables, True, cache_bytes, threads, max_pairwise=MAX_FULL_KERNEL_ROWS)
        matrix = context.kernel_matrices(data.X, rows, cache_bytes, threads, count)(rows)

        def pose() -> DualProblem:
            problem: DualProblem = self.formulation.pose(
                matrix, data.labels[rows], count, data.costs[rows], two_class.fit_intercept
            )
            return problem

        subproblem = Subproblem(pose, rows, starts[0])
        return TrainedClasses(train_problems([subproblem], solver, self.formulation, context.session), solver)

    def lay_out(self, models: Sequence[TrainedModel], data: LabelledData) -> tuple[Floats, Floats]:
        """Return a row of coefficients for each class; of two classes, which are opposites, the difference."""
        columns, offsets = models[0].expansion
        coefficients = np.zeros((columns.shape[1], len(data.labels)))
        coefficients[:, models[0].samples] = columns.T
        if len(data.classes) == 2:  # one decision function, as LinearSVC(multi_class="crammer_singer") has it
            return np.diff(coefficients, axis=0), np.diff(offsets)
        return coefficients, np.asarray(offsets)

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsRestArgmax:
        """Return the predictor."""
        return OneVsRestArgmax(coefficients, offsets)
