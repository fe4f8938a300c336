"""Rows of a matrix in single precision, within a budget of bytes: what a block solver works with.

It shows some columns of the matrix, those of the variables that take part, and forgets the rows that were used least
recently. When fewer columns take part, the rows become shorter and make room for more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.matrices.symmetric_matrix import Indices, SymmetricMatrix

#: About how many multiplications one request to the matrix takes: Ctrl-C is heard in between.
REQUEST_WORK = 4 * 10**9


class RowStore:
    """A least-recently-used store of float32 rows over some columns of a matrix.

    Parameters
    ----------
    matrix : SymmetricMatrix
        Where missing values come from.
    budget : int
        Bytes that the rows may take.
    least_rows : int
        Rows that are kept whatever the budget.
    threads : int
        For copying; the matrix has its own.

    Attributes
    ----------
    columns : int array
        The columns of the matrix that are shown. Positions, below, count among them.
    storage : float32 array of shape (slots, width)
        The rows; only the first values of each, one per column, mean anything.
    slot : int array
        Where the row of each position is stored, −1 if it is not.
    last_use : int array
        When each slot was used last, by `clock`.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int, least_rows: int, threads: int) -> None:
        self.matrix = matrix
        self.threads = threads
        self.columns: Indices = np.arange(matrix.size)
        slots = min(max(least_rows, budget // (4 * max(1, matrix.size))), matrix.size)
        self._memory = np.empty(slots * matrix.size, dtype=np.float32)  # untouched pages of an empty array are free
        self._diagonal = matrix.diagonal()
        self._source = matrix.single(self.columns)
        self.slot: Indices
        self.last_use: Indices
        self._owner: Indices
        self._used: int
        self.hits = self.misses = self.evaluations = self.clock = 0
        self._lay_out(matrix.size, np.empty(0, dtype=np.int64))

    @property
    def capacity(self) -> int:
        """How many rows fit."""
        return len(self.storage)

    @property
    def spare(self) -> int:
        """How many more rows fit before one must be forgotten."""
        return self.capacity - self._used

    def hold_all(self, work: int) -> bool:
        """Make all rows available if they fit and take at most so many multiplications; return whether they are."""
        size = len(self.columns)
        if self.capacity < size or size**2 * self._source.cost > work:
            return False
        self.hold(np.arange(size))
        return True

    def hold(self, positions: Indices) -> Indices:
        """Make the rows of up to `capacity` positions available and return their slots."""
        self.clock += 1
        there = self.slot[positions] >= 0
        missing = positions[~there]
        self.hits += len(positions) - len(missing)
        self.misses += len(missing)
        self.last_use[self.slot[positions[there]]] = self.clock
        if len(missing):
            slots = self._free_slots(len(missing))
            self._fill(missing, slots)
            self._owner[slots] = missing
            self.slot[missing] = slots
            self.last_use[slots] = self.clock
        return self.slot[positions]

    def stored_first(self, positions: Indices) -> Indices:
        """Return the positions in another order: those whose rows are there before the others."""
        there = self.slot[positions] >= 0
        return np.concatenate([positions[there], positions[~there]])

    def square(self, positions: Indices) -> NDArray[np.float32]:
        """Return the block of values between some positions, those with stored rows first; the rest is computed."""
        known = int(np.count_nonzero(self.slot[positions] >= 0))
        block = np.empty((len(positions), len(positions)), dtype=np.float32)
        _native.gather(self.storage, self.slot[positions[:known]], positions, block, self.threads)
        if known < len(positions):
            block[known:, :known] = block[:known, known:].T
            wanted = self.columns[positions[known:]]
            values = np.empty((len(wanted), len(wanted)), dtype=np.float32)
            self.evaluations += self.matrix.single(wanted).fill(wanted, values, np.arange(len(wanted)))
            block[known:, known:] = values
        block.ravel()[:: len(positions) + 1] = self._diagonal[self.columns[positions]]
        return block

    def narrow(self, keep: Indices) -> None:
        """Show only the columns at the positions `keep`, ascending."""
        staying = np.zeros(len(self.columns), dtype=bool)
        staying[keep] = True
        position = np.cumsum(staying) - 1
        owners = self._owner[: self._used]
        slots = np.flatnonzero((owners >= 0) & staying[owners])
        width = min(self.storage.shape[1], len(keep) + len(keep) // 8 + 64)  # some room for columns that come back
        _native.narrow_rows(self._memory, self.storage.shape[1], width, slots, keep)
        self.columns = self.columns[keep]
        self._source = self.matrix.single(self.columns)
        self._lay_out(width, position[owners[slots]])

    def widen(self, columns: Indices) -> None:
        """Show more columns, behind the others. Rows that are there are made longer if they have the room."""
        before = len(self.columns)
        self.columns = np.concatenate([self.columns, columns])
        self._source = self.matrix.single(self.columns)
        if len(self.columns) > self.storage.shape[1]:
            self._lay_out(
                min(self.matrix.size, len(self.columns) + len(self.columns) // 8), np.empty(0, dtype=np.int64)
            )
            return
        owners = self._owner[: self._used]
        of_owners = self.matrix.single(self.columns[owners])
        values = np.empty((len(columns), len(owners)), dtype=np.float32)
        self.evaluations += of_owners.fill(columns, values, np.arange(len(columns)))
        self.storage[: self._used, before : len(self.columns)] = values.T
        self.slot = np.concatenate([self.slot, np.full(len(columns), -1)])

    def _lay_out(self, width: int, owners: Indices) -> None:
        """Divide the memory into rows; the first ones belong to `owners`."""
        slots = min(len(self._memory) // width, width)
        self.storage = self._memory[: slots * width].reshape(slots, width)
        self.slot = np.full(len(self.columns), -1)
        self.slot[owners] = np.arange(len(owners))
        self._owner = np.full(slots, -1)
        self._owner[: len(owners)] = owners
        self.last_use = np.zeros(slots, dtype=np.int64)
        self._used = len(owners)

    def _free_slots(self, count: int) -> Indices:
        """Return slots to write to: unused ones, then those that were used least recently."""
        fresh = np.arange(self._used, min(self.capacity, self._used + count))
        self._used += len(fresh)
        if len(fresh) == count:
            return fresh
        age = self.last_use.copy()
        age[fresh] = self.clock
        oldest = np.argpartition(age, count - len(fresh) - 1)[: count - len(fresh)]
        self.slot[self._owner[oldest]] = -1
        return np.concatenate([fresh, oldest])

    def _fill(self, positions: Indices, slots: Indices) -> None:
        at_once = max(1, REQUEST_WORK // (self._source.cost * max(1, len(self.columns))))
        for start in range(0, len(positions), at_once):
            part = slice(start, start + at_once)
            rows = self.columns[positions[part]]
            self.evaluations += self._source.fill(rows, self.storage, slots[part])
            self.storage[slots[part], positions[part]] = self._diagonal[rows]
