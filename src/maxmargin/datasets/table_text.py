"""Tables as text: CSV (RFC 4180), with commas, semicolons or tabs between the cells, with or without a heading.

A line is a sample. Numbers are read to the last bit and written with the fewest digits that mean the same number. A
column is of numbers if the cell of the first sample is one; then every other cell must be. The first line is a heading
if it has a word above a number. A missing cell is an error with the number of its line: a machine cannot learn from it,
and what should stand there is for the user to say.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.datasets.column_roles import ColumnChoice, ColumnRoles
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table import MISSING, Table, is_number
from maxmargin.datasets.table_lines import Row, TableLines, careful_rows, plain_rows
from maxmargin.datasets.word_columns import refusal

#: Lines that are looked at with care before many are taken at once: they tell which columns are numbers.
FIRST_LINES = 100

#: Lines that are turned into numbers at once where care is needed.
BLOCK = 4096


def read_table(
    stream: IO[bytes], name: str, choice: ColumnChoice, *, delimiter: str | None = None, header: bool | str = "auto"
) -> Samples:
    """Return the samples of a text with a table; see `read_samples`."""
    lines = TableLines(stream, name, delimiter)
    body, rows = _begin(lines, choice, header)
    if block := list(islice(rows, FIRST_LINES)):
        body.add(block)
        while (many := lines.take_many()) and body.add_many(many, lines):
            pass
        if many:
            lines.put_back(many)
            while block := list(islice(rows, BLOCK)):
                body.add(block)
    return body.table().samples(choice)


def find_table_problems(
    stream: IO[bytes],
    name: str,
    choice: ColumnChoice,
    *,
    delimiter: str | None = None,
    header: bool | str = "auto",
    limit: int = 100,
) -> list[DataFileError]:
    """Return all that keeps a table from being read, up to so many: for each line the first problem it has."""
    found: list[DataFileError] = []
    encoded = replace(choice, words="one-hot") if choice.words == "refuse" else choice
    try:
        body, rows = _begin(TableLines(stream, name, delimiter), encoded, header)
        while len(found) < limit and (block := _until_problem(rows, found)):
            found += body.problems(block)
        if body.words_of_features() and choice.words == "refuse":
            found.insert(0, DataFileError(name, refusal(body.words_of_features())))
        if body.lines or not found:
            body.table().samples(encoded)
    except DataFileError as error:
        found.append(error)
    return found[:limit]


def _begin(lines: TableLines, choice: ColumnChoice, header: bool | str) -> tuple[_Body, Iterator[tuple[int, Row]]]:
    """Return where samples are collected, and the lines that have them."""
    if header not in (True, False, "auto"):
        raise ValueError(f"header must be True, False or 'auto', not {header!r}")
    name, rows = lines.name, careful_rows(lines)
    first = list(islice(rows, 2))
    if not first:
        raise DataFileError(name, "there is nothing in it; a table has a line for each sample")
    heading = has_heading(name, first) if header == "auto" else bool(header)
    names = [cell.strip() for cell in first[0][1]] if heading else None
    roles = choice.resolve(name, names, len(first[0][1]))
    return _Body(name, roles, choice), chain(first[1:] if heading else first, rows)


def _until_problem(rows: Iterator[tuple[int, Row]], found: list[DataFileError]) -> list[tuple[int, Row]]:
    """Return the next lines; one that cannot be taken apart is a problem, and the last."""
    block = []
    try:
        for row in islice(rows, BLOCK):
            block.append(row)
    except DataFileError as error:
        found.append(error)
    return block


def has_heading(name: str, rows: Sequence[tuple[int, Row]]) -> bool:
    """Tell whether the first of two lines is a heading: whether it has a word above a number."""
    cells = [row for _, row in rows]
    if len(cells) == 1:
        return not any(map(is_number, cells[0]))
    if any(not is_number(above) and is_number(below) for above, below in zip(*cells, strict=False)):
        return True
    if any(is_number(cell) for cell in chain(*cells)):
        return False
    raise DataFileError(
        name,
        "the first two lines have no number, so the first may be a heading or not; say which with header (--header)",
    )


@dataclass
class _Body:
    """The samples as they come in: blocks of numbers, and words by column."""

    name: str
    roles: ColumnRoles
    choice: ColumnChoice
    numeric: list[int] = field(default_factory=list)
    numbers: list[Floats] = field(default_factory=list)
    words: dict[int, Row] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)

    def add(self, block: Sequence[tuple[int, Row]]) -> None:
        """Take lines."""
        width = len(self.roles.names)
        for line, row in block:
            if len(row) != width:
                raise DataFileError(self.name, f"{len(row)} columns, but the first line has {width}", line)
        if not self.lines:
            self._tell_columns_apart(block)
        words = {column: self._words_of(block, column) for column in self.words}
        self.numbers.append(self._numbers_of(block))
        for column, cells in words.items():
            self.words[column] += cells
        self.lines += [line for line, _ in block]

    def add_many(self, lines: list[bytes], source: TableLines) -> bool:
        """Take lines that have just been read; tell whether nothing about them is unusual, else they are not taken."""
        found = plain_rows(lines, source.delimiter, len(self.roles.names), self.numeric, list(self.words))
        if found is None:
            return False
        self.numbers.append(found.numbers)
        for column, cells in found.words.items():
            self.words[column] += cells
        start = source.number - len(lines) + 1
        self.lines += [start + place for place in found.places]
        return True

    def problems(self, block: Sequence[tuple[int, Row]]) -> list[DataFileError]:
        """Take those of the lines that have no problem; return the first problem of the others."""
        found = []
        try:
            self.add(block)
        except DataFileError as error:
            if len(block) == 1:
                return [error]
            for row in block:
                found += self.problems([row])
        return found

    def words_of_features(self) -> dict[str, Row]:
        """Return the columns of words that are no labels, by name."""
        return {self.roles.names[column]: self.words[column] for column in self.roles.features if column in self.words}

    def table(self) -> Table:
        """Return all that came in."""
        if not self.lines:
            raise DataFileError(self.name, "there is a heading, but no sample below it")
        return Table(self.name, self.roles, self.numeric, np.concatenate(self.numbers), self.words, self.lines)

    def _tell_columns_apart(self, block: Sequence[tuple[int, Row]]) -> None:
        """Note which columns are numbers and which are words."""
        names = self.roles.names
        asked = () if isinstance(self.choice.words, str) else tuple(self.choice.words)
        words, numeric = [], []
        for column in self.roles.features:
            if names[column] not in asked and is_number(block[0][1][column]):
                numeric.append(column)
            elif block[0][1][column].strip().lower() in MISSING:
                raise self._missing(column, block[0][0])
            else:
                words.append(column)
        strange = [column for column in words if names[column] not in asked]
        if strange and self.choice.words != "one-hot":
            raise DataFileError(
                self.name, refusal({names[column]: self._words_of(block, column) for column in strange})
            )
        self.numeric = numeric
        others = [column for column in (self.roles.label, self.roles.query) if column is not None]
        self.words = {column: [] for column in (*words, *others)}

    def _words_of(self, block: Sequence[tuple[int, Row]], column: int) -> Row:
        """Return the cells of a column of words."""
        cells = [row[column].strip() for _, row in block]
        for empty in ("", "?"):
            if empty in cells:
                raise self._missing(column, block[cells.index(empty)][0])
        if not "".join(cells).isascii():
            for (line, _), cell in zip(block, cells, strict=True):
                if any("\ud800" <= letter <= "\udfff" for letter in cell):
                    message = f"a cell of column {self.roles.names[column]!r} has bytes that are no UTF-8"
                    raise DataFileError(self.name, message, line)
        return cells

    def _numbers_of(self, block: Sequence[tuple[int, Row]]) -> Floats:
        """Return the cells of columns of numbers."""
        count = len(self.numeric)
        if self.numeric == list(range(count)):
            cells = chain.from_iterable(row[:count] for _, row in block)
        else:
            cells = (row[column] for _, row in block for column in self.numeric)  # type: ignore[assignment]
        try:
            values = np.fromiter(map(float, cells), np.float64, count=len(block) * count)
        except ValueError:
            values = np.array([np.nan])
        if not np.isfinite(values).all() or any("_" in "".join(row) for _, row in block):
            for line, row in block:
                self._check_numbers(line, row)
        return values.reshape(len(block), count)

    def _check_numbers(self, line: int, row: Row) -> None:
        for column in self.numeric:
            cell, name = row[column].strip(), self.roles.names[column]
            if cell.lower() in MISSING:
                raise self._missing(column, line)
            if not is_number(cell):
                shown = cell.encode(errors="replace").decode()
                message = f"{shown!r} in column {name!r} is no number, unlike the cells above it"
                raise DataFileError(self.name, message, line)
            if not np.isfinite(float(cell)):
                raise DataFileError(self.name, f"{cell!r} in column {name!r} is not finite", line)

    def _missing(self, column: int, line: int) -> DataFileError:
        name = self.roles.names[column]
        return DataFileError(
            self.name, f"the cell of column {name!r} is missing; fill it in, or leave out the line or the column", line
        )


def write_table(samples: Samples, stream: IO[bytes], delimiter: str) -> None:
    """Write a heading and a line for each sample: its query, its features, its label."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow([name for name, _ in table_columns(samples)])
    for start in range(0, len(samples), BLOCK):
        part = samples.take(slice(start, start + BLOCK))
        writer.writerows(zip(*(_whole(values).tolist() for _, values in table_columns(part)), strict=True))
    text.detach()


def table_columns(samples: Samples) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield the columns of a table that has everything, with names that differ."""
    if samples.query is not None:
        yield "qid", _whole(samples.query)
    names = samples.feature_names or [f"x{column + 1}" for column in range(samples.n_features)]
    X = samples.X.toarray() if sparse.issparse(samples.X) else samples.X
    yield from zip(names, X.T, strict=True)
    if samples.y is not None:
        yield samples.label_name or "label", _whole(samples.y)


def _whole(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return numbers as integers if all are, none is too large for that, and none is −0."""
    if values.dtype.kind != "f" or not (np.abs(values) < 2**53).all() or not np.array_equal(values, np.rint(values)):
        return values
    return values if np.signbit(values[values == 0]).any() else values.astype(np.int64)
