"""Evaluation of a kernel in float32 without losing the digits that matter.

Float32 has seven digits. Distances keep them if the samples are centred first; the fast form of the Gaussian exponent,
‖x‖² + ‖z‖² − 2 x·z, keeps them as long as γ‖x‖² of one of the two samples is moderate; for pairs of outliers,
differences are summed. The certificate is computed in float64 and accounts for the remaining error.

Dense data that are mostly zeros (one-hot columns, images) are compressed: an evaluation then costs the stored entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels.formula import KernelFormula, OuterFunction, Term
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.kernel_columns import KernelColumns, pack_columns
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points, compress_rows, float64_batches, scaled

#: Largest γ‖x‖² for the fast form of the Gaussian: the error of the exponent is 1e-7 times that.
MAX_FAST_EXPONENT = _native.max_product_exponent

#: Largest fraction of samples beyond that for which the fast form is used, with differences for their pairs: a strip of
#: rows without such a sample is frequent enough.
MAX_OUTLIER_FRACTION = 0.1

#: Number of samples whose medians are the centre of the data.
CENTRE_SAMPLES = 256

#: Largest entry of the data and largest kernel value for which float32 is used.
MAX_FLOAT32_ENTRY, MAX_FLOAT32_VALUE = 1e15, 1e30

#: Dense data are compressed if they have at least this number of features and at most this fraction of non-zeros.
MIN_FEATURES_TO_COMPRESS, MAX_DENSITY_TO_COMPRESS = 32, 0.2


class Float32Kernel(NamedTuple):
    """A kernel prepared for float32: the formula, the data, and the shift subtracted from all samples first."""

    formula: KernelFormula
    points: Points
    shift: Floats

    def columns(self, index: Indices, threads: int) -> KernelColumns:
        """Return columns of the kernel matrix of all samples."""
        return pack_columns(self.formula, self.points.take(index), np.float32, threads, self.shift)

    def rows(self, index: Indices) -> Points:
        """Return the samples of some rows."""
        return self.points.take(index)


def float32_kernel(kernel: Kernel, points: Points, threads: int = 1) -> Float32Kernel | None:
    """Return the kernel prepared for float32; None if float32 would overflow or the kernel is not native.

    The result depends on all data behind `points` and is computed once for all views of them.
    """
    if not isinstance(kernel, NativeKernel):
        return None
    key = ("float32 kernel", kernel.formula)
    if key not in points.memo:
        points.memo[key] = _prepare(kernel, points, threads)
    prepared: Float32Kernel | None = points.memo[key]
    return prepared


def _prepare(kernel: NativeKernel, some: Points, threads: int) -> Float32Kernel | None:
    formula, no_shift = kernel.formula, np.empty(0)
    points = Points(some.data)  # without the memo, in which the result is stored: that would be a cycle
    stored = points.data.data if sparse.issparse(points.data) else points.data
    factor = 1.0 if formula.gammas is None else max(1.0, formula.gammas.largest_factor)
    if not _native.largest_absolute(stored.reshape(-1), threads) * factor < MAX_FLOAT32_ENTRY:
        return None
    if formula.function in (OuterFunction.IDENTITY, OuterFunction.POWER):
        diagonal = kernel.diagonal(some.pick(points.index))
        if len(diagonal) and not np.abs(diagonal).max() < MAX_FLOAT32_VALUE:
            return None
    if sparse.issparse(points.data):
        if formula.gammas is not None:  # one copy for both precisions
            points.memo["scaled", formula.gammas] = scaled(some, formula.gammas)
        return Float32Kernel(formula, points, no_shift)
    compressed = _compressed(points, threads)
    if formula.term is Term.PRODUCT or formula.term is Term.CHI_SQUARED:
        return Float32Kernel(formula, points if compressed is None else compressed, no_shift)
    if compressed is not None and formula.gamma * _largest_norm(formula, points.data, threads) <= MAX_FAST_EXPONENT:
        return Float32Kernel(formula, compressed, no_shift)
    centre = _centre(points.data)
    if formula.term is Term.SQUARED and _outlier_fraction(formula, points.data, centre) <= MAX_OUTLIER_FRACTION:
        product = OuterFunction.GAUSSIAN_OF_PRODUCT
        fast = KernelFormula(Term.PRODUCT, product, 2.0 * formula.gamma, gammas=formula.gammas)
        return Float32Kernel(fast, points, centre)
    return Float32Kernel(formula, points, centre)


def _compressed(points: Points, threads: int) -> Points | None:
    """Return dense samples as CSR if they are wide and sparse enough."""
    if points.data.shape[1] < MIN_FEATURES_TO_COMPRESS:
        return None
    arrays = compress_rows(points.data, np.float32, MAX_DENSITY_TO_COMPRESS, threads)
    return None if arrays is None else Points.of_compressed(*arrays, points.data.shape)


def _largest_norm(formula: KernelFormula, data: NDArray[Any], threads: int) -> float:
    """Return the largest ‖x‖²."""
    if formula.gammas is not None:
        return max(
            (float(_norms(batch * formula.gammas.factors).max()) for _, batch in float64_batches(data)), default=0.0
        )
    squares = np.empty(len(data))
    _native.row_squared_norms(_native.DataRows(values=data, width=data.shape[1]), squares, threads)
    return float(squares.max())


def _centre(data: NDArray[Any]) -> Floats:
    """Return the median of each feature over some samples: unlike the mean, outliers do not move it."""
    some = data[:: -(-len(data) // CENTRE_SAMPLES)]
    return np.asarray(np.median(some.astype(np.float64), axis=0))


def _outlier_fraction(formula: KernelFormula, data: NDArray[Any], centre: Floats) -> float:
    """Return the fraction of samples with γ‖x − centre‖² beyond `MAX_FAST_EXPONENT`."""
    factors = 1.0 if formula.gammas is None else formula.gammas.factors
    distances = (_norms((batch - centre) * factors) for _, batch in float64_batches(data))
    return sum(np.count_nonzero(formula.gamma * each > MAX_FAST_EXPONENT) for each in distances) / len(data)


def _norms(rows: Floats) -> Floats:
    """Return ‖x‖² of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
