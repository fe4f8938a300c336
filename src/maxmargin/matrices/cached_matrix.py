"""A least-recently-used cache of matrix rows within a byte budget (Bottou & Lin 1.7.4.2).

The rows and columns are in a *working order* that a solver may change: shrinking moves the active variables to the
front, and then only the leading part of a row is computed. The arrays `storage`, `slot`, `length` and `last_use` are
flat, so that the native loops read rows without calling Python.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.symmetric_matrix import (
    CastColumns,
    Float32Columns,
    SymmetricMatrix,
    WrappedMatrix,
    product_by_blocks,
)


class CachedMatrix(WrappedMatrix):
    """A least-recently-used cache of matrix rows, in working order.

    Parameters
    ----------
    matrix : SymmetricMatrix
        The source of missing values.
    budget : int
        Maximum size of the rows in bytes. At least two rows are kept: a pair step needs both of its rows.

    Attributes
    ----------
    order : int array
        ``order[position]`` is the index of a row in the underlying matrix.
    hits, misses, evaluations : int
        Cache hits, cache misses, and values computed so far.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int) -> None:
        self.base = matrix
        self.order: Indices = np.arange(matrix.size)
        slots = min(max(2, budget // (8 * matrix.size)), max(2, matrix.size))
        # A matrix that is in memory already is read in place; untouched pages of an empty array take no memory.
        in_memory = matrix.in_memory() if slots >= matrix.size else None
        self._borrowed = in_memory is not None
        self.storage: Floats = np.empty((slots, matrix.size)) if in_memory is None else in_memory
        slots = len(self.storage)
        self.slot: Indices = np.full(matrix.size, -1) if in_memory is None else np.arange(matrix.size)
        self.length: Indices = np.full(slots, 0 if in_memory is None else matrix.size)
        self.last_use: Indices = np.zeros(slots, dtype=np.int64)
        self._owner: Indices = np.arange(slots)  # the row of the underlying matrix in each slot
        self._position: Indices = np.arange(matrix.size)  # the position in the working order of each of its rows
        self._used = 0 if in_memory is None else slots
        self.clock = 0
        self.requests = 0
        self.misses = 0
        self.evaluations = 0

    @property
    def hits(self) -> int:
        return max(0, self.requests - self.misses)

    @property
    def spare(self) -> int:
        """The number of rows that fit before one must be evicted."""
        return len(self.storage) - self._used

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.order]

    def rows(self, indices: Indices) -> Floats:
        out = np.empty((len(indices), self.size))
        for k, position in enumerate(np.asarray(indices)):
            self.requests += 1
            self.ensure(int(position), self.size)
            out[k] = self.storage[self.slot[position]]
        return out

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self._compute(self.order[rows], self.order[columns])

    def matvec(self, vector: Floats) -> Floats:
        return product_by_blocks(self, np.asarray(vector))

    def uncached(self) -> SymmetricMatrix:
        return self.take(np.arange(self.size))

    def take(self, indices: Indices) -> SymmetricMatrix:
        return self.base.take(self.order[indices])

    def features(self) -> Features | None:
        rows = self.base.features()
        return None if rows is None else rows.take(self.order)

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return CastColumns(self, columns)

    def cached_in_full(self, positions: Indices) -> np.ndarray:
        """Return which of the rows are cached in full length."""
        slots = self.slot[positions]
        cached: np.ndarray = (slots >= 0) & (self.length[slots] >= self.size)
        return cached

    def ensure(self, position: int, length: int) -> None:
        """Compute the first `length` values of a row unless they are cached, and mark the row as just used."""
        slot = self.slot[position]
        if slot < 0 or self.length[slot] < length:
            self.fetch(position, length)
        self.clock += 1
        self.last_use[self.slot[position]] = self.clock

    def fetch(self, position: int, length: int, likely: Indices | None = None) -> None:
        """Compute the missing values of a row.

        Rows of the `likely` next positions are computed with it, as far as they are cheaper together and fit without
        evicting other rows.
        """
        self.misses += 1
        slot = int(self.slot[position])
        if slot >= 0:
            start = int(self.length[slot])
            row, columns = self.order[position : position + 1], self.order[start:length]
            self.storage[slot, start:length] = self._compute(row, columns)[0]
            self.length[slot] = length
        else:
            positions = np.array([position])
            spare = min(self.spare, self.rows_per_request)
            if likely is not None and spare > 1:
                new = likely[(self.slot[likely] < 0) & (likely != position)]
                positions = np.concatenate([positions, new[: spare - 1]])
            self._store(positions, self._compute(self.order[positions], self.order[:length]))
        self.clock += 1
        self.last_use[self.slot[position]] = self.clock

    def reorder(self, permutation: Indices) -> None:
        """Permute the first positions of the working order: position p gets the variable at permutation[p]."""
        count = len(permutation)
        moved = np.flatnonzero(permutation != np.arange(count))
        if not len(moved):
            return
        if self._borrowed:
            self.storage, self._borrowed = self.storage.copy(), False
        sources = permutation[moved]
        self.order[moved] = self.order[sources]
        self.slot[moved] = self.slot[sources]
        self._position[self.order[moved]] = moved
        for slot in range(self._used):
            valid = int(self.length[slot])
            if valid < count:  # a shorter row keeps the leading part whose values are known
                unknown = np.flatnonzero(permutation >= valid)
                valid = int(unknown[0]) if len(unknown) else valid
                self.length[slot] = valid
                inside = moved[moved < valid]
                self.storage[slot, inside] = self.storage[slot, permutation[inside]]
            else:
                self.storage[slot, moved] = self.storage[slot, sources]

    def _store(self, positions: Indices, values: Floats) -> None:
        """Store rows in free slots, or a single one in the least recently used slot."""
        count, length = values.shape
        if self._used + count <= len(self.storage):
            slots = slice(self._used, self._used + count)
            self._used += count
        else:
            oldest = int(np.argmin(self.last_use))
            self.slot[self._position[self._owner[oldest]]] = -1
            slots = slice(oldest, oldest + 1)
        self.storage[slots, :length] = values
        self.length[slots] = length
        self.last_use[slots] = self.clock
        self._owner[slots] = self.order[positions]
        self.slot[positions] = np.arange(slots.start, slots.stop)

    def _compute(self, rows: Indices, columns: Indices) -> Floats:
        values = self.base.block(rows, columns)
        self.evaluations += values.size
        check_finite(values)
        return values
