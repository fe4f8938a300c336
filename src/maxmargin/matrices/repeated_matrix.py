"""A matrix in which several variables belong to the same sample, M_ij = base[sample_i, sample_j].

ν-regression and the split form of other regressions have two variables per sample, one for each side of the tube. A
value is computed once for all of them.
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

#: Columns of which at least this fraction belong to different samples are computed as they are: copying all values
#: takes longer than computing the few repeated ones.
MIN_DISTINCT_FRACTION = 0.75


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

    def stored(self) -> tuple[Floats, Indices | None] | None:
        if (stored := self.base.stored()) is None:
            return None
        values, rows = stored
        return values, self.sample if rows is None else rows[self.sample]

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.sample]

    def block(self, rows: Indices, columns: Indices) -> Floats:
        samples, inverse = np.unique(self.sample[columns], return_inverse=True)
        values = self.base.block(self.sample[rows], samples)
        in_order = len(samples) == len(columns) and (np.diff(inverse) == 1).all()
        return values if in_order else np.take(values, inverse, axis=1)

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(_sum_by_sample(self.sample, vector, self.base.size))[self.sample]

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        samples, inverse = np.unique(self.sample[columns], return_inverse=True)
        return self.base.partial_product(self.sample[rows], samples, _sum_by_sample(inverse, weights, len(samples)))

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
        chosen = self.sample[columns]
        distinct, inverse = _distinct(chosen, self.base.size)
        if len(distinct) >= MIN_DISTINCT_FRACTION * len(chosen):
            return _ColumnsOfSamples(self.base.float32_columns(chosen), self.sample, self.base.size)
        return _RepeatedColumns(self.base.float32_columns(distinct), self.sample, self.base.size, inverse)


@dataclass(frozen=True)
class _ColumnsOfSamples:
    """Columns of variables that hardly share a sample, as in a working set: the few repeated ones are computed."""

    columns: Float32Columns
    sample: Indices
    size: int

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        return self.columns.fill(self.sample[rows], out, slots)

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        samples, place = _distinct(self.sample[rows], self.size)
        product, computed = self.columns.combine(samples, weights)
        return product[place], computed


@dataclass(frozen=True)
class _RepeatedColumns:
    """Distinct columns of the base matrix, each for one variable or several (`inverse`)."""

    columns: Float32Columns
    sample: Indices
    size: int
    inverse: Indices

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        samples, place = _distinct(self.sample[rows], self.size)
        order = np.argsort(place, kind="stable")
        starts = np.searchsorted(place[order], np.arange(len(samples) + 1))
        width, computed = len(self.inverse), 0
        step = max(1, TABLE_BYTES // (4 * max(1, width)))
        for start in range(0, len(samples), step):
            part = samples[start : start + step]
            table = np.empty((len(part), width), dtype=np.float32)  # at least as wide as the distinct columns
            computed += self.columns.fill(part, table, np.arange(len(part)))
            k = order[starts[start] : starts[start + len(part)]]
            out[slots[k], :width] = np.take(table, self.inverse, axis=1)[place[k] - start]
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        samples, place = _distinct(self.sample[rows], self.size)
        distinct = int(self.inverse.max(initial=-1)) + 1
        product, computed = self.columns.combine(samples, _sum_by_sample(self.inverse, weights, distinct))
        return product[place], computed


def _distinct(samples: Indices, count: int) -> tuple[Indices, Indices]:
    """Return the distinct ones of some samples out of `count`, in order, and the place of each sample among them."""
    used = np.zeros(count, dtype=bool)
    used[samples] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[samples]


def _sum_by_sample(sample: Indices, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each of `count` samples."""
    return np.bincount(sample, weights=values, minlength=count).astype(np.float64, copy=False)
