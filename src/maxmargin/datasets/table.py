"""A table of numeric and string columns with their roles, as read from CSV, Parquet and Arrow files."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.datasets.categorical_columns import CategoryError, categories_of, one_hot
from maxmargin.datasets.column_roles import ColumnRoles, ColumnSelection
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import INDISTINGUISHABLE, INEXACT_LABEL, Samples, indistinguishable_pair

#: Common representations of missing values.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "."})


#: Cells without characters that Python accepts in numbers, but other programs do not: 1_000, digits of other scripts.
PLAIN = re.compile(r"[\x00-\x5e\x60-\x7f]*")


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in ASCII; 1_000 is not, although Python accepts it."""
    try:
        float(cell)
    except ValueError:
        return False
    return PLAIN.fullmatch(cell) is not None


def _is_infinite(cell: str) -> bool:
    return is_number(cell) and not math.isfinite(float(cell))


@dataclass(frozen=True)
class Table:
    """The contents of a table file.

    Attributes
    ----------
    name : str
        Name of the file.
    roles : ColumnRoles
    numeric : sequence of int
        Positions of the numeric features.
    numbers : array of shape (n_samples, len(numeric))
        Values of the numeric features.
    strings : dict of int to list of str
        Categorical features, labels and queries, by position.
    lines : array of shape (n_samples,) or None
        Line number of each sample, None for binary files.
    """

    name: str
    roles: ColumnRoles
    numeric: Sequence[int]
    numbers: Floats
    strings: dict[int, list[str]]
    lines: NDArray[np.int64] | None

    def samples(self, selection: ColumnSelection) -> Samples:
        """Return the samples with one-hot encoded categorical features, and with numeric labels if all are numbers."""
        roles = self.roles
        try:
            categories = {
                column: categories_of(roles.names[column], self.strings[column], selection.categorical)
                for column in roles.features
                if column in self.strings
            }
            X = self._features(categories)
        except CategoryError as error:
            raise self.error(str(error), error.sample) from error
        if selection.n_features is not None and X.shape[1] != selection.n_features:
            raise DataFileError(self.name, f"{X.shape[1]} features, but {selection.n_features} are required")
        return Samples(
            X,
            y=self._values_of(roles.label),
            query=self._values_of(roles.query),
            feature_names=self._feature_names(categories) if roles.has_header or categories else None,
            label_name=roles.label_name,
            categories={roles.names[column]: values for column, values in categories.items()},
            name=self.name,
        )

    def error(self, message: str, sample: int | None = None) -> DataFileError:
        """Return an error about a sample, or about the whole file."""
        if sample is None:
            return DataFileError(self.name, message)
        if self.lines is None:
            return DataFileError(self.name, f"sample {sample + 1}: {message}")
        return DataFileError(self.name, message, int(self.lines[sample]))

    def _features(self, categories: dict[int, tuple[str, ...]]) -> Floats:
        if not categories:
            return self.numbers
        positions = {column: position for position, column in enumerate(self.numeric)}
        return np.hstack(
            [
                one_hot(self.roles.names[column], self.strings[column], categories[column])
                if column in categories
                else self.numbers[:, [positions[column]]]
                for column in self.roles.features
            ]
        )

    def _feature_names(self, categories: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
        names: list[str] = []
        for column in self.roles.features:
            name = self.roles.names[column]
            names += [f"{name}={category}" for category in categories[column]] if column in categories else [name]
        return tuple(names)

    def _values_of(self, column: int | None) -> np.ndarray[Any, Any] | None:
        """Return the values of a column as numbers if all are numbers, otherwise as strings."""
        if column is None:
            return None
        cells = self.strings[column]
        numbers = parse_numbers(cells)
        if numbers is not None:
            self._check_large_integers(column, numbers)
            return numbers
        distinct = set(cells)
        if any("\0" in cell for cell in distinct):
            raise self.error(f"a value of column {self.roles.names[column]!r} has a zero character; remove it")
        if any(is_number(cell) for cell in distinct):  # then "nan" and the like are missing values, not labels
            invalid = {cell for cell in distinct if cell.lower() in MISSING or _is_infinite(cell)}
            for sample, cell in enumerate(cells if invalid else ()):
                if cell in invalid:
                    name = self.roles.names[column]
                    raise self.error(f"{cell!r} in column {name!r} is not a finite number", sample)
        return np.array(cells)

    def _check_large_integers(self, column: int, numbers: Floats) -> None:
        """Raise if different integers, such as query ids, are equal as float64, or if a label would be another one."""
        large = np.flatnonzero(np.abs(numbers) >= 2**53)
        cells = {self.strings[column][sample] for sample in large}
        all_integers = len(large) and all(cell.lstrip("+-").isdecimal() for cell in set(self.strings[column]))
        if column == self.roles.label and all_integers:
            for sample in large:
                cell = self.strings[column][sample]
                if int(cell) != int(float(cell)):
                    raise self.error(
                        f"the label {cell} is an integer that float64 cannot represent; {INEXACT_LABEL}", int(sample)
                    )
        same = indistinguishable_pair(int(cell) for cell in cells if cell.lstrip("+-").isdecimal())
        if same is not None:
            raise self.error(f"column {self.roles.names[column]!r} has {same[0]} and {same[1]}, {INDISTINGUISHABLE}")


def parse_numbers(cells: list[str]) -> Floats | None:
    """Return cells as numbers, None if any is not a finite number."""
    try:
        numbers = np.fromiter(map(float, cells), np.float64, count=len(cells))
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() and all(map(PLAIN.fullmatch, set(cells))) else None
