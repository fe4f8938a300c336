"""A symmetric matrix whose float32 values are all in memory, shared by several solves on the same samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix


@dataclass(frozen=True)
class Float32Matrix(PrecomputedMatrix):
    """A C-ordered square array of float32 values, copied and added up with `threads` threads."""

    threads: int = 1

    @classmethod
    def of(cls, matrix: SymmetricMatrix, variables: Indices, threads: int) -> Float32Matrix:
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
        return _StoredColumns(self, columns)


@dataclass(frozen=True)
class _StoredColumns:
    """Some columns of a `Float32Matrix`; by symmetry its rows."""

    matrix: Float32Matrix
    columns: Indices
    cost: ClassVar[int] = 1

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        values, width = self.matrix.values, len(self.columns)
        if out.shape[1] == width and np.array_equal(slots, np.arange(len(rows))):
            _native.gather(values, rows, self.columns, out[: len(rows)], self.matrix.threads)
        else:
            gathered = np.empty((len(rows), width), np.float32)
            _native.gather(values, rows, self.columns, gathered, self.matrix.threads)
            out[slots, :width] = gathered
        return 0

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        matrix, negative = self.matrix, np.zeros(self.matrix.size)
        _native.subtract_rows(negative, matrix.values, self.columns, weights, matrix.size, matrix.threads)
        return -negative[rows], 0
