"""Write samples in LIBSVM format with all cores."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin.datasets.compressed_rows import CompressedRows
from maxmargin.datasets.compression import Source, atomic_target, create_bytes
from maxmargin.resources import thread_count

#: Absolute values of query ids are smaller than this.
QUERY_LIMIT = 10**18

#: Number of values that are formatted at once.
BATCH_VALUES = 2**18


def dump_libsvm(
    X: Any,
    y: ArrayLike,
    target: Source,
    *,
    zero_based: bool = False,
    query_id: ArrayLike | None = None,
    comment: str | None = None,
    digits: int = 17,
    n_jobs: int | None = None,
) -> None:
    """Write samples and labels in LIBSVM format.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        All stored values of a sparse matrix are written, explicit zeros included; only nonzeros of an array.
    y : array of shape (n_samples,)
        Numeric labels.
    target : str, path or binary file
        A path, compressed if it ends in .gz, .bz2 or .xz; "-" for standard output; or an open file.
    zero_based : bool
        Whether indices start at 0. LIBSVM's indices start at 1.
    query_id : int array of shape (n_samples,), optional
        Written as qid:number after the label. SVMlight reads it, LIBSVM does not.
    comment : str, optional
        Comment lines for the beginning of the file. SVMlight reads them, LIBSVM does not.
    digits : int
        Significant digits, 1 to 17. With 17 each number is written with the fewest digits that restore it exactly.
    n_jobs : int, optional
        Number of threads; by default all cores.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import dump_libsvm
    >>> text = io.BytesIO()
    >>> dump_libsvm([[0.1, 0, 2], [0, 1e-9, 0]], [1, -1], text)
    >>> print(text.getvalue().decode(), end="")
    1 1:0.1 3:2
    -1 2:1e-09
    """
    if not 1 <= digits <= 17:
        raise ValueError(f"digits must be from 1 to 17, not {digits}")
    threads = thread_count(n_jobs)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(
            f"X must be a two-dimensional array of real numbers, not of shape {X.shape} and type {X.dtype}"
        )
    labels = _check_labels(y)
    queries = np.empty(0, np.int64) if query_id is None else _check_queries(query_id)
    for name, column in ("y", labels), ("query_id", queries):
        if column.shape != X.shape[:1] and (name == "y" or query_id is not None):
            raise ValueError(f"{name} must have shape ({X.shape[0]},), one entry per row of X, not {column.shape}")
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    with atomic_target(target) as path, create_bytes(path) as file:
        for line in (comment or "").splitlines():
            file.write(f"# {line}\n".encode())
        for begin, end in pairwise(_batch_ends(X)):
            part = CompressedRows.of(X[begin:end])
            text = _native.write_text(
                labels[begin:end],
                part.starts.astype(np.int64),
                part.columns,
                np.ascontiguousarray(part.values, dtype=np.float64),
                queries[begin:end],
                0 if zero_based else 1,
                digits,
                threads,
            )
            file.write(text)


def _check_labels(y: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y must be numeric: LIBSVM format has no string labels; encode the classes as integers"
        ) from None


def _check_queries(query_id: ArrayLike) -> NDArray[np.int64]:
    queries = np.ascontiguousarray(query_id)
    if queries.dtype.kind not in "iu" or np.any((queries <= -QUERY_LIMIT) | (queries >= QUERY_LIMIT)):
        raise ValueError(f"query_id must be integers with absolute values below {QUERY_LIMIT}")
    return queries.astype(np.int64)


def _batch_ends(X: Any) -> list[int]:
    """Return 0 and the row numbers at which batches of about `BATCH_VALUES` values end."""
    rows, columns = X.shape
    starts = X.indptr if sparse.issparse(X) else np.arange(rows + 1, dtype=np.int64) * columns
    by_values = np.searchsorted(starts, np.arange(0, int(starts[-1]), BATCH_VALUES)[1:])
    by_rows = range(0, rows, BATCH_VALUES)  # rows may be empty
    return sorted({0, rows, *by_rows, *map(int, by_values)})
