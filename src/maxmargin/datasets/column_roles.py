"""Which column of a table is what: the label, the query, features, or nothing.

Tables come from text (CSV), from Parquet and Arrow, and as arrays (npy). Columns are asked for by name or by position;
what nobody asked for is a feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.word_columns import Words, listed

#: A column with one of these names has the labels, unless somebody says otherwise; without one it is the last.
LABEL_NAMES = ("label", "target", "class")


@dataclass(frozen=True)
class ColumnRoles:
    """Positions of labels, queries and features; and what all columns are called, by a heading or by number."""

    names: tuple[str, ...]
    named: bool
    label: int | None
    query: int | None
    features: tuple[int, ...]

    @property
    def label_name(self) -> str | None:
        """What the heading calls the labels."""
        return None if self.label is None or not self.named else self.names[self.label]


@dataclass(frozen=True)
class ColumnChoice:
    """What a reader was asked for, before it has seen the table.

    Attributes
    ----------
    label : str, int or None
        "auto": the column called label, target or class, else the last; but none, if without it there would be one
        feature less than `n_features`. "first", "last", a name, or a position as in Python. None: there are no labels.
    query : str, int or None
        Name or position of the column that says which samples belong together, for ranking.
    ignore : sequence of str or int
        Columns to leave out.
    words : "refuse", "one-hot" or mapping
        What becomes of columns of words.
    n_features : int or None
        So many features must come out.
    """

    label: str | int | None = "auto"
    query: str | int | None = None
    ignore: Sequence[str | int] = ()
    words: Words = "refuse"
    n_features: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.words, str) and self.words not in ("refuse", "one-hot"):
            raise ValueError(f"words must be 'refuse', 'one-hot' or lists of words by column, not {self.words!r}")

    def resolve(self, file: object, names: Sequence[str] | None, width: int) -> ColumnRoles:
        """Return the roles of so many columns, whose names are in a heading or not known (then they are 1, 2, …)."""
        called = tuple(str(column + 1) for column in range(width)) if names is None else tuple(names)
        self._check_names(file, called)
        for column in () if isinstance(self.words, str) else self.words:
            _position(file, called, column)
        query = None if self.query is None else _position(file, called, self.query)
        left_out = {_position(file, called, column) for column in self.ignore} | ({query} - {None})
        open_columns = [column for column in range(width) if column not in left_out]
        label = self._label(file, called, open_columns, names is not None)
        if label is not None and label in left_out:
            raise DataFileError(file, f"column {called[label]!r} cannot be the label and something else")
        features = tuple(column for column in open_columns if column != label)
        if not features:
            raise DataFileError(file, f"there is no column of features among {width}, only {listed(called)}")
        return ColumnRoles(called, names is not None, label, query, features)

    def _label(self, file: object, names: Sequence[str], columns: Sequence[int], named: bool) -> int | None:
        if self.label is None or not columns:
            return None
        if self.label != "auto":
            return _position(file, names, self.label)
        if self.n_features is not None and len(columns) == self._raw_features():
            return None
        if named:
            by_name = {names[column].lower(): column for column in columns}
            for name in LABEL_NAMES:
                if name in by_name:
                    return by_name[name]
        return columns[-1]

    def _raw_features(self) -> int | None:
        """Return how many columns of the table become so many features."""
        if self.n_features is None or isinstance(self.words, str):
            return self.n_features
        return self.n_features - sum(len(words) - 1 for words in self.words.values())

    def _check_names(self, file: object, names: Sequence[str]) -> None:
        twice = [name for position, name in enumerate(names) if name in names[:position]] if self._uses_names() else []
        if twice:
            raise DataFileError(file, f"two columns are called {twice[0]!r}; give them different names")

    def _uses_names(self) -> bool:
        asked = (self.label if self.label not in ("auto", "first", "last") else None, self.query, *self.ignore)
        return not isinstance(self.words, str) or any(isinstance(column, str) for column in asked)


def _position(file: object, names: Sequence[str], column: str | int) -> int:
    """Return where a column is."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if column in ("first", "last"):
        return 0 if column == "first" else len(names) - 1
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if isinstance(column, str):
        raise DataFileError(file, f"no column is called {column!r}; there are {listed(names)}")
    raise DataFileError(file, f"there is no column at position {column}; there are {len(names)}")
