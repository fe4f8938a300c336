"""One-vs-rest: a two-class problem for each class against all others, on shared kernel values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.multiclass.strategy import LabelledData, TrainedClasses
from maxmargin.models import OneVsRestArgmax
from maxmargin.training import Subproblem, TrainedModel
from maxmargin.training.fit_context import FitContext
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


class OneVersusRestStrategy:
    """A model for each class against the rest; the largest decision value wins."""

    each = "classes"
    pairwise = False

    def parts(self, data: LabelledData) -> list[TwoClassSamples]:
        """Return all rows for each class, with the class as the positive one."""
        labels = data.labels[data.rows]
        return [TwoClassSamples(data.rows, np.where(labels == c, 1.0, -1.0)) for c in range(len(data.classes))]

    def train(
        self,
        context: FitContext,
        two_class: TwoClassFormulation,
        data: LabelledData,
        parts: Sequence[TwoClassSamples],
        starts: Sequence[Floats | None],
    ) -> TrainedClasses:
        """Train all classes."""
        count, size = len(data.classes), data.X.shape[0]
        workers, threads = context.divide_threads(data.X, count)
        solver = context.solver(size, data.bounded, context.cache_bytes(size) // workers, threads)
        solver, matrix = context.shared_matrix(data.X, data.rows, solver, count, workers, threads)
        costs = data.costs[data.rows]
        subproblems = [
            Subproblem(partial(two_class.pose, matrix, signs, costs), samples, start)
            for (samples, signs), start in zip(parts, starts, strict=True)
        ]
        models = context.train(subproblems, solver, two_class.formulation, workers)
        return TrainedClasses(models, solver)

    def lay_out(self, models: Sequence[TrainedModel], data: LabelledData) -> tuple[Floats, Floats]:
        """Return a row of coefficients for each class."""
        coefficients = np.zeros((len(models), len(data.labels)))
        for row, model in zip(coefficients, models, strict=True):
            row[model.samples] = model.expansion.coefficients
        return coefficients, np.array([model.expansion.offset for model in models])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsRestArgmax:
        """Return the predictor."""
        return OneVsRestArgmax(coefficients, offsets)
