"""One-versus-one: a machine for each pair of classes, on the samples of these two alone.

Two classes are the case of a single pair, whatever the strategy for more.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.multiclass.parallel_training import train_pairs
from maxmargin.estimators.multiclass.small_problems import at_once
from maxmargin.estimators.multiclass.strategy import LabelledData, Trained
from maxmargin.estimators.validation.samples import points_of
from maxmargin.kernels import Kernel
from maxmargin.matrices import FullKernelMatrix
from maxmargin.matrices.class_kernel_cache import ClassKernelCache
from maxmargin.models import OneVsOneVote
from maxmargin.problems import DualProblem
from maxmargin.solvers import BlockSolver, Callback
from maxmargin.training import Machine, Solver

if TYPE_CHECKING:
    from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier


class PairStrategy:
    """A machine for each pair of classes, and a vote among them."""

    each = "pairs of classes"

    def check(self, classifier: KernelClassifier) -> None:
        """Accept all parameters."""

    def train(
        self, classifier: KernelClassifier, data: LabelledData, kernel: Kernel | None, report: Callback | None
    ) -> Trained:
        """Train all pairs."""
        count, size = len(data.classes), data.X.shape[0]
        two = count == 2
        # Two classes: all threads work on the one problem. More: each works on a problem of its own.
        side_by_side, inside = classifier._divide_threads(kernel, size, count * (count - 1) // 2)
        cache_bytes = classifier._cache_bytes(size)
        solver = classifier._make_solver(size, data.bounded, cache_bytes // side_by_side, inside)
        order = data.taking_part if two else np.concatenate(data.members)
        matrix_of = classifier._make_matrix_of(kernel, data.X, order, cache_bytes, inside)
        in_parts = not two and not isinstance(matrix_of, FullKernelMatrix)
        shared = _share_rows(kernel, data, solver, cache_bytes, inside) if in_parts else None
        if shared is not None and isinstance(solver, BlockSolver):
            solver = replace(solver, cache_bytes=(cache_bytes - shared.bytes) // side_by_side)
        # In the only pair of a two-class problem the second class is the positive one, as in scikit-learn.
        first_sign = -1.0 if two else 1.0

        def of_pair(a: int, b: int) -> tuple[Indices, Floats]:
            samples = data.taking_part if two else np.concatenate([data.members[a], data.members[b]])
            return samples, np.where(data.labels[samples] == a, first_sign, -first_sign)

        def pose(a: int, b: int) -> tuple[DualProblem, Indices]:
            samples, signs = of_pair(a, b)
            matrix = matrix_of(samples) if shared is None else shared.pair(a, b)
            return classifier._pose(matrix, signs, data.costs[samples]), samples

        pairs = [of_pair(a, b) for a, b in combinations(range(count), 2)]
        starts = classifier._starts(data, [samples for samples, _ in pairs])
        small = at_once(classifier, solver, matrix_of, data, pairs, side_by_side)
        if small is not None and starts is None and report is None:
            return Trained(small.train(), solver, pose, side_by_side, inside, small.held_out)
        machines = train_pairs(pose, count, solver, classifier._formulation, starts, report, side_by_side)
        return Trained(machines, solver, pose, side_by_side, inside)

    def lay_out(self, machines: list[Machine], data: LabelledData) -> tuple[Floats, Floats]:
        """Return coefficients in scikit-learn's layout: a pair a < b has row b−1 of class a and row a of class b."""
        count = len(data.classes)
        coefficients = np.zeros((count - 1, len(data.labels)))
        for machine, (a, b) in zip(machines, combinations(range(count), 2), strict=True):
            row = np.where(data.labels[machine.samples] == a, b - 1, a)
            coefficients[row, machine.samples] = machine.expansion.coefficients
        return coefficients, np.array([machine.expansion.offset for machine in machines])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote:
        """Return what predicts."""
        return OneVsOneVote(coefficients, offsets, counts)


def _share_rows(
    kernel: Kernel | None, data: LabelledData, solver: Solver, cache_bytes: int, threads: int
) -> ClassKernelCache | None:
    """Return kernel rows for all pairs of classes, if the solver reads rows and half of the cache holds them."""
    if kernel is None or not isinstance(solver, BlockSolver):
        return None
    points = points_of(data.X)
    if ClassKernelCache.bytes_for(data.members) > cache_bytes // 2 or not ClassKernelCache.supports(
        kernel, points, threads
    ):
        return None
    return ClassKernelCache(kernel, points, data.members, threads)
