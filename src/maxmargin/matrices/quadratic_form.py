"""The quadratic form bᵀMb with a bound on its rounding error, from half of the values where the matrix is a kernel's.

A product M b takes all values between the samples and those with b_i ≠ 0. The form alone takes the values among the
latter, and by symmetry half of them: each strip of columns is combined with the rows from its own diagonal block on.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.double_double import rounded_sum
from maxmargin.kernels import NativeKernel
from maxmargin.kernels.kernel_columns import combine_in_batches, pack_columns
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import UNIT_ROUNDOFF

#: Size of a strip of columns when packed, in bytes: it stays in the cache of a core.
STRIP_BYTES = 2**20


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bound infinite
def quadratic_form(matrix: SymmetricMatrix, vector: Floats) -> tuple[float, float]:
    """Return bᵀMb and a bound on its rounding error."""
    used = np.flatnonzero(vector)
    weights, part = vector[used], matrix.take(used)
    terms = _half_products(part, weights) if _is_native(part) else weights * part.matvec(weights)
    value, length = rounded_sum(terms), inner(np.abs(weights), part.magnitudes())
    error = inner(np.abs(weights), part.product_error(weights).double)
    error += (part.size // _strip_width(part) + 16) * UNIT_ROUNDOFF * length * length  # the sum over strips
    return value, error if np.isfinite(value + error) else np.inf


def _is_native(matrix: SymmetricMatrix) -> bool:
    return isinstance(matrix, KernelMatrix) and isinstance(matrix.kernel, NativeKernel) and matrix.features() is None


def _strip_width(matrix: SymmetricMatrix) -> int:
    """Return the number of columns of a strip."""
    return max(64, STRIP_BYTES // (8 * max(1, matrix.cost)))


def _half_products(matrix: SymmetricMatrix, weights: Floats) -> Floats:
    """Return numbers whose sum is the form, one for each variable."""
    assert isinstance(matrix, KernelMatrix)
    assert isinstance(matrix.kernel, NativeKernel)
    points, out = matrix.points, np.zeros(matrix.size)
    step = _strip_width(matrix)
    for start in range(0, matrix.size, step):
        strip = slice(start, min(start + step, matrix.size))
        columns = pack_columns(matrix.kernel.formula, points.take(strip), np.float64, matrix.threads)
        products = combine_in_batches(columns, points.take(slice(start, None)), weights[strip])
        products[strip.stop - start :] *= 2.0  # the values on the other side of the diagonal
        out[start:] += weights[start:] * products
    return out
