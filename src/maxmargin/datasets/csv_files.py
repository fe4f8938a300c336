"""Samples in CSV files (RFC 4180) with commas, semicolons or tabs, with or without a header.

Each line is a sample. Numbers are rounded correctly to float64 and written with the fewest digits that restore them. A
column is numeric if its value in the first sample is a number; then all others must be. The first line is a header if
it has text above a number. A missing value is an error that names its line.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.datasets.categorical_columns import non_numeric_message
from maxmargin.datasets.column_roles import ColumnRoles, ColumnSelection
from maxmargin.datasets.compression import CHECKED_BYTES, TOO_LARGE
from maxmargin.datasets.csv_blocks import ParsedRows, parse_block
from maxmargin.datasets.csv_lines import CsvLines, Row, csv_rows
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table import MISSING, PLAIN, Table, is_number
from maxmargin.resources import check_memory

#: Number of lines parsed by `csv_rows` first, to determine which columns are numeric; at least the two that
#: `_read_header` reads. `parse_block` parses the others.
FIRST_LINES = 100

#: Number of lines parsed by `csv_rows` or written at once.
BLOCK_LINES = 4096


def read_csv(
    stream: IO[bytes],
    name: str,
    selection: ColumnSelection,
    *,
    delimiter: str | None = None,
    header: bool | str = "auto",
    parallel: bool = True,
) -> Samples:
    """Read samples from a CSV file; see `read_samples`."""
    lines = CsvLines(stream, name, delimiter)
    table, rows = _read_header(lines, selection, header)
    if first := list(islice(rows, FIRST_LINES)):
        table.add(first)
        while block := lines.take_block():
            parsed = parse_block(
                block, lines.delimiter, len(table.roles.names), table.numeric, list(table.strings), parallel
            )
            if parsed is not None:
                table.add_parsed(parsed)
                table.check_size()
                continue
            lines.put_back(block)
            while lines.number < block.last_line and (few := list(islice(rows, BLOCK_LINES))):
                table.add(few)
                table.check_size()
    return table.build().samples(selection)


def find_csv_problems(
    stream: IO[bytes],
    name: str,
    selection: ColumnSelection,
    *,
    delimiter: str | None = None,
    header: bool | str = "auto",
    limit: int = 100,
) -> list[DataFileError]:
    """Return up to `limit` problems of a CSV file, the first one of each line."""
    found: list[DataFileError] = []
    encoded = replace(selection, categorical="one-hot") if selection.categorical == "error" else selection
    try:
        table, rows = _read_header(CsvLines(stream, name, delimiter), encoded, header)
        while len(found) < limit and (block := _take_valid(rows, found)):
            found += table.problems(block)
        if table.categorical_features() and selection.categorical == "error":
            found.insert(0, DataFileError(name, non_numeric_message(table.categorical_features())))
        if table.lines or not found:
            table.build().samples(encoded)
    except DataFileError as error:
        found.append(error)
    return found[:limit]


def _read_header(
    lines: CsvLines, selection: ColumnSelection, header: bool | str
) -> tuple[_TableBuilder, Iterator[tuple[int, Row]]]:
    """Return a table with the roles of its columns and no samples, and the lines of the samples."""
    if header not in (True, False, "auto"):
        raise ValueError(f"header must be True, False or 'auto', not {header!r}")
    name, rows = lines.name, csv_rows(lines)
    first = list(islice(rows, 2))
    if not first:
        raise DataFileError(name, "the file is empty")
    has_header = detect_header(name, first) if header == "auto" else bool(header)
    names = [cell.strip() for cell in first[0][1]] if has_header else None
    roles = selection.resolve(name, names, len(first[0][1]))
    return _TableBuilder(name, roles, selection), chain(first[1:] if has_header else first, rows)


def _take_valid(rows: Iterator[tuple[int, Row]], found: list[DataFileError]) -> list[tuple[int, Row]]:
    """Return the next lines up to one with invalid quoting, whose error is appended to `found`."""
    block = []
    try:
        for row in islice(rows, BLOCK_LINES):
            block.append(row)
    except DataFileError as error:
        found.append(error)
    return block


def detect_header(name: str, rows: Sequence[tuple[int, Row]]) -> bool:
    """Return whether the first of two lines is a header: whether it has text above a number."""
    cells = [row for _, row in rows]
    if len(cells) == 1:
        return not any(map(is_number, cells[0]))
    if any(not is_number(above) and is_number(below) for above, below in zip(*cells, strict=False)):
        return True
    if any(is_number(cell) for cell in chain(*cells)):
        return False
    raise DataFileError(
        name,
        "the first two lines have no number, so it is unclear whether the first is a header; set header (--header)",
    )


@dataclass
class _TableBuilder:
    """The samples read so far: blocks of numbers, and strings by column."""

    name: str
    roles: ColumnRoles
    selection: ColumnSelection
    numeric: list[int] = field(default_factory=list)
    numbers: list[Floats] = field(default_factory=list)
    strings: dict[int, Row] = field(default_factory=dict)
    lines: list[NDArray[np.int64]] = field(default_factory=list)
    checked: int = 0  # number of the blocks of numbers that were checked by `check_size`, …
    size: int = 0  # … and their bytes

    def add(self, block: Sequence[tuple[int, Row]]) -> None:
        """Append lines."""
        width = len(self.roles.names)
        for line, row in block:
            if len(row) != width:
                raise DataFileError(self.name, f"{len(row)} values, but the first line has {width}", line)
        if not self.lines:
            self._determine_types(block)
        strings = {column: self._strings_of(block, column) for column in self.strings}
        self.numbers.append(self._numbers_of(block))
        for column, cells in strings.items():
            self.strings[column] += cells
        self.lines.append(np.array([line for line, _ in block]))

    def add_parsed(self, parsed: ParsedRows) -> None:
        """Append a block of lines that `parse_block` has parsed."""
        self.numbers.append(parsed.numbers)
        for column, cells in parsed.strings.items():
            self.strings[column] += cells
        self.lines.append(parsed.lines)

    def check_size(self) -> None:
        """Raise a MemoryError if there is no memory for the table, which is assembled from its blocks."""
        size = sum(block.nbytes for block in self.numbers[self.checked :])
        if size >= CHECKED_BYTES:
            self.checked = len(self.numbers)
            self.size += size
            samples = f"{self.name}, of which {sum(map(len, self.lines)):,} samples are read,"
            check_memory(self.size + CHECKED_BYTES, samples, TOO_LARGE)

    def problems(self, block: Sequence[tuple[int, Row]]) -> list[DataFileError]:
        """Append the valid lines; return the first problem of each of the others."""
        found = []
        try:
            self.add(block)
        except DataFileError as error:
            if len(block) == 1:
                return [error]
            for row in block:
                found += self.problems([row])
        return found

    def categorical_features(self) -> dict[str, Row]:
        """Return the values of the categorical features by name."""
        columns = [column for column in self.roles.features if column in self.strings]
        return {self.roles.names[column]: self.strings[column] for column in columns}

    def build(self) -> Table:
        """Return the table."""
        if not self.lines:
            raise DataFileError(self.name, "there is a header, but there are no samples below it")
        numbers, lines = np.concatenate(self.numbers), np.concatenate(self.lines)
        return Table(self.name, self.roles, self.numeric, numbers, self.strings, lines)

    def _determine_types(self, block: Sequence[tuple[int, Row]]) -> None:
        """Determine which features are numeric and which are categorical."""
        names, given = self.roles.names, self.selection.categorical
        declared = () if isinstance(given, str) else tuple(given)
        categorical, numeric = [], []
        for column in self.roles.features:
            if names[column] not in declared and is_number(block[0][1][column]):
                numeric.append(column)
            elif block[0][1][column].strip().lower() in MISSING:
                raise self._missing(column, block[0][0])
            else:
                categorical.append(column)
        undeclared = [column for column in categorical if names[column] not in declared]
        if undeclared and given != "one-hot":
            values = {names[column]: self._strings_of(block, column) for column in undeclared}
            raise DataFileError(self.name, non_numeric_message(values))
        self.numeric = numeric
        others = [column for column in (self.roles.label, self.roles.query) if column is not None]
        self.strings = {column: [] for column in (*categorical, *others)}

    def _strings_of(self, block: Sequence[tuple[int, Row]], column: int) -> Row:
        """Return the cells of a column of strings."""
        cells = [row[column].strip() for _, row in block]
        for empty in ("", "?"):
            if empty in cells:
                raise self._missing(column, block[cells.index(empty)][0])
        if not "".join(cells).isascii():
            for (line, _), cell in zip(block, cells, strict=True):
                if any("\ud800" <= letter <= "\udfff" for letter in cell):
                    message = f"a value of column {self.roles.names[column]!r} is not valid UTF-8"
                    raise DataFileError(self.name, message, line)
        return cells

    def _numbers_of(self, block: Sequence[tuple[int, Row]]) -> Floats:
        """Return the cells of the numeric columns as numbers."""
        count = len(self.numeric)
        if self.numeric == list(range(count)):
            cells = chain.from_iterable(row[:count] for _, row in block)
        else:
            cells = (row[column] for _, row in block for column in self.numeric)  # type: ignore[assignment]
        try:
            values = np.fromiter(map(float, cells), np.float64, count=len(block) * count)
        except ValueError:
            values = np.array([np.nan])
        if not np.isfinite(values).all() or not PLAIN.fullmatch("".join(chain.from_iterable(row for _, row in block))):
            for line, row in block:
                self._check_numbers(line, row)
            # float does not strip the separators 0x1c to 0x1f, unlike strip
            values = np.array([float(row[column].strip()) for _, row in block for column in self.numeric])
        return values.reshape(len(block), count)

    def _check_numbers(self, line: int, row: Row) -> None:
        for column in self.numeric:
            cell, name = row[column].strip(" \t\r\n"), self.roles.names[column]
            if cell.lower() in MISSING:
                raise self._missing(column, line)
            if not is_number(cell):
                shown = cell.encode(errors="replace").decode()
                message = f"{shown!r} in column {name!r} is not a number, unlike the values above it"
                raise DataFileError(self.name, message, line)
            if not np.isfinite(float(cell)):
                raise DataFileError(self.name, f"{cell!r} in column {name!r} is not finite", line)

    def _missing(self, column: int, line: int) -> DataFileError:
        name = self.roles.names[column]
        return DataFileError(
            self.name, f"the value of column {name!r} is missing; fill it in, or leave out the line or the column", line
        )


def write_csv(samples: Samples, stream: IO[bytes], delimiter: str) -> None:
    """Write a header and a line for each sample: query, features, label."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([name for name, _ in table_columns(samples)])
    for start in range(0, len(samples), BLOCK_LINES):
        part = samples.take(slice(start, start + BLOCK_LINES))
        writer.writerows(zip(*(_as_integers(values).tolist() for _, values in table_columns(part)), strict=True))
    text.detach()


def table_columns(samples: Samples) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the name and values of each column: query, features, label."""
    if samples.query is not None:
        yield "qid", _as_integers(samples.query)
    X = samples.dense()
    names = samples.feature_names or [f"x{column + 1}" for column in range(samples.n_features)]
    yield from zip(names, X.T, strict=True)
    if samples.y is not None:
        yield samples.label_name or "label", _as_integers(samples.y)


def _as_integers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers as integers if that is exact for all of them, otherwise unchanged (−0 is not an integer)."""
    if values.dtype.kind != "f" or not (np.abs(values) < 2**53).all() or not np.array_equal(values, np.rint(values)):
        return values
    return values if np.signbit(values[values == 0]).any() else values.astype(np.int64)
