"""LIBSVM text as blocks: converted once into a folder of CSR arrays, which is reused while the text is the same.

The name of a folder has a hash of path, size, modification time and checksum of the text, so that a changed text is
converted again. A conversion has another name until it is complete: one that was killed is never read.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from maxmargin.blocks.csr_folders import open_csr_folder, write_arrays
from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.blocks.row_blocks import RowBlock
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_reader import ZeroBased, ZeroIndexError, iterate_libsvm
from maxmargin.storage.output_files import atomic_folder, naming, remove_abandoned

#: Version of the folders; part of their names.
VERSION = 1

#: Bytes of text that are converted at once.
TEXT_BYTES = 2**24

#: The checksum is one of all bytes up to this size, and of as many bytes in pieces at equal distances beyond it: the
#: checksum of a large file would take as long as the passes that the conversion saves.
CHECKED_BYTES, PIECE_BYTES = 2**26, 2**16

#: Names of folders: of the file, a hash of its path and the options, and a hash of its contents.
FOLDER = re.compile(r".*-[0-9a-f]{16}-[0-9a-f]{16}\.csr")
UNFINISHED = re.compile(r"\.[0-9a-f]{8}-[0-9]+-[0-9a-f]{16}\.part")

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
    cache = Path(default_cache_dir() if cache_dir is None else cache_dir)
    cache.mkdir(parents=True, exist_ok=True)
    opened = [_open(path, n_features, zero_based, cache) for path in paths]
    if len({base for _, base in opened}) > 1:
        opened = [_open(path, n_features, True, cache) for path in paths]
    return [source for source, _ in opened]


def _open(path: Path, n_features: int | None, zero_based: ZeroBased, cache: Path) -> tuple[CsrSource, bool]:
    """Return the source of a text, and whether its indices start at 0."""
    stamp = FileStamp.of(path)
    place = _hash(os.path.realpath(path), str(zero_based), str(VERSION))
    contents = _hash(str(stamp.size), str(stamp.modified), _checksum(path, stamp.size))
    folder = cache / f"{path.name[:100]}-{place}-{contents}.csr"
    opened = _cached(folder, path)
    if opened is None:
        remove_abandoned(cache)
        _convert(path, stamp, zero_based, folder)
        for stale in cache.glob(f"*-{place}-*.csr"):
            if stale != folder and FOLDER.fullmatch(stale.name):
                shutil.rmtree(stale, ignore_errors=True)
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


def clear_cache(cache_dir: str | os.PathLike[str] | None = None) -> int:
    """Remove all converted LIBSVM files of a cache, and return how many bytes that frees.

    Parameters
    ----------
    cache_dir : path, optional
        By default that of `open`: the folder maxmargin in the cache folder of the user. Other files in it are kept.
    """
    cache = Path(default_cache_dir() if cache_dir is None else cache_dir)
    freed = 0
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.is_dir() and (FOLDER.fullmatch(folder.name) or UNFINISHED.fullmatch(folder.name)):
            freed += sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
            shutil.rmtree(folder)
    return freed


def default_cache_dir() -> Path:
    """Return the folder maxmargin in the cache folder of the user."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given and os.path.isabs(given):
        return Path(given) / "maxmargin"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "maxmargin"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "maxmargin"


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
    try:
        with atomic_folder(folder) as temporary:
            write_arrays(temporary, folder, _blocks(path, zero_based is True))
            stamp.check()
            description = {"source": os.path.realpath(path), "zero_based": zero_based is True, "bytes": stamp.size}
            with naming(folder / DESCRIPTION):
                (temporary / DESCRIPTION).write_text(json.dumps(description), encoding="utf-8")
    except ZeroIndexError:
        if zero_based != "auto":
            raise
    except OSError:
        if not folder.is_dir():  # otherwise another process has converted the same text in the meantime
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


def _checksum(path: Path, size: int) -> str:
    """Return a checksum of a file, for large files of pieces of it."""
    digest = hashlib.blake2b(digest_size=16)
    pieces = -(-min(size, CHECKED_BYTES) // PIECE_BYTES)
    with open(path, "rb") as stream:
        for number in range(pieces):
            if size > CHECKED_BYTES:  # the first piece begins the file, the last one ends it
                stream.seek(number * (size - PIECE_BYTES) // (pieces - 1))
            digest.update(stream.read(PIECE_BYTES))
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=8).hexdigest()
