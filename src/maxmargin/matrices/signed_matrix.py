"""A matrix with signs: M_ij = s_i s_j base_ij, s = ±1.

A constraint on Σ |b_i| over variables of both signs is no plain sum. In α = s∘b ≥ 0 it is one, and the matrix gets
signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix


@dataclass(frozen=True)
class SignedMatrix:
    """The matrix of variables that are the `signs` times those of another matrix."""

    base: SymmetricMatrix
    signs: Floats

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
        values = self.base.in_memory()
        return None if values is None else self.signs[:, None] * values * self.signs

    def diagonal(self) -> Floats:
        return self.base.diagonal()

    def rows(self, indices: Indices) -> Floats:
        return self.signs[indices][:, None] * self.base.rows(indices) * self.signs

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.signs[rows][:, None] * self.base.block(rows, columns) * self.signs[columns]

    def matvec(self, vector: Floats) -> Floats:
        return self.signs * self.base.matvec(self.signs * vector)

    def uncached(self) -> SignedMatrix:
        return SignedMatrix(self.base.uncached(), self.signs)

    def take(self, indices: Indices) -> SignedMatrix:
        return SignedMatrix(self.base.take(indices), self.signs[indices])

    def features(self) -> None:
        return None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _SignedColumns(self.base.float32_columns(columns), self.signs, self.signs[columns])


@dataclass(frozen=True)
class _SignedColumns:
    """Columns of the base matrix, with signs."""

    columns: Float32Columns
    of_rows: Floats
    of_columns: Floats

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        computed = self.columns.fill(rows, out, slots)
        across, width = self.of_columns.astype(np.float32), len(self.of_columns)
        for slot, sign in zip(slots, self.of_rows[rows].astype(np.float32), strict=True):
            out[slot, :width] *= sign * across
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = self.columns.combine(rows, self.of_columns * weights)
        return self.of_rows[rows] * product, computed
