"""Roles of the columns of a table: label, query, feature or ignored.

Used for CSV, Parquet, Arrow and .npy files. Columns are selected by name or by position; the others are features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maxmargin.datasets.categorical_columns import Categorical, listed
from maxmargin.datasets.errors import DataFileError

#: With label="auto" a column with one of these names is the label; without one it is the last column.
LABEL_NAMES = ("label", "target", "class")


@dataclass(frozen=True)
class ColumnRoles:
    """Positions of label, query and features, and the names of all columns (from the header, or 1, 2, …)."""

    names: tuple[str, ...]
    has_header: bool
    label: int | None
    query: int | None
    features: tuple[int, ...]

    @property
    def label_name(self) -> str | None:
        """Name of the label column in the header."""
        return None if self.label is None or not self.has_header else self.names[self.label]


@dataclass(frozen=True)
class ColumnSelection:
    """The columns that a reader was asked for, by name or position.

    Attributes
    ----------
    label : str, int or None
        "auto": the column named label, target or class, otherwise the last one; but none if all columns are needed
        for `n_features`. "first", "last", a name, or an index as in Python. None: there are no labels.
    query : str, int or None
        Name or position of the query column (for ranking).
    ignore : sequence of str or int
        Columns to ignore.
    categorical : "error", "one-hot" or mapping
        Treatment of columns of strings.
    n_features : int or None
        Required number of features.
    """

    label: str | int | None = "auto"
    query: str | int | None = None
    ignore: Sequence[str | int] = ()
    categorical: Categorical = "error"
    n_features: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.categorical, str) and self.categorical not in ("error", "one-hot"):
            raise ValueError(
                f"categorical must be 'error', 'one-hot' or a mapping of column names to categories, "
                f"not {self.categorical!r}"
            )

    def resolve(self, file: object, header: Sequence[str] | None, width: int) -> ColumnRoles:
        """Return the roles of the columns of a table; without a header their names are 1, 2, …."""
        names = tuple(str(column + 1) for column in range(width)) if header is None else tuple(header)
        self._check_names(file, names)
        for column in () if isinstance(self.categorical, str) else self.categorical:
            position_of(file, names, column)
        query = None if self.query is None else position_of(file, names, self.query)
        excluded = {position_of(file, names, column) for column in self.ignore} | ({query} - {None})
        remaining = [column for column in range(width) if column not in excluded]
        label = self._label(file, names, remaining, header is not None)
        if label is not None and label in excluded:
            raise DataFileError(
                file, f"column {names[label]!r} is selected as the label and also as query or ignored; choose one role"
            )
        features = tuple(column for column in remaining if column != label)
        if not features:
            raise DataFileError(file, f"no feature column is left among the {width} columns {listed(names)}")
        return ColumnRoles(names, header is not None, label, query, features)

    def _label(self, file: object, names: Sequence[str], columns: Sequence[int], has_header: bool) -> int | None:
        if self.label is None or not columns:
            return None
        if self.label != "auto":
            return position_of(file, names, self.label)
        if self.n_features is not None and len(columns) == self._feature_columns():
            return None
        if has_header:
            by_name = {names[column].lower(): column for column in columns}
            for name in LABEL_NAMES:
                if name in by_name:
                    return by_name[name]
        return columns[-1]

    def _feature_columns(self) -> int | None:
        """Return the number of table columns that are encoded as `n_features` features."""
        if self.n_features is None or isinstance(self.categorical, str):
            return self.n_features
        return self.n_features - sum(len(categories) - 1 for categories in self.categorical.values())

    def _check_names(self, file: object, names: Sequence[str]) -> None:
        duplicates = [name for at, name in enumerate(names) if name in names[:at]] if self._uses_names() else []
        if duplicates:
            raise DataFileError(file, f"two columns are named {duplicates[0]!r}; give them different names")

    def _uses_names(self) -> bool:
        selected = (self.label if self.label not in ("auto", "first", "last") else None, self.query, *self.ignore)
        return not isinstance(self.categorical, str) or any(isinstance(column, str) for column in selected)


def position_of(file: object, names: Sequence[str], column: str | int) -> int:
    """Return the position of a column given by name or index."""
    if isinstance(column, str) and column in names:
        return names.index(column)
    if column in ("first", "last"):
        return 0 if column == "first" else len(names) - 1
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if isinstance(column, str):
        raise DataFileError(file, f"there is no column named {column!r}; the columns are {listed(names)}")
    raise DataFileError(file, f"there is no column at position {column}; there are {len(names)} columns")
