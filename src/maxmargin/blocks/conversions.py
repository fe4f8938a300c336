"""The cache of converted files: folders whose names have hashes of path, size, modification time and checksum.

A changed file is converted again, and the old conversion is removed. A conversion has another name until it is
complete: one that was killed is never read, and what it left is removed by the next one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.storage.output_files import atomic_folder, remove_abandoned

#: The checksum is one of all bytes up to this size, and of as many bytes in pieces at equal distances beyond it: the
#: checksum of a large file would take as long as the passes that the conversion saves.
CHECKED_BYTES, PIECE_BYTES = 2**26, 2**16

#: Names of folders: of the file, a hash of its path and the options, and a hash of its contents.
FOLDER = re.compile(r".*-[0-9a-f]{16}-[0-9a-f]{16}\.(csr|rows)")
UNFINISHED = re.compile(r"\.[0-9a-f]{8}-[0-9]+-[0-9a-f]{16}\.part")


def conversion_folder(
    paths: Sequence[Path],
    stamps: Sequence[FileStamp],
    options: str,
    kind: str,
    cache_dir: str | os.PathLike[str] | None,
) -> Path:
    """Return the folder for the conversion of files with some options; `kind` is the suffix of its name."""
    cache = Path(default_cache_dir() if cache_dir is None else cache_dir)
    cache.mkdir(parents=True, exist_ok=True)
    place = _hash(*(os.path.realpath(path) for path in paths), options)
    sums = (
        part
        for path, stamp in zip(paths, stamps, strict=True)
        for part in (str(stamp.size), str(stamp.modified), _checksum(path, stamp.size))
    )
    return cache / f"{paths[0].name[:100]}-{place}-{_hash(*sums)}.{kind}"


def convert(folder: Path, write: Callable[[Path], None]) -> None:
    """Create the folder of a conversion; `write` writes its files into a temporary folder.

    Conversions of the same files before they changed are removed.
    """
    remove_abandoned(folder.parent)
    try:
        with atomic_folder(folder) as temporary:
            write(temporary)
    except OSError:
        if not folder.is_dir():  # otherwise another process has converted the same files in the meantime
            raise
    name, place, _ = folder.name.rsplit("-", 2)
    for stale in folder.parent.iterdir():
        if stale != folder and FOLDER.fullmatch(stale.name) and stale.name.startswith(f"{name}-{place}-"):
            shutil.rmtree(stale, ignore_errors=True)


def clear_cache(cache_dir: str | os.PathLike[str] | None = None) -> int:
    """Remove all converted files of a cache, and return how many bytes that frees.

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
