"""Two ways to split the lines of a CSV file into cells.

`csv_rows` uses Python's csv module, which handles quotes, and knows line numbers. `fast_rows` splits many lines at the
delimiters and parses the numbers with the native reader of LIBSVM format (a column of numbers is a file of labels
without features). It returns None where quotes or errors require `csv_rows`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_reader import load_libsvm
from maxmargin.datasets.text_blocks import LONG_LINE
from maxmargin.resources import check_memory

#: Number of bytes read at once.
BLOCK_BYTES = 1 << 22

#: Recognised delimiters.
DELIMITERS = ",;\t"

#: The cells of a line.
Row = list[str]


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

    def take_block(self) -> list[bytes]:
        """Return the remaining lines of the current block, or the next block; an empty list at the end."""
        if self._position == len(self._lines):
            self._refill()
        lines = self._lines[self._position :]
        self._position = len(self._lines)
        self.number += len(lines)
        return lines

    def put_back(self, lines: list[bytes]) -> None:
        """Undo `take_block`."""
        self._lines, self._position = lines, 0
        self.number -= len(lines)

    def _refill(self) -> None:
        """Read the next block of whole lines."""
        parts = [self._rest]
        end = -1
        while end < 0 and (data := self._stream.read(BLOCK_BYTES)):
            end = data.rfind(b"\n") + 1 or -1
            parts.append(data)
            if end < 0 and len(parts) % 16 == 0:  # joined, split into lines and decoded below
                size = 4 * len(parts) * BLOCK_BYTES
                check_memory(size, f"{self.name}, line {self.number + 1}, longer than {size // 4:,} bytes,", LONG_LINE)
        text = b"".join(parts)
        end = len(text) if end < 0 else len(text) - len(parts[-1]) + end
        self._lines, self._rest, self._position = text[:end].splitlines(keepends=True), text[end:], 0
        if text.find(b"\0", 0, end) >= 0:
            raise self._zero_byte(self.number + 1 + next(i for i, line in enumerate(self._lines) if b"\0" in line))

    def _zero_byte(self, line: int) -> DataFileError:
        """Return the error about a byte that text does not have, and that NumPy's strings drop."""
        return DataFileError(
            self.name, "there is a zero byte, so the file is not text in UTF-8; if it is UTF-16, save it as UTF-8", line
        )


def csv_rows(lines: CsvLines) -> Iterator[tuple[int, Row]]:
    """Yield the line number and the cells of each nonempty line."""
    try:
        for row in csv.reader(lines, delimiter=lines.delimiter, strict=True):
            if row and (len(row) > 1 or row[0].strip()):
                yield lines.number, row
    except csv.Error as error:
        raise DataFileError(lines.name, f"invalid CSV quoting: {error}", lines.number) from error


class ParsedRows(NamedTuple):
    """The values of a block of lines: numbers, strings by column, and the positions of the nonempty lines."""

    numbers: Floats
    strings: dict[int, Row]
    positions: Sequence[int]


def fast_rows(
    lines: list[bytes], delimiter: str, width: int, numeric: Sequence[int], strings: Sequence[int]
) -> ParsedRows | None:
    """Parse lines without quoted delimiters; return None if they require `csv_rows`."""
    separator = delimiter.encode()
    rows = b"".join(lines).splitlines()
    positions: Sequence[int] = range(len(rows))
    if b"" in rows:
        positions = [position for position, row in enumerate(rows) if row]
        rows = [row for row in rows if row]
    if not rows or not numeric or any(row.count(separator) != width - 1 for row in rows):
        return None
    first, last = numeric[0], numeric[-1] + 1
    if len(numeric) == last - first:  # the numeric columns are adjacent: keep them as one string
        cells = _split_around(rows, separator, first, width - last)
        text = separator.join([row[first] for row in cells])
        places = {column: column if column < first else column - last + first + 1 for column in strings}
    else:
        cells = [row.split(separator) for row in rows]
        text = separator.join([row[column] for row in cells for column in numeric])
        places = {column: column for column in strings}
    numbers = _parse_numbers(text.replace(separator, b"\n"))
    if numbers is None or len(numbers) != len(rows) * len(numeric):
        return None
    found: dict[int, Row] = {}
    for column, place in places.items():
        values = _parse_strings([row[place] for row in cells])
        if values is None:
            return None
        found[column] = values
    return ParsedRows(numbers.reshape(len(rows), len(numeric)), found, positions)


def _split_around(rows: list[bytes], separator: bytes, before: int, after: int) -> list[list[bytes]]:
    """Split off the first and the last cells of each row; the cells between remain one string."""
    if not before:
        return [row.rsplit(separator, after) for row in rows]
    return [cells[:-1] + cells[-1].rsplit(separator, after) for cells in (row.split(separator, before) for row in rows)]


def _parse_numbers(text: bytes) -> Floats | None:
    """Return the numbers of lines with one number each, None if any is invalid or not finite."""
    if b"#" in text or b":" in text:
        return None
    try:
        numbers: Floats = load_libsvm(io.BytesIO(text))[1]
    except DataFileError:  # csv_rows leads to a better message
        return None
    return numbers if np.isfinite(numbers).all() else None


def _parse_strings(cells: list[bytes]) -> Row | None:
    """Return cells as strings without enclosing quotes; None if a cell is missing or needs `csv_rows`."""
    if b'"' in b"".join(cells):
        cells = [cell[1:-1] if cell[:1] == cell[-1:] == b'"' and len(cell) > 1 else cell for cell in cells]
    text = b"\n".join(cells)
    if b'"' in text:
        return None
    try:
        values = [value.strip() for value in text.decode("utf-8").split("\n")]
    except UnicodeDecodeError:
        return None
    return None if "" in values or "?" in values else values
