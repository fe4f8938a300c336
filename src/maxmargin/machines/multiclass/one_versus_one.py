"""One-vs-one: a two-class problem for each pair of classes, on the samples of these two alone.

Two classes are the case of a single pair, whatever the strategy for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.multiclass.strategy import LabelledData, TrainedClasses
from maxmargin.matrices import FullKernelMatrix, KernelMatrix
from maxmargin.matrices.class_kernel_cache import ClassKernelCache
from maxmargin.models import OneVsOneVote
from maxmargin.problems import DualProblem
from maxmargin.solvers import BlockSolver
from maxmargin.training import Solver, Subproblem, TrainedModel, train_problems
from maxmargin.training.fit_context import FitContext
from maxmargin.training.joined_models import JoinedModels, JoinedProblem
from maxmargin.training.pipeline import MadeWhenRead
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


@lru_cache(maxsize=8)
def class_pairs(classes: int) -> tuple[Indices, Indices]:
    """Return the first and the second class of each pair."""
    first, second = np.triu_indices(classes, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


class ClassPairs(Sequence[TwoClassSamples]):
    """The samples of each pair of several classes, in arrays: of five hundred classes there are 124,750 pairs.

    Attributes
    ----------
    samples, signs : arrays
        The training rows of the pairs, one after another, and their labels as +1 and −1.
    sizes : int array
        The number of rows of each pair.
    """

    def __init__(self, members: Sequence[Indices]) -> None:
        counts = np.array([len(rows) for rows in members])
        classes = np.stack(class_pairs(len(members)), axis=1).ravel()  # of each pair both, alternating
        lengths = counts[classes]
        ends = np.cumsum(lengths)
        # Rows of a class are consecutive in `members`: a stretch of them is a range that starts at its first row.
        places = np.repeat(np.cumsum(counts)[classes] - ends, lengths) + np.arange(ends[-1])
        self.samples: Indices = np.concatenate(members)[places]
        self.signs: Floats = np.repeat(np.tile([1.0, -1.0], len(classes) // 2), lengths)
        self.sizes: Indices = lengths.reshape(-1, 2).sum(axis=1)
        self._edges = [0, *ends[1::2].tolist()]

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, position: Any) -> Any:  # a number: there are no slices
        at = slice(*self._edges[position : position + 2])
        return TwoClassSamples(self.samples[at], self.signs[at])

    def __iter__(self) -> Iterator[TwoClassSamples]:
        return map(self.__getitem__, range(len(self)))


class OneVersusOneStrategy:
    """A model for each pair of classes, and a vote among them."""

    each = "pairs of classes"
    pairwise = True

    def parts(self, data: LabelledData) -> Sequence[TwoClassSamples]:
        """Return the samples of each pair; of only two classes the second is the positive one, as in scikit-learn."""
        if len(data.classes) == 2:
            return [TwoClassSamples(data.rows, np.where(data.labels[data.rows] == 0, -1.0, 1.0))]
        return ClassPairs(data.members)

    def train(
        self,
        context: FitContext,
        two_class: TwoClassFormulation,
        data: LabelledData,
        parts: Sequence[TwoClassSamples],
        starts: Sequence[Floats | None],
    ) -> TrainedClasses:
        """Train all pairs: of two classes on all threads, of more on a thread each."""
        size, single = data.X.shape[0], len(parts) == 1
        workers, threads = context.divide_threads(data.X, len(parts))
        cache_bytes = context.cache_bytes(size)
        solver = context.solver(size, data.bounded, cache_bytes // workers, threads)
        order = data.rows if single and not two_class.grouped_by_class else np.concatenate(data.members)
        matrices = context.kernel_matrices(data.X, order, cache_bytes, threads)
        whole = isinstance(matrices, FullKernelMatrix)
        packed = None if single or whole else context.packed_kernel(data.X, data.members, threads)
        shared = None if single or whole or packed else _share_rows(context, data, solver, cache_bytes, threads)
        if shared is not None and isinstance(solver, BlockSolver):
            solver = replace(solver, cache_bytes=(cache_bytes - shared.bytes) // workers)
        pairs = None if shared is None else list(combinations(range(len(data.classes)), 2))

        def pose(position: int) -> DualProblem:
            samples, signs = parts[position]
            matrix = matrices(samples) if shared is None or pairs is None else shared.pair(*pairs[position])
            return two_class.pose(matrix, signs, data.costs[samples])

        again = None
        if isinstance(matrices, FullKernelMatrix):
            again = partial(_pose_again, matrices.kernel, matrices.points, two_class, data.costs, parts)

        def subproblem(position: int) -> Subproblem:
            start, posed_again = starts[position], again and partial(again, position)
            return Subproblem(partial(pose, position), parts[position].samples, start, posed_again)

        subproblems = MadeWhenRead(len(parts), subproblem)
        joined, fresh = None, all(start is None for start in starts)
        if isinstance(parts, ClassPairs) and two_class.elementwise and shared is None and fresh:
            samples, signs = parts.samples, parts.signs

            def pose_joined() -> DualProblem:
                return two_class.pose(matrices(samples), signs, data.costs[samples])

            joined = JoinedProblem(pose_joined, samples, parts.sizes, again or pose)
        small = context.small_training(subproblems, solver, two_class.formulation, workers, packed, joined)
        if small is not None:
            held_out_values = small.held_out_values if small.solves_folds else None
            return TrainedClasses(small.train(), solver, pose, workers, threads, held_out_values)
        models = train_problems(subproblems, solver, two_class.formulation, context.session, workers)
        return TrainedClasses(models, solver, pose, workers, threads)

    def lay_out(self, models: Sequence[TrainedModel], data: LabelledData) -> tuple[Floats, Floats]:
        """Return coefficients in scikit-learn's layout: a pair a < b has row b−1 of class a and row a of class b."""
        if isinstance(models, JoinedModels):
            samples, sizes, values, offsets = models.samples, models.sizes, models.coefficients, models.offsets
        else:
            samples = np.concatenate([model.samples for model in models])
            sizes = np.array([len(model.samples) for model in models])
            values = np.concatenate([model.expansion.coefficients for model in models])
            offsets = np.array([model.expansion.offset for model in models])
        first, second = (np.repeat(classes, sizes) for classes in class_pairs(len(data.classes)))
        coefficients = np.zeros((len(data.classes) - 1, len(data.labels)))
        coefficients[np.where(data.labels[samples] == first, second - 1, first), samples] = values
        return coefficients, offsets

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote:
        """Return the predictor."""
        return OneVsOneVote(coefficients, offsets, counts)


def _pose_again(
    kernel: Kernel,
    points: Points,
    two_class: TwoClassFormulation,
    costs: Floats,
    parts: Sequence[TwoClassSamples],
    position: int,
) -> DualProblem:
    """Return the problem of one part with kernel values that are computed again: those of the fit are released."""
    samples, signs = parts[position]
    return two_class.pose(KernelMatrix(kernel, points.take(samples)), signs, costs[samples])


def _share_rows(
    context: FitContext, data: LabelledData, solver: Solver, cache_bytes: int, threads: int
) -> ClassKernelCache | None:
    """Return kernel rows for all pairs of classes, if the solver reads rows, and half of the cache holds them."""
    kernel = context.kernel
    if kernel is None or not context.on_cpu or not isinstance(solver, BlockSolver):
        return None
    points = Points.wrap(data.X)
    fits = ClassKernelCache.bytes_for(data.members) <= cache_bytes // 2
    if not fits or not ClassKernelCache.pays(kernel, points, threads):
        return None
    return ClassKernelCache(kernel, points, data.members, threads)
