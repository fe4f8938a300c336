"""A matrix with a cache of float32 rows that is shared by several subproblems on the same samples.

The subproblems of one-vs-rest, or of several outputs, differ in their targets, not in their samples: they all read the
same rows. Rows are cached when first needed, within the budget.
"""

from __future__ import annotations

import threading
from functools import cached_property

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.matrices.features import Features
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix, WrappedMatrix

#: Number of cached rows that are combined at a time.
COMBINED_ROWS = 256


class SharedCacheMatrix(WrappedMatrix):
    """The matrix `base` with a cache of float32 rows for several solvers, possibly in several threads.

    Parameters
    ----------
    base : SymmetricMatrix
        The source of values.
    budget : int
        Maximum size of the rows in bytes. Rows that do not fit are computed whenever they are needed.
    threads : int
        Number of threads that copy and add rows; the base has its own.
    """

    def __init__(self, base: SymmetricMatrix, budget: int, threads: int) -> None:
        self.base, self.threads = base, threads
        slots = min(budget // (4 * max(1, base.size)), base.size)
        self.table = np.empty((slots, base.size), np.float32)  # untouched pages take no memory
        self._slot: Indices = np.full(base.size, -1)
        self._known = np.zeros(base.size, dtype=bool)
        self._used = 0
        self._in_progress = np.zeros(base.size, dtype=bool)
        self._changed = threading.Condition()
        self.columns = base.float32_columns(np.arange(base.size))

    @property
    def bytes(self) -> int:
        """The maximum size of the cached rows in bytes."""
        return self.table.nbytes

    def in_memory(self) -> Floats | None:
        return self.base.in_memory()

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
        return _CachedColumns(self, columns)

    def find(self, rows: Indices) -> Indices:
        """Return the position in `table` of each row, −1 if it is not cached."""
        return np.where(self._known[rows], self._slot[rows], -1)

    def hold(self, rows: Indices) -> int:
        """Cache rows as far as they fit; return the number of values computed."""
        computed = 0
        while True:
            with self._changed:
                self._assign_slots(rows)
                wanted = np.unique(rows[(self._slot[rows] >= 0) & ~self._known[rows]])
                if not len(wanted):
                    return computed
                mine = wanted[~self._in_progress[wanted]]
                if not len(mine):
                    self._changed.wait()  # another thread computes them
                    continue
                self._in_progress[mine] = True
            try:
                computed += self.columns.fill(mine, self.table, self._slot[mine])
                self._known[mine] = True
            finally:
                with self._changed:
                    self._in_progress[mine] = False
                    self._changed.notify_all()

    def _assign_slots(self, rows: Indices) -> None:
        new = np.unique(rows[self._slot[rows] < 0])[: len(self.table) - self._used]
        self._slot[new] = np.arange(self._used, self._used + len(new))
        self._used += len(new)


class _CachedColumns:
    """Some columns, read from the cached rows where possible."""

    def __init__(self, matrix: SharedCacheMatrix, columns: Indices) -> None:
        self._matrix, self._columns = matrix, columns
        self._all_columns = np.array_equal(columns, np.arange(matrix.size))

    @property
    def cost(self) -> int:
        return self._matrix.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = self._matrix.hold(rows) if self._all_columns else 0
        places = self._matrix.find(rows)
        cached, missing = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        values = np.empty((len(cached), len(self._columns)), np.float32)
        _native.gather(self._matrix.table, places[cached], self._columns, values, self._matrix.threads)
        out[slots[cached], : len(self._columns)] = values
        if len(missing):
            computed += self._computed.fill(rows[missing], out, slots[missing])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        # By symmetry from the rows of the columns: those of changed variables are cached or will be needed again.
        computed = self._matrix.hold(self._columns)
        places = self._matrix.find(self._columns)
        cached, missing = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        total = self._combine_cached(places[cached], rows, weights[cached])
        if len(missing):
            product, new = self._matrix.base.float32_columns(self._columns[missing]).combine(rows, weights[missing])
            total, computed = total + product, computed + new
        return total, computed

    def _combine_cached(self, places: Indices, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · cached row, at some positions of the rows."""
        table, threads, total = self._matrix.table, self._matrix.threads, np.zeros(len(rows))
        if np.array_equal(rows, np.arange(self._matrix.size)):
            _native.subtract_rows(total, table, places, -weights, len(rows), threads)
            return total
        for start in range(0, len(places), COMBINED_ROWS):
            part = slice(start, start + COMBINED_ROWS)
            values = np.empty((len(places[part]), len(rows)), np.float32)
            _native.gather(table, places[part], rows, values, threads)
            total += weights[part] @ values
        return total

    @cached_property
    def _computed(self) -> Float32Columns:
        """The same columns, computed: for rows that are not cached."""
        return self._matrix.columns if self._all_columns else self._matrix.base.float32_columns(self._columns)
