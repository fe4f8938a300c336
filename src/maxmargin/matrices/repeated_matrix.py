"""A matrix in which several variables belong to the same sample, M_ij = base[sample_i, sample_j].

Regression has two variables per sample, one for each side of the tube. A value is computed once for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble, extended_sums
from maxmargin.matrices.features import Features
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import (
    TABLE_BYTES,
    Float32Columns,
    SymmetricMatrix,
    WrappedMatrix,
)


@dataclass(frozen=True)
class RepeatedMatrix(WrappedMatrix):
    """The matrix of variables that belong to the samples `sample` of the base matrix."""

    base: SymmetricMatrix
    sample: Indices

    @property
    def size(self) -> int:
        return len(self.sample)

    def in_memory(self) -> Floats | None:
        values = self.base.in_memory()
        return None if values is None else np.ascontiguousarray(values[self.sample[:, None], self.sample])

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.sample]

    def block(self, rows: Indices, columns: Indices) -> Floats:
        samples, inverse = np.unique(self.sample[columns], return_inverse=True)
        values = self.base.block(self.sample[rows], samples)
        in_order = len(samples) == len(columns) and (np.diff(inverse) == 1).all()
        return values if in_order else np.take(values, inverse, axis=1)

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(_sum_by_sample(self.sample, vector, self.base.size))[self.sample]

    def magnitudes(self) -> Floats:
        return self.base.magnitudes()[self.sample]

    def diagonal_error(self) -> Floats:
        return self.base.diagonal_error()[self.sample]

    def product_error(self, vector: Floats) -> Errors:
        total = _sum_by_sample(self.sample, np.abs(vector), self.base.size)
        size = self.base.magnitudes()
        # The sums by sample are rounded once for each variable of a sample; in double-double arithmetic they are exact.
        repeats = int(np.bincount(self.sample).max(initial=0))
        errors = self.base.product_error(total).plus(sum_errors(repeats, repeats, size * float(size @ total)))
        return errors.take(self.sample)

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        total = extended_sums(self.sample, vector, self.base.size)
        return self.base.extended_product(total).take(self.sample)

    def uncached(self) -> RepeatedMatrix:
        return RepeatedMatrix(self.base.uncached(), self.sample)

    def take(self, indices: Indices) -> RepeatedMatrix:
        return RepeatedMatrix(self.base, self.sample[indices])

    def features(self) -> Features | None:
        rows = self.base.features()
        return None if rows is None else rows.take(self.sample)

    def float32_columns(self, columns: Indices) -> Float32Columns:
        samples, inverse = np.unique(self.sample[columns], return_inverse=True)
        return _RepeatedColumns(self.base.float32_columns(samples), self.sample, len(samples), inverse)


@dataclass(frozen=True)
class _RepeatedColumns:
    """Distinct columns of the base matrix, each for one variable or several (`inverse`)."""

    columns: Float32Columns
    sample: Indices
    distinct: int
    inverse: Indices

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        samples, place = np.unique(self.sample[rows], return_inverse=True)
        order = np.argsort(place, kind="stable")
        width, computed = len(self.inverse), 0
        step = max(1, TABLE_BYTES // (4 * max(1, self.distinct)))
        table = np.empty((min(step, len(samples)), self.distinct), dtype=np.float32)
        for start in range(0, len(samples), step):
            part = samples[start : start + step]
            computed += self.columns.fill(part, table, np.arange(len(part)))
            for k in order[np.searchsorted(place[order], start) : np.searchsorted(place[order], start + len(part))]:
                np.take(table[place[k] - start], self.inverse, out=out[slots[k], :width])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        samples, place = np.unique(self.sample[rows], return_inverse=True)
        product, computed = self.columns.combine(samples, _sum_by_sample(self.inverse, weights, self.distinct))
        return product[place], computed


def _sum_by_sample(sample: Indices, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each of `count` samples."""
    return np.bincount(sample, weights=values, minlength=count).astype(np.float64, copy=False)
