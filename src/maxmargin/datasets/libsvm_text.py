"""LIBSVM's text, read and written natively with all cores.

A line is a sample: its label, then index:value for each feature that is not 0, indices ascending::

    +1 3:1 11:0.25 14:-1e-3
    -1 qid:7 1:0.5 # a comment

Values are the doubles nearest to the decimal numbers, to the last bit, and what is written reads back as the same bits.
Blanks are spaces, tabs and carriage returns; blank lines and lines with nothing but a comment are passed over. nan and
inf are read, as numbers; `find_libsvm_problems` reports them. The format is that of Joachims' SVMlight (1998) and of
LIBSVM (Chang and Lin 2011), which knows no comments and no qid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from maxmargin import _native
from maxmargin.datasets.compression import Source, create_bytes, open_bytes, source_name
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.growing_array import GrowingArray
from maxmargin.datasets.libsvm_lines import LineRules, line_problems
from maxmargin.datasets.text_blocks import TextBlock, blocks_of_lines
from maxmargin.resources import thread_count

ZeroBased: TypeAlias = bool | Literal["auto"]

#: Bytes of text that are read at once, and in `iterate_libsvm` make a block.
READ_BYTES = 2**23
BLOCK_BYTES = 2**26

#: The largest index and the most features if nothing is said.
MOST_FEATURES = 10**18

#: Queries are smaller in size.
LARGEST_QUERY = 10**18

#: Values that are written at once.
WRITTEN_VALUES = 2**18

_GOOD, _BAD_LINE, _WIDE_INDEX = range(3)


def load_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    return_query_id: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    r"""Read samples and labels from LIBSVM's text.

    Parameters
    ----------
    source : str, path or binary file
        A path, "-" for standard input, or an open file; compressed by gzip, bzip2 or xz or not at all.
    n_features : int, optional
        The number of columns; the largest index if not given. A larger index is an error.
    zero_based : bool or "auto"
        Whether indices count from 0. With "auto" they do if an index is 0.
    dtype : float32 or float64
        Of the values of X.
    return_query_id : bool
        Whether to return the numbers after qid: too.
    n_jobs : int, optional
        Threads: all cores if not given.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
    query : int array of shape (n_samples,) or None
        Only with `return_query_id`; None if the text has no qid.

    Raises
    ------
    DataFileError
        Where the text is not as it should be: file, line, what is wrong.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import load_libsvm
    >>> X, y = load_libsvm(io.BytesIO(b"+1 1:0.5 3:2\n-1 2:1\n"))
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    return _read_all(source, _Reader(source_name(source), n_features, zero_based, dtype, n_jobs), return_query_id)


def load_libsvm_with_base(
    source: Source, n_features: int | None, zero_based: ZeroBased, n_jobs: int | None
) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None, bool]:
    """Return matrix, labels, queries if there are any, and whether indices count from 0, as `load_libsvm` found it."""
    reader = _Reader(source_name(source), n_features, zero_based, np.float64, n_jobs)
    X, y, query = _read_all(source, reader, True)
    return X, y, query, reader.zero_seen if zero_based == "auto" else bool(zero_based)


def _read_all(source: Source, reader: _Reader, with_queries: bool) -> tuple[Any, ...]:
    rows = reader.new_rows(with_queries)
    with open_bytes(source) as stream:
        for block in blocks_of_lines(stream, READ_BYTES, reader.threads):
            reader.read(block, rows)
    return reader.matrix(rows)


def iterate_libsvm(
    source: Source,
    *,
    block_bytes: int = BLOCK_BYTES,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    return_query_id: bool = False,
    n_jobs: int | None = None,
) -> Iterator[tuple[Any, ...]]:
    r"""Read LIBSVM's text in blocks of lines, for files that are larger than memory.

    Parameters
    ----------
    source, dtype, return_query_id, n_jobs
        As for `load_libsvm`.
    block_bytes : int
        Bytes of (decompressed) text in a block, at least 1; a longer line is a block of its own.
    n_features : int, optional
        The number of columns of every block. If not given, each block has as many as the text has shown so far.
    zero_based : bool or "auto"
        Whether indices count from 0. With "auto" the first block tells; an index 0 in a later one is then an error.

    Returns
    -------
    iterator of X, y or X, y, query
        As `load_libsvm` returns them, for the next lines.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import iterate_libsvm
    >>> text = b"+1 1:0.5 3:2\n-1 2:1\n" * 1000
    >>> [X.shape for X, y in iterate_libsvm(io.BytesIO(text), block_bytes=10_000)]
    [(1000, 3), (1000, 3)]
    """
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be at least 1, not {block_bytes}")
    reader = _Reader(source_name(source), n_features, zero_based, dtype, n_jobs)

    def parts() -> Iterator[tuple[Any, ...]]:
        with open_bytes(source) as stream:
            for block in blocks_of_lines(stream, block_bytes, reader.threads):
                rows = reader.new_rows(return_query_id)
                reader.read(block, rows)
                if rows.count:
                    yield reader.matrix(rows)
                    reader.decide_base()

    return parts()


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
    """Write samples and labels as LIBSVM's text.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Of a sparse matrix what is stored is written, noughts too; of an array what is not 0.
    y : array of shape (n_samples,)
        Numbers.
    target : str, path or binary file
        A path, compressed if it ends in .gz, .bz2 or .xz; "-" for standard output; or an open file.
    zero_based : bool
        Whether indices count from 0. LIBSVM's count from 1.
    query_id : int array of shape (n_samples,), optional
        Written as qid:number after the label. LIBSVM does not read it, SVMlight does.
    comment : str, optional
        Lines for the beginning, each after a #. LIBSVM does not read them, SVMlight does.
    digits : int
        Significant digits, 1 to 17. With 17 a number has as many as it takes to read it back exactly, and not more.
    n_jobs : int, optional
        Threads: all cores if not given.

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
        raise ValueError(f"X must be a table of real numbers, not of shape {X.shape} and type {X.dtype}")
    labels = _labels(y)
    queries = np.empty(0, np.int64) if query_id is None else _queries(query_id)
    for name, column in ("y", labels), ("query_id", queries):
        if column.shape != X.shape[:1] and (name == "y" or query_id is not None):
            raise ValueError(f"{name} must have an entry for each row of X, {X.shape[0]}, not shape {column.shape}")
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    with create_bytes(target) as file:
        for line in (comment or "").splitlines():
            file.write(f"# {line}\n".encode())
        for begin, end in pairwise(_row_cuts(X)):
            part = sparse.csr_matrix(X[begin:end])
            text = _native.write_text(
                labels[begin:end],
                part.indptr.astype(np.int64),
                part.indices,
                np.ascontiguousarray(part.data, dtype=np.float64),
                queries[begin:end],
                0 if zero_based else 1,
                digits,
                threads,
            )
            file.write(text)


def _labels(y: ArrayLike) -> NDArray[np.float64]:
    try:
        return np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y must be numbers: LIBSVM's text has no words for labels; number the classes") from None


def _queries(query_id: ArrayLike) -> NDArray[np.int64]:
    queries = np.ascontiguousarray(query_id)
    if queries.dtype.kind not in "iu" or np.any((queries <= -LARGEST_QUERY) | (queries >= LARGEST_QUERY)):
        raise ValueError(f"query_id must be whole numbers below {LARGEST_QUERY} in size")
    return queries.astype(np.int64)


def _row_cuts(X: Any) -> list[int]:
    """Return where to cut rows into parts with about as many values as are written at once."""
    rows, columns = X.shape
    starts = X.indptr if sparse.issparse(X) else np.arange(rows + 1, dtype=np.int64) * columns
    parts = np.arange(0, int(starts[-1]), WRITTEN_VALUES)[1:]
    rows_of_none = range(0, rows, WRITTEN_VALUES)
    return sorted({0, rows, *rows_of_none, *(int(cut) for cut in np.searchsorted(starts, parts))})


@dataclass
class _Rows:
    """Samples as they are read: rows of a sparse matrix, labels, and queries if they are wanted."""

    labels: GrowingArray
    starts: GrowingArray
    queries: GrowingArray | None
    features: GrowingArray
    values: GrowingArray
    count: int = 0
    stored: int = 0

    share: float | None = None  # about which part of all samples is there

    def make_room(self, rows: int, values: int) -> None:
        """Have room for so many more."""
        self.labels.make_room(self.count, rows, self.share)
        self.starts.make_room(self.count + 1, rows, self.share)
        if self.queries is not None:
            self.queries.make_room(self.count, rows, self.share)
        self.features.make_room(self.stored, values, self.share)
        self.values.make_room(self.stored, values, self.share)


class _Reader:
    """What the lines of a text must be like, and what has been seen of them."""

    def __init__(
        self, name: str, n_features: int | None, zero_based: ZeroBased, dtype: DTypeLike, n_jobs: int | None
    ) -> None:
        if n_features is not None and not (isinstance(n_features, Integral) and 0 < n_features <= MOST_FEATURES):
            raise ValueError(f"n_features must be a whole number from 1 to {MOST_FEATURES}, not {n_features!r}")
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', not {zero_based!r}")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
        self.name = name
        self.n_features = n_features
        self.zero_based = zero_based
        self.dtype = np.dtype(dtype)
        self.threads = thread_count(n_jobs)
        self.has_queries: bool | None = None  # nothing was seen yet
        self.columns = 0  # so many have been seen
        self.zero_seen = False
        self.largest = (-1, 0)  # index, and the line that it is on

    @property
    def base(self) -> int:
        """The index of the first feature, as far as is known."""
        return 0 if self.zero_based is True else 1

    @property
    def limit(self) -> int:
        """The largest index that may be."""
        return (self.n_features or MOST_FEATURES) - (self.zero_based is True)

    def new_rows(self, with_queries: bool) -> _Rows:
        """Return room for samples."""
        starts = GrowingArray(np.int64)
        starts.make_room(0, 1)
        starts.array[0] = 0
        queries = GrowingArray(np.int64) if with_queries else None
        return _Rows(GrowingArray(np.float64), starts, queries, GrowingArray(np.int32), GrowingArray(self.dtype))

    def read(self, block: TextBlock, rows: _Rows) -> None:
        """Add the samples of a block."""
        if self.has_queries is None:
            self.has_queries = block.first_query
        rows.make_room(*block.chunks[:, 1:].sum(axis=0).tolist())
        status, line, count, stored, largest, largest_line, zero_line = _native.read_text(
            block.characters,
            block.length,
            block.chunks,
            self.base,
            self.zero_based is not False,
            self.limit,
            bool(self.has_queries),
            rows.labels.array,
            rows.starts.array,
            np.empty(0, np.int64) if rows.queries is None else rows.queries.array,
            rows.features.array,
            rows.values.array,
            rows.count,
            rows.stored,
            self.threads,
        )
        if status == _WIDE_INDEX:
            rows.features.convert(np.int64, rows.stored)
            return self.read(block, rows)
        if status == _BAD_LINE:
            self._explain(block, line)
        rows.count += count
        rows.stored += stored
        rows.share = block.share
        self.zero_seen |= zero_line >= 0
        if largest > self.largest[0]:
            self.largest = largest, block.line_number(largest_line)
        return None

    def _explain(self, block: TextBlock, offset: int) -> NoReturn:
        rules = LineRules(self.zero_based is not False, self.limit, bool(self.has_queries))
        problems = line_problems(block.line(offset), rules)
        raise DataFileError(self.name, next(problems), block.line_number(offset))

    def decide_base(self) -> None:
        """Hold on to what the lines so far tell about the first index."""
        if self.zero_based == "auto":
            self.zero_based = self.zero_seen

    def matrix(self, rows: _Rows) -> tuple[Any, ...]:
        """Return the matrix, labels and perhaps queries of what was read."""
        features = rows.features.cut(rows.stored)
        zero_based = self.zero_seen if self.zero_based == "auto" else self.zero_based
        index, line = self.largest
        if zero_based and self.base:
            features = np.add(features, 1, dtype=np.int64 if index >= 2**31 - 1 else features.dtype)
        columns = index + (1 if zero_based else 0)
        if self.n_features is not None:
            if columns > self.n_features:
                message = f"index {index} is beyond n_features={self.n_features}, as an index 0 makes them count from 0"
                raise DataFileError(self.name, message, line)
            columns = self.n_features
        starts = rows.starts.cut(rows.count + 1)
        if rows.stored < 2**31 and features.dtype == np.int32:
            starts = starts.astype(np.int32)
        X = sparse.csr_matrix((rows.values.cut(rows.stored), features, starts), shape=(rows.count, max(columns, 0)))
        X.has_canonical_format = True  # indices ascend
        y = rows.labels.cut(rows.count)
        if rows.queries is None:
            return X, y
        return X, y, rows.queries.cut(rows.count) if self.has_queries else None
