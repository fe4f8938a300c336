"""A matrix in which several variables mean the same sample: M_ij = base[of_i, of_j].

Regression has two variables for each sample, one for each side of the tube. A value is computed once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix

#: The largest table of distinct rows that is built at once, in bytes.
TABLE_BYTES = 2**26


@dataclass(frozen=True)
class RepeatedMatrix:
    """The matrix of variables that stand for the samples `of` of another matrix."""

    base: SymmetricMatrix
    of: Indices

    @property
    def size(self) -> int:
        return len(self.of)

    @property
    def rows_per_request(self) -> int:
        return self.base.rows_per_request

    @property
    def cost(self) -> int:
        return self.base.cost

    def checksum(self) -> int:
        return self.base.checksum()

    def in_memory(self) -> Floats | None:
        values = self.base.in_memory()
        return None if values is None else np.ascontiguousarray(values[self.of[:, None], self.of])

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.of]

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        samples, back = np.unique(self.of[columns], return_inverse=True)
        values = self.base.block(self.of[rows], samples)
        return values if len(samples) == len(columns) and (np.diff(back) == 1).all() else np.take(values, back, axis=1)

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(_summed(self.of, vector, self.base.size))[self.of]

    def uncached(self) -> RepeatedMatrix:
        return RepeatedMatrix(self.base.uncached(), self.of)

    def take(self, indices: Indices) -> RepeatedMatrix:
        return RepeatedMatrix(self.base, self.of[indices])

    def features(self) -> Features | None:
        rows = self.base.features()
        return None if rows is None else rows.take(self.of)

    def float32_columns(self, columns: Indices) -> Float32Columns:
        samples, back = np.unique(self.of[columns], return_inverse=True)
        return _RepeatedColumns(self.base.float32_columns(samples), self.of, len(samples), back)


@dataclass(frozen=True)
class _RepeatedColumns:
    """Columns of the base matrix, each for one variable or several."""

    columns: Float32Columns
    of: Indices
    distinct: int
    back: Indices

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        samples, place = np.unique(self.of[rows], return_inverse=True)
        order = np.argsort(place, kind="stable")
        width, computed = len(self.back), 0
        step = max(1, TABLE_BYTES // (4 * max(1, self.distinct)))
        table = np.empty((min(step, len(samples)), self.distinct), dtype=np.float32)
        for start in range(0, len(samples), step):
            some = samples[start : start + step]
            computed += self.columns.fill(some, table, np.arange(len(some)))
            for k in order[np.searchsorted(place[order], start) : np.searchsorted(place[order], start + len(some))]:
                np.take(table[place[k] - start], self.back, out=out[slots[k], :width])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        samples, place = np.unique(self.of[rows], return_inverse=True)
        product, computed = self.columns.combine(samples, _summed(self.back, weights, self.distinct))
        return product[place], computed


def _summed(of: Indices, values: Floats, count: int) -> Floats:
    """Return the sum of the values that belong to each of `count` samples."""
    return np.bincount(of, weights=values, minlength=count).astype(np.float64, copy=False)
