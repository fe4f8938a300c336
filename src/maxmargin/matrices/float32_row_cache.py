"""Rows of a symmetric matrix in float32, cached within a byte budget, for block decomposition."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.matrices.multiclass_matrix import MulticlassMatrix
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix

#: Approximate number of multiplications per request to the matrix; Ctrl-C is handled between requests.
REQUEST_WORK = 4 * 10**9

#: Values of at most so many multiplications are recomputed, not cached: writing new memory and reading it takes longer,
#: and threads share the memory. Tuned on `binary_features` and `categorical`.
MAX_COST_OF_RECOMPUTING = 160

#: A row that was not used in so many requests may be replaced.
REQUESTS_UNTIL_STALE = 4


def make_row_cache(matrix: SymmetricMatrix, budget: int, threads: int) -> Float32RowCache:
    """Return a row cache that suits the matrix."""
    return (MulticlassRowCache if isinstance(matrix, MulticlassMatrix) else Float32RowCache)(matrix, budget, threads)


class Float32RowCache:
    """A cache of float32 rows of a matrix.

    Expensive rows are kept as long as they are used. When memory is short, rows that do not fit are recomputed whenever
    they are needed: replacing others would only mean that those are missing the next time.

    Parameters
    ----------
    matrix : SymmetricMatrix
        The source of values.
    budget : int
        Maximum size of the cache in bytes.
    threads : int
        Threads for copying and adding; the matrix has its own.

    Attributes
    ----------
    storage : float32 array of shape (slots, size)
        The rows.
    slot : int array
        The slot of each variable's row, −1 if it is not cached.
    last_use : int array
        The number of the last request that used each slot.
    hits, misses, evaluations : int
        Rows found, rows not found, and values computed.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int, threads: int) -> None:
        self.matrix = matrix
        self.threads = threads
        size = matrix.size
        slots = min(budget // (4 * max(1, size)), size)
        self.storage = np.empty((slots, size), dtype=np.float32)  # untouched pages of an empty array take no memory
        self._diagonal = matrix.diagonal()
        self.slot: Indices = np.full(size, -1)
        self._owner: Indices = np.full(slots, -1)
        self.last_use: Indices = np.full(slots, -REQUESTS_UNTIL_STALE)
        self.hits = self.misses = self.evaluations = self._clock = 0

    @cached_property
    def _source(self) -> Float32Columns:
        return self.matrix.float32_columns(np.arange(self.matrix.size))

    @property
    def capacity(self) -> int:
        """The number of rows that fit."""
        return len(self.storage)

    @cached_property
    def cost(self) -> int:
        """Approximate number of multiplications per value."""
        return self.matrix.float32_columns(np.arange(min(1, self.matrix.size))).cost  # nothing to prepare but a column

    def hold(self, rows: Indices) -> None:
        """Compute and cache rows, as many as fit."""
        self._clock += 1
        cached = self.slot[rows] >= 0
        self.last_use[self.slot[rows[cached]]] = self._clock
        self._store(rows[~cached])
        self.hits += int(cached.sum())
        self.misses += int((~cached).sum())

    def combine(self, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row; expensive rows are cached for the next time, as many as fit."""
        if self.cost > MAX_COST_OF_RECOMPUTING:
            self.hold(rows)
        cached = self.slot[rows] >= 0
        if not cached.any():
            return self._computed(rows, weights)
        total = np.zeros(self.matrix.size)
        _native.subtract_rows(
            total, self.storage, self.slot[rows[cached]], -weights[cached], self.matrix.size, self.threads
        )
        if not cached.all():
            total += self._computed(rows[~cached], weights[~cached])
        return total

    def _computed(self, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row without the cache."""
        product, computed = self.matrix.float32_columns(rows).combine(np.arange(self.matrix.size), weights)
        self.evaluations += computed
        return product

    def cached_last(self, rows: Indices) -> Indices:
        """Return the rows in another order: cached ones after the others."""
        cached = self.slot[rows] >= 0
        return np.concatenate([rows[~cached], rows[cached]])

    def square(self, rows: Indices, out: Singles) -> None:
        """Write the square block of some rows, cached ones last, to `out`."""
        missing = int(np.count_nonzero(self.slot[rows] < 0))
        computed, cached = rows[:missing], rows[missing:]
        if missing:
            self.evaluations += self.matrix.float32_columns(computed).fill(computed, out, np.arange(missing))
        _native.gather(self.storage, self.slot[cached], rows, out[missing:], self.threads)
        _native.mirror(out, missing, len(out), self.threads)
        out.ravel()[:: len(rows) + 1] = self._diagonal[rows]

    def _store(self, rows: Indices) -> None:
        """Compute and store as many of these rows as there are stale slots."""
        stale = np.flatnonzero(self.last_use <= self._clock - REQUESTS_UNTIL_STALE)
        stale = stale[np.argsort(self.last_use[stale], kind="stable")][: len(rows)]  # unused slots first
        rows = rows[: len(stale)]
        replaced = self._owner[stale]
        self.slot[replaced[replaced >= 0]] = -1
        self._owner[stale] = -1
        rows_per_request = max(1, REQUEST_WORK // (self.cost * max(1, self.matrix.size)))
        for start in range(0, len(rows), rows_per_request):
            part = rows[start : start + rows_per_request]
            slots = stale[start : start + rows_per_request]
            self.evaluations += self._source.fill(part, self.storage, slots)
            self.storage[slots, part] = self._diagonal[part]
            self._owner[slots], self.slot[part], self.last_use[slots] = part, slots, self._clock


class MulticlassRowCache(Float32RowCache):
    """The row cache of a `MulticlassMatrix`: the rows of its base are cached, once for all classes.

    No row of the multi-class matrix itself is cached: `slot` is −1 for all of them.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int, threads: int) -> None:
        assert isinstance(matrix, MulticlassMatrix)
        super().__init__(matrix, 0, threads)
        self._multiclass, self._base = matrix, Float32RowCache(matrix.base, budget, threads)

    @cached_property
    def cost(self) -> int:
        """Approximate number of multiplications per value."""
        return self._base.cost

    def combine(self, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row."""
        sample, label, base = self._multiclass.sample[rows], self._multiclass.label[rows], self._base
        product = np.zeros((self._multiclass.classes, base.matrix.size))
        for c in np.unique(label):
            in_class = label == c
            product[c] = base.combine(sample[in_class], weights[in_class])
        self._count()
        return product[self._multiclass.label, self._multiclass.sample]

    def square(self, rows: Indices, out: Singles) -> None:
        """Write the square block of some rows to `out`."""
        samples, inverse = np.unique(self._multiclass.sample[rows], return_inverse=True)
        order = self._base.cached_last(samples)
        table = np.empty((len(samples), len(samples)), dtype=np.float32)
        self._base.square(order, table)
        position = np.empty(len(samples), dtype=np.int64)
        position[np.searchsorted(samples, order)] = np.arange(len(samples))
        at = position[inverse]
        _native.gather(table, at, at, out, self.threads)
        label = self._multiclass.label[rows]
        out *= label[:, None] == label
        out.ravel()[:: len(rows) + 1] = self._diagonal[rows]
        self._count()

    def _count(self) -> None:
        base = self._base
        self.hits, self.misses = base.hits, base.misses
        self.evaluations, base.evaluations = self.evaluations + base.evaluations, 0
