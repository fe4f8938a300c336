"""The matrix of inner products of differences Φ(x_i) − Φ(x_j), for pairs p = (i, j) and q = (k, l) of samples.

    M_pq = (K_ik − K_jk) − (K_il − K_jl)

Ranking has a variable for each pair of samples. With D the matrix of differences (+1 for the first, −1 for the second
sample of a pair), M = D K Dᵀ. There are many more pairs than samples, so products are computed by sample: D (K (Dᵀ b)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble, extended_sums
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import (
    TABLE_BYTES,
    Float32Columns,
    SymmetricMatrix,
    WrappedMatrix,
)

#: Maximum number of values of a matrix that `in_memory` builds.
MAX_FULL_VALUES = 2**20

#: Approximate number of values per request.
REQUEST_VALUES = 2**16

#: Number of rows whose differences are computed together, so that they stay in the processor's cache.
STRIP_ROWS = 64

#: Number of pairs whose diagonal values are computed together; most values of the block of their samples are not used.
DIAGONAL_PAIRS = 128

#: Subtractions per value, besides the evaluations of the base matrix.
SUBTRACTIONS = 2


@dataclass(frozen=True)
class DifferenceMatrix(WrappedMatrix):
    """The matrix of the differences `first` − `second` of samples of the base matrix."""

    base: SymmetricMatrix
    first: Indices
    second: Indices

    @property
    def size(self) -> int:
        return len(self.first)

    @property
    def rows_per_request(self) -> int:
        return max(1, REQUEST_VALUES // max(1, self.size))

    @property
    def cost(self) -> int:
        return SUBTRACTIONS + _base_cost(self.base.cost, self.base.size, self.size)

    def in_memory(self) -> Floats | None:
        if self.size**2 > MAX_FULL_VALUES or self.base.in_memory() is None:
            return None
        return self.rows(np.arange(self.size))

    def diagonal(self) -> Floats:
        return self._diagonal.copy()

    @cached_property
    def _diagonal(self) -> Floats:
        out, own = np.empty(self.size), self.base.diagonal()
        order = np.lexsort((self.second, self.first))
        for start in range(0, self.size, DIAGONAL_PAIRS):
            pairs = order[start : start + DIAGONAL_PAIRS]
            i, j = self.first[pairs], self.second[pairs]
            left, left_inverse = np.unique(i, return_inverse=True)
            right, right_inverse = np.unique(j, return_inverse=True)
            between = self.base.block(left, right)[left_inverse, right_inverse]
            out[pairs] = (own[i] - between) - (between - own[j])
        return out

    def block(self, rows: Indices, columns: Indices) -> Floats:
        out = np.empty((len(rows), len(columns)))
        right = self.samples_of(columns)
        for part in _parts(len(rows), len(right.samples)):
            left = self.samples_of(rows[part])
            values = left.row_differences(self.base.block(left.samples, right.samples))
            right.write_column_differences(values, out, np.arange(len(rows))[part])
        return out

    def samples_of(self, pairs: Indices) -> _PairSamples:
        """Return the samples of some pairs."""
        return _PairSamples.of(self.first[pairs], self.second[pairs], self.base.size)

    def matvec(self, vector: Floats) -> Floats:
        product = self.base.matvec(self.sample_coefficients(vector))
        return np.asarray(product[self.first] - product[self.second])

    def sample_coefficients(self, values: Floats) -> Floats:
        """Return Dᵀ values: the coefficient of each sample in Σ values · difference."""
        return _PairSamples(np.arange(self.base.size), self.first, self.second).sum_by_sample(values)

    def magnitudes(self) -> Floats:
        size = self.base.magnitudes()
        return np.asarray(size[self.first] + size[self.second])

    def product_error(self, vector: Floats) -> Errors:
        size, total = self.base.magnitudes(), np.zeros(self.base.size)
        for pairs in (self.first, self.second):
            total += np.bincount(pairs, np.abs(vector), self.base.size)
        most = int(max(np.bincount(pairs).max(initial=0) for pairs in (self.first, self.second)))
        errors = self.base.product_error(total).plus(sum_errors(most, most + 4, size * float(size @ total)))
        return errors.take(self.first).plus(errors.take(self.second))

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        as_first = extended_sums(self.first, vector, self.base.size)
        coefficients = as_first.minus(extended_sums(self.second, vector, self.base.size))
        product = self.base.extended_product(coefficients)
        return product.take(self.first).minus(product.take(self.second))

    def uncached(self) -> DifferenceMatrix:
        return DifferenceMatrix(self.base.uncached(), self.first, self.second)

    def take(self, indices: Indices) -> DifferenceMatrix:
        return DifferenceMatrix(self.base, self.first[indices], self.second[indices])

    def float32_columns(self, columns: Indices) -> Float32Columns:
        right = self.samples_of(columns)
        return _DifferenceColumns(self.base.float32_columns(right.samples), self, right)


@dataclass(frozen=True)
class _PairSamples:
    """The distinct samples of some pairs, and the positions among them of the first and second sample of each pair."""

    samples: Indices
    first: Indices
    second: Indices

    @classmethod
    def of(cls, first: Indices, second: Indices, size: int) -> _PairSamples:
        used = np.zeros(size, dtype=bool)
        used[first] = used[second] = True
        place = np.cumsum(used) - 1
        return cls(np.flatnonzero(used), place[first], place[second])

    def row_differences(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the differences of the rows of the samples, one row per pair."""
        difference = values[self.first]
        difference -= values[self.second]
        return difference

    def write_column_differences(self, values: NDArray[np.floating], out: NDArray[np.floating], slots: Indices) -> None:
        """Write the differences of the columns of the samples, one per pair, to the first entries of rows of `out`."""
        for start in range(0, len(values), STRIP_ROWS):
            strip = values[start : start + STRIP_ROWS]
            difference = np.take(strip, self.first, axis=1, mode="clip")  # without bounds checks
            difference -= np.take(strip, self.second, axis=1, mode="clip")
            out[slots[start : start + STRIP_ROWS], : len(self.first)] = difference

    def sum_by_sample(self, values: Floats) -> Floats:
        """Return the sum of the values of the pairs by sample, negative for the second sample of each pair."""
        size = len(self.samples)
        as_first = np.bincount(self.first, weights=values, minlength=size)
        return np.asarray(as_first - np.bincount(self.second, weights=values, minlength=size))


@dataclass(frozen=True)
class _DifferenceColumns:
    """Columns of the base matrix whose differences are columns of the difference matrix."""

    columns: Float32Columns
    matrix: DifferenceMatrix
    right: _PairSamples

    @property
    def cost(self) -> int:
        return SUBTRACTIONS + _base_cost(self.columns.cost, len(self.right.samples), len(self.right.first))

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = 0
        for part in _parts(len(rows), len(self.right.samples)):
            left = self.matrix.samples_of(rows[part])
            table = np.empty((len(left.samples), len(self.right.samples)), dtype=np.float32)
            computed += self.columns.fill(left.samples, table, np.arange(len(left.samples)))
            self.right.write_column_differences(left.row_differences(table), out, slots[part])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        left = self.matrix.samples_of(rows)
        product, computed = self.columns.combine(left.samples, self.right.sum_by_sample(weights))
        return product[left.first] - product[left.second], computed


def _parts(rows: int, width: int) -> list[slice]:
    """Divide rows into parts whose tables of samples have at most `TABLE_BYTES`."""
    step = max(1, TABLE_BYTES // (16 * max(1, width)))
    return [slice(start, start + step) for start in range(0, rows, step)]


def _base_cost(cost: int, samples: int, pairs: int) -> int:
    """Return the cost per value of a row if two rows of the base serve all pairs."""
    return min(2 * cost, 2 * cost * samples // max(1, pairs))
