"""Sparse matrices in CSR format as sources of rows: in memory, or of arrays in files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.blocks.sources import BLOCK_BYTES, Rows, Source, check_shape, float_type, rows_per_block


class CsrSource(Source):
    """A sparse matrix as the arrays data, indices and indptr, and optionally labels and weights.

    Parameters
    ----------
    data, indices, indptr : array or FileArray
    shape : (rows, columns)
    name : str
    y, sample_weight : array or FileArray, optional

    Attributes
    ----------
    origin : FileStamp or None
        Of the text that the arrays were converted from.
    """

    is_sparse = True
    origin: FileStamp | None = None

    def __init__(
        self, data: Any, indices: Any, indptr: Any, shape: Any, name: str, y: Any = None, sample_weight: Any = None
    ) -> None:
        self.name = name
        self.n_rows, self.n_features = check_shape(shape, name)
        self.dtype = float_type(data.dtype, name)
        self.has_labels, self.has_weights = y is not None, sample_weight is not None
        self._data, self._indices, self._indptr, self._y, self._weight = data, indices, indptr, y, sample_weight
        for part, values in (("indices", indices), ("indptr", indptr)):
            if values.dtype.kind not in "iu" or len(values.shape) != 1:
                raise ValueError(f"{name}: {part} must be integers in one dimension, not of type {values.dtype}")
        end = int(indptr[self.n_rows :][-1]) if len(indptr) == self.n_rows + 1 else -1
        if end < 0 or len(data.shape) != 1 or len(data) < end or len(indices) < end:
            raise ValueError(f"{name}: data, indices and indptr do not fit a CSR matrix of {self.n_rows} rows")
        for part, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None and tuple(values.shape) != (self.n_rows,):
                raise ValueError(f"{name}: {part} must have shape ({self.n_rows},), not {tuple(values.shape)}")

    @classmethod
    def of(cls, X: Any, name: str) -> CsrSource:
        """Return the source of a sparse matrix in memory."""
        check_shape(X.shape, name)
        X = X.tocsr()
        return cls(X.data, X.indices, X.indptr, X.shape, name)

    def read(self, block_rows: int | None) -> Iterator[Rows]:
        first = 0
        while first < self.n_rows:
            starts = self._starts(first, block_rows)
            last = first + len(starts) - 1
            yield Rows(
                self._matrix(starts),
                None if self._y is None else self._y[first:last],
                None if self._weight is None else self._weight[first:last],
                self.name,
            )
            first = last

    def check_unchanged(self) -> None:
        for values in (self._data, self._indices, self._indptr, self._y, self._weight):
            if isinstance(values, FileArray):
                values.check_unchanged()
        if self.origin is not None and os.path.exists(self.origin.path):  # the arrays are complete without it
            self.origin.check()

    def _starts(self, first: int, block_rows: int | None) -> Any:
        """Return the row starts of a block and its end; blocks of the default size have equally many values."""
        value_bytes = self.dtype.itemsize + self._indices.dtype.itemsize
        expected = 2 * rows_per_block(value_bytes * len(self._indices) / self.n_rows)
        last = min(self.n_rows, first + (block_rows or expected))
        starts = np.asarray(self._indptr[first : last + 1]).astype(np.int64)
        if block_rows is None:
            values = BLOCK_BYTES // value_bytes
            starts = starts[: max(2, int(np.searchsorted(starts, starts[0] + values, side="right")))]
        if starts[0] < 0 or starts[-1] < starts[0] or starts[-1] > min(len(self._data), len(self._indices)):
            raise ValueError(f"{self.name}: indptr does not ascend from row {first} to row {last}, or is too large")
        return starts

    def _matrix(self, starts: Any) -> Any:
        begin, end = int(starts[0]), int(starts[-1])
        columns = np.asarray(self._indices[begin:end])
        if columns.dtype not in (np.int32, np.int64):
            columns = columns.astype(np.int64)
        shape = (len(starts) - 1, self.n_features)
        starts = (starts - begin).astype(columns.dtype if end - begin < 2**31 else np.int64)
        return sparse.csr_matrix((np.asarray(self._data[begin:end]), columns, starts), shape=shape)
