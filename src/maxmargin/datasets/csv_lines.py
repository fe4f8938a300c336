"""The lines of a CSV file, in blocks or one by one, and the cells of each line by Python's csv module.

`csv_rows` handles quotes strictly and knows line numbers. It reads what `csv_blocks.parse_block` leaves to it, and says
what is wrong in which line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import IO, NamedTuple

from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.text_blocks import LONG_LINE
from maxmargin.resources import check_memory

#: Number of bytes of a block, …
BLOCK_BYTES = 1 << 23

#: … and read at once for single lines.
LINE_BYTES = 1 << 16

#: Length of a line in bytes from which memory is checked.
CHECKED_LINE_BYTES = 1 << 26

#: Recognised delimiters.
DELIMITERS = ",;\t"

#: The cells of a line.
Row = list[str]


class CsvBlock(NamedTuple):
    """Whole lines of a file."""

    text: bytes
    first_line: int  # line number of the first line
    n_lines: int

    @property
    def last_line(self) -> int:
        """Line number of the last line."""
        return self.first_line + self.n_lines - 1


class CsvLines(Iterator[str]):
    """The lines of a stream, one by one or in blocks."""

    def __init__(self, stream: IO[bytes], name: str, delimiter: str | None = None) -> None:
        self.name = name
        self.number = 0  # number of the last line returned
        self._stream = stream
        self._rest = stream.read(3).removeprefix(b"\xef\xbb\xbf")
        self._lines: list[bytes] = []
        self._position = 0
        self._refill()
        start = self._lines[0] if self._lines else b""
        self.delimiter = delimiter or max(DELIMITERS, key=lambda letter: start.count(letter.encode()))

    def __next__(self) -> str:
        if self._position == len(self._lines):
            self._refill()
        if not self._lines:
            raise StopIteration
        line = self._lines[self._position]
        self._position += 1
        self.number += 1
        # Invalid UTF-8 is kept as surrogates, so that the error can name the cell.
        return line.decode("utf-8", "surrogateescape")

    def take_block(self) -> CsvBlock | None:
        """Return the next lines, about `BLOCK_BYTES`; None at the end."""
        text = b"".join(self._lines[self._position :]) + self._read(BLOCK_BYTES)
        self._lines, self._position = [], 0
        if not text:
            return None
        block = CsvBlock(text, self.number + 1, count_lines(text))
        self.number = block.last_line
        return block

    def put_back(self, block: CsvBlock) -> None:
        """Undo `take_block`."""
        self._lines = block.text.splitlines(keepends=True)
        self.number = block.first_line - 1

    def _refill(self) -> None:
        self._lines, self._position = self._read(LINE_BYTES).splitlines(keepends=True), 0

    def _read(self, size: int) -> bytes:
        """Return the next whole lines of the stream, of about this many bytes."""
        parts, held, end = [self._rest], len(self._rest), -1
        while end < 0 and (data := self._stream.read(max(size, held))):
            end = data.rfind(b"\n")
            parts.append(data)
            held += len(data)
            if end < 0 and held >= CHECKED_LINE_BYTES:  # joined, split into lines and decoded
                message = f"{self.name}, line {self.number + 1}, longer than {held:,} bytes,"
                check_memory(4 * held, message, LONG_LINE)
        text = b"".join(parts)
        end = held if end < 0 else held - len(parts[-1]) + end + 1
        text, self._rest = text[:end], text[end:]
        if b"\0" in text:
            raise self._zero_byte(self.number + count_lines(text[: text.index(b"\0") + 1]))
        return text

    def _zero_byte(self, line: int) -> DataFileError:
        """Return the error about a byte that text does not have, and that NumPy's strings drop."""
        return DataFileError(
            self.name, "there is a zero byte, so the file is not text in UTF-8; if it is UTF-16, save it as UTF-8", line
        )


def count_lines(text: bytes) -> int:
    """Return the number of lines, which end with a line feed, a carriage return, or both."""
    ends = text.count(b"\n") + (text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else 0)
    return ends if text.endswith((b"\n", b"\r")) or not text else ends + 1


def csv_rows(lines: CsvLines) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the cells of each nonempty line."""
    try:
        for row in csv.reader(lines, delimiter=lines.delimiter, strict=True):
            if row and (len(row) > 1 or row[0].strip()):
                yield lines.number, row
    except csv.Error as error:
        raise DataFileError(lines.name, f"invalid CSV quoting: {error}", lines.number) from error
