"""A matrix with signs, M_ij = s_i s_j base_ij with s = ±1.

A constraint on Σ |b_i| over variables of both signs is not linear in b. In α = s∘b ≥ 0 it is, and the matrix gets the
signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix, WrappedMatrix


@dataclass(frozen=True)
class SignedMatrix(WrappedMatrix):
    """The matrix of the variables `signs` ∘ b, where b are those of the base matrix."""

    base: SymmetricMatrix
    signs: Floats

    def in_memory(self) -> Floats | None:
        values = self.base.in_memory()
        return None if values is None else self.signs[:, None] * values * self.signs

    def rows(self, indices: Indices) -> Floats:
        return self.signs[indices][:, None] * self.base.rows(indices) * self.signs

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.signs[rows][:, None] * self.base.block(rows, columns) * self.signs[columns]

    def matvec(self, vector: Floats) -> Floats:
        return self.signs * self.base.matvec(self.signs * vector)

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        product = self.base.extended_product(DoubleDouble(self.signs * vector.high, self.signs * vector.low))
        return DoubleDouble(self.signs * product.high, self.signs * product.low)

    def uncached(self) -> SignedMatrix:
        return SignedMatrix(self.base.uncached(), self.signs)

    def take(self, indices: Indices) -> SignedMatrix:
        return SignedMatrix(self.base.take(indices), self.signs[indices])

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _SignedColumns(self.base.float32_columns(columns), self.signs, self.signs[columns])


@dataclass(frozen=True)
class _SignedColumns:
    """Columns of the base matrix with signs."""

    columns: Float32Columns
    row_signs: Floats
    column_signs: Floats

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = self.columns.fill(rows, out, slots)
        column_signs, width = self.column_signs.astype(np.float32), len(self.column_signs)
        for slot, sign in zip(slots, self.row_signs[rows].astype(np.float32), strict=True):
            out[slot, :width] *= sign * column_signs
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = self.columns.combine(rows, self.column_signs * weights)
        return self.row_signs[rows] * product, computed
