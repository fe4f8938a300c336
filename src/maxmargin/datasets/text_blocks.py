"""Text in blocks of whole lines: one block is in memory at a time, however long the text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin.datasets.compression import share_read

Bytes: TypeAlias = NDArray[np.uint8]

#: The first block; each is four times as large as the one before, up to the size asked for: a short text is cheap.
FIRST_BYTES = 2**16

#: What some programs on Windows put before a text in UTF-8; it is read as blanks.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: A block has so many chunks for each thread, so that none waits long for another.
CHUNKS_PER_THREAD = 4


class TextBlock(NamedTuple):
    """Whole lines, and the margin of line ends behind them that the native loops ask for."""

    text: bytearray  # valid until the next block is asked for
    length: int
    first_line: int  # the number of the first line
    chunks: NDArray[np.int64]  # parts for threads: where each ends, and how many lines and colons it has
    share: float | None  # about which part of the text ends with this block
    marked: bool  # whether a byte order mark stood before the first line, where blanks are now

    @property
    def characters(self) -> Bytes:
        """The lines and the margin as an array."""
        return _characters(self.text, self.length)

    @property
    def first_query(self) -> bool | None:
        """Whether the first sample has a qid, None if there is no sample."""
        return {-1: None, 0: False, 1: True}[_native.first_query(self.characters, self.length)]

    def line_number(self, offset: int) -> int:
        """Return the number of the line that begins at an offset."""
        return self.first_line + self.text.count(b"\n", 0, offset)

    def line(self, offset: int) -> bytes:
        """Return the line that begins at an offset, without its end."""
        return bytes(self.text[offset : self.text.index(b"\n", offset)])


def blocks_of_lines(stream: io.BufferedReader, size: int, threads: int) -> Iterator[TextBlock]:
    """Yield the text of a stream in blocks of about so many bytes, more where a line is longer."""
    margin = _native.text_margin
    line_ends = b"\n" * margin
    room = min(size, FIRST_BYTES)
    text = bytearray(room + margin)
    held, line = 0, 1  # bytes that are there, and the number of the line that they begin
    while True:
        got = stream.readinto(memoryview(text)[held:room])
        held += got
        ended = held < room  # a buffered stream gives what it is asked for, unless it ends
        whole = held if ended else text.rfind(b"\n", held - got, held) + 1
        if whole:
            marked = line == 1 and text.startswith(BYTE_ORDER_MARK)
            if marked:
                text[: len(BYTE_ORDER_MARK)] = b" " * len(BYTE_ORDER_MARK)
            rest = bytes(memoryview(text)[whole:held])
            text[whole : whole + margin] = line_ends
            chunks = _count(text, whole, threads)
            yield TextBlock(text, whole, line, chunks, share_read(stream), marked)
            line += int(chunks[:, 1].sum())
            text[: len(rest)] = rest
            held = len(rest)
        if ended:
            return
        wanted = min(size, 4 * room) if whole else 2 * room
        if wanted > room:
            room = wanted
            text = text[:held] + bytes(room + margin - held)


def _characters(text: bytearray, length: int) -> Bytes:
    return np.frombuffer(text, np.uint8, length + _native.text_margin)


def _count(text: bytearray, length: int, threads: int) -> NDArray[np.int64]:
    chunks = np.empty((CHUNKS_PER_THREAD * threads, 3), np.int64)
    return chunks[: _native.count_text(_characters(text, length), length, chunks, threads)]
