"""Kernel values of samples that stay in host memory: dense tables of blocks of them are on a GPU, two at a time.

Data that are larger than the memory of the GPU are copied for every product; sparse ones whose dense table would be,
if the kernel needs that table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.cuda.halves import is_extreme
from maxmargin.cuda.kernel_values import KernelValues, StoredProducts, kernel_values, values_of_table
from maxmargin.cuda.samples import DeviceSamples, dense_rows, fits_on_device, free_memory, scaled_table
from maxmargin.cuda.sparse_values import SparseValues, fits_sparse, takes_sparse
from maxmargin.deadline import check_deadline
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points
from maxmargin.kernels.split_sums import FeatureSums

#: The fraction of the free memory for the rows and columns of a block; their halves take several times as much.
TABLE_FRACTION = 0.05

#: Blocks with fewer rows and columns than this are mostly overhead.
MIN_TABLE_ROWS = 256

#: From two dense tables to prepared samples for a formula.
SamplesOf = Callable[[Any, KernelFormula], DeviceSamples]


def values_of_points(kernel: Kernel, points: Points, device: int) -> KernelValues:
    """Return the values between all rows of the data behind the points, which are on the GPU if they fit."""
    if fits_on_device(points, device):
        return values_of_table(kernel, lambda formula: DeviceSamples.of(formula, points, device))
    return _values_without_table(kernel, points, device)


def precise_values_of_points(
    kernel: Kernel, points: Points, device: int, sums: FeatureSums = FeatureSums.DOUBLE
) -> KernelValues:
    """Return the same for products in float64; blocks of samples have sums over features in float64 in any case."""
    if fits_on_device(points, device):
        return values_of_table(kernel, lambda formula: DeviceSamples.on_device(formula, points, device, sums))
    return _values_without_table(kernel, points, device)


def _values_without_table(kernel: Kernel, points: Points, device: int) -> KernelValues:
    """Return the values of sparse data from sparse products where that is possible, others by blocks."""
    if not sparse.issparse(points.table):
        return BlockValues(kernel, points)

    def values_of(part: NativeKernel) -> KernelValues:
        if takes_sparse(part, points.data) and fits_sparse(points, device):
            return SparseValues.between(part.formula, points, points, device)
        return BlockValues(part, points)

    return kernel_values(kernel, values_of)


@dataclass(frozen=True)
class Tile:
    """Values between the rows of two tables.

    Attributes
    ----------
    values : KernelValues
        Of both tables, one below the other.
    rows, columns : int device arrays
        The numbers of the rows of the first and of the second one.
    """

    values: KernelValues
    rows: Any
    columns: Any

    @classmethod
    def of(cls, kernel: Kernel, left: Any, right: Any, samples_of: SamplesOf) -> Tile:
        """Return the values of a kernel between two dense device arrays."""
        xp = cupy()
        table = xp.concatenate([left, right])
        rows, columns = xp.arange(len(left), dtype=np.int32), xp.arange(len(left), len(table), dtype=np.int32)
        return cls(values_of_table(kernel, partial(samples_of, table)), rows, columns)


def prepared(table: Any, formula: KernelFormula) -> DeviceSamples:
    """Return a table for values in single precision."""
    data = scaled_table(formula, table)
    return DeviceSamples.unprepared(formula, data) if is_extreme(data) else DeviceSamples.prepare(formula, data)


def table_rows(width: int) -> int:
    """Return how many rows of so many features a block has, those of both sides.

    It is a power of 2, so that results seldom depend on how much memory is free.
    """
    rows = int(TABLE_FRACTION * free_memory()) // (8 * max(1, width))
    return max(2, 2 ** (rows.bit_length() - 1) if rows else 0)


@dataclass(frozen=True)
class BlockValues(StoredProducts):
    """Values between rows of data in host memory, dense or CSR.

    Parameters
    ----------
    kernel : Kernel
    points : Points
        Of which the data are used.
    """

    kernel: Kernel
    points: Points

    def __post_init__(self) -> None:
        width = self.points.table.shape[1]
        if table_rows(width) < min(MIN_TABLE_ROWS, self.size):
            raise DeviceError(
                f"a block of rows with {width:,} features does not fit into the memory of the GPU; use fewer features "
                "(TruncatedSVD), or device='cpu'"
            )

    @property
    def size(self) -> int:
        return int(self.points.table.shape[0])

    def square(self, rows: Any, columns: Any) -> Any:
        return self._stored(rows, columns, prepared, lambda tile: tile.values.square(tile.rows, tile.columns))

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self._stored(
            rows,
            columns,
            DeviceSamples.of_table,
            lambda tile: tile.values.precise_square(tile.rows, tile.columns),
        )

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        def product(tile: Tile, part: Any) -> Any:
            return tile.values.product_parts(tile.rows, tile.columns, part).sum(axis=0)

        return self._summed(rows, columns, weights, prepared, product)[None]

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        def product(tile: Tile, part: Any) -> Any:
            return tile.values.precise_product(tile.rows, tile.columns, part)

        return self._summed(rows, columns, weights, DeviceSamples.of_table, product)

    def _stored(self, rows: Any, columns: Any, samples_of: SamplesOf, values: Callable[[Tile], Any]) -> Any:
        xp = cupy()
        row_points, column_points = self._chosen(rows), self._chosen(columns)
        out = None
        for left, right, tile in self._tiles(row_points, column_points, samples_of):
            block = values(tile)
            out = xp.empty((len(row_points), len(column_points)), dtype=block.dtype) if out is None else out
            out[left, right] = block
        return xp.empty((len(row_points), len(column_points))) if out is None else out

    def _summed(
        self, rows: Any, columns: Any, weights: Any, samples_of: SamplesOf, product: Callable[[Tile, Any], Any]
    ) -> Any:
        row_points, column_points = self._chosen(rows), self._chosen(columns)
        out = cupy().zeros(len(row_points))
        for left, right, tile in self._tiles(row_points, column_points, samples_of):
            out[left] += product(tile, weights[right])
        return out

    def _chosen(self, numbers: Any) -> Points:
        """Return the samples of a device array of row numbers, None for all."""
        return self.points.pick(np.arange(self.size) if numbers is None else numbers.get())

    def _tiles(self, rows: Points, columns: Points, samples_of: SamplesOf) -> Iterator[tuple[slice, slice, Tile]]:
        most = table_rows(self.points.table.shape[1])
        width = max(1, min(len(columns), most // 2))
        height = max(1, most - width)
        for first in range(0, len(columns), width):
            right = slice(first, first + width)
            of_columns = dense_rows(columns.take(right))
            for start in range(0, len(rows), height):
                check_deadline()
                left = slice(start, start + height)
                yield left, right, Tile.of(self.kernel, dense_rows(rows.take(left)), of_columns, samples_of)
                cupy().cuda.get_current_stream().synchronize()
