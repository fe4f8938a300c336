"""The matrix of differences of samples: inner products of Φ(x_i) − Φ(x_j) for pairs p = (i, j) and q = (k, l).

    M_pq = (K_ik − K_jk) − (K_il − K_jl)

Ranking has a variable for each pair of samples. There are many more pairs than samples, so products go through the
samples: a vector over pairs becomes one over samples, meets K, and its differences are the product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix

#: The largest table of rows of the base matrix that is built at once, in bytes.
TABLE_BYTES = 2**26

#: The largest matrix that is shown as a whole, in values, and about how many values are worth a request.
WHOLE_VALUES, REQUEST_VALUES = 2**20, 2**16

#: Rows whose differences are taken together: they stay in the processor's memory.
STRIP = 64

#: Pairs whose own values are computed together; those of unrelated samples are computed in vain.
TOGETHER = 128

#: A value takes two differences besides its share of the base matrix's values.
DIFFERENCES = 2


@dataclass(frozen=True)
class DifferenceMatrix:
    """The matrix of the differences `first` − `second` of samples of another matrix."""

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
        return DIFFERENCES + _share(self.base.cost, self.base.size, self.size)

    def checksum(self) -> int:
        return self.base.checksum()

    def in_memory(self) -> Floats | None:
        if self.size**2 > WHOLE_VALUES or self.base.in_memory() is None:
            return None
        return self.rows(np.arange(self.size))

    def diagonal(self) -> Floats:
        return self._diagonal.copy()

    @cached_property
    def _diagonal(self) -> Floats:
        out, own = np.empty(self.size), self.base.diagonal()
        order = np.lexsort((self.second, self.first))
        for start in range(0, self.size, TOGETHER):
            some = order[start : start + TOGETHER]
            i, j = self.first[some], self.second[some]
            left, at_left = np.unique(i, return_inverse=True)
            right, at_right = np.unique(j, return_inverse=True)
            between = self.base.block(left, right)[at_left, at_right]
            out[some] = (own[i] - between) - (between - own[j])
        return out

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        out = np.empty((len(rows), len(columns)))
        across = self.ends(columns)
        for some in _parts(len(rows), len(across.samples)):
            down = self.ends(rows[some])
            across.write(down.apart(self.base.block(down.samples, across.samples)), out, np.arange(len(rows))[some])
        return out

    def ends(self, pairs: Indices) -> _Ends:
        """Return the samples of some pairs."""
        return _Ends.of(self.first[pairs], self.second[pairs], self.base.size)

    def matvec(self, vector: Floats) -> Floats:
        product = self.base.matvec(self.of_samples(vector))
        return np.asarray(product[self.first] - product[self.second])

    def of_samples(self, values: Floats) -> Floats:
        """Return the coefficient of each sample in Σ values · difference."""
        return _Ends(np.arange(self.base.size), self.first, self.second).spread(values)

    def uncached(self) -> DifferenceMatrix:
        return DifferenceMatrix(self.base.uncached(), self.first, self.second)

    def take(self, indices: Indices) -> DifferenceMatrix:
        return DifferenceMatrix(self.base, self.first[indices], self.second[indices])

    def features(self) -> None:
        return None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        across = self.ends(columns)
        return _DifferenceColumns(self.base.float32_columns(across.samples), self, across)


@dataclass(frozen=True)
class _Ends:
    """The distinct samples of some pairs, and which of them each pair begins and ends with."""

    samples: Indices
    first: Indices
    second: Indices

    @classmethod
    def of(cls, first: Indices, second: Indices, size: int) -> _Ends:
        used = np.zeros(size, dtype=bool)
        used[first] = used[second] = True
        place = np.cumsum(used) - 1
        return cls(np.flatnonzero(used), place[first], place[second])

    def apart(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the differences of the rows of the samples, one for each pair."""
        difference = values[self.first]
        difference -= values[self.second]
        return difference

    def write(self, values: NDArray[np.floating], out: NDArray[np.floating], slots: Indices) -> None:
        """Write the differences of the columns of the samples, one for each pair, to the front of rows of `out`."""
        for start in range(0, len(values), STRIP):
            strip = values[start : start + STRIP]
            difference = np.take(strip, self.first, axis=1, mode="clip")  # without a second look at every index
            difference -= np.take(strip, self.second, axis=1, mode="clip")
            out[slots[start : start + STRIP], : len(self.first)] = difference

    def spread(self, values: Floats) -> Floats:
        """Return the sum of values of pairs by sample, counted against the second of each pair."""
        size = len(self.samples)
        won = np.bincount(self.first, weights=values, minlength=size)
        return np.asarray(won - np.bincount(self.second, weights=values, minlength=size))


@dataclass(frozen=True)
class _DifferenceColumns:
    """Columns of the base matrix whose differences are columns of the matrix of pairs."""

    columns: Float32Columns
    matrix: DifferenceMatrix
    across: _Ends

    @property
    def cost(self) -> int:
        return DIFFERENCES + _share(self.columns.cost, len(self.across.samples), len(self.across.first))

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        computed = 0
        for some in _parts(len(rows), len(self.across.samples)):
            down = self.matrix.ends(rows[some])
            table = np.empty((len(down.samples), len(self.across.samples)), dtype=np.float32)
            computed += self.columns.fill(down.samples, table, np.arange(len(down.samples)))
            self.across.write(down.apart(table), out, slots[some])
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        down = self.matrix.ends(rows)
        product, computed = self.columns.combine(down.samples, self.across.spread(weights))
        return product[down.first] - product[down.second], computed


def _parts(rows: int, width: int) -> list[slice]:
    """Divide rows so that a table of the samples of each part has a bounded size."""
    step = max(1, TABLE_BYTES // (16 * max(1, width)))
    return [slice(start, start + step) for start in range(0, rows, step)]


def _share(cost: int, samples: int, pairs: int) -> int:
    """Return what a value of a row costs if two rows of the base serve for all pairs."""
    return min(2 * cost, 2 * cost * samples // max(1, pairs))
