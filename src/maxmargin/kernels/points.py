"""A set of samples, and how two sets meet.

Kernels compare samples pair by pair. `Points` is what they compare: the rows of a dense array, the rows of a
compressed sparse matrix, or any indexable collection that a user's own kernel understands. Taking a subset
copies nothing; it only narrows the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin import _native
from maxmargin._typing import Indices

#: About how many bytes of the data a checksum looks at.
CHECKED_BYTES = 2**16

#: About how many samples that are not numbers a checksum looks at.
CHECKED_OBJECTS = 50

#: About how many values are converted to double precision together.
PART_VALUES = 2**18

#: What numbers may be stored in; all others become float64.
PRECISIONS = (np.dtype(np.float64), np.dtype(np.float32))


class Points:
    """The samples of a data set, or some of them.

    Parameters
    ----------
    data : array, sparse matrix or sequence
        One sample per row. Dense data become C-ordered, sparse data CSR, both float64 unless they are float32;
        without a copy where they already are.
    index : int array, optional
        Which rows are meant; all by default.
    """

    __slots__ = ("data", "index", "memo")

    def __init__(self, data: Any, index: Indices | None = None) -> None:
        if index is None:
            data = _as_samples(data)
            index = np.arange(_count(data), dtype=np.int64)
        self.data = data
        self.index = index
        self.memo: dict[Any, Any] = {}  # what was worked out about the data, for all views of them

    @classmethod
    def as_given(cls, data: Any) -> Points:
        """Return samples of any kind that a user's own kernel understands: frames, strings, objects."""
        return cls(data, np.arange(_count(data), dtype=np.int64))

    @classmethod
    def of_compressed(cls, starts: Any, features: Any, values: Any, shape: tuple[int, int]) -> Points:
        """Return samples from the arrays of compressed rows, which are used as they are and in their own precision."""
        matrix = sparse.csr_array(shape, dtype=values.dtype)
        matrix.data, matrix.indices, matrix.indptr = values, features, starts
        points = cls(matrix, np.arange(shape[0], dtype=np.int64))
        points.memo["arrays", values.dtype] = starts, features, values
        return points

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: ArrayLike | slice) -> Points:
        """Return the chosen samples as a view: no data are copied."""
        return self.pick(self.index[rows if isinstance(rows, slice) else np.asarray(rows)])

    def pick(self, index: Indices) -> Points:
        """Return rows of the data behind these samples, by their number there."""
        chosen = Points(self.data, index)
        chosen.memo = self.memo
        return chosen

    def arrays(self, dtype: Any) -> tuple[Any, Any, Any]:
        """Return row starts, features and values of sparse data, in the types that the native loops take.

        They are made once for all views of the data.
        """
        key = ("arrays", np.dtype(dtype))
        if key not in self.memo:
            if self.data.shape[1] >= 2**31:
                raise ValueError(f"sparse data may have up to 2³¹ features, not {self.data.shape[1]}")
            self.memo[key] = (
                self.data.indptr.astype(np.int64, copy=False),
                self.data.indices.astype(np.int32, copy=False),
                self.data.data.astype(dtype, copy=False),
            )
        arrays: tuple[Any, Any, Any] = self.memo[key]
        return arrays

    def in_precision(self, dtype: Any) -> Points:
        """Return these sparse samples so that `arrays` of this precision double nothing.

        Single precision is half as large, and made once for all views. Double precision of data that have only single
        is made for these samples alone: whoever asks takes few at a time.
        """
        if self.data.dtype == np.float64 or np.dtype(dtype) == np.float32:
            return self
        return Points(self.data[self.index].astype(np.float64))

    def checksum(self) -> int:
        """Return a number that changes when the data do; of many data only rows evenly spread are looked at."""
        data = self.data.data if sparse.issparse(self.data) else self.data
        if isinstance(data, np.ndarray) and data.dtype.kind in "fiub":
            return checksum_of(data)
        count = _count(data)
        return crc32(repr(rows_of(data, np.arange(0, count, max(1, count // CHECKED_OBJECTS)))).encode())

    def values(self) -> Any:
        """Return the samples themselves, as a user's own kernel wants them."""
        if len(self.index) == _count(self.data) and np.array_equal(self.index, np.arange(len(self.index))):
            return self.data
        return rows_of(self.data, self.index)


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
    return data  # strings or objects, for a user's own kernel


def rows_of(data: Any, index: Indices) -> Any:
    """Return some samples of a collection: an array, a sparse matrix, a frame or a sequence."""
    if hasattr(data, "iloc"):
        return data.iloc[index]
    return [data[k] for k in index] if isinstance(data, list | tuple) else data[index]


def in_parts(data: Any) -> Iterator[tuple[slice, Any]]:
    """Yield stretches of rows, dense or sparse, in double precision: all at once would be the data over again."""
    step = max(1, PART_VALUES // max(1, data.shape[1]))
    for start in range(0, data.shape[0], step):
        rows = slice(start, min(data.shape[0], start + step))
        yield rows, data[rows].astype(np.float64, copy=False)


def compressed(data: NDArray[Any], dtype: Any, most: float, threads: int) -> tuple[Any, Any, Any] | None:
    """Return row starts, features and values of dense rows, None if more than this part of them is not zero."""
    starts = np.zeros(len(data) + 1, dtype=np.int64)
    _native.count_stored(data, starts[1:], threads)
    np.cumsum(starts, out=starts)
    if starts[-1] > most * data.size:
        return None
    features, values = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=dtype)
    _native.compress(data, starts, features, values, threads)
    return starts, features, values


def _count(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def checksum_of(array: NDArray[Any]) -> int:
    """Return a number that changes when an array does; of a large one only rows evenly spread are looked at."""
    looked_at = np.ascontiguousarray(array[:: max(1, array.nbytes // CHECKED_BYTES)])
    return crc32(looked_at.view(np.uint8).reshape(-1).data)


#: A product of stored values takes as long as so many of dense ones.
SPARSE_WORK = 3


def work_per_value(points: Points) -> int:
    """Return about how many multiplications a kernel value takes."""
    if getattr(points.data, "ndim", 0) != 2:
        return 100  # strings or objects: nobody knows
    stored = getattr(points.data, "nnz", None)
    per_sample = points.data.shape[1] if stored is None else SPARSE_WORK * (stored // max(1, points.data.shape[0]))
    return int(per_sample) + 20
