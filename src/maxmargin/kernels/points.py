"""Samples as kernels see them: `Points`, a view of data and an index of rows.

The data are the rows of a dense array or of a CSR matrix, or any indexable collection that a user's callable kernel
accepts. Taking a subset copies no data, only the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.formula import FeatureGammas

#: Approximate number of bytes of the data that enter a checksum.
CHECKSUM_BYTES = 2**16

#: Approximate number of non-numeric samples that enter a checksum.
CHECKSUM_OBJECTS = 50

#: Approximate number of values that are converted to float64 at a time.
CONVERSION_VALUES = 2**18

#: Cost of a product of two sparse entries, in multiplications of dense entries.
SPARSE_COST_FACTOR = 3

#: Fixed cost of a kernel evaluation besides the sum over features, in multiplications.
EVALUATION_OVERHEAD = 20

#: Assumed cost of a kernel evaluation on samples that are not numbers, in multiplications.
OBJECT_COST = 100

#: Sparse data of at least this many features are handled by the features that occur, if these are few.
VERY_WIDE = 2**22

#: Number types that are kept; all others are converted to float64.
PRECISIONS = (np.dtype(np.float64), np.dtype(np.float32))

#: Fewer values than this are copied by one thread.
MIN_COPIED_VALUES = 2**18


class Points:
    """The samples of a data set, or a subset of them.

    Parameters
    ----------
    data : array, sparse matrix, sequence or DeviceRows
        One sample per row. Dense data are converted to C order, sparse data to CSR, both to float64 unless they are
        float32; no copy is made where they already are.
    index : int array, optional
        The rows of the subset; all rows by default.

    Attributes
    ----------
    table
        The data as they are held, possibly on a device.
    memo : dict
        Results about the data, shared by all views of them.
    """

    __slots__ = ("_in_order", "index", "memo", "table")

    def __init__(self, data: Any, index: Indices | None = None) -> None:
        self._in_order = True if index is None else None
        if index is None:
            data = _as_samples(data)
            index = np.arange(_count(data), dtype=np.int64)
        self.table = data
        self.index = index
        self.memo: dict[Any, Any] = {}

    @classmethod
    def wrap(cls, data: Any) -> Points:
        """Return samples that were validated: a table of numbers, or objects for a user's own kernel."""
        if isinstance(data, DeviceRows):
            table, index = data.origin()
            points = cls(table, index)
            points.memo = table.memo
            return points
        return cls(data) if isinstance(data, np.ndarray) or sparse.issparse(data) else cls.as_given(data)

    @classmethod
    def as_given(cls, data: Any) -> Points:
        """Return samples of any type that a user's callable kernel accepts: data frames, strings, objects."""
        return cls(data, np.arange(_count(data), dtype=np.int64))

    @classmethod
    def of_compressed(cls, starts: Any, features: Any, values: Any, shape: tuple[int, int]) -> Points:
        """Return samples from the arrays of a CSR matrix, without conversion."""
        matrix = sparse.csr_array(shape, dtype=values.dtype)
        matrix.data, matrix.indices, matrix.indptr = values, features, starts
        points = cls(matrix, np.arange(shape[0], dtype=np.int64))
        points.memo["arrays", values.dtype] = starts, features, values
        return points

    def __len__(self) -> int:
        return len(self.index)

    @property
    def data(self) -> Any:
        """The data in host memory; those of a device are copied when they are first asked for."""
        return self.table.in_host_memory() if isinstance(self.table, DeviceRows) else self.table

    @property
    def count(self) -> int:
        """The number of rows of the data, of which these are some."""
        return _count(self.table)

    @property
    def in_order(self) -> bool:
        """Whether these are all rows of the data, in their order."""
        if self._in_order is None:
            self._in_order = len(self.index) == self.count and bool((self.index == np.arange(len(self.index))).all())
        return self._in_order

    def take(self, rows: ArrayLike | slice) -> Points:
        """Return a subset of these samples as a view: no data are copied."""
        return self.pick(self.index[rows if isinstance(rows, slice) else np.asarray(rows)])

    def pick(self, index: Indices) -> Points:
        """Return a view of other rows of the same data, by row number of the data."""
        chosen = Points(self.table, index)
        chosen.memo = self.memo
        return chosen

    def arrays(self, dtype: Any) -> tuple[Any, Any, Any]:
        """Return indptr, indices and data of CSR samples in the types of the native loops, once for all views."""
        key = ("arrays", np.dtype(dtype))
        if key not in self.memo:
            if self.data.shape[1] >= 2**31:
                raise ValueError(f"sparse data may have at most 2³¹ features, not {self.data.shape[1]}")
            with np.errstate(over="ignore"):  # infinite in float32: reported where kernel values are used
                values = self.data.data.astype(dtype, copy=False)
            self.memo[key] = (
                self.data.indptr.astype(np.int64, copy=False),
                self.data.indices.astype(np.int32, copy=False),
                values,
            )
        arrays: tuple[Any, Any, Any] = self.memo[key]
        return arrays

    def in_precision(self, dtype: Any) -> Points:
        """Return these sparse samples in a form whose `arrays` of this precision do not copy all data.

        Float32 arrays are half as large and made once for all views. Float64 arrays of float32 data are made for these
        samples alone, of which there are few at a time.
        """
        if self.data.dtype == np.float64 or np.dtype(dtype) == np.float32:
            return self
        return Points(self.data[self.index].astype(np.float64))

    def checksum(self) -> int:
        """Return a checksum of the data; of large data, only evenly spaced rows are read."""
        data = self.table.data if sparse.issparse(self.table) else self.table
        if isinstance(data, np.ndarray | DeviceRows) and data.dtype.kind in "fiub":
            return checksum_of(data)
        count = _count(data)
        return crc32(repr(rows_of(data, np.arange(0, count, max(1, count // CHECKSUM_OBJECTS)))).encode())

    def values(self) -> Any:
        """Return the samples themselves, as a user's callable kernel takes them."""
        return self.data if self.in_order else rows_of(self.table, self.index)


def as_points(samples: Any) -> Points:
    """Wrap samples as `Points`, unless they are already."""
    return samples if isinstance(samples, Points) else Points(samples)


def _as_samples(data: Any) -> Any:
    if sparse.issparse(data):
        rows = data if data.format == "csr" else sparse.csr_array(data)
        if rows.data.dtype not in PRECISIONS:
            rows = rows.astype(np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows.nnz and not 0 <= rows.indices.min() <= rows.indices.max() < rows.shape[1]:
            raise ValueError("a sparse matrix has column indices outside its shape")
        return rows
    values = np.asarray(data)
    if values.dtype.kind in "fiub" and values.ndim == 2:
        return np.ascontiguousarray(values, dtype=values.dtype if values.dtype in PRECISIONS else np.float64)
    return data  # strings or objects, for a user's callable kernel


def rows_of(data: Any, index: Indices, threads: int = 1) -> Any:
    """Return some rows of an array, a sparse matrix, a data frame or a sequence; many of an array in parallel."""
    table = type(data) is np.ndarray and data.ndim == 2 and data.dtype in PRECISIONS and data.flags.c_contiguous
    if table and threads > 1 and len(index) * data.shape[1] >= MIN_COPIED_VALUES:
        rows = np.empty((len(index), data.shape[1]), data.dtype)
        _native.copy_rows(data, np.ascontiguousarray(index, dtype=np.int64), rows, threads)
        return rows
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return [data[k] for k in index] if isinstance(data, list | tuple) else data[index]


def scaled(points: Points, gammas: FeatureGammas | None) -> Points:
    """Return sparse samples with their features multiplied by factors, computed once for all views of the data."""
    if gammas is None:
        return points
    key = ("scaled", gammas)
    if key not in points.memo:
        data = points.data
        matrix = sparse.csr_array(data.shape, dtype=np.float64)
        matrix.data = data.data * gammas.factors[data.indices]
        matrix.indices, matrix.indptr = data.indices, data.indptr
        points.memo[key] = Points(matrix, np.arange(data.shape[0]))
    everything: Points = points.memo[key]
    return everything.pick(points.index)


def float64_batches(data: Any) -> Iterator[tuple[slice, Any]]:
    """Yield batches of rows, dense or sparse, in float64, without converting all data at once."""
    step = max(1, CONVERSION_VALUES // max(1, data.shape[1]))
    for start in range(0, data.shape[0], step):
        rows = slice(start, min(data.shape[0], start + step))
        yield rows, data[rows].astype(np.float64, copy=False)


def occurring_features(points: Points) -> Indices | None:
    """Return the features that occur in sparse data, ascending; None if the data are not much wider than that."""
    data = points.data
    if data.shape[1] < VERY_WIDE or data.shape[1] < 4 * data.nnz:
        return None
    if "occurring" not in points.memo:
        points.memo["occurring"] = np.unique(data.indices).astype(np.int64)
    found: Indices = points.memo["occurring"]
    return found


def restricted(data: Any, occurring: Indices, dtype: Any) -> tuple[Any, Any, Any]:
    """Return indptr, indices and data of a CSR matrix restricted to some of its features, ascending."""
    place = np.minimum(np.searchsorted(occurring, data.indices), max(0, len(occurring) - 1))
    kept = occurring[place] == data.indices if len(occurring) else np.zeros(data.nnz, dtype=bool)
    starts = np.concatenate([[0], np.cumsum(kept)])[data.indptr].astype(np.int64)
    with np.errstate(over="ignore"):  # infinite in float32: reported where kernel values are used
        return starts, place[kept].astype(np.int32), data.data[kept].astype(dtype)


def compress_rows(data: NDArray[Any], dtype: Any, max_density: float, threads: int) -> tuple[Any, Any, Any] | None:
    """Return indptr, indices and data of dense rows as CSR; None if the fraction of non-zeros exceeds `max_density`."""
    starts = np.zeros(len(data) + 1, dtype=np.int64)
    _native.count_nonzeros(data, starts[1:], threads)
    np.cumsum(starts, out=starts)
    if starts[-1] > max_density * data.size:
        return None
    features, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=dtype)
    _native.compress(data, starts, features, values, threads)
    return starts, features, values


def _count(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def checksum_of(array: NDArray[Any] | DeviceRows) -> int:
    """Return a checksum of an array; of a large one, only evenly spaced rows are read."""
    rows = np.ascontiguousarray(array[:: max(1, array.nbytes // CHECKSUM_BYTES)])
    return crc32(rows.view(np.uint8).reshape(-1).data)


def evaluation_cost(points: Points) -> int:
    """Return the approximate number of multiplications of a kernel evaluation."""
    if getattr(points.table, "ndim", 0) != 2:
        return OBJECT_COST
    stored = getattr(points.table, "nnz", None)
    width = points.table.shape[1]
    per_sample = width if stored is None else SPARSE_COST_FACTOR * (stored // max(1, points.table.shape[0]))
    return int(per_sample) + EVALUATION_OVERHEAD


def extended_cost(points: Points, together: int) -> int:
    """Return the number of multiplications of an evaluation in double-double arithmetic.

    Sparse samples are expanded to the features of the `together` samples of a block.
    """
    if getattr(points.table, "ndim", 0) != 2:
        return OBJECT_COST
    width = int(points.table.shape[1])
    if sparse.issparse(points.table):
        width = min(width, together * (points.table.nnz // max(1, points.table.shape[0]) + 1))
    return width + EVALUATION_OVERHEAD
