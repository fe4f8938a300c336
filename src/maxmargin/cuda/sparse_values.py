"""Kernel values of sparse samples on a GPU, from sparse products: only columns of a block are dense.

For functions of an inner product and of the Euclidean distance, ‖x − z‖² = ‖x‖² + ‖z‖² − 2 x·z, as on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.cuda.device import cupy, cupy_sparse
from maxmargin.cuda.kernel_values import parts_of, product_by_blocks
from maxmargin.cuda.samples import free_memory, prepared_once
from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points, scaled

#: The fraction of the free memory for the columns of a block, as a dense table in float64.
COLUMNS_FRACTION = 0.05

#: CuPy numbers stored values and features in 32 bits.
MAX_STORED = 2**31 - 1


def takes_sparse(kernel: Kernel, data: Any) -> bool:
    """Whether a supported kernel has values of these CSR samples as they are."""
    inner = all(
        isinstance(part, NativeKernel) and part.formula.term in (Term.PRODUCT, Term.SQUARED)
        for part in parts_of(kernel)
    )
    return inner and max(data.nnz, *data.shape) <= MAX_STORED


@dataclass(frozen=True)
class SparseValues:
    """Kernel values of CSR samples.

    Attributes
    ----------
    formula : KernelFormula
    rows : CSR matrix on the device, in float64
    single : CSR matrix on the device, in float32
    squares : float64 device array
        ‖x‖² of each sample.
    """

    formula: KernelFormula
    rows: Any
    single: Any
    squares: Any

    @classmethod
    def of(cls, formula: KernelFormula, points: Points, device: int) -> SparseValues:
        """Return the values between all rows of the CSR data behind the points."""
        values: SparseValues = prepared_once(
            points, ("cuda sparse", device, formula), lambda: cls._copied(formula, scaled(points, formula.gammas).data)
        )
        return values

    @classmethod
    def _copied(cls, formula: KernelFormula, data: Any) -> SparseValues:
        xp, matrix = cupy(), cupy_sparse().csr_matrix
        values = xp.asarray(data.data.astype(np.float64, copy=False))
        places = tuple(xp.asarray(array.astype(np.int32, copy=False)) for array in (data.indices, data.indptr))
        rows = matrix((values, *places), shape=data.shape)
        squares = rows.multiply(rows).sum(axis=1).ravel()
        return cls(formula, rows, matrix((values.astype(np.float32), *places), shape=data.shape), squares)

    @property
    def size(self) -> int:
        return int(self.rows.shape[0])

    def square(self, rows: Any, columns: Any) -> Any:
        return self._values(self.single, rows, columns)

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self._values(self.rows, rows, columns)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.square, self._numbers(rows), columns, weights.astype(np.float32)[:, None]).T

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.precise_square, self._numbers(rows), columns, weights[:, None])[:, 0]

    def _numbers(self, rows: Any) -> Any:
        return cupy().arange(self.size, dtype=np.int32) if rows is None else rows

    def _values(self, samples: Any, rows: Any, columns: Any) -> Any:
        xp, rows = cupy(), self._numbers(rows)
        columns = self._numbers(columns)
        out, left = xp.empty((len(rows), len(columns)), dtype=samples.dtype), samples[rows]
        step = max(1, int(COLUMNS_FRACTION * free_memory()) // (8 * max(1, samples.shape[1])))
        for start in range(0, len(columns), step):
            some = columns[start : start + step]
            products = left @ samples[some].toarray().T
            out[:, start : start + step] = self._function(products, self.squares[rows], self.squares[some])
        return out

    def _function(self, products: Any, left: Any, right: Any) -> Any:
        """Return kernel values from inner products and squared norms."""
        xp, formula = cupy(), self.formula
        if formula.function is OuterFunction.IDENTITY:
            return products
        if formula.function is OuterFunction.EXPONENTIAL:
            distances = left.astype(products.dtype)[:, None] + right.astype(products.dtype) - 2 * products
            return xp.exp(-formula.gamma * xp.maximum(distances, 0))
        argument = formula.gamma * products + formula.coef0
        return xp.tanh(argument) if formula.function is OuterFunction.TANGENT else argument**formula.degree
