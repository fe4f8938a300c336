"""Read text in blocks of whole lines, one block in memory at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.datasets.compression import fraction_read
from maxmargin.resources import check_memory, format_bytes

Bytes: TypeAlias = NDArray[np.uint8]

#: Default size of a block in bytes.
READ_BYTES = 2**23

#: Size of the first block; each block is four times as large as the one before, up to the requested size.
FIRST_BYTES = 2**16

#: UTF-8 byte order mark, which some Windows programs write; it is replaced by spaces.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Advice about lines that do not fit into memory.
LONG_LINE = "check that it is a text file with a sample on each line"

#: Number of chunks per thread, for load balancing.
CHUNKS_PER_THREAD = 4


class TextBlock(NamedTuple):
    """Whole lines, followed by the padding of newlines that the native loops require."""

    text: bytearray  # valid until the next block is requested
    length: int
    first_line: int  # line number of the first line
    chunks: NDArray[np.int64]  # for each chunk: its end, and its number of lines and colons
    fraction: float | None  # approximate fraction of the file up to the end of this block
    has_mark: bool  # whether the file begins with a byte order mark

    @property
    def characters(self) -> Bytes:
        """The lines and the padding as an array."""
        return _characters(self.text, self.length)

    @property
    def first_query(self) -> bool | None:
        """Whether the first sample has a qid; None if there is no sample."""
        return {-1: None, 0: False, 1: True}[_native.has_query_ids(self.characters, self.length)]

    def line_number(self, offset: int) -> int:
        """Return the number of the line that begins at an offset."""
        return self.first_line + self.text.count(b"\n", 0, offset)

    def line(self, offset: int) -> bytes:
        """Return the line that begins at an offset, without its end."""
        return bytes(self.text[offset : self.text.index(b"\n", offset)])


def blocks_of_lines(stream: io.BufferedReader, name: str, size: int, threads: int) -> Iterator[TextBlock]:
    """Yield the text of a stream in blocks of about this size in bytes, more if a line is longer."""
    padding = _native.text_padding
    capacity = min(size, FIRST_BYTES)
    text = bytearray(capacity + padding)
    held, line = 0, 1  # number of bytes in the buffer, and line number of its first line
    while True:
        got = stream.readinto(memoryview(text)[held:capacity])
        held += got
        ended = held < capacity  # a buffered stream returns fewer bytes only at its end
        whole = held if ended else text.rfind(b"\n", held - got, held) + 1
        if whole:
            has_mark = line == 1 and text.startswith(BYTE_ORDER_MARK)
            if has_mark:
                text[: len(BYTE_ORDER_MARK)] = b" " * len(BYTE_ORDER_MARK)
            rest = bytes(memoryview(text)[whole:held])
            text[whole : whole + padding] = b"\n" * padding
            chunks = _split_chunks(text, whole, threads)
            yield TextBlock(text, whole, line, chunks, fraction_read(stream), has_mark)
            line += int(chunks[:, 1].sum())
            text[: len(rest)] = rest
            held = len(rest)
        if ended:
            return
        larger = min(size, 4 * capacity) if whole else 2 * capacity
        if larger > capacity:
            if larger > size:
                check_memory(larger, f"{name}, line {line}, longer than {format_bytes(held)},", LONG_LINE)
            capacity = larger
            text = text[:held] + bytes(capacity + padding - held)


def _characters(text: bytearray, length: int) -> Bytes:
    return np.frombuffer(text, np.uint8, length + _native.text_padding)


def _split_chunks(text: bytearray, length: int, threads: int) -> NDArray[np.int64]:
    chunks = np.empty((CHUNKS_PER_THREAD * threads, 3), np.int64)
    return chunks[: _native.count_text(_characters(text, length), length, chunks, threads)]
