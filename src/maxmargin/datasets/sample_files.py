"""Read and write samples in several file formats.

=========  ==========================================  ==========================================================
format     suffix                                      content
=========  ==========================================  ==========================================================
libsvm     .libsvm .svm .svmlight .dat .txt or none    a line for each sample: label index:value index:value …
csv        .csv                                        values separated by commas, semicolons or tabs
tsv        .tsv .tab                                   values separated by tabs
npz        .npz                                        arrays X and y, or a sparse matrix
npy        .npy                                        two-dimensional array, one column is the label
parquet    .parquet .pq                                table, requires pyarrow
arrow      .arrow .feather .ipc                        table, requires pyarrow
=========  ==========================================  ==========================================================

Each may be compressed (.gz, .bz2, .xz). The format of a file with another suffix is detected by its content.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from maxmargin.datasets.arrow_files import read_arrow, read_arrow_columns, read_parquet, write_arrow, write_parquet
from maxmargin.datasets.categorical_columns import Categorical
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.column_table import ColumnTable
from maxmargin.datasets.compression import (
    TOO_LARGE,
    WRITERS,
    Source,
    atomic_target,
    create_bytes,
    open_bytes,
    read_all,
    source_name,
    with_start,
)
from maxmargin.datasets.csv_columns import TextColumnError, read_csv_columns
from maxmargin.datasets.csv_files import read_csv, write_csv
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_reader import ZeroBased, load_libsvm_with_base
from maxmargin.datasets.libsvm_writer import dump_libsvm
from maxmargin.datasets.numpy_files import read_npy, read_npz, write_npy, write_npz
from maxmargin.datasets.samples import Samples
from maxmargin.resources import explained_memory_errors

#: Format by suffix.
SUFFIXES = {
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".npz": "npz", ".npy": "npy",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip

FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))

#: Formats with columns of any type.
TABLE_FORMATS = ("csv", "tsv", "parquet", "arrow")

#: First bytes of the binary formats.
MAGIC_BYTES = {
    b"PK\x03\x04": "npz",
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}

#: A line in LIBSVM format: one or several labels and index:value pairs, or a single number.
LIBSVM_LINE = re.compile(rb"\s*([-+.\w]+(,[-+.\w]+)*(\s+(qid|\d+):\S+)+|[-+]?[\d.]+)\s*(#.*)?$")

#: Number of bytes used to detect the format.
DETECTION_BYTES = 1 << 16


def read_samples(
    source: Source,
    *,
    format: str | None = None,
    label: str | int | None = "auto",
    query: str | int | None = None,
    ignore: Sequence[str | int] = (),
    categorical: Categorical = "error",
    header: bool | str = "auto",
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    n_jobs: int | None = None,
) -> Samples:
    r"""Read samples from a file.

    Parameters
    ----------
    source : str, path or binary file
        "-" for standard input. Files may be compressed with gzip, bzip2 or xz.
    format : {"libsvm", "csv", "tsv", "npz", "npy", "parquet", "arrow"} or None
        By default detected by the suffix, otherwise by the content of the file.
    label : str, int or None
        Label column of a table: "auto" (the column named label, target or class, otherwise the last one), "first",
        "last", a name, or an index as in Python. None: ignore labels. With "auto" and `n_features`, a table with
        exactly that many columns has no labels.
    query : str, int or None
        Query column of a table, for ranking. LIBSVM format (qid) and .npz files mark queries themselves.
    ignore : sequence of str or int
        Columns of a table to ignore.
    categorical : {"error", "one-hot"} or mapping of str to sequence of str
        Treatment of columns of strings: an error that lists them; one-hot encoding; or one-hot encoding with the
        given categories by column name, such as `Samples.categories` of the training data.
    header : bool or "auto"
        Whether the first line of a CSV file is a header; "auto": if it has text above a number.
    n_features : int or None
        Required number of features; files in LIBSVM format may have fewer.
    zero_based : bool or "auto"
        Whether indices in LIBSVM format start at 0; "auto": if index 0 occurs.
    n_jobs : int or None
        Number of threads for LIBSVM format; by default all cores. CSV files are read by one thread or by all.

    Returns
    -------
    samples : Samples

    Raises
    ------
    DataFileError
        If the file cannot be read; the message names the line and the problem.
    MemoryError
        If the samples do not fit into memory, or if a compressed file expands to more than 1 GiB and 100 times its
        size.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import read_samples
    >>> table = io.BytesIO(b"length,width,species\n5.1,3.5,setosa\n6.2,2.9,versicolor\n")
    >>> samples = read_samples(table)
    >>> samples.X
    array([[5.1, 3.5],
           [6.2, 2.9]])
    >>> samples.y
    array(['setosa', 'versicolor'], dtype='<U10')
    """
    selection = ColumnSelection(label, query, ignore, categorical, n_features)
    name = source_name(source)
    _check_format(format)
    kind = format or find_format(source)
    with open_bytes(source) as opened, explained_memory_errors(f"reading {name}", TOO_LARGE):
        stream: IO[bytes] = opened
        if kind is None:  # a pipe, which cannot be read twice
            start = opened.read(DETECTION_BYTES)
            kind = format_by_content(start, name)
            stream = with_start(start, opened)
        if kind == "libsvm":
            return _read_libsvm(stream, name, selection, zero_based, n_jobs)
        if kind in ("csv", "tsv"):
            delimiter = "\t" if kind == "tsv" else None
            return read_csv(stream, name, selection, delimiter=delimiter, header=header, parallel=n_jobs != 1)
        reader = {"npz": read_npz, "npy": read_npy, "parquet": read_parquet, "arrow": read_arrow}[kind]
        return reader(read_all(stream, name), name, selection)  # these readers seek


def read_columns(
    source: Source,
    *,
    format: str | None = None,
    header: bool | str = "auto",
    text: Collection[str] = (),
    n_jobs: int | None = None,
) -> ColumnTable:
    r"""Read the columns of a table as they come: numbers, dates and text, with missing cells.

    Parameters
    ----------
    source : str, path or binary file
        A file that `read_samples` reads, in CSV, Parquet or Arrow format; "-" for standard input.
    format : {"csv", "tsv", "parquet", "arrow"} or None
        By default detected by the suffix, otherwise by the content of the file.
    header : bool or "auto"
        Whether the first line of a CSV file is a header; "auto": if it has distinct text that does not occur below it.
    text : collection of str
        Columns of a CSV file that are not read as numbers, such as postal codes.
    n_jobs : int or None
        CSV files are read by one thread or by all.

    Returns
    -------
    table : ColumnTable

    Raises
    ------
    DataFileError
        If the file cannot be read; the message names the line and the problem.

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import read_columns
    >>> table = read_columns(io.BytesIO(b"age,town\n41,Ulm\n,Bonn\n"))
    >>> table.columns["age"]
    array([41., nan])
    """
    if header not in (True, False, "auto"):
        raise ValueError(f"header must be True, False or 'auto', not {header!r}")
    name = source_name(source)
    _check_format(format)
    kind = format or find_format(source)
    textual: set[str | int] = set(text)
    with open_bytes(source) as opened, explained_memory_errors(f"reading {name}", TOO_LARGE):
        if kind is None:
            start = opened.read(DETECTION_BYTES)
            kind = format_by_content(start, name)
            opened = with_start(start, opened)
        if kind not in TABLE_FORMATS:
            raise DataFileError(name, f"the format {kind} has no named columns; a table is CSV, Parquet or Arrow")
        if kind in ("parquet", "arrow"):
            return read_arrow_columns(read_all(opened, name), name, kind)
        again = read_all(opened, name) if not isinstance(source, str | os.PathLike) or source == "-" else None
        while True:
            stream = opened if again is None else io.BytesIO(again.getvalue())
            try:
                return read_csv_columns(
                    stream, name, delimiter="\t" if kind == "tsv" else None, header=header, text=textual,
                    parallel=n_jobs != 1,
                )  # fmt: skip
            except TextColumnError as error:
                textual |= error.columns
                if again is None:
                    again = _whole(source, name)


def _whole(source: Source, name: str) -> io.BytesIO:
    """Return the bytes of a file, which is read again."""
    with open_bytes(source) as stream:
        return read_all(stream, name)


def write_samples(samples: Samples, target: Source, format: str | None = None) -> None:
    """Write samples to a file.

    Parameters
    ----------
    samples : Samples
        LIBSVM format cannot store names or string labels, .npy files cannot store queries either.
    target : str, path or binary file
        "-" for standard output. With an additional suffix .gz, .bz2 or .xz the file is compressed. An existing file
        is replaced when the new one is complete.
    format : {"libsvm", "csv", "tsv", "npz", "npy", "parquet", "arrow"} or None
        By default detected by the suffix, otherwise LIBSVM format.
    """
    _check_format(format)
    kind = format or format_by_name(target) or "libsvm"
    with atomic_target(target) as path, create_bytes(path) as stream:
        if kind == "libsvm":
            _write_libsvm(samples, stream)
        elif kind in ("csv", "tsv"):
            write_csv(samples, stream, "\t" if kind == "tsv" else ",")
        else:
            writer = {"npz": write_npz, "npy": write_npy, "parquet": write_parquet, "arrow": write_arrow}[kind]
            writer(samples, stream)
        stream.flush()


def find_format(source: Source) -> str | None:
    """Return the format of a file by its suffix or its content; None for a pipe without a known suffix."""
    kind = format_by_name(source)
    if kind is None and isinstance(source, str | os.PathLike) and Path(source).is_file():
        with open_bytes(source) as stream:
            return format_by_content(stream.read(DETECTION_BYTES), source_name(source))
    return kind


def format_by_name(source: Source) -> str | None:
    """Return the format by the suffix, None if the suffix is unknown."""
    path = Path(source_name(source).lower())
    if path.suffix in WRITERS:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix)


def format_by_content(start: bytes, name: str) -> str:
    """Return the format of a file by its first bytes or lines."""
    for magic, kind in MAGIC_BYTES.items():
        if start.startswith(magic):
            return kind
    lines = [line for line in start.removeprefix(b"\xef\xbb\xbf").splitlines() if line.split(b"#")[0].strip()]
    if not lines:
        raise DataFileError(name, "the file is empty")
    if LIBSVM_LINE.match(lines[0]):
        return "libsvm"
    if any(delimiter in lines[0] for delimiter in (b",", b";", b"\t")):
        return "csv"
    raise DataFileError(
        name,
        "unknown format: neither LIBSVM format 'label index:value …' nor a table with commas, semicolons or tabs; "
        "name the format (--format)",
        1,
    )


def _read_libsvm(
    stream: IO[bytes], name: str, selection: ColumnSelection, zero_based: ZeroBased, n_jobs: int | None
) -> Samples:
    X, y, query, from_zero = load_libsvm_with_base(stream, name, selection.n_features, zero_based, n_jobs)
    if not len(y):
        raise DataFileError(name, "there are no samples in the file")
    for what, finite in (("a value", np.isfinite(X.data)), ("a label", np.isfinite(y))):
        if not finite.all():
            place = int(np.argmin(finite))
            sample = place + 1 if what == "a label" else int(np.searchsorted(X.indptr, place, side="right"))
            raise DataFileError(
                name, f"sample {sample} has {what} that is not finite; 'maxmargin check' finds the line"
            )
    return Samples(X, None if selection.label is None else y, query, name=name, zero_based=from_zero)


def _write_libsvm(samples: Samples, stream: IO[bytes]) -> None:
    if samples.y is not None and samples.y.dtype.kind not in "biuf":
        raise DataFileError(samples.name, "LIBSVM format has no string labels; encode them as integers, or write CSV")
    y = np.zeros(len(samples)) if samples.y is None else samples.y
    query = None if samples.query is None else np.unique(samples.query, return_inverse=True)[1] + 1
    dump_libsvm(samples.X, y, stream, query_id=query)


def _check_format(format: str | None) -> None:
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}")
