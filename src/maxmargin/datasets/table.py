"""A table between file and samples: columns of numbers and of words, and their roles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.datasets.column_roles import ColumnChoice, ColumnRoles
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import TOO_LARGE, Samples, merged
from maxmargin.datasets.word_columns import WordError, encode, known_words

#: What people write where nothing is known.
MISSING = frozenset({"", "?", "na", "n/a", "#n/a", "nan", "null", "none", "."})


def is_number(cell: str) -> bool:
    """Tell whether a cell is a number; Python also takes 1_000 for one, which in a table may be anything."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _is_infinite(cell: str) -> bool:
    return is_number(cell) and not math.isfinite(float(cell))


@dataclass(frozen=True)
class Table:
    """What a file has of every sample.

    Attributes
    ----------
    name : str
        Of the file.
    roles : ColumnRoles
        What each column is.
    numeric : sequence of int
        Positions of the features that are numbers.
    numbers : array of shape (n_samples, len(numeric))
        Their values.
    words : dict of int to list of str
        The other columns that have a role, by position.
    lines : sequence of int or None
        Where each sample stands in the file, if that has lines.
    """

    name: str
    roles: ColumnRoles
    numeric: Sequence[int]
    numbers: Floats
    words: dict[int, list[str]]
    lines: Sequence[int] | None

    def samples(self, choice: ColumnChoice) -> Samples:
        """Return the samples: words of features as columns of 0 and 1, labels as numbers if all are."""
        roles = self.roles
        try:
            known = {
                column: known_words(roles.names[column], self.words[column], choice.words)
                for column in roles.features
                if column in self.words
            }
            X = self._features(known)
        except WordError as error:
            raise self.error(str(error), error.place) from error
        if choice.n_features is not None and X.shape[1] != choice.n_features:
            raise DataFileError(self.name, f"it has {X.shape[1]} features, but {choice.n_features} are needed")
        return Samples(
            X,
            y=self._values_of(roles.label),
            query=self._values_of(roles.query),
            feature_names=self._feature_names(known) if roles.named or known else None,
            label_name=roles.label_name,
            categories={roles.names[column]: words for column, words in known.items()},
            name=self.name,
        )

    def error(self, message: str, place: int | None = None) -> DataFileError:
        """Return the error about a sample, or about all."""
        if place is None:
            return DataFileError(self.name, message)
        if self.lines is None:
            return DataFileError(self.name, f"sample {place + 1}: {message}")
        return DataFileError(self.name, message, self.lines[place])

    def _features(self, known: dict[int, tuple[str, ...]]) -> Floats:
        if not known:
            return self.numbers
        places = {column: place for place, column in enumerate(self.numeric)}
        return np.hstack(
            [
                encode(self.roles.names[column], self.words[column], known[column])
                if column in known
                else self.numbers[:, [places[column]]]
                for column in self.roles.features
            ]
        )

    def _feature_names(self, known: dict[int, tuple[str, ...]]) -> tuple[str, ...]:
        names = self.roles.names
        return tuple(
            name
            for column in self.roles.features
            for name in ([f"{names[column]}={word}" for word in known[column]] if column in known else [names[column]])
        )

    def _values_of(self, column: int | None) -> np.ndarray[Any, Any] | None:
        """Return the values of a column as numbers if all are, else as words."""
        if column is None:
            return None
        cells = self.words[column]
        numbers = _all_numbers(cells)
        if numbers is not None:
            self._check_whole(column, numbers)
            return numbers
        different = set(cells)
        if any(is_number(cell) for cell in different):  # then what is missing is no word
            wrong = {cell for cell in different if cell.lower() in MISSING or _is_infinite(cell)}
            for place, cell in enumerate(cells if wrong else ()):
                if cell in wrong:
                    raise self.error(f"{cell!r} in column {self.roles.names[column]!r} is no finite number", place)
        return np.array(cells)

    def _check_whole(self, column: int, numbers: Floats) -> None:
        """Raise if whole numbers, names of queries for example, are too large to be told apart."""
        large = np.flatnonzero(np.abs(numbers) >= 2**53)
        cells = {self.words[column][place] for place in large}
        same = merged(int(cell) for cell in cells if _is_whole(cell))
        if same is not None:
            raise self.error(f"column {self.roles.names[column]!r} has {same[0]} and {same[1]}, {TOO_LARGE}")


def _is_whole(cell: str) -> bool:
    return cell.lstrip("+-").isdecimal()


def _all_numbers(cells: list[str]) -> Floats | None:
    """Return cells as numbers if all are, and finite."""
    try:
        numbers = np.fromiter(map(float, cells), np.float64, count=len(cells))
    except ValueError:
        return None
    return None if "_" in "".join(cells) or not np.isfinite(numbers).all() else numbers
