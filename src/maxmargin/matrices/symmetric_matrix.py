"""Protocols of symmetric matrices over sample indices, and blockwise products.

Solvers read rows, blocks, the diagonal and products; the matrix decides where the values come from: a kernel and
data, an array, a cache. Matrices wrap one another without knowing the wrapped type.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.deadline import check_deadline
from maxmargin.double_double import DoubleDouble
from maxmargin.matrices.features import Features
from maxmargin.matrices.rounding import Errors
from maxmargin.resources import blas_thread_limit

#: Maximum size of the block of values that a matrix-vector product builds at a time, in bytes.
BLOCK_BYTES = 8 * 2**20

#: Maximum size of the table of rows of a wrapped matrix that is built at a time, in bytes.
TABLE_BYTES = 2**26

#: Assumed number of multiplications per value of a matrix without a float32 path of its own: expensive, so that
#: the block solver caches its rows.
CAST_COST = 200


class Float32Columns(Protocol):
    """Some columns of a symmetric matrix in float32: half the memory of float64, twice the speed, seven digits."""

    @property
    def cost(self) -> int:
        """Approximate number of multiplications per value."""
        ...

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        """Write the values of the k-th row to the first entries of ``out[slots[k]]``; return the number computed."""
        ...

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        """Return Σ_c M[row, column c] weights[c] for every row, and the number of values computed."""
        ...


class SymmetricMatrix(Protocol):
    """A symmetric matrix of float64 values, whose columns are also available in float32."""

    @property
    def size(self) -> int:
        """The number of rows."""
        ...

    @property
    def rows_per_request(self) -> int:
        """The number of rows that are efficiently computed together."""
        ...

    @property
    def cost(self) -> int:
        """Approximate number of multiplications per value; 1 if values are only read from memory."""
        ...

    def checksum(self) -> int:
        """Return a checksum of the underlying data."""
        ...

    def in_memory(self) -> Floats | None:
        """Return the full matrix as a read-only, finite, C-ordered array if it is in memory already."""
        ...

    def stored(self) -> tuple[Floats, Indices | None] | None:
        """Return an array in memory that holds all values, and the row of each variable in it, None for all in order.

        None if there is no such C-ordered float64 array.
        """
        ...

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        ...

    def rows(self, indices: Indices) -> Floats:
        """Return full rows."""
        ...

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return the submatrix of `rows` and `columns`."""
        ...

    def matvec(self, vector: Floats) -> Floats:
        """Return the product with a vector, without forming the matrix."""
        ...

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        """Return Σ_c M[row, column c] weights[c] for some rows."""
        ...

    def magnitudes(self) -> Floats:
        """Return numbers m with |M_ij| ≤ m_i m_j."""
        ...

    def diagonal_error(self) -> Floats:
        """Return bounds on the rounding errors of the diagonal."""
        ...

    def product_error(self, vector: Floats) -> Errors:
        """Return bounds on the rounding errors of ``matvec(vector)``."""
        ...

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        """Return the product with a vector in double-double arithmetic."""
        ...

    def extended_work(self, count: int) -> float:
        """Return the number of multiplications of `extended_product`, for a vector with `count` non-zeros."""
        ...

    def uncached(self) -> SymmetricMatrix:
        """Return the same matrix without precomputed values."""
        ...

    def take(self, indices: Indices) -> SymmetricMatrix:
        """Return the principal submatrix of some variables."""
        ...

    def float32_columns(self, columns: Indices) -> Float32Columns:
        """Return some columns in float32."""
        ...

    def features(self) -> Features | None:
        """Return the feature rows whose inner products are the values; None if there are none."""
        ...


class WrappedMatrix:
    """Base class of matrices that are derived from another one, whose properties they share by default."""

    base: SymmetricMatrix

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
        return None

    def stored(self) -> tuple[Floats, Indices | None] | None:
        values = self.in_memory()
        return None if values is None else (values, None)

    def diagonal(self) -> Floats:
        return self.base.diagonal()

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    @abstractmethod
    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return the submatrix of `rows` and `columns`."""

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        return partial_product_by_blocks(self, rows, columns, weights)

    def magnitudes(self) -> Floats:
        return self.base.magnitudes()

    def diagonal_error(self) -> Floats:
        return self.base.diagonal_error()

    def product_error(self, vector: Floats) -> Errors:
        return self.base.product_error(vector)

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        return self.base.extended_product(vector)

    def extended_work(self, count: int) -> float:
        return self.base.extended_work(count)

    def features(self) -> Features | None:
        return None


class _Blocks(Protocol):
    """Matrices, for products of their blocks."""

    @property
    def size(self) -> int: ...

    def block(self, rows: Indices, columns: Indices) -> Floats: ...


def product_by_blocks(matrix: _Blocks, vector: Floats, max_rows: int | None = None) -> Floats:
    """Return matrix @ vector, computed in blocks of bounded size and only in the columns where the vector is not 0."""
    columns = np.flatnonzero(vector)
    return partial_product_by_blocks(matrix, np.arange(matrix.size), columns, vector[columns], max_rows)


def partial_product_by_blocks(
    matrix: _Blocks, rows: Indices, columns: Indices, weights: Floats, max_rows: int | None = None
) -> Floats:
    """Return Σ_c M[row, column c] weights[c] for every row, computed in blocks of bounded size."""
    out = np.zeros(len(rows))
    if len(columns):
        step = max(1, BLOCK_BYTES // (8 * len(columns)))
        step = step if max_rows is None else min(step, max_rows)
        for start in range(0, len(rows), step):
            check_deadline()
            part = slice(start, start + step)
            block = matrix.block(rows[part], columns)
            # BLAS threads would spin (see `numerics.inner`); einsum loses digits. Whether the product has overflowed is
            # checked where it is used.
            with blas_thread_limit(1), np.errstate(over="ignore", invalid="ignore"):
                out[part] = block @ weights
    return out


def extended_product_by_blocks(
    block: Callable[[Indices], DoubleDouble], size: int, vector: DoubleDouble, max_rows: int, threads: int = 1
) -> DoubleDouble:
    """Return the product with a vector; `block` returns some rows, in the columns of the vector."""
    out = DoubleDouble(np.zeros(size), np.zeros(size))
    if len(vector.high):
        step = max(1, min(max_rows, BLOCK_BYTES // (16 * len(vector.high))))
        for start in range(0, size, step):
            check_deadline()
            rows = np.arange(start, min(size, start + step))
            table = block(rows)
            part = slice(start, start + len(rows))
            _native.extended_table_product(*table, *vector, out.high[part], out.low[part], threads)
    return out


@dataclass(frozen=True)
class CastColumns:
    """Float32 columns of a matrix that computes float64 values, in blocks of bounded size."""

    matrix: SymmetricMatrix
    columns: Indices

    @property
    def cost(self) -> int:
        return CAST_COST

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        with np.errstate(over="ignore"):  # overflow of float32 is reported where the values are used
            for part in self._parts(len(rows)):
                check_deadline()
                out[slots[part], : len(self.columns)] = self.matrix.block(rows[part], self.columns)
        return len(rows) * len(self.columns)

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        out = np.empty(len(rows))
        with np.errstate(over="ignore", invalid="ignore"):  # as in `partial_product`
            for part in self._parts(len(rows)):
                check_deadline()
                out[part] = self.matrix.block(rows[part], self.columns) @ weights
        return out, len(rows) * len(self.columns)

    def _parts(self, count: int) -> list[slice]:
        """Divide rows into blocks of bounded size; at most a quarter of the matrix at once."""
        step = max(1, min(self.matrix.size // 4, BLOCK_BYTES // (8 * max(1, len(self.columns)))))
        return [slice(start, start + step) for start in range(0, count, step)]
