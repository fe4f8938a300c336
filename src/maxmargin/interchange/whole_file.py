"""Files that take their place when they are complete, so that there is never half a model."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO


def write_whole(file: str | os.PathLike[str] | BinaryIO, pieces: Iterable[bytes | memoryview]) -> None:
    """Write to a binary file, or to a path: first beside it, then moved to its place.

    A pipe or a device, such as the one that keeps nothing, is written to as it is: nothing may take its place.
    """
    if not isinstance(file, str | os.PathLike):
        file.writelines(pieces)
        return
    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():  # /dev/null or a pipe, which nothing may take the place of
        with open(target, "wb") as opened:
            opened.writelines(pieces)
        return
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as opened:
            opened.writelines(pieces)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
