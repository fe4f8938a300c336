"""A matrix that remembers the rows it was asked for, within a budget of bytes (Bottou & Lin 1.7.4.2).

It shows the underlying matrix in a *working order* that a solver may change: shrinking moves the variables that
still matter to the front, and then only the leading part of a row is computed. The arrays `storage`, `slot`,
`length` and `last_use` are flat, so that a native loop reads rows without asking anybody.
"""

from __future__ import annotations

import numpy as np

from maxmargin.matrices.symmetric_matrix import Floats, Indices, SymmetricMatrix, product_by_blocks


class CachedMatrix:
    """A least-recently-used cache of matrix rows, in working order.

    Parameters
    ----------
    matrix : SymmetricMatrix
        Where missing values come from.
    budget : int
        Bytes that the rows may take. Two rows are always kept: a pair step needs both of its rows.

    Attributes
    ----------
    order : int array
        ``order[position]`` is the index of a row in the underlying matrix.
    hits, misses, evaluations : int
        Rows found, rows not found, and values computed so far.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int) -> None:
        self.matrix = matrix
        self.order: Indices = np.arange(matrix.size)
        slots = min(max(2, budget // (8 * matrix.size)), max(2, matrix.size))
        self.storage: Floats = np.empty((slots, matrix.size))  # untouched pages cost no memory
        self.slot: Indices = np.full(matrix.size, -1)
        self.length: Indices = np.zeros(slots, dtype=np.int64)
        self.last_use: Indices = np.zeros(slots, dtype=np.int64)
        self._owner: Indices = np.full(slots, -1)  # the row a slot holds, as an index of the matrix below
        self._position: Indices = np.arange(matrix.size)  # where a row of the matrix below stands in the order
        self._used = 0
        self.clock = 0
        self.requests = 0
        self.misses = 0
        self.evaluations = 0

    @property
    def hits(self) -> int:
        return max(0, self.requests - self.misses)

    @property
    def size(self) -> int:
        return self.matrix.size

    @property
    def rows_at_once(self) -> int:
        return self.matrix.rows_at_once

    def diagonal(self) -> Floats:
        return self.matrix.diagonal()[self.order]

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

    def has(self, position: int, length: int) -> bool:
        """Return whether the first `length` values of a row are at hand."""
        slot = self.slot[position]
        return bool(slot >= 0 and self.length[slot] >= length)

    def ensure(self, position: int, length: int) -> None:
        """Make the first `length` values of a row available, and count it as just used."""
        if not self.has(position, length):
            self.fetch(position, length)
        self.clock += 1
        self.last_use[self.slot[position]] = self.clock

    def fetch(self, position: int, length: int) -> None:
        """Compute what is missing of a row; where rows come cheaper together, some that follow it too."""
        self.misses += 1
        slot = int(self.slot[position])
        if slot >= 0:
            start = int(self.length[slot])
            self.storage[slot, start:length] = self._compute(
                self.order[position : position + 1], self.order[start:length]
            )[0]
            self.length[slot] = length
        else:
            # Spare slots may take neighbours along; for those, nothing is evicted.
            spare = len(self.storage) - self._used
            positions = [position]
            if spare > 1 and self.rows_at_once > 1:
                rest = np.flatnonzero(self.slot[position + 1 : length] < 0) + position + 1
                positions += rest[: min(spare, self.rows_at_once) - 1].tolist()
            values = self._compute(self.order[positions], self.order[:length])
            for p, row in zip(positions, values, strict=True):
                self._store(p, row)
        self.clock += 1
        self.last_use[self.slot[position]] = self.clock

    def reorder(self, permutation: Indices) -> None:
        """Rearrange the first positions of the working order: position p now shows what stood at permutation[p]."""
        count = len(permutation)
        moved = np.flatnonzero(permutation != np.arange(count))
        if not len(moved):
            return
        sources = permutation[moved]
        self.order[moved] = self.order[sources]
        self.slot[moved] = self.slot[sources]
        self._position[self.order[moved]] = moved
        for slot in range(self._used):
            valid = int(self.length[slot])
            if valid < count:  # a shorter row keeps the leading part whose values it has
                unknown = np.flatnonzero(permutation >= valid)
                valid = int(unknown[0]) if len(unknown) else valid
                self.length[slot] = valid
                inside = moved[moved < valid]
                self.storage[slot, inside] = self.storage[slot, permutation[inside]]
            else:
                self.storage[slot, moved] = self.storage[slot, sources]

    def _store(self, position: int, row: Floats) -> None:
        if self._used < len(self.storage):
            slot = self._used
            self._used += 1
        else:
            slot = int(np.argmin(self.last_use))
            self.slot[self._position[self._owner[slot]]] = -1
        self.storage[slot, : len(row)] = row
        self.length[slot] = len(row)
        self.last_use[slot] = self.clock
        self._owner[slot] = self.order[position]
        self.slot[position] = slot

    def _compute(self, rows: Indices, columns: Indices) -> Floats:
        values = self.matrix.block(rows, columns)
        self.evaluations += values.size
        if not np.isfinite(values).all():
            raise ValueError(
                "the kernel gave values that are not finite; scale the data (for example with StandardScaler), "
                "or choose a smaller degree, gamma or coef0"
            )
        return values
