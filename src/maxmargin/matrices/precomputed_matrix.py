"""A matrix given as an array, in memory or memory-mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.points import checksum_of
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import (
    CastColumns,
    Float32Columns,
    SymmetricMatrix,
    extended_product_by_blocks,
    partial_product_by_blocks,
    product_by_blocks,
)

#: Maximum number of values that are copied per request.
REQUEST_VALUES = 2**20


@dataclass(frozen=True)
class PrecomputedMatrix:
    """The rows and columns `index` of a square array, possibly computed from another matrix, the `origin`."""

    values: NDArray[np.floating]
    index: Indices | None = None
    origin: SymmetricMatrix | None = None

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != self.values.shape[1]:
            shape = " x ".join(map(str, self.values.shape))
            raise ValueError(
                f"a precomputed kernel matrix must be square, one row and one column per sample; this one is {shape}"
            )
        if self.index is not None and np.array_equal(self.index, np.arange(len(self.values))):
            object.__setattr__(self, "index", None)  # all rows in order: no index needed

    @property
    def size(self) -> int:
        return len(self.values) if self.index is None else len(self.index)

    @property
    def rows_per_request(self) -> int:
        return max(1, REQUEST_VALUES // max(1, self.size))

    @property
    def cost(self) -> int:
        return 1

    def checksum(self) -> int:
        return checksum_of(self.values)

    def in_memory(self) -> Floats | None:
        if self.size**2 > REQUEST_VALUES:
            return None
        if self.index is not None:
            return self.block(np.arange(self.size), np.arange(self.size))
        stored = self.stored()
        return np.ascontiguousarray(self.values, dtype=np.float64) if stored is None else stored[0]

    def stored(self) -> tuple[Floats, Indices | None] | None:
        usable = self.values.dtype == np.float64 and self.values.flags.c_contiguous
        return (np.asarray(self.values), self.index) if usable else None

    def diagonal(self) -> Floats:
        if self.index is None:
            return np.array(np.diagonal(self.values), dtype=np.float64)
        return np.asarray(self.values[self.index, self.index], dtype=np.float64)

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        if self.index is not None:
            rows, columns = self.index[rows], self.index[columns]
        elif len(columns) == self.size and np.array_equal(columns, np.arange(self.size)):
            return np.ascontiguousarray(self.values[rows], dtype=np.float64)
        if not self.values.flags.c_contiguous or self.values.dtype not in (np.float32, np.float64):
            return np.ascontiguousarray(self.values[rows[:, None], columns], dtype=np.float64)
        picked = np.empty((len(rows), len(columns)))
        _native.gather(np.asarray(self.values), rows, columns, picked, 1)
        return picked

    def matvec(self, vector: Floats) -> Floats:
        return product_by_blocks(self, np.asarray(vector))

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        return partial_product_by_blocks(self, rows, columns, weights)

    def magnitudes(self) -> Floats:
        # |M_ij| ≤ √(M_ii M_jj) for a positive semi-definite matrix.
        return np.sqrt(np.abs(self.diagonal())) if self.origin is None else self.origin.magnitudes()

    def diagonal_error(self) -> Floats:
        return np.zeros(self.size) if self.origin is None else self.origin.diagonal_error()

    def product_error(self, vector: Floats) -> Errors:
        """Return bounds on the rounding errors of the product; the values are exact unless they were computed."""
        used, size = np.flatnonzero(vector), self.magnitudes()
        errors = sum_errors(len(used), len(used) + 4, size * float(size @ np.abs(vector)))
        return errors if self.origin is None else errors.plus(self.origin.product_error(vector))

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        if self.origin is not None:
            return self.origin.extended_product(vector)
        used = np.flatnonzero(vector.high)
        return extended_product_by_blocks(
            lambda rows: DoubleDouble.of(self.block(rows, used)), self.size, vector.take(used), self.size
        )

    def extended_work(self, count: int) -> float:
        return float(self.size) * count if self.origin is None else self.origin.extended_work(count)

    def uncached(self) -> SymmetricMatrix:
        return self if self.origin is None else self.origin

    def take(self, indices: Indices) -> PrecomputedMatrix:
        return PrecomputedMatrix(self.values, indices if self.index is None else self.index[indices])

    def features(self) -> None:
        return None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return CastColumns(self, columns)
