"""Binary files of a prefix, a JSON header and arrays.

As in safetensors, a prefix of fixed size is followed by a JSON header and the raw bytes of arrays. No code in a file is
executed, and reading allocates at most a small multiple of the size of the file.

    prefix    64 bytes: magic bytes, version, zero, size of the header, size of the file, SHA-256 of everything else
    header    strict JSON of limited depth, without duplicate keys, padded with blanks to a multiple of 64 bytes
    arrays    see `array_table`
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maxmargin.resources import explained_memory_errors
from maxmargin.storage.array_table import ArrayWriter, InvalidFileError, aligned, read_arrays

#: Magic bytes, version, zero, size of the header, size of the file; then the SHA-256 of everything else.
PREFIX = struct.Struct("<8sIIQQ")
PREFIX_BYTES = 64


@dataclass(frozen=True)
class FileFormat:
    """A kind of file.

    Attributes
    ----------
    name : str
        For error messages, such as "model file".
    magic : bytes
        The first 8 bytes; as in PNG, they detect a transfer in text mode.
    version : int
        Of the format; files of other versions are rejected.
    error : type of ValueError
        Raised for everything that is wrong with a file.
    max_depth : int
        The limit on the nesting depth of the header.
    advice, version_advice : str
        What to do about a damaged file, and about one of another version.
    keys, optional_keys : frozenset of str
        Of the header.
    """

    name: str
    magic: bytes
    version: int
    error: type[ValueError]
    max_depth: int
    advice: str
    version_advice: str
    keys: frozenset[str]
    optional_keys: frozenset[str] = frozenset()

    def pieces(self, header: dict[str, Any], arrays: ArrayWriter) -> list[bytes | memoryview]:
        """Return the bytes of a file, in parts; the table of the arrays is added to the header."""
        text = json.dumps(header | {"arrays": arrays.table()}, allow_nan=False, separators=(",", ":")).encode("ascii")
        text += b" " * (aligned(len(text)) - len(text))
        start = PREFIX.pack(self.magic, self.version, 0, len(text), PREFIX_BYTES + len(text) + arrays.size)
        contents = list(arrays.pieces())
        return [start, checksum([start, text, *contents]), text, *contents]

    def read(self, file: str | os.PathLike[str] | BinaryIO) -> tuple[dict[str, Any], list[NDArray[Any]]]:
        """Return the header and the arrays of a file, or raise `error`."""
        if isinstance(file, str | os.PathLike):
            with open(file, "rb") as opened:
                return self.read(opened)
        start = file.read(PREFIX_BYTES)
        if not isinstance(start, bytes):
            raise self.error(f"a {self.name} must be opened in binary mode, for example open(path, 'rb')")
        header_bytes = self._check_prefix(start)
        with explained_memory_errors(f"the {self.name}", "use a machine with more memory"):
            rest = memoryview(file.read())
        if PREFIX_BYTES + len(rest) != PREFIX.unpack_from(start)[4]:
            raise self.error(f"the {self.name} is truncated or has extra bytes; {self.advice}")
        if checksum([start[: PREFIX.size], rest]) != start[PREFIX.size :]:
            raise self.error(f"the {self.name} is damaged: its checksum does not match; {self.advice}")
        header = self._parse(bytes(rest[:header_bytes]))
        try:
            return header, read_arrays(header["arrays"], rest[header_bytes:])
        except InvalidFileError as error:
            raise self.error(str(error)) from None

    def _check_prefix(self, start: bytes) -> int:
        """Check the prefix and return the size of the header."""
        if start[: len(self.magic)] != self.magic:
            raise self.error(f"this is not a {self.name} of maxmargin")
        if len(start) < PREFIX_BYTES:
            raise self.error(f"the {self.name} is truncated; {self.advice}")
        _, found, zero, header_bytes, file_bytes = PREFIX.unpack_from(start)
        if found != self.version:
            raise self.error(
                f"the {self.name} has format {found}, but this version of maxmargin reads format {self.version}; "
                f"{self.version_advice}"
            )
        if zero or aligned(header_bytes) != header_bytes or PREFIX_BYTES + header_bytes > file_bytes:
            raise self.error(f"the {self.name} is damaged: the sizes in its prefix are inconsistent")
        return int(header_bytes)

    def _parse(self, text: bytes) -> dict[str, Any]:
        if _depth(text) > self.max_depth:
            raise self.error(f"the header of the {self.name} is nested too deeply")
        try:
            header = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
        except InvalidFileError as error:
            raise self.error(f"the header of the {self.name} {error}") from None
        except (ValueError, RecursionError) as error:
            raise self.error(f"the header of the {self.name} is not valid JSON: {error}") from error
        if not isinstance(header, dict) or header.keys() - self.optional_keys != self.keys:
            raise self.error(f"the header must have the keys {', '.join(sorted(self.keys))}")
        return header


def checksum(pieces: Iterable[bytes | memoryview]) -> bytes:
    """Return the SHA-256 of some bytes."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def _depth(text: bytes) -> int:
    """Return the nesting depth of brackets outside strings, to be checked before parsing."""
    marks = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)  # without escaped quotes
    outside = np.cumsum(marks == ord('"'), dtype=np.uint8) % 2 == 0
    opening = outside & ((marks == ord("[")) | (marks == ord("{")))
    closing = outside & ((marks == ord("]")) | (marks == ord("}")))
    return int(np.cumsum(opening.view(np.int8) - closing.view(np.int8), dtype=np.int32).max(initial=0))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidFileError("has a duplicate key")
    return found


def _reject_constant(word: str) -> None:
    raise InvalidFileError(f"contains {word}, which is not JSON")
