"""Output files: complete or unchanged, and named in errors.

A file is written under a temporary name in the same folder, which replaces the target when it is complete. If that
fails, for example because the disk is full, the old file is intact and the error names the target.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

#: Suffix of the names of temporary folders.
PART = ".part"


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
            flush_file(temporary)
            os.replace(temporary, path)
        except OSError as error:
            if error.filename is not None and os.fspath(error.filename) == os.fspath(temporary):
                raise OSError(error.errno, error.strerror, os.fspath(target)) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)


def flush_file(path: Path) -> None:
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


@contextmanager
def atomic_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide a new temporary folder beside the target, which takes its name when the block ends without error.

    The target must not exist then, or be an empty folder. The temporary folder is removed after an error; that of a
    killed process stays until `remove_abandoned` is called.
    """
    path = Path(os.path.realpath(target))
    temporary = path.with_name(f".{_machine()}-{os.getpid()}-{os.urandom(8).hex()}{PART}")
    temporary.mkdir()
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders in a folder whose process on this machine has ended."""
    for folder in parent.glob(f".{_machine()}-*{PART}"):
        process = folder.name.split("-")[1]
        if process.isdigit() and not _is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _machine() -> str:
    """Return a short name of the machine: a folder may be shared by several."""
    return hashlib.blake2b(platform.node().encode(), digest_size=4).hexdigest()


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        return True  # there, os.kill would end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True
