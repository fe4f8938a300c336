"""What becomes of each column of a table: the plan of its preparation, as a value that a model file can hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets import ColumnTable
from maxmargin.datasets.categorical_columns import listed
from maxmargin.preparation.column_values import converted, days_of, to_days, to_number
from maxmargin.preparation.date_parts import DEFAULT_PARTS, PARTS

#: What a column may be.
TYPES = ("number", "date", "category", "ignored")

#: Scalings of the numbers: mean 0 and standard deviation 1, [-1, 1], or none.
SCALINGS = ("standard", "range", "none")


@dataclass(frozen=True)
class ColumnPlan:
    """What becomes of a column.

    Attributes
    ----------
    name : str
    type : {"number", "date", "category", "ignored"}
    reason : str
        What was found in the column.
    decimal : {".", ","}
        Decimal separator of numbers.
    text_is_missing : bool
        Whether cells of a number or date that are neither count as missing; otherwise they are an error.
    formats : tuple of str
        Formats of dates as in `datetime.strptime`; "ISO" stands for ISO 8601.
    parts : tuple of str
        The features of a date, of "days" (since 1970), "year", "month", "day", "weekday" and "hour".
    cyclic : bool
        Whether month, day, weekday and hour become points on a circle: December is next to January.
    min_count : int
        Categories in fewer rows than this are joined.
    missing : int
        Number of missing cells in the training data.
    """

    name: str
    type: str
    reason: str = ""
    decimal: str = "."
    text_is_missing: bool = False
    formats: tuple[str, ...] = ()
    parts: tuple[str, ...] = DEFAULT_PARTS
    cyclic: bool = False
    min_count: int = 1
    missing: int = 0

    def __post_init__(self) -> None:
        _check(self.name, "type", self.type, TYPES)
        _check(self.name, "decimal", self.decimal, (".", ","))
        for part in self.parts:
            _check(self.name, "parts", part, PARTS)
        if not self.parts:
            raise ValueError(f"column {self.name!r}: parts must be some of {', '.join(PARTS)}")
        if not isinstance(self.min_count, int) or self.min_count < 1:
            raise ValueError(f"column {self.name!r}: min_count must be an integer above 0, not {self.min_count!r}")
        for field in ("text_is_missing", "cyclic"):
            if not isinstance(getattr(self, field), bool):
                raise ValueError(f"column {self.name!r}: {field} must be true or false")
        if not all(isinstance(format, str) for format in self.formats):
            raise ValueError(f"column {self.name!r}: formats must be strings, as of datetime.strptime")

    @property
    def treatment(self) -> str:
        """What is done with the column, in words."""
        if self.type == "ignored":
            return "left out"
        if self.type == "category":
            return "one column for each category" + (
                f"; categories in fewer than {self.min_count} rows together" if self.min_count > 1 else ""
            )
        filled = "; missing cells get the median and a column that marks them" if self.missing else ""
        if self.type == "number":
            return f"number{' with decimal comma' if self.decimal == ',' else ''}{filled}"
        return f"{', '.join(self.parts)}{' on circles' if self.cyclic else ''}{filled}"

    def values(self, table: ColumnTable) -> NDArray[Any]:
        """Return the values of the column in a table: float64 for numbers and dates, text for categories.

        Raises
        ------
        DataFileError
            If the column is of another type than in this plan; the message names the first such cell.
        """
        values = table.columns[self.name]
        if self.type == "category":
            return _as_text(values)
        if self.type == "number" and values.dtype.kind == "M":
            raise table.error(f"column {self.name!r} has dates, but the model expects numbers")
        if self.type == "date" and values.dtype.kind == "f" and not np.isnan(values).all():
            row = int(np.argmax(~np.isnan(values)))
            raise table.error(f"column {self.name!r} has {values[row]:g}, but the model expects dates", row)
        if values.dtype.kind != "O":
            return days_of(values) if values.dtype.kind == "M" else values
        if self.type == "number":
            numbers, wrong = converted(values, lambda cell: to_number(cell, self.decimal))
        else:
            numbers, wrong = converted(values, lambda cell: to_days(cell, self.formats))
        if len(wrong) and (not self.text_is_missing or len(wrong) == np.count_nonzero(values != "")):
            expected = "numbers" if self.type == "number" else f"dates such as {self._example()}"
            raise table.error(
                f"column {self.name!r} has {values[wrong[0]]!r}, but the model expects {expected}", int(wrong[0])
            )
        return numbers

    def _example(self) -> str:
        from datetime import datetime

        return datetime(2024, 12, 31).strftime(self.formats[0] if self.formats[0] != "ISO" else "%Y-%m-%d")


@dataclass(frozen=True)
class TablePlan:
    """What becomes of the columns of a table.

    Attributes
    ----------
    columns : tuple of ColumnPlan
        All columns but label and query, in the order of the training data.
    label, query : str or None
        Names of these columns.
    label_decimal : {".", ","}
        Decimal separator of labels.
    label_is_number : bool
        Whether labels that are read as text are numbers, and words among them missing.
    scaling : {"standard", "range", "none"}
        Scaling of numbers and of parts of dates.
    names : tuple of str
        All columns of the training data in their order.
    has_header : bool
        Whether the columns have names; otherwise they are numbered.
    """

    columns: tuple[ColumnPlan, ...]
    label: str | None = None
    query: str | None = None
    label_decimal: str = "."
    label_is_number: bool = False
    scaling: str = "standard"
    names: tuple[str, ...] = ()
    has_header: bool = True

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling must be {', '.join(SCALINGS)}, not {self.scaling!r}")

    @property
    def features(self) -> tuple[ColumnPlan, ...]:
        """The columns that are not left out."""
        return tuple(column for column in self.columns if column.type != "ignored")

    @property
    def text(self) -> frozenset[str]:
        """The columns that a reader must not take for numbers."""
        found = {column.name for column in self.features if column.type != "number" or column.decimal == ","}
        return frozenset(found | ({self.label} if self.label is not None and self.label_decimal == "," else set()))

    def values(self, table: ColumnTable) -> NDArray[Any]:
        """Return the values of the features as an array with a column for each: float64 if none is a category.

        The order of the columns of the table does not matter, and it may have others.
        """
        table = self.named(table)
        self._check_columns(table)
        columns = [column.values(table) for column in self.features]
        kind = object if any(values.dtype.kind == "O" for values in columns) else np.float64
        X = np.empty((len(table), len(columns)), dtype=kind)
        for place, values in enumerate(columns):
            X[:, place] = values
        return X

    def named(self, table: ColumnTable) -> ColumnTable:
        """Return a table without header with the names of the training data, whose label it may lack."""
        if self.has_header or table.has_header:
            return table
        names = list(self.names)
        if len(table.columns) == len(names) - 1 and self.label is not None:
            names.remove(self.label)
        if len(table.columns) != len(names):
            raise table.error(f"{len(table.columns)} columns, but the training data have {len(self.names)}")
        return replace(table, columns=dict(zip(names, table.columns.values(), strict=True)))

    def labels(self, table: ColumnTable) -> NDArray[Any] | None:
        """Return the labels as float64 or as strings, nan or empty if they are missing; None without them."""
        table = self.named(table)
        if self.label is None or self.label not in table.columns:
            return None
        values = table.columns[self.label]
        if values.dtype.kind == "M":
            raise table.error(f"the labels in column {self.label!r} are dates; choose another column with --label")
        if values.dtype.kind == "O" and self.label_is_number:
            return converted(values, lambda cell: to_number(cell, self.label_decimal))[0]
        return values

    def queries(self, table: ColumnTable) -> NDArray[Any] | None:
        """Return the query of each row; None without them."""
        if self.query is None:
            return None
        if self.query not in table.columns:
            raise table.error(f"there is no query column {self.query!r}")
        values = table.columns[self.query]
        return values.astype(str) if values.dtype.kind == "O" else values

    def to_json(self) -> str:
        """Return the plan as text for a model file."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TablePlan:
        """Return the plan of `to_json`; raise ValueError if it is none."""
        try:
            given = json.loads(text)
            columns = tuple(ColumnPlan(**_tuples(column, ColumnPlan)) for column in given.pop("columns"))
            return cls(columns, **_tuples(given, cls))
        except (TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"the columns of a table are described wrongly: {error}") from error

    def _check_columns(self, table: ColumnTable) -> None:
        missing = [column.name for column in self.features if column.name not in table.columns]
        if missing:
            names = ", ".join(map(repr, missing))
            what = "there is no column" if len(missing) == 1 else "there are no columns"
            raise table.error(f"{what} {names}, which the model needs; the columns are {listed(list(table.columns))}")


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as text: integers without a point, empty for missing ones."""
    if values.dtype.kind == "O":
        return values
    if values.dtype.kind == "M":
        cells = ["" if np.isnat(value) else str(value) for value in values]
    else:
        cells = ["" if np.isnan(value) else f"{value:.17g}" for value in values]
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def _tuples(values: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Return the fields of a plan, lists as tuples; JSON and TOML have no tuples."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} is no table of fields")
    known = {field.name for field in fields(kind)}
    for name in values:
        if name not in known:
            raise TypeError(f"there is no field {name!r}; the fields are {', '.join(sorted(known))}")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _check(column: str, field: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"column {column!r}: {field} must be {', '.join(known)}, not {value!r}")
