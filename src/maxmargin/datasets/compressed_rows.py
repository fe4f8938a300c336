"""Sparse rows as plain arrays, which readers and writers of text use: importing scipy.sparse takes longer than both."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats


class CompressedRows(NamedTuple):
    """A sparse matrix in CSR format, with ascending columns in each row.

    Attributes
    ----------
    values : float array
    columns, starts : int arrays
        Column of each value; number of the first value of each row, and the number of all values.
    width : int
        Number of columns.
    """

    values: NDArray[Any]
    columns: NDArray[Any]
    starts: NDArray[Any]
    width: int

    @classmethod
    def of(cls, X: Any) -> CompressedRows:
        """Return the rows of an array, without zeros, or of a CSR matrix."""
        if sparse.issparse(X):
            return cls(X.data, X.indices, X.indptr, X.shape[1])
        rows, columns = np.nonzero(X)
        starts = np.searchsorted(rows, np.arange(len(X) + 1))
        return cls(X[rows, columns], columns.astype(np.int32), starts, X.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.starts) - 1, self.width

    @property
    def without_first_column(self) -> CompressedRows:
        """The rows without the first column."""
        kept = self.columns > 0
        starts = np.concatenate([[0], np.cumsum(kept)])[self.starts].astype(self.starts.dtype)
        return CompressedRows(self.values[kept], self.columns[kept] - 1, starts, max(0, self.width - 1))

    def dense(self) -> Floats:
        """Return the rows as an array."""
        X = np.zeros(self.shape, self.values.dtype)
        X[np.repeat(np.arange(len(X)), np.diff(self.starts)), self.columns] = self.values
        return X

    def matrix(self) -> Any:
        """Return the rows as a CSR matrix of scipy.sparse."""
        X = sparse.csr_matrix((self.values, self.columns, self.starts), shape=self.shape)
        X.has_canonical_format = True
        return X
