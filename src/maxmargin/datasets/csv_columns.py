"""The columns of a CSV file as they come: numbers, and text for everything else, with missing cells.

A column is read as numbers if all its cells are, or are missing. What looks like a number at first and is not later on
is read again as text: codes keep their leading zeros. Text that is not UTF-8 is read as Windows-1252, which contains
Latin-1.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets.column_table import ColumnTable, checked_names, is_missing, missing_spellings, text_array
from maxmargin.datasets.csv_blocks import ParsedRows, parse_block
from maxmargin.datasets.csv_files import BLOCK_LINES, FIRST_LINES
from maxmargin.datasets.csv_lines import CsvLines, Row, csv_rows
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.table import PLAIN, is_number

#: Codes such as 01067 are not numbers: they would lose their zeros.
CODE = re.compile(r"0\d+")

#: Cells of dates and of numbers with commas, which the first line of a table has only if it is not a header.
VALUE = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ T%€$-]*")

#: The encoding of text that is not UTF-8.
FALLBACK_ENCODING = "cp1252"


class TextColumnError(ValueError):
    """Columns that were read as numbers have text: the file must be read again."""

    def __init__(self, columns: set[int]) -> None:
        super().__init__("columns of numbers have text")
        self.columns = columns


def read_csv_columns(
    stream: IO[bytes],
    name: str,
    *,
    delimiter: str | None = None,
    header: bool | str = "auto",
    text: Collection[str | int] = (),
    parallel: bool = True,
) -> ColumnTable:
    """Return the columns of a CSV file; those of `text`, by name or position, are not read as numbers.

    Raises
    ------
    TextColumnError
        If there are more such columns; the stream must then be read from its start again.
    """
    lines = CsvLines(stream, name, delimiter)
    rows = csv_rows(lines)
    first = list(islice(rows, FIRST_LINES))
    if not first:
        raise DataFileError(name, "the file is empty")
    cells = [row for _, row in first]
    has_header = looks_like_header(cells) if header == "auto" else bool(header)
    found = _Columns(name, len(cells[0]))
    names = [str(number) for number in range(1, found.width + 1)]
    if has_header:
        names = checked_names(name, [found.decoded(cell.strip()) for cell in cells[0]])
    found.text = {place for place, column in enumerate(names) if column in text or place in text}
    first = first[has_header:]
    if not first:
        raise DataFileError(name, "there is a header, but there are no rows below it")
    found.add(first)
    while block := lines.take_block():
        parsed = parse_block(
            block, lines.delimiter, found.width, found.numeric, found.textual, parallel, missing_spellings()
        )
        if parsed is not None:
            found.add_parsed(parsed)
            continue
        lines.put_back(block)
        while lines.number < block.last_line and (few := list(islice(rows, BLOCK_LINES))):
            found.add(few)
    return found.table(names, has_header)


def looks_like_header(rows: Sequence[Row]) -> bool:
    """Return whether the first of some lines has names: distinct text, which does not occur below it."""
    first = [cell.strip() for cell in rows[0]]
    named = [cell for cell in first if cell]
    if not named or len(set(named)) < len(named) or len(named) < len(first) - 1:
        return False
    if any(VALUE.fullmatch(cell) or is_missing(cell) for cell in named):
        return False
    columns = zip(*rows[1:], strict=False)
    return not any(cell in {below.strip() for below in column} for cell, column in zip(first, columns, strict=False))


@dataclass
class _Columns:
    """The rows read so far: blocks of numbers, and text by column."""

    name: str
    width: int
    text: set[int] = field(default_factory=set)
    numeric: list[int] = field(default_factory=list)
    numbers: list[NDArray[np.float64]] = field(default_factory=list)
    cells: dict[int, list[str]] = field(default_factory=dict)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    encoding: str = "utf-8"
    known: dict[str, str] = field(default_factory=dict)  # one object for equal cells

    @property
    def textual(self) -> list[int]:
        """Positions of the columns of text."""
        return list(self.cells)

    def add(self, block: Sequence[tuple[int, Row]]) -> None:
        """Append lines."""
        for line, row in block:
            if len(row) != self.width:
                raise DataFileError(self.name, f"{len(row)} values, but the first line has {self.width}", line)
        if not self.lines:
            self.numeric = [column for column in range(self.width) if self._is_numeric(column, block)]
            self.cells = {column: [] for column in range(self.width) if column not in self.numeric}
        self.numbers.append(self._numbers_of(block))
        for column, cells in self.cells.items():
            cells += [self._text(row[column]) for _, row in block]
        self.lines.append(np.array([line for line, _ in block]))

    def add_parsed(self, parsed: ParsedRows) -> None:
        """Append a block of lines that `parse_block` has parsed."""
        self.numbers.append(parsed.numbers)
        for column, cells in parsed.strings.items():
            self.cells[column] += [self._text(cell) for cell in cells]
        self.lines.append(parsed.lines)

    def table(self, names: Sequence[str], has_header: bool) -> ColumnTable:
        """Return the table."""
        numbers = np.concatenate(self.numbers)
        values: dict[int, NDArray[Any]] = {column: numbers[:, place] for place, column in enumerate(self.numeric)}
        values |= {column: text_array(cells) for column, cells in self.cells.items()}
        columns = {name: values[column] for column, name in enumerate(names)}
        return ColumnTable(self.name, columns, has_header, np.concatenate(self.lines), encoding=self.encoding)

    def decoded(self, cell: str) -> str:
        """Return a cell whose bytes are not UTF-8 in the encoding of Windows."""
        if cell.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in cell):
            return cell
        self.encoding = FALLBACK_ENCODING
        return cell.encode("utf-8", "surrogateescape").decode(FALLBACK_ENCODING, "replace")

    def _numbers_of(self, block: Sequence[tuple[int, Row]]) -> NDArray[np.float64]:
        """Return the cells of the numeric columns as numbers."""
        cells = [row[column] for _, row in block for column in self.numeric]
        shape = len(block), len(self.numeric)
        try:
            values = np.fromiter(map(float, cells), np.float64, count=len(cells)).reshape(shape)
        except ValueError:
            values = np.array([np.nan])
        if np.isfinite(values).all() and PLAIN.fullmatch("".join(cells)):
            return values
        found = [_number(cell) for cell in cells]
        wrong = {self.numeric[place % shape[1]] for place, value in enumerate(found) if value is None}
        if wrong:
            raise TextColumnError(wrong)
        return np.array(found, dtype=np.float64).reshape(shape)

    def _text(self, cell: str) -> str:
        """Return a cell of text, empty if it is missing."""
        cell = cell.strip()
        if cell not in self.known:
            self.known[cell] = "" if is_missing(cell) else self.decoded(cell)
        return self.known[cell]

    def _is_numeric(self, column: int, block: Sequence[tuple[int, Row]]) -> bool:
        """Return whether the cells of a column are numbers or missing."""
        cells = [row[column].strip() for _, row in block]
        return (
            column not in self.text
            and all(_number(cell) is not None for cell in cells)
            and not any(map(CODE.fullmatch, cells))
        )


def _number(cell: str) -> float | None:
    """Return a cell as a number, nan if it is missing, None if it is neither."""
    cell = cell.strip()
    if is_missing(cell):
        return np.nan
    return float(cell) if is_number(cell) and np.isfinite(float(cell)) else None
