"""Kernel values of sparse samples on a GPU, from sparse products: only columns of a block are dense.

For functions of an inner product and of the Euclidean distance, ‖x − z‖² = ‖x‖² + ‖z‖² − 2 x·z, as on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.cuda.device import cupy, cupy_sparse
from maxmargin.cuda.kernel_values import StoredProducts, parts_of, product_by_blocks
from maxmargin.cuda.samples import free_memory, prepared_once
from maxmargin.kernels.formula import FeatureGammas, KernelFormula, OuterFunction, Term
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points, scaled

#: The fraction of the free memory for the columns of a block, as a dense table in float64.
COLUMNS_FRACTION = 0.05

#: Bytes that a stored value takes while it is copied, of which 16 remain, and the largest fraction of the free memory
#: for all of them.
STORED_BYTES, MAX_STORED_FRACTION = 48, 0.5

#: CuPy numbers stored values and features in 32 bits.
MAX_STORED = 2**31 - 1


def takes_sparse(kernel: Kernel, data: Any) -> bool:
    """Whether a supported kernel has values of these CSR samples as they are."""
    inner = all(
        isinstance(part, NativeKernel) and part.formula.term in (Term.PRODUCT, Term.SQUARED)
        for part in parts_of(kernel)
    )
    return inner and max(data.nnz, *data.shape) <= MAX_STORED


def fits_sparse(points: Points, device: int) -> bool:
    """Whether the CSR data behind points fit into the memory of the GPU, decided once for all views and formulas."""
    fits: bool = prepared_once(
        points,
        ("fits sparse", device),
        lambda: STORED_BYTES * points.data.nnz <= MAX_STORED_FRACTION * free_memory(),
    )
    return fits


@dataclass(frozen=True)
class SparseSamples:
    """CSR samples on a GPU, for kernels with the same factors of features.

    Attributes
    ----------
    rows : CSR matrix on the device, in float64
    single : CSR matrix on the device, in float32
    squares : float64 device array
        ‖x‖² of each sample.
    """

    rows: Any
    single: Any
    squares: Any

    @classmethod
    def of(cls, gammas: FeatureGammas | None, points: Points, device: int) -> SparseSamples:
        """Return the CSR data behind the points, features multiplied by the factors; all formulas share them."""
        samples: SparseSamples = prepared_once(
            points, ("cuda sparse", device, gammas), lambda: cls._copied(scaled(points, gammas).data)
        )
        return samples

    @classmethod
    def _copied(cls, data: Any) -> SparseSamples:
        xp, matrix = cupy(), cupy_sparse().csr_matrix
        values = xp.asarray(data.data.astype(np.float64, copy=False))
        places = tuple(xp.asarray(array.astype(np.int32, copy=False)) for array in (data.indices, data.indptr))
        rows = matrix((values, *places), shape=data.shape)
        squares = rows.multiply(rows).sum(axis=1).ravel()
        return cls(rows, matrix((values.astype(np.float32), *places), shape=data.shape), squares)

    def __len__(self) -> int:
        return int(self.rows.shape[0])


@dataclass(frozen=True)
class SparseValues(StoredProducts):
    """Values of a built-in kernel between CSR samples.

    Attributes
    ----------
    formula : KernelFormula
    left, right : SparseSamples
        Of which rows and columns are numbers; the same ones in a fit.
    """

    formula: KernelFormula
    left: SparseSamples
    right: SparseSamples

    @classmethod
    def between(cls, formula: KernelFormula, left: Points, right: Points, device: int) -> SparseValues:
        """Return the values between the rows of the CSR data behind points."""
        both = (SparseSamples.of(formula.gammas, points, device) for points in (left, right))
        return cls(formula, *both)

    @property
    def size(self) -> int:
        return len(self.left)

    def square(self, rows: Any, columns: Any) -> Any:
        return self._values(self.left.single, self.right.single, rows, columns)

    def precise_square(self, rows: Any, columns: Any) -> Any:
        return self._values(self.left.rows, self.right.rows, rows, columns)

    def product_parts(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.square, _numbers(rows, self.left), columns, weights.astype(np.float32)[:, None]).T

    def precise_product(self, rows: Any, columns: Any, weights: Any) -> Any:
        return product_by_blocks(self.precise_square, _numbers(rows, self.left), columns, weights[:, None])[:, 0]

    def _values(self, left: Any, right: Any, rows: Any, columns: Any) -> Any:
        rows, columns = _numbers(rows, self.left), _numbers(columns, self.right)
        out, chosen = cupy().empty((len(rows), len(columns)), dtype=left.dtype), left[rows]
        step = max(1, int(COLUMNS_FRACTION * free_memory()) // (8 * max(1, left.shape[1])))
        for start in range(0, len(columns), step):
            some = columns[start : start + step]
            products = chosen @ right[some].toarray().T
            out[:, start : start + step] = self._function(products, self.left.squares[rows], self.right.squares[some])
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


def _numbers(rows: Any, samples: SparseSamples) -> Any:
    """Return row numbers, those of all samples for None."""
    return cupy().arange(len(samples), dtype=np.int32) if rows is None else rows
