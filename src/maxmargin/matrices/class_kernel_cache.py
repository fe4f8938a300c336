"""A cache of float32 kernel values within each class, shared by the one-vs-one subproblems.

A sample of class a occurs in the subproblems (a, b), (a, c), …: its kernel values with its own class are the same in
all of them and computed once. Values between two classes belong to one subproblem, which caches them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.kernels import Kernel, Points
from maxmargin.kernels.float32_kernel import Float32Kernel, float32_kernel
from maxmargin.kernels.points import evaluation_cost
from maxmargin.matrices.float32_row_cache import MAX_COST_OF_RECOMPUTING
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.symmetric_matrix import Float32Columns

#: Number of cached rows that are combined at a time.
COMBINED_ROWS = 256

#: Whole rows are computed and kept only for a request of more than this fraction of the class: for a small working set
#: that would be far more values than it needs.
MIN_FRACTION_TO_KEEP = 0.5


class _WithinClassRows:
    """The kernel values between the samples of one class, computed row by row when first needed, by one thread."""

    def __init__(self, kernel: Float32Kernel, samples: Indices, threads: int) -> None:
        self.kernel, self.samples = kernel, samples
        self.columns = kernel.columns(samples, threads)
        self._values = np.empty((len(samples), len(samples)), np.float32)  # untouched pages take no memory
        self._known = np.zeros(len(samples), dtype=bool)
        self._computing = Lock()

    @property
    def busy(self) -> bool:
        """Whether a thread computes rows, for which another one that needs rows of this class would wait."""
        return self._computing.locked()

    def known(self, members: Indices) -> np.ndarray:
        """Return which of these rows are in the table."""
        return self._known[members]

    def rows(self, members: Indices) -> tuple[Singles, int]:
        """Return the table that contains these rows, and the number of values computed."""
        if self._known[members].all():
            return self._values, 0
        with self._computing:
            missing = members[~self._known[members]]
            if len(missing):
                self.columns.fill(self.kernel.rows(self.samples[missing]), self._values, missing)
                self._known[missing] = True
        return self._values, missing.size * len(self.samples)


class ClassKernelCache:
    """Float32 kernel rows within each class, and the matrices of pairs of classes that use them.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    members : sequence of int arrays
        The samples of each class.
    threads : int
        Number of threads that compute a block of values.
    """

    def __init__(self, kernel: Kernel, points: Points, members: Sequence[Indices], threads: int) -> None:
        prepared = float32_kernel(kernel, points, threads)
        if prepared is None:
            raise ValueError("rows of this kernel cannot be shared: it cannot be evaluated in float32")
        self.kernel, self.points, self.threads = kernel, points, threads
        self.bytes = self.bytes_for(members)
        self._classes = [_WithinClassRows(prepared, points.index[rows], threads) for rows in members]

    @staticmethod
    def pays(kernel: Kernel, points: Points, threads: int) -> bool:
        """Whether the rows of this kernel can be shared, and take longer to compute than to store and read again."""
        prepared = float32_kernel(kernel, points, threads)
        return prepared is not None and evaluation_cost(prepared.points) > MAX_COST_OF_RECOMPUTING

    @staticmethod
    def bytes_for(members: Sequence[Indices]) -> int:
        """Return the maximum memory of the shared rows in bytes."""
        return 4 * sum(len(rows) ** 2 for rows in members)

    def pair(self, first: int, second: int) -> ClassPairMatrix:
        """Return the kernel matrix of two classes: the samples of the first, then those of the second."""
        pair = (self._classes[first], self._classes[second])
        samples = np.concatenate([one.samples for one in pair])
        return ClassPairMatrix(self.kernel, self.points.pick(samples), self.threads, classes=pair)


@dataclass(frozen=True)
class ClassPairMatrix(KernelMatrix):
    """The kernel matrix of two classes; its float32 values within each class are shared with other pairs."""

    classes: tuple[_WithinClassRows, ...] = ()

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _ClassPairColumns(self.classes, columns, self.threads)


class _ClassPairColumns:
    """Some columns of the matrix of a pair of classes, in any order."""

    def __init__(self, classes: tuple[_WithinClassRows, ...], columns: Indices, threads: int) -> None:
        self._classes, self._count, self._threads = classes, len(columns), threads
        self._edge = len(classes[0].samples)
        self._size = self._edge + len(classes[1].samples)
        self._ordered = np.array_equal(columns, np.arange(self._size))
        places = self._split(columns)
        self._places = places
        self._members = (columns[places[0]], columns[places[1]] - self._edge)  # positions within their class
        self.cost = evaluation_cost(classes[0].kernel.points)

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        if self._ordered and len(rows) == self._size and np.array_equal(rows, np.arange(self._size)):
            return self._fill_all(out, slots)
        computed = 0
        for c, at in enumerate(self._split(rows)):
            if not len(at):
                continue
            members = rows[at] - c * self._edge
            computed += self._fill_own(c, members, out, slots[at])
            computed += self._fill_other(c, members, out, slots[at])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        out, computed = np.zeros(len(rows)), 0
        for c, at in enumerate(self._split(rows)):
            members = rows[at] - c * self._edge
            for other in range(2):
                columns, column_weights = self._members[other], weights[self._places[other]]
                if not len(columns) or not len(members):
                    continue
                one = self._classes[other]
                if other == c:  # by symmetry from the rows of the columns: those of changed variables are cached
                    table, new = one.rows(columns)
                    for start in range(0, len(columns), COMBINED_ROWS):
                        part = columns[start : start + COMBINED_ROWS]
                        values = np.empty((len(part), len(members)), np.float32)
                        _native.gather(table, part, members, values, self._threads)
                        out[at] += column_weights[start : start + COMBINED_ROWS] @ values
                else:
                    packed = one.kernel.columns(one.samples[columns], self._threads)
                    out[at] += packed.combine(one.kernel.rows(self._classes[c].samples[members]), column_weights)
                    new = len(columns) * len(members)
                computed += new
        return out, computed

    def _split(self, positions: Indices) -> tuple[Indices, Indices]:
        """Return the places of the samples of the first and of the second class."""
        return np.flatnonzero(positions < self._edge), np.flatnonzero(positions >= self._edge)

    def _fill_all(self, out: Singles, slots: Indices) -> int:
        """Fill the full matrix; values between the classes are computed once and mirrored.

        These come first, then those within the class that no other thread is computing: so threads do not wait for
        each other as long as there is something else to compute.
        """
        first, second = self._classes
        edge, size, everything = self._edge, self._size, np.arange(self._size)
        first.columns.fill(second.kernel.rows(second.samples), out, slots[edge:])
        own: dict[int, Singles] = {}
        computed = edge * (size - edge)
        for c in sorted(range(2), key=lambda c: self._classes[c].busy):
            one = self._classes[c]
            own[c], new = one.rows(everything[: len(one.samples)])
            computed += new
        if out.shape == (size, size) and np.array_equal(slots, everything):
            out[:edge, :edge], out[edge:, edge:] = own[0], own[1]
            _native.mirror(out, edge, size, self._threads)
        else:
            out[slots[:edge], :edge], out[slots[edge:], edge:size] = own[0], own[1]
            out[slots[:edge], edge:size] = out[slots[edge:], :edge].T
        return computed

    def _fill_own(self, c: int, members: Indices, out: Singles, slots: Indices) -> int:
        columns, places, one = self._members[c], self._places[c], self._classes[c]
        if not len(columns):
            return 0
        values = np.empty((len(members), len(columns)), np.float32)
        kept = np.ones(len(members), dtype=bool)
        if len(columns) < MIN_FRACTION_TO_KEEP * len(one.samples):
            kept = one.known(members)
            packed = one.kernel.columns(one.samples[columns], self._threads)
            packed.fill(one.kernel.rows(one.samples[members[~kept]]), values, np.flatnonzero(~kept))
        table, computed = one.rows(members[kept])
        gathered = np.empty((int(kept.sum()), len(columns)), np.float32)
        _native.gather(table, members[kept], columns, gathered, self._threads)
        values[kept] = gathered
        out[slots[:, None], places] = values
        return computed + int((~kept).sum()) * len(columns)

    def _fill_other(self, c: int, members: Indices, out: Singles, slots: Indices) -> int:
        columns, places = self._members[1 - c], self._places[1 - c]
        if not len(columns):
            return 0
        other = self._classes[1 - c]
        full = len(columns) == len(other.samples)
        packed = other.columns if full else other.kernel.columns(other.samples[columns], self._threads)
        values = np.empty((len(members), len(columns)), np.float32)
        packed.fill(other.kernel.rows(self._classes[c].samples[members]), values, np.arange(len(members)))
        out[slots[:, None], places] = values if not full else values[:, columns]
        return values.size
