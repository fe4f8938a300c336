"""Decision values on a GPU: Σ_s weights_sc k(x_s, x) + offset_c of many samples and several functions.

Many values are computed in single precision. A sample of the rows is computed again in float64: if the largest
difference there, times `SAFETY_FACTOR`, is above `ACCURACY` of the typical magnitude of a function, all rows are; if
not, those rows are whose decision value is so near to 0 that its sign may differ.

Samples stay where they are: those in host memory are copied a block at a time, and become dense there, so that they
need not fit into the memory of the GPU; those in GPU memory are read there. Blocks of support vectors bound the memory
as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.cuda.block_values import SamplesOf, Tile, precise_values_of_points, prepared, table_rows
from maxmargin.cuda.device import cupy, open_device
from maxmargin.cuda.kernel_values import KernelValues, kernel_values, product_by_blocks
from maxmargin.cuda.samples import DeviceSamples, dense_rows
from maxmargin.cuda.sparse_values import SparseValues, fits_sparse, takes_sparse
from maxmargin.deadline import check_deadline
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.native_kernel import NativeKernel
from maxmargin.kernels.points import Points
from maxmargin.kernels.split_sums import FeatureSums

#: Decision values in single precision are off by at most this, relative to the root mean square of the function
#: without its offset, as far as a sample of the rows tells: the default tolerance of a fit.
ACCURACY = 1e-3

#: Rows that are computed again, and the factor on their largest error.
AUDITED_ROWS, SAFETY_FACTOR = 256, 4.0

#: Fewer multiplications of features than this are in float64: that takes some milliseconds.
MIN_SINGLE_WORK = 2**34

#: Sparse samples with at least so many features, of which at most one in `MIN_ZEROS` is stored, are not expanded.
MIN_SPARSE_WIDTH, MIN_ZEROS = 4096, 128

#: Stored values of a block of samples that are not expanded.
STORED_PER_BLOCK = 2**23

#: Kernel values between two checks of limits and Ctrl-C.
VALUES_PER_BLOCK = 2**36


class Segment(NamedTuple):
    """Functions that some support vectors belong to.

    Attributes
    ----------
    support : slice
        The support vectors.
    weights : float array of shape (support vectors, functions)
    functions : int array
        The numbers of the functions.
    """

    support: slice
    weights: Floats
    functions: Indices


def decision_values(
    device: str, kernel: Kernel, samples: Points, support: Points, segments: Sequence[Segment], offsets: Floats
) -> Any:
    """Return the value of every function for every sample, a device array.

    `samples` are in host memory, or in that of this GPU.
    """
    xp, number = cupy(), open_device(device)
    with xp.cuda.Device(number):
        out = xp.empty((len(samples), len(offsets)))
        on_device = [Segment(one.support, xp.asarray(one.weights), xp.asarray(one.functions)) for one in segments]
        if _is_very_sparse(samples, kernel) and _is_very_sparse(support, kernel) and fits_sparse(support, number):
            out[:] = xp.asarray(offsets)
            _add_sparse_sums(out, kernel, samples, support, on_device, number)
        else:
            for rows in _row_blocks(samples, support):
                check_deadline()
                block = _Block(kernel, dense_rows(samples.take(rows)), support, on_device, xp.asarray(offsets))
                out[rows] = block.values()
        xp.cuda.get_current_stream().synchronize()
    return out


def _is_very_sparse(samples: Points, kernel: Kernel) -> bool:
    data = samples.table
    if not sparse.issparse(data) or data.shape[1] < MIN_SPARSE_WIDTH:
        return False
    return MIN_ZEROS * data.nnz <= data.shape[0] * data.shape[1] and takes_sparse(kernel, data)


def _add_sparse_sums(
    out: Any, kernel: Kernel, samples: Points, support: Points, segments: Sequence[Segment], number: int
) -> None:
    """Add the sums of every function for sparse samples, in float64."""
    xp = cupy()
    if not len(samples) or not len(support):
        return
    columns_of = Points(support.values())  # its copy on the GPU is needed for this call only
    for rows in _sparse_row_blocks(samples):
        check_deadline()
        rows_of = Points(samples.take(rows).values())
        values = kernel_values(kernel, partial(_sparse_values, rows_of, columns_of, number))
        part, every = out[rows], xp.arange(len(rows_of), dtype=np.int32)
        for one in segments:
            columns = xp.arange(one.support.start, one.support.stop, dtype=np.int32)
            part[:, one.functions] += product_by_blocks(values.precise_square, every, columns, one.weights)


def _sparse_values(rows: Points, columns: Points, number: int, part: NativeKernel) -> KernelValues:
    return SparseValues.between(part.formula, rows, columns, number)


def _sparse_row_blocks(samples: Points) -> Iterator[slice]:
    """Yield blocks of about so many stored values as one may have."""
    ends = np.cumsum(np.diff(samples.data.indptr)[samples.index])
    edges = np.flatnonzero(np.diff(ends // STORED_PER_BLOCK)) + 1
    for start, stop in pairwise([0, *edges.tolist(), len(samples)]):
        yield slice(start, stop)


def host_product(
    device: str,
    kernel: Kernel,
    rows: Points,
    columns: Points,
    weights: Floats,
    sums: FeatureSums = FeatureSums.DOUBLE,
) -> Floats:
    """Return Σ_c k(row, column c) weights[c] for every row in float64; both are samples of the same data on the host.

    The results agree with those of the CPU to rounding errors, which `Kernel.error_bound` bounds for these `sums`.
    """
    xp, number = cupy(), open_device(device)
    with xp.cuda.Device(number):
        values = precise_values_of_points(kernel, rows, number, sums)
        at, to = (xp.asarray(points.index.astype(np.int32)) for points in (rows, columns))
        out: Floats = values.precise_product(at, to, xp.asarray(weights)).get()
    return out


def _row_blocks(samples: Points, support: Points) -> Iterator[slice]:
    rows = min(table_rows(support.data.shape[1]) - _part_rows(support), VALUES_PER_BLOCK // max(1, len(support)))
    for start in range(0, len(samples), max(1, rows)):
        yield slice(start, start + max(1, rows))


def _part_rows(support: Points) -> int:
    """Return the support vectors of a block."""
    return min(len(support), table_rows(support.data.shape[1]) // 2)


@dataclass(frozen=True)
class _Block:
    """A block of samples in GPU memory, and all functions."""

    kernel: Kernel
    samples: Any
    support: Points
    segments: Sequence[Segment]
    offsets: Any

    def values(self) -> Any:
        """Return the decision values."""
        xp, every = cupy(), cupy().arange(len(self.samples), dtype=np.int32)
        if self.samples.size * len(self.support) < MIN_SINGLE_WORK:
            return self._precise_sums(every) + self.offsets
        sums = self._sums(every, _single_product, prepared)
        audited = every[:: -(-len(every) // AUDITED_ROWS)]
        exact = self._precise_sums(audited)
        error = SAFETY_FACTOR * xp.abs(sums[audited] - exact).max(axis=0)
        if not bool((error <= ACCURACY * xp.sqrt((exact**2).mean(axis=0))).all()):
            return self._precise_sums(every) + self.offsets
        near = every[(xp.abs(sums + self.offsets) <= error).any(axis=1)]
        sums[near] = self._precise_sums(near)
        return sums + self.offsets

    def _precise_sums(self, rows: Any) -> Any:
        return self._sums(rows, _precise_product, DeviceSamples.near_table)

    def _sums(self, rows: Any, product: Callable[[KernelValues, Any, Any, Any], Any], samples_of: SamplesOf) -> Any:
        """Return the sums of every function for some rows, over one part of the support vectors after the other."""
        out = cupy().zeros((len(rows), len(self.offsets)))
        if not len(rows):
            return out
        samples, step = self.samples[rows], max(1, _part_rows(self.support))
        for start in range(0, len(self.support), step):
            part = dense_rows(self.support.take(slice(start, start + step)))
            tile = Tile.of(self.kernel, samples, part, samples_of)
            for segment in self.segments:
                first = max(segment.support.start, start)
                last = min(segment.support.stop, start + len(part))
                if first < last:
                    columns = tile.columns[first - start : last - start]
                    weights = segment.weights[first - segment.support.start : last - segment.support.start]
                    out[:, segment.functions] += product(tile.values, tile.rows, columns, weights)
        return out


def _single_product(values: KernelValues, rows: Any, columns: Any, weights: Any) -> Any:
    if weights.shape[1] == 1:
        return values.product_parts(rows, columns, weights[:, 0]).sum(axis=0)[:, None]
    return values.several_products(rows, columns, weights)


def _precise_product(values: KernelValues, rows: Any, columns: Any, weights: Any) -> Any:
    if weights.shape[1] == 1:
        return values.precise_product(rows, columns, weights[:, 0])[:, None]
    return values.precise_several_products(rows, columns, weights)
