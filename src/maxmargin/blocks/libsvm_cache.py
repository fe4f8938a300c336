"""LIBSVM text as blocks: converted once into a folder of CSR arrays, which is used again while the text is the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from maxmargin.blocks.conversions import conversion_folder, convert
from maxmargin.blocks.csr_folders import open_csr_folder, write_arrays
from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.blocks.row_blocks import RowBlock
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_reader import ZeroBased, ZeroIndexError, iterate_libsvm
from maxmargin.storage.output_files import naming

#: Version of the folders; part of their names.
VERSION = 1

#: Bytes of text that are converted at once.
TEXT_BYTES = 2**24

#: The file that says what a folder was converted from.
DESCRIPTION = "source.json"


def open_libsvm(
    paths: Sequence[Path],
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
) -> list[CsrSource]:
    """Return the sources of LIBSVM texts, which are converted unless the cache has them.

    With "auto", the indices of all texts start at 0 if index 0 occurs in any of them.
    """
    if zero_based not in (True, False, "auto"):
        raise ValueError(f"zero_based must be True, False or 'auto', not {zero_based!r}")
    opened = [_open(path, n_features, zero_based, cache_dir) for path in paths]
    if len({base for _, base in opened}) > 1:
        opened = [_open(path, n_features, True, cache_dir) for path in paths]
    return [source for source, _ in opened]


def _open(
    path: Path, n_features: int | None, zero_based: ZeroBased, cache_dir: str | os.PathLike[str] | None
) -> tuple[CsrSource, bool]:
    """Return the source of a text, and whether its indices start at 0."""
    stamp = FileStamp.of(path)
    folder = conversion_folder([path], [stamp], f"{zero_based} {VERSION}", "csr", cache_dir)
    opened = _cached(folder, path)
    if opened is None:
        _convert(path, stamp, zero_based, folder)
        opened = _cached(folder, path)
        if opened is None:
            raise OSError(f"{folder}: the converted rows of {path} cannot be read back; clear the cache")
    source = opened[0]
    if n_features is not None and source.n_features > n_features:
        message = f"the largest index means {source.n_features} columns, more than n_features={n_features}"
        raise DataFileError(path, message)
    source.origin, source.has_open_width = stamp, n_features is None
    source.n_features = n_features or source.n_features
    return opened


def _cached(folder: Path, path: Path) -> tuple[CsrSource, bool] | None:
    """Return what a text was converted to, None if it was not; a folder that cannot be read is removed."""
    if not folder.is_dir():
        return None
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        return open_csr_folder(folder, name=str(path)), bool(description["zero_based"])
    except (OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(folder)
        return None


def _convert(path: Path, stamp: FileStamp, zero_based: ZeroBased, folder: Path) -> None:
    """Write the folder of a text; with "auto", indices start at 0 if index 0 occurs anywhere."""

    def write(temporary: Path) -> None:
        write_arrays(temporary, folder, _blocks(path, zero_based is True))
        stamp.check()
        description = {"source": os.path.realpath(path), "zero_based": zero_based is True, "bytes": stamp.size}
        with naming(folder / DESCRIPTION):
            (temporary / DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")

    try:
        convert(folder, write)
    except ZeroIndexError:
        if zero_based != "auto":
            raise
    else:
        return
    if zero_based == "auto" and not folder.is_dir():
        _convert(path, stamp, True, folder)


def _blocks(path: Path, zero_based: bool) -> Iterator[RowBlock]:
    first = 0
    for X, y in iterate_libsvm(path, block_bytes=TEXT_BYTES, zero_based=zero_based):
        for what, finite in (("a value", np.isfinite(X.data)), ("a label", np.isfinite(y))):
            if not finite.all():
                at = int(np.argmin(finite))
                row = at if what == "a label" else int(np.searchsorted(X.indptr, at, side="right")) - 1
                raise DataFileError(
                    path,
                    f"row {first + row} (counting from 0) has {what} that is not finite; 'maxmargin check' finds the "
                    "line",
                )
        yield RowBlock(X, y, None, first)
        first += len(y)
    if not first:
        raise DataFileError(path, "there are no samples in the file")
