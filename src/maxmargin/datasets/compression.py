"""Open plain or compressed files, standard input or file objects for reading and writing bytes.

Compressed files (gzip, bzip2, xz) are recognised by their first bytes when reading, and by their suffix when writing.
What is kept in memory is bounded: by the memory that is available, and for a compressed file by its size, because a
few kilobytes can expand to any size.
A thread decompresses a few chunks ahead of the reader; decompression releases the GIL, so both run in parallel.
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
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import IO, Any, BinaryIO, Protocol, TypeAlias

from maxmargin.datasets.errors import DataFileError
from maxmargin.resources import check_memory, format_bytes
from maxmargin.storage.output_files import atomic_path

#: Advice about files that do not fit into memory.
TOO_LARGE = "use fewer samples or features, or more memory"

#: A path, "-" for standard input or output, or an open binary file.
Source: TypeAlias = str | os.PathLike[str] | IO[bytes]

#: Number of compressed bytes read at once, and of decompressed bytes in a chunk.
COMPRESSED_BYTES = 2**16
CHUNK_BYTES = 2**20

#: Number of decompressed chunks in the queue.
QUEUED_CHUNKS = 8

#: A compressed file may expand to this many bytes, or to this multiple of its size.
EXPANDED_BYTES, MAX_EXPANSION = 2**30, 100

#: Number of bytes between two checks of the available memory.
CHECKED_BYTES = 2**26

#: Memory that the header of an xz file may ask for; the highest preset, xz -9, needs 65 MiB to decompress.
XZ_BYTES = 2**28


class _Decompressor(Protocol):
    """Decompressor of one member of a compressed file, which may have several."""

    eof: bool
    unused_data: bytes

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _GzipMember:
    """zlib's decompressor with the interface of those of bz2 and lzma."""

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


#: First bytes, name and decompressor of each format.
KINDS: tuple[tuple[bytes, str, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", "gzip", _GzipMember),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\x00", "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_BYTES)),
)

#: Function that opens a file for writing, by suffix.
WRITERS: dict[str, Callable[[str, str], Any]] = {
    ".gz": partial(gzip.open, compresslevel=6),
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def source_name(source: Source) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, str | os.PathLike):
        return "standard input" if source == "-" else os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "the file"


def open_bytes(source: Source, in_blocks: bool = False) -> io.BufferedReader:
    """Return a stream of the decompressed bytes of a path, of standard input ("-") or of an open binary file.

    Closing the stream does not close a file object of the caller.

    Parameters
    ----------
    source : str, path or binary file
    in_blocks : bool
        Whether the reader keeps one block in memory at a time: then a compressed file may expand to any size.

    Raises
    ------
    DataFileError
        While reading, if a compressed file is damaged or truncated.
    MemoryError
        While reading, if a compressed file expands to much more than its size.
    """
    file = _RawFile(source)
    try:
        head = file.read_at_least(max(len(magic) for magic, _, _ in KINDS))
    except BaseException:
        file.close()
        raise
    for magic, kind, member in KINDS:
        if head.startswith(magic):
            chunks = _decompress(file, head, kind, member)
            return io.BufferedReader(_DecompressedStream(file, chunks if in_blocks else _bounded(file, chunks)))
    return io.BufferedReader(_PlainStream(file, head))


def check_expansion(name: str, size: int, compressed: int) -> None:
    """Raise a MemoryError if data of a size in bytes are out of proportion to their compressed size."""
    if size > max(EXPANDED_BYTES, MAX_EXPANSION * compressed):
        raise MemoryError(
            f"{name} expands to more than {format_bytes(max(EXPANDED_BYTES, MAX_EXPANSION * compressed))}, over "
            f"{MAX_EXPANSION} times its compressed size of {format_bytes(compressed)}; if that is intended, decompress "
            "it first"
        )


def read_all(stream: IO[bytes], name: str) -> io.BytesIO:
    """Return the rest of a stream, as a file that can seek; raise a MemoryError if it does not fit into memory."""
    found = io.BytesIO()
    unchecked = CHECKED_BYTES
    while chunk := stream.read(CHUNK_BYTES):
        found.write(chunk)
        unchecked += len(chunk)
        if unchecked >= CHECKED_BYTES:
            unchecked = 0
            # The arrays that are made from the bytes need at least as much memory again.
            check_memory(CHECKED_BYTES + found.tell(), f"{name}, longer than {format_bytes(found.tell())},", TOO_LARGE)
    found.seek(0)
    return found


def with_start(start: bytes, stream: io.BufferedReader) -> io.BufferedReader:
    """Return a stream of bytes that were read from a stream already, and of its rest."""
    return io.BufferedReader(_PlainStream(_RawFile(stream), start))


def fraction_read(stream: io.BufferedReader) -> float | None:
    """Return the approximate fraction of a stream of `open_bytes` read so far, None if its size is unknown."""
    raw = stream.raw
    if not isinstance(raw, _PlainStream | _DecompressedStream) or not raw.file.size:
        return None
    return min(1.0, (raw.file.bytes_read if isinstance(raw, _PlainStream) else raw.bytes_read) / raw.file.size)


def create_bytes(target: Source) -> AbstractContextManager[BinaryIO]:
    """Return a context manager of a binary file for writing; a path is compressed according to its suffix."""
    if isinstance(target, str | os.PathLike):
        if target == "-":
            return nullcontext(sys.stdout.buffer)
        path = os.fspath(target)
        opened: AbstractContextManager[BinaryIO] = WRITERS.get(Path(path).suffix, open)(path, "wb")
        return opened
    if not hasattr(target, "write"):
        raise TypeError(f"the target must be a path or a binary file, not {type(target).__name__}")
    return nullcontext(target)  # type: ignore[arg-type]


@contextmanager
def atomic_target(target: Source) -> Iterator[Source]:
    """Provide a temporary path in the same folder, which replaces the target when the block ends without error."""
    if not isinstance(target, str | os.PathLike) or target == "-":
        yield target
        return
    with atomic_path(target) as path:
        yield path


class _RawFile:
    """The unbuffered source and the number of bytes read from it."""

    def __init__(self, source: Source) -> None:
        self.name = source_name(source)
        self.owned = False  # whether `close` closes it
        self.bytes_read = 0
        self.raw: Any = source
        if isinstance(source, str | os.PathLike):
            self.owned = source != "-"
            self.raw = io.FileIO(os.fspath(source)) if self.owned else _standard_input()
        elif not hasattr(source, "read"):
            raise TypeError(f"the source must be a path or a binary file, not {type(source).__name__}")
        self.size = _size(self.raw)

    def read(self, size: int) -> bytes:
        data = self.raw.read(size)
        if not isinstance(data, bytes):
            raise TypeError("the file must be opened in binary mode: use mode 'rb'")
        self.bytes_read += len(data)
        return data

    def read_at_least(self, size: int) -> bytes:
        """Return at least this number of bytes, or all; a pipe may return fewer per call."""
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
        self.bytes_read += size
        return size

    def close(self) -> None:
        if self.owned:
            self.raw.close()


def _standard_input() -> Any:
    """Return unbuffered standard input: a thread blocked on the buffered one would hold its lock."""
    return getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)


def _size(raw: Any) -> int | None:
    """Return the number of remaining bytes of a regular file, None for other sources."""
    try:
        status = os.fstat(raw.fileno())
        return status.st_size - raw.tell() if stat.S_ISREG(status.st_mode) else None
    except (AttributeError, OSError):  # not a file of the operating system
        return None


class _PlainStream(io.RawIOBase):
    """The bytes read to recognise the format, followed by the rest of the file."""

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
    """Yield decompressed chunks of a file of one or several compressed members."""
    data = head + file.read(COMPRESSED_BYTES)
    while data:
        current = member()
        while not current.eof:
            try:
                chunk = current.decompress(data, CHUNK_BYTES)
            except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
                raise DataFileError(file.name, f"the {kind} file is damaged ({error}); compress it again") from error
            data = b""
            if chunk:
                yield chunk
            if not current.eof and current.needs_input:
                data = file.read(COMPRESSED_BYTES)
                if not data:
                    raise DataFileError(file.name, f"the {kind} file is truncated; compress or download it again")
        data = current.unused_data or file.read(COMPRESSED_BYTES)
        while data and not data.strip(b"\0"):  # zero padding of the last block
            data = file.read(COMPRESSED_BYTES)


def _bounded(file: _RawFile, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield decompressed chunks as long as they are in proportion to the compressed size."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        check_expansion(file.name, size, max(file.bytes_read, file.size or 0))
        yield chunk


class _DecompressedStream(io.RawIOBase):
    """Bytes of chunks that another thread decompresses."""

    def __init__(self, file: _RawFile, chunks: Iterator[bytes]) -> None:
        self.file = file
        self.bytes_read = 0  # compressed bytes of the chunks read so far
        self._queue: Queue[tuple[bytes | BaseException, int]] = Queue(QUEUED_CHUNKS)
        self._chunk = memoryview(b"")
        self._stop_requested = False
        # A daemon, so that the process can exit while the thread waits for standard input.
        Thread(target=self._fill_queue, args=(chunks,), daemon=True).start()

    def _fill_queue(self, chunks: Iterator[bytes]) -> None:
        try:
            for chunk in chunks:
                if not self._put(chunk):
                    return
            self._put(b"")
        except BaseException as error:  # raised again by the reader
            self._put(error)
        finally:
            self.file.close()

    def _put(self, chunk: bytes | BaseException) -> bool:
        while not self._stop_requested:
            try:
                self._queue.put((chunk, self.file.bytes_read), timeout=0.1)
                return True
            except Full:
                continue
        return False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._chunk:
            chunk, self.bytes_read = self._queue.get()
            if not chunk or isinstance(chunk, BaseException):
                self._queue.put((chunk, self.bytes_read))  # further reads get the same result
                if isinstance(chunk, BaseException):
                    raise chunk
            self._chunk = memoryview(chunk)
        size = min(len(buffer), len(self._chunk))
        buffer[:size] = self._chunk[:size]
        self._chunk = self._chunk[size:]
        return size

    def close(self) -> None:
        self._stop_requested = True
        try:
            while True:
                self._queue.get_nowait()
        except Empty:
            super().close()
