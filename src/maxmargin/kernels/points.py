"""A set of samples, and how two sets meet.

Kernels compare samples pair by pair. `Points` is what they compare: the rows of a dense array, the rows of a
compressed sparse matrix, or any indexable collection that a user's own kernel understands. Taking a subset
copies nothing; it only narrows the index.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from maxmargin import _native

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Term: TypeAlias = Literal["product", "squared", "absolute", "chi_squared"]


class Points:
    """The samples of a data set, or some of them.

    Parameters
    ----------
    data : array, sparse matrix or sequence
        One sample per row. Dense data become C-ordered float64, sparse data CSR float64, without a copy where
        they already are.
    index : int array, optional
        Which rows are meant; all by default.
    """

    __slots__ = ("data", "index")

    def __init__(self, data: Any, index: Indices | None = None) -> None:
        if index is None:
            data = _as_samples(data)
            index = np.arange(_count(data), dtype=np.int64)
        self.data = data
        self.index = index

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: ArrayLike | slice) -> Points:
        """Return the chosen samples as a view: no data are copied."""
        picks = rows if isinstance(rows, slice) else np.asarray(rows)
        return Points(self.data, self.index[picks])

    def values(self) -> Any:
        """Return the samples themselves, as a user's own kernel wants them."""
        if len(self.index) == _count(self.data) and np.array_equal(self.index, np.arange(len(self.index))):
            return self.data
        return self.data[self.index]


def as_points(samples: Any) -> Points:
    """Wrap samples as `Points`, unless they are already."""
    return samples if isinstance(samples, Points) else Points(samples)


def pair_sums(term: Term, left: Points, right: Points) -> Floats:
    """Return the block Σ_k term(x_k, z_k) for every x in `left` and z in `right`.

    The terms are x·z, (x − z)², the absolute value of x − z, and (x − z)² / (x + z).
    """
    out = np.empty((len(left), len(right)))
    if sparse.issparse(left.data) != sparse.issparse(right.data):
        left, right = _both_sparse(left), _both_sparse(right)
    if left.data.shape[1] != right.data.shape[1]:
        raise ValueError(f"the two sets of samples differ in features: {left.data.shape[1]} and {right.data.shape[1]}")
    if sparse.issparse(left.data):
        a, b = left.data, right.data
        same = a.indices.dtype == b.indices.dtype == a.indptr.dtype == b.indptr.dtype
        kind = a.indices.dtype if same else np.dtype(np.int64)
        _native.sparse_pair_sums(
            term,
            a.indptr.astype(kind, copy=False), a.indices.astype(kind, copy=False), a.data, left.index,
            b.indptr.astype(kind, copy=False), b.indices.astype(kind, copy=False), b.data, right.index,
            a.shape[1], out,
        )  # fmt: skip
    else:
        _native.dense_pair_sums(term, left.data, left.index, right.data, right.index, out)
    return out


def squares(points: Points) -> Floats:
    """Return Σ_k x_k² for every sample, added up in the same order as `pair_sums` does."""
    out = np.empty(len(points))
    if sparse.issparse(points.data):
        a = points.data
        kind = a.indices.dtype if a.indices.dtype == a.indptr.dtype else np.dtype(np.int64)
        indptr, indices = a.indptr.astype(kind, copy=False), a.indices.astype(kind, copy=False)
        _native.sparse_squares(indptr, indices, a.data, points.index, out)
    else:
        _native.dense_squares(points.data, points.index, out)
    return out


def _as_samples(data: Any) -> Any:
    if sparse.issparse(data):
        rows = sparse.csr_array(data, dtype=np.float64) if data.format != "csr" else data
        if rows.data.dtype != np.float64:
            rows = rows.astype(np.float64)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        if rows.nnz and not 0 <= rows.indices.min() <= rows.indices.max() < rows.shape[1]:
            raise ValueError("a sparse matrix has column indices outside its shape")
        return rows
    values = np.asarray(data)
    if values.dtype.kind in "fiub" and values.ndim == 2:
        return np.ascontiguousarray(values, dtype=np.float64)
    return data  # strings or objects, for a user's own kernel


def _count(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _both_sparse(points: Points) -> Points:
    if sparse.issparse(points.data):
        return points
    return Points(sparse.csr_array(points.values()))
