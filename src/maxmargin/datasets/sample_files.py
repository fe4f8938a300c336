"""Samples from files of every kind, and back.

=========  ==========================================  ==========================================================
format     suffix                                      what is in it
=========  ==========================================  ==========================================================
libsvm     .libsvm .svm .svmlight .dat .txt or none    a line for each sample: label index:value index:value …
csv        .csv                                        cells with commas, semicolons or tabs between them
tsv        .tsv .tab                                   cells with tabs between them
npz        .npz                                        arrays X and y, or a sparse matrix
npy        .npy                                        a table of numbers, one column is the label
parquet    .parquet .pq                                columns, by pyarrow
arrow      .arrow .feather .ipc                        columns, by pyarrow
=========  ==========================================  ==========================================================

Each may be compressed (.gz, .bz2, .xz). A file with another suffix is looked into.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from maxmargin.datasets.arrays import read_npy, read_npz, write_npy, write_npz
from maxmargin.datasets.column_roles import ColumnChoice
from maxmargin.datasets.columnar import read_arrow, read_parquet, write_arrow, write_parquet
from maxmargin.datasets.compression import WRITERS, Source, create_bytes, open_bytes, source_name
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_text import ZeroBased, dump_libsvm, load_libsvm_with_base
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table_text import read_table, write_table
from maxmargin.datasets.word_columns import Words

#: The formats by the suffix of a file's name.
SUFFIXES = {
    ".libsvm": "libsvm", ".svm": "libsvm", ".svmlight": "libsvm",
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".npz": "npz", ".npy": "npy",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip

FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))

#: How files begin that are no text.
BEGINNINGS = {
    b"PK\x03\x04": "npz",
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
}

#: A line of LIBSVM text: a label, or several with commas between them, and pairs; or a number alone.
LIBSVM_LINE = re.compile(rb"\s*([-+.\w]+(,[-+.\w]+)*(\s+(qid|\d+):\S+)+|[-+]?[\d.]+)\s*(#.*)?$")

#: So much of a file is looked into.
GLANCE = 1 << 16


def read_samples(
    source: Source,
    *,
    format: str | None = None,
    label: str | int | None = "auto",
    query: str | int | None = None,
    ignore: Sequence[str | int] = (),
    words: Words = "refuse",
    header: bool | str = "auto",
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    n_jobs: int | None = None,
) -> Samples:
    r"""Read samples from a file.

    Parameters
    ----------
    source : str, path or binary file
        "-" is standard input. Files may be compressed with gzip, bzip2 or xz.
    format : {"libsvm", "csv", "tsv", "npz", "npy", "parquet", "arrow"} or None
        None: by the name's suffix, and else by what is in the file.
    label : str, int or None
        Which column of a table is the label: "auto" (the one called label, target or class, else the last), "first",
        "last", a name, or a position as in Python. None: there are none, or they are not wanted. With "auto" and
        `n_features`, a table that has just so many columns has no labels.
    query : str, int or None
        Which column of a table says which samples belong together, for ranking; LIBSVM text (qid) and .npz say it.
    ignore : sequence of str or int
        Columns of a table to leave out.
    words : {"refuse", "one-hot"} or mapping of str to sequence of str
        What becomes of columns of words: an error that lists them; a column of 0 and 1 for each word; or the same for
        the words given by column, as in `Samples.categories` of other samples, so that the columns are the same.
    header : bool or "auto"
        Whether the first line of a text with a table is a heading; "auto": if it has a word above a number.
    n_features : int or None
        So many features are needed. In LIBSVM text, where zeros are left out, there may be fewer.
    zero_based : bool or "auto"
        Whether indices in LIBSVM text begin with 0; "auto": if there is one.
    n_jobs : int or None
        Threads for LIBSVM text.

    Returns
    -------
    samples : Samples

    Raises
    ------
    DataFileError
        If the file cannot be read; the message names the line.

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
    choice = ColumnChoice(label, query, ignore, words, n_features)
    name = source_name(source)
    _check_format(format)
    found = format or find_format(source)
    with open_bytes(source) as opened:
        stream: IO[bytes] = opened
        if found is None:  # a pipe, which cannot be read twice
            start = opened.read(GLANCE)
            found = format_by_content(start, name)
            stream = io.BytesIO(start + opened.read())
        if found == "libsvm":
            return _read_libsvm(stream, name, choice, zero_based, n_jobs)
        if found in ("csv", "tsv"):
            return read_table(stream, name, choice, delimiter="\t" if found == "tsv" else None, header=header)
        reader = {"npz": read_npz, "npy": read_npy, "parquet": read_parquet, "arrow": read_arrow}[found]
        return reader(io.BytesIO(stream.read()), name, choice)  # they jump about in it


def write_samples(samples: Samples, target: Source, format: str | None = None) -> None:
    """Write samples to a file.

    Parameters
    ----------
    samples : Samples
        LIBSVM text has no place for names, nor for labels that are words; .npy has none for queries either.
    target : str, path or binary file
        "-" is standard output. With a further suffix .gz, .bz2 or .xz the file is compressed. A file that is there is
        replaced when the new one is complete.
    format : {"libsvm", "csv", "tsv", "npz", "npy", "parquet", "arrow"} or None
        None: by the name's suffix, and LIBSVM text if that says nothing.
    """
    _check_format(format)
    found = format or format_by_name(target) or "libsvm"
    with complete_or_not(target) as path, create_bytes(path) as stream:
        if found == "libsvm":
            _write_libsvm(samples, stream)
        elif found in ("csv", "tsv"):
            write_table(samples, stream, "\t" if found == "tsv" else ",")
        else:
            writer = {"npz": write_npz, "npy": write_npy, "parquet": write_parquet, "arrow": write_arrow}[found]
            writer(samples, stream)
        stream.flush()


@contextmanager
def complete_or_not(target: Source) -> Iterator[Source]:
    """Write to another file, which takes the place of the one that is meant when it is complete."""
    if not isinstance(target, str | os.PathLike) or target == "-":
        yield target
        return
    path = Path(os.path.realpath(target))
    if path.exists() and not path.is_file():  # a pipe, for example
        yield target
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{os.fspath(target)} cannot be written: there is no folder {path.parent}")
    beside = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield beside
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def find_format(source: Source) -> str | None:
    """Return the format of a file, by its name or by what is in it; None for a pipe whose name tells nothing."""
    found = format_by_name(source)
    if found is None and isinstance(source, str | os.PathLike) and Path(source).is_file():
        with open_bytes(source) as stream:
            return format_by_content(stream.read(GLANCE), source_name(source))
    return found


def format_by_name(source: Source) -> str | None:
    """Return the format that a file's name tells, if it does."""
    path = Path(source_name(source).lower())
    if path.suffix in WRITERS:
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix)


def format_by_content(start: bytes, name: str) -> str:
    """Return the format of a file by how it begins."""
    for beginning, found in BEGINNINGS.items():
        if start.startswith(beginning):
            return found
    lines = [line for line in start.removeprefix(b"\xef\xbb\xbf").splitlines() if line.split(b"#")[0].strip()]
    if not lines:
        raise DataFileError(name, "there is nothing in it")
    if LIBSVM_LINE.match(lines[0]):
        return "libsvm"
    if any(delimiter in lines[0] for delimiter in (b",", b";", b"\t")):
        return "csv"
    raise DataFileError(
        name, "it has no lines of LIBSVM text 'label index:value …' and no table with commas, semicolons or tabs", 1
    )


def _read_libsvm(
    stream: IO[bytes], name: str, choice: ColumnChoice, zero_based: ZeroBased, n_jobs: int | None
) -> Samples:
    try:
        X, y, query, from_zero = load_libsvm_with_base(stream, choice.n_features, zero_based, n_jobs)
    except DataFileError as error:
        raise DataFileError(name, error.message, error.line) from error
    if not len(y):
        raise DataFileError(name, "there is no sample in it")
    for what, finite in (("a value", np.isfinite(X.data)), ("a label", np.isfinite(y))):
        if not finite.all():
            place = int(np.argmin(finite))
            sample = place + 1 if what == "a label" else int(np.searchsorted(X.indptr, place, side="right"))
            raise DataFileError(
                name, f"sample {sample} has {what} that is not finite; 'maxmargin check' finds the line"
            )
    return Samples(X, None if choice.label is None else y, query, name=name, zero_based=from_zero)


def _write_libsvm(samples: Samples, stream: IO[bytes]) -> None:
    if samples.y is not None and samples.y.dtype.kind not in "biuf":
        raise DataFileError(samples.name, "LIBSVM text has numbers as labels, and these are words; number them first")
    y = np.zeros(len(samples)) if samples.y is None else samples.y
    query = None if samples.query is None else np.unique(samples.query, return_inverse=True)[1] + 1
    dump_libsvm(samples.X, y, stream, query_id=query)


def _check_format(format: str | None) -> None:
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}")
