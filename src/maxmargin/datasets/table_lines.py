"""The lines of a table as text, in two ways: with care, or many at once.

With care, Python's csv module takes lines apart, quotes and all, and every line has its number. Most tables have no
quotes around numbers and none inside cells; their lines can be cut at the delimiters as they are. And numbers below
each other are LIBSVM's text of samples without features, so the native reader of that reads them, with all cores.
Whatever is unusual about some lines, they are left to the careful way, which also finds the words for a mistake.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.libsvm_text import load_libsvm

#: Bytes that are read at once.
BLOCK_BYTES = 1 << 22

#: What may stand between cells.
DELIMITERS = ",;\t"

#: A line as cells.
Row = list[str]


class TableLines(Iterator[str]):
    """The lines of a stream, one by one, or as many as have been read."""

    def __init__(self, stream: IO[bytes], name: str, delimiter: str | None = None) -> None:
        self.name = name
        self.number = 0  # so many have been taken
        self._stream = stream
        self._rest = stream.read(3).removeprefix(b"\xef\xbb\xbf")
        self._waiting: list[bytes] = []
        self._at = 0
        self._refill()
        start = self._waiting[0] if self._waiting else b""
        if b"\0" in start:
            raise DataFileError(name, "there are bytes that are no text; if it is UTF-16, save it as UTF-8", 1)
        self.delimiter = delimiter or max(DELIMITERS, key=lambda letter: start.count(letter.encode()))

    def __next__(self) -> str:
        if self._at == len(self._waiting):
            self._refill()
        if not self._waiting:
            raise StopIteration
        line = self._waiting[self._at]
        self._at += 1
        self.number += 1
        # Bytes that are no UTF-8 go through, so that the cell with them can be named.
        return line.decode("utf-8", "surrogateescape")

    def take_many(self) -> list[bytes]:
        """Return the next lines, some thousands, or none at the end."""
        if self._at == len(self._waiting):
            self._refill()
        lines = self._waiting[self._at :]
        self._at = len(self._waiting)
        self.number += len(lines)
        return lines

    def put_back(self, lines: list[bytes]) -> None:
        """Return what `take_many` gave."""
        self._waiting, self._at = lines, 0
        self.number -= len(lines)

    def _refill(self) -> None:
        """Read the next block of whole lines."""
        parts = [self._rest]
        end = -1
        while end < 0 and (data := self._stream.read(BLOCK_BYTES)):
            end = data.rfind(b"\n") + 1 or -1
            parts.append(data)
        text = b"".join(parts)
        end = len(text) if end < 0 else len(text) - len(parts[-1]) + end
        self._waiting, self._rest, self._at = text[:end].splitlines(keepends=True), text[end:], 0


def careful_rows(lines: TableLines) -> Iterator[tuple[int, Row]]:
    """Yield the lines that are not empty, with their numbers, as cells."""
    try:
        for row in csv.reader(lines, delimiter=lines.delimiter, strict=True):
            if row and (len(row) > 1 or row[0].strip()):
                yield lines.number, row
    except csv.Error as error:
        raise DataFileError(lines.name, f"cells are not quoted as CSV asks for: {error}", lines.number) from error


class PlainRows(NamedTuple):
    """Many lines, taken apart: numbers, words by column, and which of the lines they were."""

    numbers: Floats
    words: dict[int, Row]
    places: Sequence[int]


def plain_rows(
    lines: list[bytes], delimiter: str, width: int, numeric: Sequence[int], words: Sequence[int]
) -> PlainRows | None:
    """Return lines taken apart, or None if something about them is unusual."""
    mark = delimiter.encode()
    rows = b"".join(lines).splitlines()
    places: Sequence[int] = range(len(rows))
    if b"" in rows:
        places = [place for place, row in enumerate(rows) if row]
        rows = [row for row in rows if row]
    if not rows or not numeric or any(row.count(mark) != width - 1 for row in rows):
        return None
    first, last = numeric[0], numeric[-1] + 1
    if len(numeric) == last - first:  # the numbers are together, and stay so
        cells = _cut_around(rows, mark, first, width - last)
        text = mark.join([row[first] for row in cells])
        positions = {column: column if column < first else column - last + first + 1 for column in words}
    else:
        cells = [row.split(mark) for row in rows]
        text = mark.join([row[column] for row in cells for column in numeric])
        positions = {column: column for column in words}
    numbers = _numbers(text.replace(mark, b"\n"))
    if numbers is None or len(numbers) != len(rows) * len(numeric):
        return None
    found: dict[int, Row] = {}
    for column, position in positions.items():
        plain = _plain_words([row[position] for row in cells])
        if plain is None:
            return None
        found[column] = plain
    return PlainRows(numbers.reshape(len(rows), len(numeric)), found, places)


def _cut_around(rows: list[bytes], mark: bytes, before: int, after: int) -> list[list[bytes]]:
    """Return of each row so many cells of the beginning, all between as one, and so many of the end."""
    if not before:
        return [row.rsplit(mark, after) for row in rows]
    return [cells[:-1] + cells[-1].rsplit(mark, after) for cells in (row.split(mark, before) for row in rows)]


def _numbers(text: bytes) -> Floats | None:
    """Return the finite numbers of lines that have one each."""
    if b"#" in text or b":" in text:
        return None
    try:
        numbers: Floats = load_libsvm(io.BytesIO(text))[1]
    except DataFileError:  # the careful way will say it better
        return None
    return numbers if np.isfinite(numbers).all() else None


def _plain_words(cells: list[bytes]) -> Row | None:
    """Return cells of words, without the quotes around them."""
    if b'"' in b"".join(cells):
        cells = [cell[1:-1] if cell[:1] == cell[-1:] == b'"' and len(cell) > 1 else cell for cell in cells]
    text = b"\n".join(cells)
    if b'"' in text:
        return None
    try:
        words = [word.strip() for word in text.decode("utf-8").split("\n")]
    except UnicodeDecodeError:
        return None
    return None if "" in words or "?" in words else words
