"""The kernel matrix K_ij = k(x_i, x_j), computed on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels import Kernel, Linear, NativeKernel, Points
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.float32_kernel import Float32Kernel, float32_kernel
from maxmargin.kernels.kernel_columns import KernelColumns, batches, combine_in_batches, kernel_product
from maxmargin.kernels.points import evaluation_cost, extended_cost
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.matrices.features import Features
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import (
    CastColumns,
    Float32Columns,
    extended_product_by_blocks,
    partial_product_by_blocks,
    product_by_blocks,
)

#: Approximate number of values per request of a vectorised kernel: enough to amortise the call.
REQUEST_VALUES = 2**16

#: Roundings of a sum besides those of its length: products, lanes of a vector, groups of columns.
FIXED_ROUNDINGS = 32

#: Error of a kernel value in double-double arithmetic, relative to the bound on that in float64. The error of a sum of
#: up to 2²⁰ features is 4 (q + 8)² 2⁻¹⁰⁶ in place of q 2⁻⁵³; that of the exponential 2⁻⁹⁰ in place of 2⁻⁵⁰.
EXTENDED_ERROR_RATIO = 2.0**-28

#: Number of rows per block of kernel values in double-double arithmetic.
EXTENDED_ROWS = 256

#: A block of more than one in so many samples of a device copies all of them to host memory, for later blocks.
MANY_SAMPLES = 4

#: Number of rows per call of a user's function: a few amortise the call, more might never be used.
FUNCTION_ROWS = 8


@dataclass(frozen=True)
class KernelMatrix:
    """K_ij = k(x_i, x_j). No values are stored; `CachedMatrix` caches rows.

    Parameters
    ----------
    kernel : Kernel
    points : Points
    threads : int
        Number of threads that compute blocks; the values do not depend on it.
    device : str
        ``"cpu"``, or the GPU that computes products with the matrix, in float64 as well.
    sums : FeatureSums
        The arithmetic of sums over features in these products.
    """

    kernel: Kernel
    points: Points
    threads: int = 1
    device: str = "cpu"
    sums: FeatureSums = FeatureSums.DOUBLE

    def __post_init__(self) -> None:
        self.kernel.check(self.points)

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def rows_per_request(self) -> int:
        if not self.kernel.vectorised:
            return min(FUNCTION_ROWS, max(1, self.size // 4))
        return max(1, REQUEST_VALUES // max(1, self.size))

    @property
    def cost(self) -> int:
        return evaluation_cost(self.points)

    def checksum(self) -> int:
        return self.points.checksum()

    def in_memory(self) -> None:
        return None

    def stored(self) -> None:
        return None

    def diagonal(self) -> Floats:
        return self.kernel.diagonal(self.points)

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        left, right = self._samples(rows, columns)
        if isinstance(self.kernel, NativeKernel):
            return self.kernel.evaluate(left, right, self.threads)
        return self.kernel.evaluate(left, right)

    def _samples(self, rows: Indices, columns: Indices) -> tuple[Points, Points]:
        """Return some samples twice; of those on a device, few are copied, and for many of them all, once."""
        left, right = self.points.take(rows), self.points.take(columns)
        if isinstance(self.points.table, DeviceRows) and MANY_SAMPLES * (len(left) + len(right)) <= self.points.count:
            return Points(left.values()), Points(right.values())
        return left, right

    def matvec(self, vector: Floats) -> Floats:
        vector = np.asarray(vector, dtype=np.float64)
        rows = self.features()
        if rows is not None:
            return rows.decisions(rows.weights(vector))
        used = np.flatnonzero(vector)
        if self.device != "cpu":
            from maxmargin.cuda.prediction import host_product

            columns = self.points.take(used)
            return host_product(self.device, self.kernel, self.points, columns, vector[used], self.sums)
        if isinstance(self.kernel, NativeKernel):
            return kernel_product(self.kernel.formula, self.points, self.points.take(used), vector[used], self.threads)
        # A user's function is called on at most a quarter of the samples: never on the full matrix.
        max_rows = self.size if self.kernel.vectorised else max(1, self.size // 4)
        return product_by_blocks(self, vector, max_rows)

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        if isinstance(self.kernel, NativeKernel):
            left, right = self._samples(rows, columns)
            return kernel_product(self.kernel.formula, left, right, weights, self.threads)
        return partial_product_by_blocks(self, rows, columns, weights)

    def magnitudes(self) -> Floats:
        rows = self.features()
        return self.kernel.magnitudes(self.points) if rows is None else rows.norms

    def diagonal_error(self) -> Floats:
        return self.kernel.diagonal_error(self.points)

    def product_error(self, vector: Floats) -> Errors:
        rows = self.features()
        if rows is not None:
            return rows.product_error(vector)
        used = np.flatnonzero(vector)
        # Sparse products on a GPU are summed in an order that is not ours.
        in_lanes = isinstance(self.kernel, NativeKernel) and (
            self.device == "cpu" or not sparse.issparse(self.points.table)
        )
        return expansion_error(self, self.take(used), vector[used], in_lanes)

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        rows = self.features()
        if rows is not None:
            return rows.extended_decisions(rows.extended_weights(vector))
        used = np.flatnonzero(vector.high)
        columns, coefficients = self.points.take(used), vector.take(used)

        def block(rows: Indices) -> DoubleDouble:
            return self.kernel.evaluate_extended(self.points.take(rows), columns, self.threads)

        max_rows = EXTENDED_ROWS if self.kernel.vectorised else max(1, self.size // 4)
        return extended_product_by_blocks(block, self.size, coefficients, max_rows, self.threads)

    def extended_work(self, count: int) -> float:
        rows = self.features()
        if rows is not None:
            return 2.0 * rows.stored
        return float(self.size) * count * extended_cost(self.points, EXTENDED_ROWS + count)

    def uncached(self) -> KernelMatrix:
        return replace(self)

    def take(self, indices: Indices) -> KernelMatrix:
        return replace(self, points=self.points.take(indices))

    def features(self) -> Features | None:
        return Features(self.points, threads=self.threads) if isinstance(self.kernel, Linear) else None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        kernel = float32_kernel(self.kernel, self.points, self.threads)
        if kernel is None:
            return CastColumns(self, columns)
        packed = kernel.columns(self.points.index[columns], self.threads)
        return _Float32KernelColumns(packed, kernel, self.points.index, len(columns), evaluation_cost(kernel.points))


@dataclass(frozen=True)
class _Float32KernelColumns:
    """Columns of a kernel matrix in float32."""

    columns: KernelColumns
    kernel: Float32Kernel
    index: Indices
    count: int
    cost: int

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        self.columns.fill(self.kernel.rows(self.index[rows]), out, slots)
        return len(rows) * self.count

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product = combine_in_batches(self.columns, self.kernel.rows(self.index[rows]), weights)
        return product, len(rows) * self.count


def expansion_values(matrix: KernelMatrix, columns: KernelMatrix, weights: Floats) -> tuple[Floats, Errors]:
    """Return Σ_j weights_j k(x, z_j), x the samples of one matrix and z those of another, and bounds on its errors."""
    kernel, points = matrix.kernel, matrix.points
    if isinstance(kernel, NativeKernel):
        values = kernel_product(kernel.formula, points, columns.points, weights, matrix.threads)
        return values, expansion_error(matrix, columns, weights, in_lanes=True)
    values, step = np.empty(len(points)), max(1, REQUEST_VALUES // max(1, columns.size))
    for start in range(0, len(points), step):
        check_deadline()
        rows = slice(start, start + step)
        values[rows] = kernel.evaluate(points.take(rows), columns.points) @ weights
    return values, expansion_error(matrix, columns, weights)


def expansion_error(matrix: KernelMatrix, columns: KernelMatrix, weights: Floats, in_lanes: bool = False) -> Errors:
    """Return bounds on the errors of Σ_j weights_j k(x, z_j), x the samples of one matrix and z those of another.

    `in_lanes` if the sums are those of the native loops, of at least eight values side by side.
    """
    kernel, magnitude = matrix.kernel, np.abs(weights)
    in_double = kernel.error_bound(matrix.points, columns.points, magnitude)
    values = in_double
    if matrix.sums is not FeatureSums.DOUBLE:
        values = kernel.error_bound(matrix.points, columns.points, magnitude, matrix.sums)
    size = kernel.magnitudes(matrix.points) * float(kernel.magnitudes(columns.points) @ magnitude)
    roundings = len(weights) + FIXED_ROUNDINGS
    if in_lanes:
        roundings = len(weights) // 8 + FIXED_ROUNDINGS + len(batches(columns.points))
    most = 2.02 * size  # both the exact and the computed value are within these magnitudes
    of_values = Errors(np.fmin(values, most), np.fmin(EXTENDED_ERROR_RATIO * in_double, most))
    return sum_errors(len(weights), roundings, size).plus(of_values)
