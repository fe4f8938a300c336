"""Output files: complete or unchanged, and named in errors.

A file is written under a temporary name in the same folder, which replaces the target when it is complete. If that
fails, for example because the disk is full, the old file is intact and the error names the target.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def naming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of a file to errors of the operating system that have none: a failed write does not know it."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(target)) from error


@contextmanager
def atomic_path(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide a temporary path in the same folder, which replaces the target when the block ends without error.

    Pipes and devices such as /dev/null and /dev/stdout are written directly.
    """
    path = Path(os.path.realpath(target))
    with naming(target):
        is_device = os.path.abspath(target).startswith(("/dev/std", "/dev/fd/", "/proc/"))  # maybe a redirected file
        if is_device or (path.exists() and not path.is_file()):
            yield Path(target)
            return
        if not path.parent.is_dir():
            raise FileNotFoundError(f"cannot write {os.fspath(target)}: the folder {path.parent} does not exist")
        temporary = path.with_name(f".{os.urandom(8).hex()}.part{path.suffix}")  # a writer may depend on the suffix
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, path)
        except OSError as error:
            if error.filename is not None and os.fspath(error.filename) == os.fspath(temporary):
                raise OSError(error.errno, error.strerror, os.fspath(target)) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Wait until a file is on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(file: str | os.PathLike[str] | BinaryIO, pieces: Iterable[bytes | memoryview]) -> None:
    """Write to a binary file, or to a path with `atomic_path`."""
    if not isinstance(file, str | os.PathLike):
        file.writelines(pieces)
        return
    with atomic_path(file) as path, open(path, "wb") as opened:
        opened.writelines(pieces)
