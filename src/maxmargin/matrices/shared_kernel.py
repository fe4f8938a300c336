"""Kernel rows that the machines of all pairs of classes share.

A sample of class a takes part in the machines (a, b), (a, c), …: its kernel values with its own class are the same in
all of them. So rows are kept by class of the column: one segment per sample and class, computed when a machine first
asks for it, and there for every other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.kernels import Kernel, Points
from maxmargin.kernels.fused_columns import FusedColumns
from maxmargin.kernels.single_precision import single_precision
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.single_columns import SingleColumns
from maxmargin.matrices.symmetric_matrix import Floats, Indices


class _Segments:
    """The kernel values of all samples with those of one class, as far as they are known."""

    def __init__(self, columns: FusedColumns, points: Points, samples: int, members: int) -> None:
        self.columns, self.points = columns, points
        self.values = np.empty((samples, members), dtype=np.float32)  # untouched pages of an empty array are free
        self.known = np.zeros(samples, dtype=bool)

    def ensure(self, rows: Indices) -> int:
        """Compute what is missing of some rows and return how many values that took."""
        missing = rows[~self.known[rows]]
        if len(missing):
            # Two threads may compute the same rows at once: they write the same values.
            self.columns.fill(self.points.take(missing), self.values, missing)
            self.known[missing] = True
        return len(missing) * self.values.shape[1]


class SharedKernel:
    """Single-precision kernel rows over all samples, kept by class.

    Parameters
    ----------
    kernel, points : Kernel and Points
    members : sequence of int arrays
        The samples of each class.
    threads : int
        How many threads compute a block of values.
    """

    def __init__(self, kernel: Kernel, points: Points, members: Sequence[Indices], threads: int) -> None:
        self.kernel, self.points, self.members, self.threads = kernel, points, members, threads
        how = single_precision(kernel, points)
        if how is None:
            raise ValueError("rows of this kernel cannot be shared: it has no formula in single precision")
        self._segments = [
            _Segments(how.columns(points.index[rows], threads), how.points, len(points), len(rows)) for rows in members
        ]

    @staticmethod
    def serves(kernel: Kernel, points: Points) -> bool:
        """Whether this kernel can be shared."""
        return single_precision(kernel, points) is not None

    def pair(self, first: int, second: int) -> SharedPairMatrix:
        """Return the matrix of two classes: the samples of the first, then those of the second."""
        samples = np.concatenate([self.members[first], self.members[second]])
        matrix = KernelMatrix(self.kernel, self.points.take(samples), self.threads)
        return SharedPairMatrix(
            matrix.kernel, matrix.points, self.threads, (self._segments[first], self._segments[second])
        )


@dataclass(frozen=True)
class SharedPairMatrix(KernelMatrix):
    """The kernel matrix of two classes; its single-precision rows are shared with other pairs."""

    segments: tuple[_Segments, ...] = ()

    def single(self, columns: Indices) -> SingleColumns:
        return _SharedColumns(self.points.index, self.segments, columns)


class _SharedColumns:
    """Some columns of the matrix of a pair."""

    def __init__(self, samples: Indices, segments: tuple[_Segments, ...], columns: Indices) -> None:
        self._segments, self._columns = segments, columns
        self._samples = samples  # the row of the data behind each position of the pair
        edge = segments[0].values.shape[1]
        first = columns < edge
        # Where the columns of each class go, and which of its members they are.
        self._parts = [(np.flatnonzero(first), columns[first]), (np.flatnonzero(~first), columns[~first] - edge)]
        self.cost = 100

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        computed = 0
        samples = self._samples[rows]
        for segment, (places, members) in zip(self._segments, self._parts, strict=True):
            if not len(places):
                continue
            computed += segment.ensure(samples)
            values = np.empty((len(rows), len(members)), dtype=np.float32)
            _native.gather(segment.values, samples, members, values, 1)
            if places[-1] - places[0] == len(places) - 1:
                out[slots, places[0] : places[-1] + 1] = values
            else:
                out[slots[:, None], places] = values
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        # By symmetry from the rows of the columns: those that a solver has moved are there.
        out, computed = np.zeros(len(rows)), 0
        edge = self._segments[0].values.shape[1]
        for segment, here, members in (
            (self._segments[0], rows < edge, rows[rows < edge]),
            (self._segments[1], rows >= edge, rows[rows >= edge] - edge),
        ):
            if not len(members):
                continue
            samples = self._samples[self._columns]
            computed += segment.ensure(samples)
            values = np.empty((len(samples), len(members)), dtype=np.float32)
            _native.gather(segment.values, samples, members, values, 1)
            out[here] = weights @ values
        return out, computed
