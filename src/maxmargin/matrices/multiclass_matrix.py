"""The matrix of variables for pairs (sample, class): M_uv = base[sample_u, sample_v] within a class, 0 between classes.

All-in-one formulations for k classes have a weight vector for each class and k variables for each sample. The weight
vectors of different classes have no products, so the matrix is K ⊗ I. It is never formed: a value of the base is
computed once for all classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble, extended_sums
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import (
    BLOCK_BYTES,
    TABLE_BYTES,
    Float32Columns,
    SymmetricMatrix,
    WrappedMatrix,
)


@dataclass(frozen=True)
class MulticlassMatrix(WrappedMatrix):
    """The matrix of variables that belong to the samples `sample` of the base matrix and the classes `label`."""

    base: SymmetricMatrix
    sample: Indices
    label: Indices

    @staticmethod
    def for_classes(base: SymmetricMatrix, classes: int) -> MulticlassMatrix:
        """Return the matrix with a variable for every sample and class; those of the first sample come first."""
        count = base.size
        return MulticlassMatrix(base, np.repeat(np.arange(count), classes), np.tile(np.arange(classes), count))

    @cached_property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.label.max(initial=0)) + 1

    @property
    def size(self) -> int:
        return len(self.sample)

    @property
    def rows_per_request(self) -> int:
        return max(1, self.base.rows_per_request // self.classes)

    @property
    def cost(self) -> int:
        return max(1, self.base.cost // self.classes)

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.sample]

    def block(self, rows: Indices, columns: Indices) -> Floats:
        column_samples, column_inverse = np.unique(self.sample[columns], return_inverse=True)
        row_samples, row_inverse = np.unique(self.sample[rows], return_inverse=True)
        values = self.base.block(row_samples, column_samples)[row_inverse[:, None], column_inverse]
        values[self.label[rows][:, None] != self.label[columns]] = 0.0  # also where the value overflows
        return values

    def matvec(self, vector: Floats) -> Floats:
        """Return the product with a vector; each block of the base is multiplied by the vectors of all classes."""
        weights = self.by_sample(vector)
        used = np.flatnonzero(weights.any(axis=1))
        weights, count = weights[used], self.base.size
        product = np.zeros((count, self.classes))
        # Blocks of bounded size, and never more than a quarter of the base at a time.
        step = max(1, min(count // 4, BLOCK_BYTES // (8 * max(1, len(used)))))
        for start in range(0, count if len(used) else 0, step):
            part = np.arange(start, min(count, start + step))
            product[part] = self.base.block(part, used) @ weights
        return product[self.sample, self.label]

    def magnitudes(self) -> Floats:
        return self.base.magnitudes()[self.sample]

    def diagonal_error(self) -> Floats:
        return self.base.diagonal_error()[self.sample]

    def product_error(self, vector: Floats) -> Errors:
        weights, size = self.by_sample(np.abs(vector)), self.base.magnitudes()
        by_class = []
        for column in weights.T:
            used = int(np.count_nonzero(column))
            of_product = sum_errors(used, used + 8, size * float(size @ column))
            by_class.append(self.base.product_error(column).plus(of_product))
        place = self.sample, self.label
        return Errors(
            np.array([errors.double for errors in by_class]).T[place],
            np.array([errors.extended for errors in by_class]).T[place],
        )

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        sums = extended_sums(self.sample * self.classes + self.label, vector, self.base.size * self.classes)
        tables = [part.reshape(self.base.size, self.classes).T for part in sums]
        products = [
            self.base.extended_product(DoubleDouble(*map(np.ascontiguousarray, column)))
            for column in zip(*tables, strict=True)
        ]
        place = self.sample, self.label
        return DoubleDouble(
            np.array([product.high for product in products]).T[place],
            np.array([product.low for product in products]).T[place],
        )

    def extended_work(self, count: int) -> float:
        return self.base.extended_work(count)  # each class has its own variables

    def uncached(self) -> MulticlassMatrix:
        return MulticlassMatrix(self.base.uncached(), self.sample, self.label)

    def take(self, indices: Indices) -> MulticlassMatrix:
        return MulticlassMatrix(self.base, self.sample[indices], self.label[indices])

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _MulticlassColumns(self, columns)

    def by_sample(self, values: Floats) -> Floats:
        """Return the values of the variables as a table of samples and classes, summed over repeated variables."""
        places = self.sample * self.classes + self.label
        table = np.bincount(places, weights=values, minlength=self.base.size * self.classes)
        return table.astype(np.float64, copy=False).reshape(self.base.size, self.classes)


class _MulticlassColumns:
    """Some columns in float32."""

    def __init__(self, matrix: MulticlassMatrix, columns: Indices) -> None:
        self._matrix, self._labels = matrix, matrix.label[columns]
        self._samples, self._inverse = np.unique(matrix.sample[columns], return_inverse=True)
        self._columns = matrix.base.float32_columns(self._samples)

    @property
    def cost(self) -> int:
        return self._columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed, width = 0, len(self._inverse)
        step = max(1, TABLE_BYTES // (4 * max(1, len(self._samples))))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            samples, place = np.unique(self._matrix.sample[part], return_inverse=True)
            table = np.empty((len(samples), len(self._samples)), dtype=np.float32)
            computed += self._columns.fill(samples, table, np.arange(len(samples)))
            for k, row in enumerate(part):
                same_class = self._matrix.label[row] == self._labels
                out[slots[start + k], :width] = np.where(same_class, table[place[k], self._inverse], np.float32(0))
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = np.zeros(len(rows)), 0
        row_labels = self._matrix.label[rows]
        for c in range(self._matrix.classes):
            of_class = np.flatnonzero(row_labels == c)
            own = np.where(self._labels == c, weights, 0.0)
            if not len(of_class) or not own.any():
                continue
            by_sample = np.bincount(self._inverse, weights=own, minlength=len(self._samples))
            samples = self._matrix.sample[rows[of_class]]
            product[of_class], new = self._columns.combine(samples, by_sample.astype(np.float64, copy=False))
            computed += new
        return product, computed
