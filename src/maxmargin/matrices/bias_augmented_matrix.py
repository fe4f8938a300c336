"""A matrix plus a constant, M_ij = base_ij + constant: the kernel matrix of samples with one more, constant feature.

The weight of that feature is a bias that is regularised like the other weights, as in LIBLINEAR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble, exact_sum
from maxmargin.matrices.features import Features
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix, WrappedMatrix
from maxmargin.precision import UNIT_ROUNDOFF


@dataclass(frozen=True)
class BiasAugmentedMatrix(WrappedMatrix):
    """The matrix `base` with `constant` added to every value."""

    base: SymmetricMatrix
    constant: float = 1.0

    def in_memory(self) -> Floats | None:
        values = self.base.in_memory()
        return None if values is None else values + self.constant

    def diagonal(self) -> Floats:
        return self.base.diagonal() + self.constant

    def rows(self, indices: Indices) -> Floats:
        return self.base.rows(indices) + self.constant

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.base.block(rows, columns) + self.constant

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(vector) + self.constant * float(np.sum(vector))

    def magnitudes(self) -> Floats:
        return np.hypot(self.base.magnitudes(), np.sqrt(self.constant))

    def diagonal_error(self) -> Floats:
        return self.base.diagonal_error() + UNIT_ROUNDOFF * self.magnitudes() ** 2

    def product_error(self, vector: Floats) -> Errors:
        size = self.magnitudes() * float(self.magnitudes() @ np.abs(vector))
        return self.base.product_error(vector).plus(sum_errors(len(vector), len(vector) + 4, size))

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        total = DoubleDouble.of(np.full(self.size, exact_sum(vector)))
        rest = exact_sum(vector, DoubleDouble.of(-total.high[:1]))
        bias = DoubleDouble(total.high, np.full(self.size, rest)).scaled(self.constant)
        return self.base.extended_product(vector).plus(bias)

    def uncached(self) -> BiasAugmentedMatrix:
        return BiasAugmentedMatrix(self.base.uncached(), self.constant)

    def take(self, indices: Indices) -> BiasAugmentedMatrix:
        return BiasAugmentedMatrix(self.base.take(indices), self.constant)

    def features(self) -> Features | None:
        rows = self.base.features()
        if rows is None or rows.constant:
            return None
        return Features(rows.points, float(np.sqrt(self.constant)), rows.threads)

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _BiasAugmentedColumns(self.base.float32_columns(columns), len(columns), self.constant)


@dataclass(frozen=True)
class _BiasAugmentedColumns:
    """Columns of the base matrix plus the constant."""

    columns: Float32Columns
    count: int
    constant: float

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = self.columns.fill(rows, out, slots)
        for slot in slots:
            out[slot, : self.count] += np.float32(self.constant)
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = self.columns.combine(rows, weights)
        return product + self.constant * float(weights.sum()), computed
