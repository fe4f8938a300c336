"""Kernel values between rows of a table in GPU memory: of the built-in kernels, and of sums, products and multiples.

The product of a sum with a vector is the sum of two products, each fused. The values of a product of kernels are
multiplied in blocks of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from maxmargin.cuda import products
from maxmargin.cuda.device import cupy
from maxmargin.cuda.samples import DeviceSamples
from maxmargin.deadline import check_deadline
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.kernel import Kernel, Product, Scaled, Sum
from maxmargin.kernels.native_kernel import NativeKernel

#: Values of a block that are stored, and its columns: sums over them are in the precision of the values, sums of blocks
#: in float64.
BLOCK_VALUES, BLOCK_COLUMNS = 2**26, 4096


#: Functions, and functions times features, up to which sums are fused: more are multiplied from stored blocks. By
#: arithmetic: a value is computed again for each 16 functions, at 3 · features multiplications on tensor cores.
MAX_FUSED_FUNCTIONS, MAX_FUSED_WORK = 64, 2**15


class KernelValues(Protocol):
    """Kernel values between rows and columns, which are int32 device arrays of row numbers of the same table.

    None stands for all rows in order.
    """

    @property
    def size(self) -> int:
        """The number of rows of the table."""
        ...

    def square(self, rows: Any, columns: Any) -> Any:
        """Return the values in float32."""
        ...

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return rows whose sum is Σ_j weights_j k(row, column_j), with values in float32."""
        ...

    def several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ_j weights_jc k(row, column_j) for every row and function c, with values in float32."""
        ...

    def precise_square(self, rows: Any, columns: Any) -> Any:
        """Return the values in float64."""
        ...

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ_j weights_j k(row, column_j) in float64."""
        ...

    def precise_several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        """Return Σ_j weights_jc k(row, column_j) for every row and function c in float64."""
        ...


def parts_of(kernel: Kernel) -> Iterator[Kernel]:
    """Yield the kernels that a kernel is composed of, by sums, products and multiples."""
    if isinstance(kernel, Sum | Product):
        yield from parts_of(kernel.first)
        yield from parts_of(kernel.second)
    elif isinstance(kernel, Scaled):
        yield from parts_of(kernel.kernel)
    else:
        yield kernel


def is_supported(kernel: Kernel | None) -> bool:
    """Whether a GPU computes a kernel: a built-in one, or a sum, product or multiple of them."""
    return kernel is not None and all(isinstance(part, NativeKernel) for part in parts_of(kernel))


def kernel_values(kernel: Kernel, values_of: Callable[[NativeKernel], KernelValues]) -> KernelValues:
    """Return the values of a supported kernel, given those of the built-in kernels that it is composed of."""
    if isinstance(kernel, Scaled):
        return ScaledValues(kernel.factor, kernel_values(kernel.kernel, values_of))
    if isinstance(kernel, Sum | Product):
        kind = SumOfValues if isinstance(kernel, Sum) else ProductOfValues
        return kind(kernel_values(kernel.first, values_of), kernel_values(kernel.second, values_of))
    assert isinstance(kernel, NativeKernel)
    return values_of(kernel)


def values_of_table(kernel: Kernel, samples_of: Callable[[KernelFormula], DeviceSamples]) -> KernelValues:
    """Return the values of a supported kernel; `samples_of` prepares the table for a formula."""
    return kernel_values(kernel, lambda part: FormulaValues(samples_of(part.formula)))


class StoredProducts:
    """Sums of several functions from stored blocks of values."""

    def several_products(self: KernelValues, rows: Any, columns: Any, weights: Any) -> Any:
        """Return the sums, with values in float32."""
        index = _numbers(self, rows), _numbers(self, columns)
        return product_by_blocks(self.square, *index, weights.astype(np.float32))

    def precise_several_products(self: KernelValues, rows: Any, columns: Any, weights: Any) -> Any:
        """Return the sums in float64."""
        return product_by_blocks(self.precise_square, _numbers(self, rows), _numbers(self, columns), weights)


@dataclass(frozen=True)
class FormulaValues(StoredProducts):
    """Values of a built-in kernel between rows of a dense table."""

    samples: DeviceSamples

    @property
    def size(self) -> int:
        return len(self.samples.data)

    def square(self, rows: Any, columns: Any) -> Any:
        return products.square(self.samples, rows, columns)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        return products.product_parts(self.samples, rows, columns, weights)

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return products.precise_square(self.samples, rows, columns)

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return products.precise_product(self.samples, rows, columns, weights)

    def several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        if self._stores(weights):
            return super().several_products(rows, columns, weights)
        return products.several_products(self.samples, rows, columns, weights)

    def precise_several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        if self._stores(weights):
            return super().precise_several_products(rows, columns, weights)
        return products.precise_several_products(self.samples, rows, columns, weights)

    def _stores(self, weights: Any) -> bool:
        """Whether values are computed once and stored, since so many functions would compute them several times."""
        functions = weights.shape[1]
        return bool(functions > MAX_FUSED_FUNCTIONS or functions * self.samples.width > MAX_FUSED_WORK)


@dataclass(frozen=True)
class ScaledValues:
    """factor · values."""

    factor: float
    values: KernelValues

    @property
    def size(self) -> int:
        return self.values.size

    def square(self, rows: Any, columns: Any) -> Any:
        return self.values.square(rows, columns) * np.float32(self.factor)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        return self.values.product_parts(rows, columns, weights) * self.factor

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self.values.precise_square(rows, columns) * self.factor

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return self.values.precise_product(rows, columns, weights) * self.factor

    def several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        return self.values.several_products(rows, columns, weights) * self.factor

    def precise_several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        return self.values.precise_several_products(rows, columns, weights) * self.factor


@dataclass(frozen=True)
class SumOfValues:
    """first + second."""

    first: KernelValues
    second: KernelValues

    @property
    def size(self) -> int:
        return self.first.size

    def square(self, rows: Any, columns: Any) -> Any:
        return self.first.square(rows, columns) + self.second.square(rows, columns)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        parts = (one.product_parts(rows, columns, weights) for one in (self.first, self.second))
        return cupy().concatenate(list(parts))

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self.first.precise_square(rows, columns) + self.second.precise_square(rows, columns)

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return self.first.precise_product(rows, columns, weights) + self.second.precise_product(rows, columns, weights)

    def several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        first, second = (one.several_products(rows, columns, weights) for one in (self.first, self.second))
        return first + second

    def precise_several_products(self, rows: Any, columns: Any, weights: Any) -> Any:
        first, second = (one.precise_several_products(rows, columns, weights) for one in (self.first, self.second))
        return first + second


@dataclass(frozen=True)
class ProductOfValues(StoredProducts):
    """first · second."""

    first: KernelValues
    second: KernelValues

    @property
    def size(self) -> int:
        return self.first.size

    def square(self, rows: Any, columns: Any) -> Any:
        return self.first.square(rows, columns) * self.second.square(rows, columns)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.square, _numbers(self, rows), columns, weights.astype(np.float32)[:, None]).T

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self.first.precise_square(rows, columns) * self.second.precise_square(rows, columns)

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.precise_square, _numbers(self, rows), columns, weights[:, None])[:, 0]


def _numbers(values: KernelValues, rows: Any) -> Any:
    """Return row numbers in place of None, which stands for all rows."""
    return cupy().arange(values.size, dtype=np.int32) if rows is None else rows


def product_by_blocks(square: Callable[[Any, Any], Any], rows: Any, columns: Any, weights: Any) -> Any:
    """Return Σ_j weights_jc k(row, column_j) for every row and function c, from stored blocks of values."""
    xp = cupy()
    out = xp.zeros((len(rows), weights.shape[1]))
    step = max(1, BLOCK_VALUES // max(1, min(BLOCK_COLUMNS, len(columns))))
    for start in range(0, len(rows), step):
        check_deadline()
        part = slice(start, start + step)
        for first in range(0, len(columns), BLOCK_COLUMNS):
            some = slice(first, first + BLOCK_COLUMNS)
            out[part] += square(rows[part], columns[some]) @ weights[some]
        xp.cuda.get_current_stream().synchronize()
    return out
