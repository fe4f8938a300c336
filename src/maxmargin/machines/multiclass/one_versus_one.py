"""One-vs-one: a two-class problem for each pair of classes, on the samples of these two alone.

Two classes are the case of a single pair, whatever the strategy for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.multiclass.strategy import LabelledData, TrainedClasses
from maxmargin.matrices import FullKernelMatrix, KernelMatrix
from maxmargin.matrices.class_kernel_cache import ClassKernelCache
from maxmargin.models import OneVsOneVote
from maxmargin.problems import DualProblem
from maxmargin.solvers import BlockSolver
from maxmargin.training import Solver, Subproblem, TrainedModel, train_problems
from maxmargin.training.fit_context import FitContext
from maxmargin.training.pipeline import MadeWhenRead
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


class OneVersusOneStrategy:
    """A model for each pair of classes, and a vote among them."""

    each = "pairs of classes"
    pairwise = True

    def parts(self, data: LabelledData) -> list[TwoClassSamples]:
        """Return the samples of each pair; of only two classes the second is the positive one, as in scikit-learn."""
        if len(data.classes) == 2:
            return [TwoClassSamples(data.rows, np.where(data.labels[data.rows] == 0, -1.0, 1.0))]
        signs = lru_cache(None)(lambda first, second: np.repeat([1.0, -1.0], [first, second]))
        return [
            TwoClassSamples(np.concatenate([a, b]), signs(len(a), len(b))) for a, b in combinations(data.members, 2)
        ]

    def train(
        self,
        context: FitContext,
        two_class: TwoClassFormulation,
        data: LabelledData,
        parts: list[TwoClassSamples],
        starts: Sequence[Floats | None],
    ) -> TrainedClasses:
        """Train all pairs: of two classes on all threads, of more on a thread each."""
        size, single = data.X.shape[0], len(parts) == 1
        workers, threads = context.divide_threads(size, len(parts))
        cache_bytes = context.cache_bytes(size)
        solver = context.solver(size, data.bounded, cache_bytes // workers, threads)
        order = data.rows if single and not two_class.grouped_by_class else np.concatenate(data.members)
        matrices = context.kernel_matrices(data.X, order, cache_bytes, threads)
        whole = isinstance(matrices, FullKernelMatrix)
        packed = None if single or whole else context.packed_kernel(data.X, data.members, threads)
        shared = None if single or whole or packed else _share_rows(context, data, solver, cache_bytes, threads)
        if shared is not None and isinstance(solver, BlockSolver):
            solver = replace(solver, cache_bytes=(cache_bytes - shared.bytes) // workers)
        pairs = list(combinations(range(len(data.classes)), 2))

        def pose(position: int) -> DualProblem:
            samples, signs = parts[position]
            matrix = matrices(samples) if shared is None else shared.pair(*pairs[position])
            return two_class.pose(matrix, signs, data.costs[samples])

        again = None
        if isinstance(matrices, FullKernelMatrix):
            again = partial(_pose_again, matrices.kernel, matrices.points, two_class, data.costs)

        def subproblem(position: int) -> Subproblem:
            part = parts[position]
            return Subproblem(partial(pose, position), part.samples, starts[position], again and partial(again, part))

        subproblems = MadeWhenRead(len(parts), subproblem)

        def pose_joined() -> DualProblem:
            samples = np.concatenate([part.samples for part in parts])
            signs = np.concatenate([part.signs for part in parts])
            return two_class.pose(matrices(samples), signs, data.costs[samples])

        joinable = two_class.elementwise and not single and shared is None and not any(s is not None for s in starts)
        joined = pose_joined if joinable else None
        small = context.small_training(subproblems, solver, two_class.formulation, workers, packed, joined)
        if small is not None:
            held_out_values = small.held_out_values if small.solves_folds else None
            return TrainedClasses(small.train(), solver, pose, workers, threads, held_out_values)
        models = train_problems(subproblems, solver, two_class.formulation, context.session, workers)
        return TrainedClasses(models, solver, pose, workers, threads)

    def lay_out(self, models: list[TrainedModel], data: LabelledData) -> tuple[Floats, Floats]:
        """Return coefficients in scikit-learn's layout: a pair a < b has row b−1 of class a and row a of class b."""
        count = len(data.classes)
        coefficients = np.zeros((count - 1, len(data.labels)))
        if models:
            samples = np.concatenate([model.samples for model in models])
            first, second = np.triu_indices(count, 1)
            sizes = [len(model.samples) for model in models]
            first, second = np.repeat(first, sizes), np.repeat(second, sizes)
            row = np.where(data.labels[samples] == first, second - 1, first)
            coefficients[row, samples] = np.concatenate([model.expansion.coefficients for model in models])
        return coefficients, np.array([model.expansion.offset for model in models])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote:
        """Return the predictor."""
        return OneVsOneVote(coefficients, offsets, counts)


def _pose_again(
    kernel: Kernel, points: Points, two_class: TwoClassFormulation, costs: Floats, part: TwoClassSamples
) -> DualProblem:
    """Return the problem of one part with kernel values that are computed again: those of the fit are released."""
    samples, signs = part
    return two_class.pose(KernelMatrix(kernel, points.take(samples)), signs, costs[samples])


def _share_rows(
    context: FitContext, data: LabelledData, solver: Solver, cache_bytes: int, threads: int
) -> ClassKernelCache | None:
    """Return kernel rows for all pairs of classes, if the solver reads rows, and half of the cache holds them."""
    kernel = context.kernel
    if kernel is None or not isinstance(solver, BlockSolver):
        return None
    points = Points.wrap(data.X)
    fits = ClassKernelCache.bytes_for(data.members) <= cache_bytes // 2
    if not fits or not ClassKernelCache.pays(kernel, points, threads):
        return None
    return ClassKernelCache(kernel, points, data.members, threads)
