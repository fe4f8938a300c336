"""Parquet and Arrow files as sources of rows, read by record batches with pyarrow (an optional dependency).

Columns have the roles and conversions of `maxmargin.datasets.arrow_files`. What depends on all rows, the categories of
columns of strings and whether labels that are strings are numbers, is found in a first pass over these columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.blocks.arrow_batches import BATCH_ROWS, ArrowFile, open_arrow_file
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.blocks.sources import FLOATS, RowError, Rows, Source, check_shape, rows_per_block
from maxmargin.datasets.arrow_files import CellError, column_values, is_text, without_dictionary
from maxmargin.datasets.categorical_columns import (
    MAX_CATEGORIES,
    CategoryError,
    categories_of,
    non_numeric_message,
    one_hot,
)
from maxmargin.datasets.column_roles import ColumnSelection, position_of
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.table import parse_numbers

#: Types whose values float32 represents.
SINGLES = ("float", "halffloat")


class ArrowSource(Source):
    """The rows of Parquet or Arrow files with the same columns.

    Parameters
    ----------
    paths : sequence of Path
    selection : ColumnSelection
    weight : str, int or None
        Name or position of the column of sample weights.
    """

    is_sparse = False

    def __init__(self, paths: Sequence[Path], selection: ColumnSelection, weight: str | int | None = None) -> None:
        self._files = [open_arrow_file(path) for path in paths]
        first = self._files[0]
        self.name = f"{first.name} and {len(paths) - 1} more" if len(paths) > 1 else first.name
        self._check_columns()
        self.n_rows, _ = check_shape((sum(file.n_rows for file in self._files), len(first.schema)), self.name)
        names = list(first.schema.names)
        self._weight = None if weight is None else position_of(first.name, names, weight)
        ignore = selection.ignore if self._weight is None else (*selection.ignore, self._weight)
        selection = ColumnSelection(
            selection.label, selection.query, ignore, selection.categorical, selection.n_features
        )
        self._roles = selection.resolve(first.name, names, len(names))
        self._categories = self._find_categories(selection)
        self._label_is_text = self._roles.label is not None and self._has_text_labels(self._roles.label)
        self.has_labels, self.has_weights = self._roles.label is not None, self._weight is not None
        self.n_features = sum(len(self._categories.get(column, " ")) for column in self._roles.features)
        if selection.n_features is not None and self.n_features != selection.n_features:
            raise DataFileError(self.name, f"{self.n_features} features, but {selection.n_features} are required")
        singles = all(str(first.schema.types[column]) in SINGLES for column in self._roles.features)
        self.dtype = FLOATS[1] if singles and not self._categories else FLOATS[0]

    def read(self, block_rows: int | None) -> Iterator[Rows]:
        step = block_rows or rows_per_block(self.n_features * self.dtype.itemsize)
        used = [*self._roles.features, *(at for at in (self._roles.label, self._weight) if at is not None)]
        for file in self._files:
            tables = file.tables(used, _pieces(file.n_rows, step))
            for first in range(0, file.n_rows, step):
                yield self._rows(file, tables, min(step, file.n_rows - first))

    @property
    def stamps(self) -> list[FileStamp]:
        """The stamps of the files."""
        return [file.stamp for file in self._files]

    def check_unchanged(self) -> None:
        for stamp in self.stamps:
            stamp.check()

    def _rows(self, file: ArrowFile, tables: Iterator[dict[int, Any]], count: int) -> Rows:
        """Return the next rows of a file."""
        X = np.empty((count, self.n_features), self.dtype)
        labels, weights, filled = [], [], 0
        while filled < count:
            table = next(tables, None)
            if table is None:
                raise RowError(file.name, f"the file ends, although it says that it has {file.n_rows} rows", filled)
            try:
                self._fill(X[filled : filled + len(table[self._roles.features[0]])], table)
                if self._roles.label is not None:
                    labels.append(self._labels(self._roles.names[self._roles.label], table[self._roles.label]))
                if self._weight is not None:
                    weights.append(_numbers(self._roles.names[self._weight], table[self._weight]))
            except (CellError, CategoryError) as error:
                row = None if error.sample is None else filled + error.sample
                raise RowError(file.name, str(error), row) from error
            filled += len(table[self._roles.features[0]])
        y, weight = (np.concatenate(parts) if parts else None for parts in (labels, weights))
        return Rows(X, y, weight, file.name)

    def _fill(self, X: Any, table: dict[int, Any]) -> None:
        """Write the features of a table into rows."""
        at = 0
        for column in self._roles.features:
            name = self._roles.names[column]
            if column in self._categories:
                width = len(self._categories[column])
                X[:, at : at + width] = _one_hot(name, table[column], self._categories[column])
                at += width
            else:
                X[:, at] = _numbers(name, table[column])
                at += 1

    def _labels(self, name: str, values: Any) -> Any:
        given = column_values(name, values, True)
        if not isinstance(given, list):
            return given
        return np.array(given, str) if self._label_is_text else parse_numbers(given)

    def _check_columns(self) -> None:
        first = self._files[0]
        for file in self._files[1:]:
            if file.schema.names != first.schema.names:
                raise DataFileError(file.name, f"its columns are not those of {first.name}, in the same order")
            for name, found, expected in zip(
                file.schema.names, map(_kind, file.schema.types), map(_kind, first.schema.types), strict=True
            ):
                if found != expected:
                    raise DataFileError(
                        file.name, f"column {name!r} is of type {found}, but in {first.name} of type {expected}"
                    )

    def _find_categories(self, selection: ColumnSelection) -> dict[int, tuple[str, ...]]:
        """Return the categories of each column of strings, of all files."""
        names, kinds = self._roles.names, self._files[0].schema.types
        listed = {} if isinstance(selection.categorical, str) else selection.categorical
        columns = [at for at in self._roles.features if names[at] in listed or is_text(_value_type(kinds[at]))]
        found = {at: tuple(listed[names[at]]) for at in columns if names[at] in listed}
        unlisted = [at for at in columns if at not in found]
        if unlisted and selection.categorical != "one-hot":
            table = next(self._files[0].tables(unlisted))
            values = {names[at]: list(map(str, table[at].to_pylist())) for at in unlisted}
            raise DataFileError(self.name, non_numeric_message(values))
        for at in unlisted:
            try:
                found[at] = categories_of(names[at], sorted(self._distinct(at)), "one-hot")
            except CategoryError as error:
                raise DataFileError(self.name, str(error)) from error
        return found

    def _distinct(self, column: int) -> set[str]:
        """Return the distinct strings of a column, up to somewhat more than a categorical column may have."""
        found: set[str] = set()
        for file in self._files:
            first = 0
            for table in file.tables([column]):
                try:
                    found.update(_encoded(self._roles.names[column], table[column])[0])
                except CellError as error:
                    row = "" if error.sample is None else f"row {first + error.sample} (counting from 0): "
                    raise DataFileError(file.name, f"{row}{error}") from error
                first += len(table[column])
                if len(found) > MAX_CATEGORIES:
                    return found
        return found

    def _has_text_labels(self, column: int) -> bool:
        """Return whether labels are strings that are not all numbers."""
        if not is_text(_value_type(self._files[0].schema.types[column])):
            return False
        name = self._roles.names[column]
        tables = (table for file in self._files for table in file.tables([column]))
        try:
            return any(parse_numbers(_encoded(name, table[column])[0]) is None for table in tables)
        except CellError:  # a missing label: reading the rows says where
            return True


def _pieces(rows: int, step: int) -> Iterator[int]:
    """Yield the numbers of rows that are read at once, in blocks of `step` rows."""
    for first in range(0, rows, step):
        last = min(rows, first + step)
        yield from (min(BATCH_ROWS, last - piece) for piece in range(first, last, BATCH_ROWS))


def _numbers(name: str, values: Any) -> Any:
    numbers = column_values(name, values, True)
    if isinstance(numbers, list):
        raise CellError(f"text instead of numbers in column {name!r}")
    return numbers


def _one_hot(name: str, values: Any, categories: Sequence[str]) -> Any:
    """Return the one-hot encoding of a column, by that of its distinct strings."""
    distinct, codes = _encoded(name, values)
    try:
        return one_hot(name, distinct, categories)[codes]
    except CategoryError as error:
        raise CategoryError(str(error), int(np.argmax(codes == error.sample))) from error  # the first row with it


def _encoded(name: str, values: Any) -> tuple[list[str], Any]:
    """Return the distinct strings of a column, and the number of the string of each row."""
    import pyarrow as pa

    plain = without_dictionary(name, values)
    if not is_text(plain.type):
        plain = plain.cast(pa.string())
    encoded = plain.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return [value.strip() for value in encoded.dictionary.to_pylist()], encoded.indices.to_numpy()


def _value_type(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _kind(kind: Any) -> str:
    """Return the type of a column as far as all files must agree: strings in any encoding, numbers in any size."""
    plain = _value_type(kind)
    return "string" if is_text(plain) else "float32" if str(plain) in SINGLES else "number"
