"""Files of bytes by path, from standard input or from the caller, compressed or not.

Compressed files (gzip, bzip2, xz) are known by their first bytes, not by their names. They are decompressed piece by
piece in a thread of their own, a few pieces ahead of who reads: decompression lets go of the interpreter lock, so
a reader that has something to do with the bytes does not wait for them. What is written is compressed as the name says.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import IO, Any, BinaryIO, Protocol, TypeAlias

from maxmargin.datasets.errors import DataFileError

#: What bytes are read from or written to: a path, "-" for standard input or output, or an open binary file.
Source: TypeAlias = str | os.PathLike[str] | IO[bytes]

#: Compressed bytes that are read at once, and decompressed bytes of a piece.
COMPRESSED_BYTES = 2**16
PIECE_BYTES = 2**20

#: Pieces that may wait to be read.
PIECES_AHEAD = 8


class _Decompressor(Protocol):
    """One member of a compressed file; several may follow one another."""

    eof: bool
    unused_data: bytes

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipMember:
    """zlib's decompressor with the manners of the others: it keeps what it has not used yet."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


#: First bytes, name, and decompressor of each kind.
KINDS: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", "gzip", _GzipMember),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
)

#: What opens a file to write, by the suffix of its name.
WRITERS: dict[str, Callable[[str, str], Any]] = {
    ".gz": partial(gzip.open, compresslevel=6),
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def source_name(source: Source) -> str:
    """Return what a source is called in messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the file"


def open_bytes(source: Source) -> io.BufferedReader:
    """Return a stream of the bytes of a path, of standard input ("-") or of an open binary file, decompressed.

    Closing it closes what was opened here, and leaves an open file of the caller's open.

    Raises
    ------
    DataFileError
        While reading, where a compressed file is damaged or ends early.
    """
    file = _RawFile(source)
    try:
        head = file.read_at_least(max(len(magic) for magic, _, _ in KINDS))
    except BaseException:
        file.close()
        raise
    for magic, kind, member in KINDS:
        if head.startswith(magic):
            return io.BufferedReader(_Ahead(file, _decompress(file, head, kind, member)))
    return io.BufferedReader(_Plain(file, head))


def share_read(stream: io.BufferedReader) -> float | None:
    """Return about which part of a stream of `open_bytes` has been read, None if nobody can know."""
    raw = stream.raw
    if not isinstance(raw, _Plain | _Ahead) or not raw.file.size:
        return None
    return min(1.0, (raw.file.taken if isinstance(raw, _Plain) else raw.taken) / raw.file.size)


def create_bytes(target: Source) -> AbstractContextManager[BinaryIO]:
    """Return a context with a binary file to write to: a path, compressed as its suffix says, "-", or an open file."""
    if isinstance(target, str | os.PathLike):
        if target == "-":
            return nullcontext(sys.stdout.buffer)
        path = os.fspath(target)
        opened: AbstractContextManager[BinaryIO] = WRITERS.get(Path(path).suffix, open)(path, "wb")
        return opened
    if not hasattr(target, "write"):
        raise TypeError(f"data are written to a path or a binary file, not to {type(target).__name__}")
    return nullcontext(target)  # type: ignore[arg-type]


class _RawFile:
    """What has the bytes, unbuffered where that is ours to say, and how many of them were taken."""

    def __init__(self, source: Source) -> None:
        self.name = source_name(source)
        self.owned = False  # whether it is ours to close
        self.taken = 0
        self.raw: Any = source
        if isinstance(source, str | os.PathLike):
            self.owned = source != "-"
            self.raw = io.FileIO(os.fspath(source)) if self.owned else _standard_input()
        elif not hasattr(source, "read"):
            raise TypeError(f"data are read from a path or a binary file, not from {type(source).__name__}")
        self.size = _size(self.raw)

    def read(self, size: int) -> bytes:
        data = self.raw.read(size)
        if not isinstance(data, bytes):
            raise TypeError("the file must be open for reading bytes: use mode 'rb'")
        self.taken += len(data)
        return data

    def read_at_least(self, size: int) -> bytes:
        """Return at least so many bytes, or all that there are: a pipe may give them one by one."""
        head = b""
        while len(head) < size and (data := self.read(size - len(head))):
            head += data
        return head

    def readinto(self, buffer: Any) -> int:
        if not hasattr(self.raw, "readinto"):
            data = self.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)
        size = self.raw.readinto(buffer) or 0
        self.taken += size
        return size

    def close(self) -> None:
        if self.owned:
            self.raw.close()


def _standard_input() -> Any:
    """Return standard input without the buffer, whose lock a thread that waits for input would hold for ever."""
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def _size(raw: Any) -> int | None:
    """Return how many bytes follow, None if they are not in a plain file."""
    try:
        status = os.fstat(raw.fileno())
        return status.st_size - raw.tell() if stat.S_ISREG(status.st_mode) else None
    except (AttributeError, OSError):  # nothing of the system's
        return None


class _Plain(io.RawIOBase):
    """The first bytes, which were read to see what they are, and the rest."""

    def __init__(self, file: _RawFile, head: bytes) -> None:
        self.file, self._head = file, head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return self.file.readinto(buffer)
        size = min(len(self._head), len(buffer))
        buffer[:size], self._head = self._head[:size], self._head[size:]
        return size

    def close(self) -> None:
        self.file.close()
        super().close()


def _decompress(file: _RawFile, head: bytes, kind: str, member: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Yield the pieces of a file of one or several compressed members."""
    data = head + file.read(COMPRESSED_BYTES)
    while data:
        current = member()
        while not current.eof:
            try:
                piece = current.decompress(data, PIECE_BYTES)
            except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
                raise DataFileError(file.name, f"the {kind} file is damaged ({error}); compress it again") from error
            data = b""
            if piece:
                yield piece
            if not current.eof and current.needs_input:
                data = file.read(COMPRESSED_BYTES)
                if not data:
                    raise DataFileError(
                        file.name, f"the {kind} file ends early; it was cut off or not written to its end"
                    )
        data = current.unused_data or file.read(COMPRESSED_BYTES)
        while data and not data.strip(b"\0"):  # noughts may fill up the last block of a tape or disc
            data = file.read(COMPRESSED_BYTES)


class _Ahead(io.RawIOBase):
    """Bytes from pieces that another thread prepares."""

    def __init__(self, file: _RawFile, pieces: Iterator[bytes]) -> None:
        self.file = file
        self.taken = 0  # compressed bytes of the pieces that have been read
        self._ready: Queue[tuple[bytes | BaseException, int]] = Queue(PIECES_AHEAD)
        self._piece = memoryview(b"")
        self._stopped = False
        # A daemon: whoever is interrupted while standard input is silent must be able to leave.
        Thread(target=self._prepare, args=(pieces,), daemon=True).start()

    def _prepare(self, pieces: Iterator[bytes]) -> None:
        try:
            for piece in pieces:
                if not self._hand_over(piece):
                    return
            self._hand_over(b"")
        except BaseException as error:  # it is raised again where the bytes are read
            self._hand_over(error)
        finally:
            self.file.close()

    def _hand_over(self, piece: bytes | BaseException) -> bool:
        while not self._stopped:
            try:
                self._ready.put((piece, self.file.taken), timeout=0.1)
                return True
            except Full:
                continue
        return False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._piece:
            piece, self.taken = self._ready.get()
            if not piece or isinstance(piece, BaseException):
                self._ready.put((piece, self.taken))  # whoever asks again hears it again
                if isinstance(piece, BaseException):
                    raise piece
            self._piece = memoryview(piece)
        size = min(len(buffer), len(self._piece))
        buffer[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        return size

    def close(self) -> None:
        self._stopped = True
        try:
            while True:
                self._ready.get_nowait()
        except Empty:
            super().close()
