"""A matrix whose single-precision rows are computed once for all machines that are trained on it.

The machines of one class against the rest, or of several outputs, differ in their targets, not in their samples: they
all read the same rows. Rows are kept as they are first asked for, as far as the budget goes.
"""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.matrices.features import Features
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix

#: Columns that are combined at once.
STRETCH = 256


class SharedCacheMatrix:
    """Another matrix, with rows in single precision that several solvers share, also from several threads.

    Parameters
    ----------
    base : SymmetricMatrix
        Where values come from.
    budget : int
        Bytes that the rows may take. What finds no room is computed whenever it is needed.
    threads : int
        For copying and adding; the base has its own.
    """

    def __init__(self, base: SymmetricMatrix, budget: int, threads: int) -> None:
        self.base, self.threads = base, threads
        slots = min(budget // (4 * max(1, base.size)), base.size)
        self.table = np.empty((slots, base.size), np.float32)  # untouched pages of an empty array are free
        self._slot: Indices = np.full(base.size, -1)
        self._known = np.zeros(base.size, dtype=bool)
        self._used = 0
        self._under_way = np.zeros(base.size, dtype=bool)
        self._changed = threading.Condition()
        self.columns = base.float32_columns(np.arange(base.size))

    @property
    def bytes(self) -> int:
        """The most memory that the rows take."""
        return self.table.nbytes

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def rows_per_request(self) -> int:
        return self.base.rows_per_request

    @property
    def cost(self) -> int:
        return self.base.cost

    def checksum(self) -> int:
        return self.base.checksum()

    def in_memory(self) -> Floats | None:
        return self.base.in_memory()

    def diagonal(self) -> Floats:
        return self.base.diagonal()

    def rows(self, indices: Indices) -> Floats:
        return self.base.rows(indices)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.base.block(rows, columns)

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(vector)

    def uncached(self) -> SymmetricMatrix:
        return self.base.uncached()

    def take(self, indices: Indices) -> SymmetricMatrix:
        return self.base.take(indices)

    def features(self) -> Features | None:
        return self.base.features()

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _SharedColumns(self, columns)

    def find(self, rows: Indices) -> Indices:
        """Return where in `table` each row is, −1 if it is not."""
        return np.where(self._known[rows], self._slot[rows], -1)

    def hold(self, rows: Indices) -> int:
        """Make rows available, as far as there is room; return how many values had to be computed."""
        computed = 0
        while True:
            with self._changed:
                self._make_room(rows)
                wanted = np.unique(rows[(self._slot[rows] >= 0) & ~self._known[rows]])
                if not len(wanted):
                    return computed
                mine = wanted[~self._under_way[wanted]]
                if not len(mine):
                    self._changed.wait()  # another thread is at them
                    continue
                self._under_way[mine] = True
            try:
                computed += self.columns.fill(mine, self.table, self._slot[mine])
                self._known[mine] = True
            finally:
                with self._changed:
                    self._under_way[mine] = False
                    self._changed.notify_all()

    def _make_room(self, rows: Indices) -> None:
        new = np.unique(rows[self._slot[rows] < 0])[: len(self.table) - self._used]
        self._slot[new] = np.arange(self._used, self._used + len(new))
        self._used += len(new)


class _SharedColumns:
    """Some columns, read from the rows that are there."""

    def __init__(self, matrix: SharedCacheMatrix, columns: Indices) -> None:
        self._matrix, self._columns = matrix, columns
        self._whole = np.array_equal(columns, np.arange(matrix.size))

    @property
    def cost(self) -> int:
        return self._matrix.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = self._matrix.hold(rows) if self._whole else 0
        places = self._matrix.find(rows)
        there, absent = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        values = np.empty((len(there), len(self._columns)), np.float32)
        _native.gather(self._matrix.table, places[there], self._columns, values, self._matrix.threads)
        out[slots[there], : len(self._columns)] = values
        if len(absent):
            computed += self._computed.fill(rows[absent], out, slots[absent])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        # By symmetry from the rows of the columns: those that a solver has moved are there, or will be needed again.
        computed = self._matrix.hold(self._columns)
        places = self._matrix.find(self._columns)
        there, absent = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        total = self._add_up(places[there], rows, weights[there])
        if len(absent):
            product, new = self._matrix.base.float32_columns(self._columns[absent]).combine(rows, weights[absent])
            total, computed = total + product, computed + new
        return total, computed

    def _add_up(self, places: Indices, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · stored row, at some positions of them."""
        table, threads, total = self._matrix.table, self._matrix.threads, np.zeros(len(rows))
        if np.array_equal(rows, np.arange(self._matrix.size)):
            _native.subtract_rows(total, table, places, -weights, len(rows), threads)
            return total
        for start in range(0, len(places), STRETCH):
            part = slice(start, start + STRETCH)
            values = np.empty((len(places[part]), len(rows)), np.float32)
            _native.gather(table, places[part], rows, values, threads)
            total += weights[part] @ values
        return total

    @cached_property
    def _computed(self) -> Float32Columns:
        """The same columns, computed: for rows that are not there."""
        return self._matrix.columns if self._whole else self._matrix.base.float32_columns(self._columns)
