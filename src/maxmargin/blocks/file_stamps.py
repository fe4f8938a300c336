"""Recognise files that change while they are in use."""

from __future__ import annotations

import os
from typing import NamedTuple


class FileStamp(NamedTuple):
    """The size of a file in bytes and its modification time in nanoseconds."""

    path: str
    size: int
    modified: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileStamp:
        """Return the stamp of a file as it is now."""
        found = os.stat(path)
        return cls(os.fspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise if the file has changed since, or is gone."""
        try:
            now = FileStamp.of(self.path)
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno, "the file was removed after it was opened as a table; restore it", self.path
            ) from error
        if now != self:
            changed = f"from {self.size:,} to {now.size:,} bytes" if now.size != self.size else "at the same size"
            raise ValueError(f"{self.path}: the file changed after it was opened as a table, {changed}; open it again")
