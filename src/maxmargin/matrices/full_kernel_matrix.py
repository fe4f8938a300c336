"""All kernel values of a few samples, computed at once: cheaper than asking for rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.kernel_columns import pack_columns
from maxmargin.kernels.points import evaluation_cost
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix

#: A value of so many multiplications is computed again sooner than it is fetched from across the diagonal.
CHEAP = 128


@dataclass(frozen=True)
class FullKernelMatrix:
    """The kernel matrix of the samples `order`, as one array.

    Attributes
    ----------
    values : float array
        Row `place[i]` belongs to sample `i`.
    """

    kernel: Kernel
    points: Points
    values: Floats
    place: Indices

    @classmethod
    def of(cls, kernel: Kernel, points: Points, order: Indices, threads: int) -> FullKernelMatrix:
        """Compute the values; samples whose rows are asked for together should be neighbours in `order`."""
        place = np.empty(len(points), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(kernel, points, _all_values(kernel, points.take(order), threads), place)

    def __call__(self, rows: Indices) -> PrecomputedMatrix:
        """Return the matrix of some samples."""
        origin = KernelMatrix(self.kernel, self.points.take(rows))
        return PrecomputedMatrix(_part(self.values, self.place[rows]), origin=origin)


def _all_values(kernel: Kernel, points: Points, threads: int) -> Floats:
    """Return the whole kernel matrix; where values are dear, stripes up to the diagonal, and the rest mirrored."""
    count = len(points)
    values = np.empty((count, count))
    if isinstance(kernel, NativeKernel) and evaluation_cost(points) <= CHEAP:
        pack_columns(kernel.formula, points, np.float64, threads).fill(points, values, np.arange(count))
    else:
        step = max(64, -(-count // 6))
        for start in range(0, count, step):
            stop = min(count, start + step)
            stripe = KernelMatrix(kernel, points, threads).block(np.arange(start, stop), np.arange(stop))
            values[start:stop, :stop] = stripe
            _native.mirror(values, start, stop, threads)
    check_finite(values)
    return values


def _part(whole: Floats, rows: Indices) -> Floats:
    """Return the square block at some rows: a copy of few rectangles where they come in few stretches."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(rows) != 1) + 1, [len(rows)]])
    if len(edges) == 2 and len(rows) == len(whole):
        return whole
    if len(edges) > 8:
        return whole[rows[:, None], rows]
    stretches = [(slice(a, b), slice(rows[a], rows[a] + b - a)) for a, b in itertools.pairwise(edges)]
    part = np.empty((len(rows), len(rows)))
    for there, here in stretches:
        for across, from_where in stretches:
            part[there, across] = whole[here, from_where]
    return part
