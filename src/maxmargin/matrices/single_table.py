"""A matrix whose values are all in memory in single precision: what several solves on the same samples share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix


@dataclass(frozen=True)
class SingleTable(PrecomputedMatrix):
    """A square array of float32, C-ordered; `threads` copy and add its rows."""

    threads: int = 1

    @classmethod
    def of(cls, matrix: SymmetricMatrix, variables: Indices, threads: int) -> SingleTable:
        """Return the values of a matrix between some of its variables."""
        count = len(variables)
        values = np.empty((count, count), np.float32)
        matrix.float32_columns(variables).fill(variables, values, np.arange(count))
        values.ravel()[:: count + 1] = matrix.diagonal()[variables]
        return cls(values, threads=threads)

    def matvec(self, vector: Floats) -> Floats:
        used = np.flatnonzero(vector)
        return self.float32_columns(used).combine(np.arange(self.size), np.asarray(vector)[used])[0]

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _TableColumns(self, columns)


@dataclass(frozen=True)
class _TableColumns:
    """Columns of a table; by symmetry its rows."""

    table: SingleTable
    columns: Indices
    cost: ClassVar[int] = 1

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        values, width = self.table.values, len(self.columns)
        if out.shape[1] == width and np.array_equal(slots, np.arange(len(rows))):
            _native.gather(values, rows, self.columns, out[: len(rows)], self.table.threads)
        else:
            gathered = np.empty((len(rows), width), np.float32)
            _native.gather(values, rows, self.columns, gathered, self.table.threads)
            out[slots, :width] = gathered
        return 0

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        negative = np.zeros(self.table.size)
        _native.subtract_rows(negative, self.table.values, self.columns, weights, self.table.size, self.table.threads)
        return -negative[rows], 0
