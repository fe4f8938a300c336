"""The full kernel matrix of a small data set in memory: cheaper than computing rows on demand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.kernel_columns import pack_columns
from maxmargin.kernels.points import evaluation_cost
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix

#: Kernel evaluations of at most this cost are faster than mirroring values across the diagonal.
MAX_CHEAP_COST = 128


@dataclass(frozen=True)
class FullKernelMatrix:
    """The kernel matrix of some samples as one array, of which the matrices of subsets are rows.

    Attributes
    ----------
    values : float array
        Row `place[i]` belongs to sample `i`.
    order : int array
        The samples in the order of the rows.
    """

    kernel: Kernel
    points: Points
    values: Floats
    place: Indices
    order: Indices

    @classmethod
    def of(cls, kernel: Kernel, points: Points, order: Indices, threads: int) -> FullKernelMatrix:
        """Compute the matrix of the samples `order`; samples of one subset should be neighbours in `order`."""
        place = np.empty(len(points), dtype=np.int64)
        place[order] = np.arange(len(order))
        values = np.empty((len(order), len(order)))
        fill_kernel_matrix(kernel, points.take(order), values, threads)
        return cls(kernel, points, values, place, order)

    def __call__(self, rows: Indices) -> PrecomputedMatrix:
        """Return the kernel matrix of a subset of the samples."""
        origin = KernelMatrix(self.kernel, self.points.take(rows))
        return PrecomputedMatrix(self.values, None if rows is self.order else self.place[rows], origin)


def fill_kernel_matrix(kernel: Kernel, points: Points, values: Floats, threads: int) -> None:
    """Write the full kernel matrix to `values`; expensive evaluations are done up to the diagonal and mirrored."""
    count = len(points)
    if isinstance(kernel, NativeKernel) and evaluation_cost(points) <= MAX_CHEAP_COST:
        pack_columns(kernel.formula, points, np.float64, threads).fill(points, values, np.arange(count))
    else:
        step = max(64, -(-count // 6))
        for start in range(0, count, step):
            stop = min(count, start + step)
            stripe = KernelMatrix(kernel, points, threads).block(np.arange(start, stop), np.arange(stop))
            values[start:stop, :stop] = stripe
            _native.mirror(values, start, stop, threads)
    if sparse.issparse(points.data):
        # Distances of sparse samples are computed with cancellation. That of a sample from itself is 0, which the error
        # bounds of the diagonal rely on; whether the terms cancel exactly depends on the compiler.
        np.fill_diagonal(values, kernel.diagonal(points))
    check_finite(values)
