"""Find the sources of files and folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from maxmargin.blocks.array_sources import ArraySource
from maxmargin.blocks.csr_folders import is_csr_folder, open_csr_folder
from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.sources import Source
from maxmargin.datasets.categorical_columns import Categorical
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.compression import WRITERS
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_reader import ZeroBased

#: Formats whose files are read in blocks, and suffixes of the files of a folder.
FORMATS = ("npy", "npz", "parquet", "arrow", "libsvm")
TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")

#: What a folder is called among the formats.
FOLDER = "folder"


class FileOptions(NamedTuple):
    """The options of `open` about files."""

    format: str | None
    label: str | int | None
    weight: str | int | None
    ignore: Sequence[str | int]
    categorical: Categorical
    n_features: int | None
    zero_based: ZeroBased
    cache_dir: str | os.PathLike[str] | None
    convert: bool


def open_files(paths: Sequence[Path], options: FileOptions) -> list[Source]:
    """Return the sources of files and folders, in their order; neighbours of one format are opened together."""
    if options.format is not None and options.format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, or None, not {options.format!r}")
    files = [file for path in paths for file in _expanded(path)]
    formats = [_format(file, options) for file in files]
    found: list[Source] = []
    for kind, group in groupby(zip(formats, files, strict=True), key=lambda pair: pair[0]):
        found += _open(kind, [file for _, file in group], options)
    return found


def _open(kind: str, paths: Sequence[Path], options: FileOptions) -> Sequence[Source]:
    if kind == "npy":
        return [ArraySource(FileArray(path), str(path)) for path in paths]
    if kind == FOLDER:
        return [open_csr_folder(path, options.n_features) for path in paths]
    if kind == "npz":
        from maxmargin.blocks.npz_files import open_npz

        return [open_npz(path) for path in paths]
    if kind == "libsvm":
        from maxmargin.blocks.libsvm_cache import open_libsvm

        return open_libsvm(paths, options.n_features, options.zero_based, options.cache_dir)
    from maxmargin.blocks.arrow_source import ArrowSource

    selection = ColumnSelection(options.label, None, options.ignore, options.categorical, options.n_features)
    source = ArrowSource(paths, selection, options.weight)
    if not options.convert:
        return [source]
    from maxmargin.blocks.table_cache import converted

    return [converted(source, paths, repr((selection, options.weight)), options.cache_dir)]


def _expanded(path: Path) -> list[Path]:
    """Return the tables of a folder in the order of their names; other paths as they are."""
    if not path.is_dir() or is_csr_folder(path):
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix.lower() in TABLES and file.is_file())
    if not found:
        raise DataFileError(path, "the folder has neither Parquet or Arrow files nor the arrays of a CSR matrix")
    return found


def _format(path: Path, options: FileOptions) -> str:
    """Return the format of a file; `open_arrow_file` distinguishes Parquet from Arrow."""
    from maxmargin.datasets.sample_files import find_format

    if path.is_dir():
        return FOLDER
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    kind = options.format or find_format(path)
    if kind not in FORMATS:
        raise DataFileError(
            path, f"files of the format {kind} are not read in blocks; write Parquet or LIBSVM ('maxmargin convert')"
        )
    if kind != "libsvm" and path.suffix.lower() in WRITERS:
        raise DataFileError(path, f"files of the format {kind} are read in blocks only without compression; unpack it")
    return "arrow" if kind == "parquet" else kind
