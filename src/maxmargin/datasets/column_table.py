"""A table as it comes: the columns of a file by name, as numbers, dates or text, with missing cells.

Unlike `read_samples`, which reads a complete table of numbers, nothing is refused here but what is no table: text and
missing cells are kept, and `maxmargin.preparation` decides what becomes of a column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.table import MISSING

#: Names of columns that have no name in the header.
UNNAMED = "column {}"


@dataclass(frozen=True)
class ColumnTable:
    """The columns of a file.

    Attributes
    ----------
    name : str
        Name of the file.
    columns : mapping of str to array of shape (n_rows,)
        Values by name of the column: float64 with nan for missing cells; datetime64 with NaT; or an object array of
        strings, empty for missing cells.
    has_header : bool
        Whether the columns have names; those of a table without them are 1, 2, ….
    lines : int array of shape (n_rows,) or None
        Line number of each row; None for binary files.
    unusable : mapping of str to str
        Columns of types that are neither numbers, dates nor text, and the types.
    encoding : str
        Of a text file.
    """

    name: str
    columns: Mapping[str, NDArray[Any]]
    has_header: bool = True
    lines: NDArray[np.int64] | None = None
    unusable: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: NDArray[Any]) -> ColumnTable:
        """Return the selected rows."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        lines = None if self.lines is None else self.lines[rows]
        return ColumnTable(self.name, columns, self.has_header, lines, self.unusable, self.encoding)

    def place(self, row: int) -> str:
        """Return where a row is: its line number, or its number in a binary file."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def error(self, message: str, row: int | None = None) -> DataFileError:
        """Return an error about a row, or about the whole table."""
        if row is None or self.lines is None:
            return DataFileError(self.name, message if row is None else f"row {row + 1}: {message}")
        return DataFileError(self.name, message, int(self.lines[row]))


def is_missing(cell: str) -> bool:
    """Return whether a cell represents a missing value."""
    return cell.lower() in MISSING


def missing_spellings() -> list[str]:
    """Return the usual spellings of missing values."""
    return sorted({spelling for word in MISSING for spelling in (word, word.upper(), word.capitalize(), "NaN", "N/a")})


def text_array(cells: Collection[str]) -> NDArray[Any]:
    """Return an array of strings of any length."""
    values = np.empty(len(cells), dtype=object)
    values[:] = list(cells)
    return values


def checked_names(file: str, cells: list[str]) -> list[str]:
    """Return the names of a header, with names for columns without one; two columns of one name are an error."""
    names = [cell or UNNAMED.format(number) for number, cell in enumerate(cells, 1)]
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise DataFileError(file, f"two columns are named {repeated[0]!r}; give them different names")
    return names
