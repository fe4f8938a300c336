"""Write files atomically: a temporary file replaces the target when it is complete."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO


def write_atomically(file: str | os.PathLike[str] | BinaryIO, pieces: Iterable[bytes | memoryview]) -> None:
    """Write to a binary file, or to a path through a temporary file in the same folder.

    Pipes and devices such as /dev/null are written directly.
    """
    if not isinstance(file, str | os.PathLike):
        file.writelines(pieces)
        return
    target = Path(os.path.realpath(file))
    if target.exists() and not target.is_file():
        with open(target, "wb") as opened:
            opened.writelines(pieces)
        return
    temporary = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(temporary, "xb") as opened:
            opened.writelines(pieces)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
