"""A matrix with a constant added to every value: M_ij = base_ij + constant.

A kernel plus 1 stands for samples with one more feature that is 1 everywhere. Its weight is a bias that is regularised
like the other weights, as in LIBLINEAR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix


@dataclass(frozen=True)
class BiasAugmentedMatrix:
    """Another matrix, all its values larger by `constant`."""

    base: SymmetricMatrix
    constant: float = 1.0

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
        return None if values is None else values + self.constant

    def diagonal(self) -> Floats:
        return self.base.diagonal() + self.constant

    def rows(self, indices: Indices) -> Floats:
        return self.base.rows(indices) + self.constant

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.base.block(rows, columns) + self.constant

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(vector) + self.constant * float(np.sum(vector))

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
        return _ShiftedColumns(self.base.float32_columns(columns), len(columns), self.constant)


@dataclass(frozen=True)
class _ShiftedColumns:
    """Columns of the base, each value larger."""

    columns: Float32Columns
    count: int
    constant: float

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        computed = self.columns.fill(rows, out, slots)
        for slot in slots:
            out[slot, : self.count] += np.float32(self.constant)
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = self.columns.combine(rows, weights)
        return product + self.constant * float(weights.sum()), computed
