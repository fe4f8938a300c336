"""Read samples in LIBSVM format with all cores.

Each line is a sample: its label, then index:value for each nonzero feature in ascending order of indices::

    +1 3:1 11:0.25 14:-1e-3
    -1 qid:7 1:0.5 # a comment

Values are rounded correctly to float64, and written values are restored exactly. Spaces, tabs and carriage returns
separate words; blank lines and comment lines are skipped. nan and inf are accepted; `find_libsvm_problems` reports
them. The format is that of SVMlight (Joachims 1998) and of LIBSVM (Chang and Lin 2011), which has no comments and no
qid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from maxmargin import _native
from maxmargin.datasets.compressed_rows import CompressedRows
from maxmargin.datasets.compression import CHECKED_BYTES, TOO_LARGE, Source, open_bytes, source_name
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_diagnostics import MAX_FEATURES, LineRules, line_problems
from maxmargin.datasets.text_blocks import READ_BYTES, TextBlock, blocks_of_lines
from maxmargin.resources import check_memory, thread_count

ZeroBased: TypeAlias = bool | Literal["auto"]

#: Default size in bytes of a block of `iterate_libsvm`.
BLOCK_BYTES = 2**26

# Status codes of the native reader.
_OK, _BAD_LINE, _WIDE_INDEX = range(3)


class ZeroIndexError(DataFileError):
    """An index is 0, although indices start at 1; the line is valid otherwise."""


def load_libsvm(
    source: Source,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    return_query_id: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    r"""Read samples and labels in LIBSVM format.

    Parameters
    ----------
    source : str, path or binary file
        A path, "-" for standard input, or an open file, optionally compressed with gzip, bzip2 or xz.
    n_features : int, optional
        Number of columns; by default the largest index. A larger index is an error.
    zero_based : bool or "auto"
        Whether indices start at 0. "auto" means that they do if index 0 occurs.
    dtype : float32 or float64
        Type of the values of X.
    return_query_id : bool
        Whether to return the query ids, too.
    n_jobs : int, optional
        Number of threads; by default all cores.

    Returns
    -------
    X : csr_matrix of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
    query : int array of shape (n_samples,) or None
        Only with `return_query_id`; None if the file has no qid.

    Raises
    ------
    DataFileError
        If a line is malformed; the message names the file, the line and the problem.

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
    reader = _Reader(source_name(source), n_features, zero_based, dtype, n_jobs)
    rows, *others = _read_all(source, reader, return_query_id)
    return rows.matrix(), *others


def load_rows(source: Source, *, zero_based: ZeroBased = "auto") -> tuple[CompressedRows, NDArray[np.float64]]:
    """Read samples and labels without scipy.sparse; parameters as for `load_libsvm`."""
    rows, y = _read_all(source, _Reader(source_name(source), None, zero_based, np.float64, None), False)
    return rows, y


def load_libsvm_with_base(
    source: Source, name: str, n_features: int | None, zero_based: ZeroBased, n_jobs: int | None
) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None, bool]:
    """Return matrix, labels, query ids or None, and whether the indices start at 0; `name` is for messages."""
    reader = _Reader(name, n_features, zero_based, np.float64, n_jobs)
    rows, y, query = _read_all(source, reader, True)
    return rows.matrix(), y, query, reader.found_zero if zero_based == "auto" else bool(zero_based)


def _read_all(source: Source, reader: _Reader, with_queries: bool) -> tuple[Any, ...]:
    rows = reader.new_rows(with_queries)
    with open_bytes(source) as stream:
        for block in blocks_of_lines(stream, reader.name, READ_BYTES, reader.threads):
            reader.read(block, rows)
    return reader.compressed(rows)


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
    r"""Read LIBSVM format in blocks of lines, for files larger than memory.

    Parameters
    ----------
    source, dtype, return_query_id, n_jobs
        As for `load_libsvm`.
    block_bytes : int
        Size of a block in bytes of (decompressed) text, at least 1; a longer line is a block of its own.
    n_features : int, optional
        Number of columns of every block. By default the largest index so far.
    zero_based : bool or "auto"
        Whether indices start at 0. With "auto" the first block decides; index 0 in a later block is then an error.

    Returns
    -------
    iterator of X, y or X, y, query
        As returned by `load_libsvm`, for one block.

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
    return ((rows.matrix(), *others) for rows, *others in _blocks(source, reader, block_bytes, return_query_id))


def iterate_rows(
    source: Source, *, zero_based: ZeroBased = "auto"
) -> Iterator[tuple[CompressedRows, NDArray[np.float64]]]:
    """Read blocks of samples and labels without scipy.sparse; parameters as for `iterate_libsvm`."""
    reader = _Reader(source_name(source), None, zero_based, np.float64, None)
    return ((rows, y) for rows, y in _blocks(source, reader, BLOCK_BYTES, False))


def _blocks(source: Source, reader: _Reader, block_bytes: int, with_queries: bool) -> Iterator[tuple[Any, ...]]:
    with open_bytes(source, in_blocks=True) as stream:
        for block in blocks_of_lines(stream, reader.name, block_bytes, reader.threads):
            rows = reader.new_rows(with_queries)
            reader.read(block, rows)
            if rows.count:
                yield reader.compressed(rows)
                reader.fix_base()


class _GrowingArray:
    """An array with spare capacity: the first entries of `array` are used, the others are uninitialised.

    Memory that is never written to is not allocated by the system, so generous capacity costs little.
    """

    def __init__(self, dtype: DTypeLike, name: str) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype)
        self._name = name  # of the file, for messages

    def reserve(self, used: int, more: int, fraction: float | None = None) -> None:
        """Ensure capacity for `more` entries after the `used` ones, which are this fraction of the expected total."""
        if used + more > len(self.array):
            expected = int(1.1 * used / fraction) if fraction else 0
            length = expected if expected > used + more else max(used + more, 2 * len(self.array))
            self._reallocate(length, self.array.dtype, used)

    def convert(self, dtype: DTypeLike, used: int) -> None:
        """Change the type of the entries."""
        self._reallocate(len(self.array), dtype, used)

    def _reallocate(self, length: int, dtype: DTypeLike, used: int) -> None:
        size = np.dtype(dtype).itemsize * (length if not used else min(length, 2 * used))  # as far as it is written to
        if size >= CHECKED_BYTES:
            check_memory(size, f"{self._name}: an array of {length:,} values", TOO_LARGE)
        moved = np.empty(length, dtype)
        moved[:used] = self.array[:used]
        self.array = moved

    def trim(self, used: int) -> NDArray[Any]:
        """Release the spare capacity and return the array."""
        self.array.resize(used, refcheck=False)
        return self.array


@dataclass
class _Rows:
    """The samples read so far: a sparse matrix in CSR format, labels and, if requested, query ids."""

    labels: _GrowingArray
    starts: _GrowingArray
    queries: _GrowingArray | None
    features: _GrowingArray
    values: _GrowingArray
    count: int = 0
    stored: int = 0
    fraction: float | None = None  # approximate fraction of the file read so far

    def reserve(self, rows: int, values: int) -> None:
        """Ensure capacity for more rows and values."""
        self.labels.reserve(self.count, rows, self.fraction)
        self.starts.reserve(self.count + 1, rows, self.fraction)
        if self.queries is not None:
            self.queries.reserve(self.count, rows, self.fraction)
        self.features.reserve(self.stored, values, self.fraction)
        self.values.reserve(self.stored, values, self.fraction)


class _Reader:
    """Options and state of a reader of LIBSVM format."""

    def __init__(
        self, name: str, n_features: int | None, zero_based: ZeroBased, dtype: DTypeLike, n_jobs: int | None
    ) -> None:
        if n_features is not None and not (isinstance(n_features, Integral) and 0 < n_features <= MAX_FEATURES):
            raise ValueError(f"n_features must be an integer from 1 to {MAX_FEATURES}, not {n_features!r}")
        if zero_based not in (True, False, "auto"):
            raise ValueError(f"zero_based must be True, False or 'auto', not {zero_based!r}")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, not {dtype!r}")
        self.name = name
        self.n_features = n_features
        self.zero_based = zero_based
        self.dtype = np.dtype(dtype)
        self.threads = thread_count(n_jobs)
        self.has_queries: bool | None = None  # unknown before the first sample
        self.found_zero = False
        self.largest = (-1, 0)  # largest index and its line

    @property
    def base(self) -> int:
        """Index of the first feature, 1 while it is undecided."""
        return 0 if self.zero_based is True else 1

    @property
    def limit(self) -> int:
        """The largest index allowed."""
        return (self.n_features or MAX_FEATURES) - (self.zero_based is True)

    def new_rows(self, with_queries: bool) -> _Rows:
        """Return an empty container for samples."""
        starts = _GrowingArray(np.int64, self.name)
        starts.reserve(0, 1)
        starts.array[0] = 0
        queries = _GrowingArray(np.int64, self.name) if with_queries else None
        labels, features = _GrowingArray(np.float64, self.name), _GrowingArray(np.int32, self.name)
        return _Rows(labels, starts, queries, features, _GrowingArray(self.dtype, self.name))

    def read(self, block: TextBlock, rows: _Rows) -> None:
        """Add the samples of a block."""
        if self.has_queries is None:
            self.has_queries = block.first_query
        rows.reserve(*block.chunks[:, 1:].sum(axis=0).tolist())
        rules = _native.TextRules(
            base=self.base,
            zero_allowed=self.zero_based is not False,
            limit=self.limit,
            has_queries=bool(self.has_queries),
        )
        target = _native.TextArrays(
            labels=rows.labels.array,
            starts=rows.starts.array,
            queries=np.empty(0, np.int64) if rows.queries is None else rows.queries.array,
            features=rows.features.array,
            values=rows.values.array,
            row=rows.count,
            stored=rows.stored,
        )
        result = _native.read_text(block.characters, block.length, block.chunks, rules, target, self.threads)
        if result.status == _WIDE_INDEX:
            rows.features.convert(np.int64, rows.stored)
            return self.read(block, rows)
        if result.status == _BAD_LINE:
            self._raise_error(block, result.line)
        rows.count += result.rows
        rows.stored += result.stored
        rows.fraction = block.fraction
        self.found_zero |= result.zero_line >= 0
        if result.largest > self.largest[0]:
            self.largest = result.largest, block.line_number(result.largest_line)
        return None

    def _raise_error(self, block: TextBlock, offset: int) -> NoReturn:
        rules = LineRules(self.zero_based is not False, self.limit, bool(self.has_queries))
        problem = next(line_problems(block.line(offset), rules))
        allowing_zero = line_problems(block.line(offset), replace(rules, zero_allowed=True))
        error = DataFileError if rules.zero_allowed or next(allowing_zero, None) else ZeroIndexError
        raise error(self.name, problem, block.line_number(offset))

    def fix_base(self) -> None:
        """Fix whether indices start at 0 by the lines read so far."""
        if self.zero_based == "auto":
            self.zero_based = self.found_zero

    def compressed(self, rows: _Rows) -> tuple[Any, ...]:
        """Return the samples, the labels and, if requested, the query ids."""
        features = rows.features.trim(rows.stored)
        zero_based = self.found_zero if self.zero_based == "auto" else self.zero_based
        index, line = self.largest
        if zero_based and self.base:
            features = np.add(features, 1, dtype=np.int64 if index >= 2**31 - 1 else features.dtype)
        columns = index + (1 if zero_based else 0)
        if self.n_features is not None:
            if columns > self.n_features:
                message = f"index {index} exceeds n_features={self.n_features}, because indices start at 0 in this file"
                raise DataFileError(self.name, message, line)
            columns = self.n_features
        starts = rows.starts.trim(rows.count + 1)
        if rows.stored < 2**31 and features.dtype == np.int32:
            starts = starts.astype(np.int32)
        X = CompressedRows(rows.values.trim(rows.stored), features, starts, max(columns, 0))
        y = rows.labels.trim(rows.count)
        if rows.queries is None:
            return X, y
        return X, y, rows.queries.trim(rows.count) if self.has_queries else None
