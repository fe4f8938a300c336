"""Rows of a matrix in single precision, within a budget of bytes: what a block solver works with."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix

#: About how many multiplications one request to the matrix takes: Ctrl-C is heard in between.
REQUEST_WORK = 4 * 10**9

#: Values of at most so many multiplications are computed again faster than memory for them is written and read.
MAX_COST_OF_RECOMPUTING = 80

#: A row that was not used in so many requests makes room for others.
STALE = 4


class RowStore:
    """A store of float32 rows of a matrix.

    Rows are kept as long as they are used, if they take long to compute. When memory is short, those that find no room
    are computed again whenever they are needed: throwing out others for them would only mean that those are missing the
    next time.

    Parameters
    ----------
    matrix : SymmetricMatrix
        Where missing values come from.
    budget : int
        Bytes that the rows may take.
    threads : int
        For copying and adding; the matrix has its own.

    Attributes
    ----------
    storage : float32 array of shape (slots, size)
        The rows.
    slot : int array
        Where the row of each variable is stored, −1 if it is not.
    last_use : int array
        By slot; it counts requests.
    hits, misses, evaluations : int
        Rows that were there, rows that were not, and values that had to be computed.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int, threads: int) -> None:
        self.matrix = matrix
        self.threads = threads
        size = matrix.size
        slots = min(budget // (4 * max(1, size)), size)
        self.storage = np.empty((slots, size), dtype=np.float32)  # untouched pages of an empty array are free
        self._diagonal = matrix.diagonal()
        self.slot: Indices = np.full(size, -1)
        self._owner: Indices = np.full(slots, -1)
        self.last_use: Indices = np.full(slots, -STALE)
        self.hits = self.misses = self.evaluations = self._clock = 0

    @cached_property
    def _source(self) -> Float32Columns:
        return self.matrix.float32_columns(np.arange(self.matrix.size))

    @property
    def capacity(self) -> int:
        """How many rows fit."""
        return len(self.storage)

    @property
    def cost(self) -> int:
        """About how many multiplications one value takes."""
        return self._source.cost

    def hold(self, rows: Indices) -> None:
        """Make rows available, as far as there is room for them."""
        self._clock += 1
        there = self.slot[rows] >= 0
        self.last_use[self.slot[rows[there]]] = self._clock
        self._keep(rows[~there])
        self.hits += int(there.sum())
        self.misses += int((~there).sum())

    def combine(self, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row. Rows are kept for the next time if they are worth it, as far as there is room."""
        if self.cost > MAX_COST_OF_RECOMPUTING:
            self.hold(rows)
        stored = self.slot[rows] >= 0
        total = np.zeros(self.matrix.size)
        _native.subtract_rows(
            total, self.storage, self.slot[rows[stored]], -weights[stored], self.matrix.size, self.threads
        )
        if not stored.all():
            columns = self.matrix.float32_columns(rows[~stored])
            product, computed = columns.combine(np.arange(self.matrix.size), weights[~stored])
            total += product
            self.evaluations += computed
        return total

    def stored_last(self, rows: Indices) -> Indices:
        """Return the rows in another order: those that are there after the others."""
        there = self.slot[rows] >= 0
        return np.concatenate([rows[~there], rows[there]])

    def square(self, rows: Indices, out: NDArray[np.float32]) -> None:
        """Write the values between some rows, those that are there last, to `out`."""
        missing = int(np.count_nonzero(self.slot[rows] < 0))
        wanted, known = rows[:missing], rows[missing:]
        if missing:
            self.evaluations += self.matrix.float32_columns(wanted).fill(wanted, out, np.arange(missing))
        _native.gather(self.storage, self.slot[known], rows, out[missing:], self.threads)
        _native.mirror(out, missing, len(out), self.threads)
        out.ravel()[:: len(rows) + 1] = self._diagonal[rows]

    def _keep(self, rows: Indices) -> None:
        """Compute and store as many of these rows as find room."""
        stale = np.flatnonzero(self.last_use <= self._clock - STALE)
        stale = stale[np.argsort(self.last_use[stale], kind="stable")][: len(rows)]  # first those that were never used
        rows = rows[: len(stale)]
        forgotten = self._owner[stale]
        self.slot[forgotten[forgotten >= 0]] = -1
        self._owner[stale] = -1
        at_once = max(1, REQUEST_WORK // (self.cost * max(1, self.matrix.size)))
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            slots = stale[start : start + at_once]
            self.evaluations += self._source.fill(part, self.storage, slots)
            self.storage[slots, part] = self._diagonal[part]
            self._owner[slots], self.slot[part], self.last_use[slots] = part, slots, self._clock
