"""What the columns of a table are: numbers, dates, categories, or nothing that a machine could learn from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets import ColumnTable
from maxmargin.datasets.categorical_columns import listed
from maxmargin.datasets.column_roles import LABEL_NAMES, position_of
from maxmargin.datasets.samples import are_classes
from maxmargin.preparation.column_plan import ColumnPlan, TablePlan
from maxmargin.preparation.column_values import (
    ISO,
    converted,
    find_date_formats,
    is_ambiguous,
    to_days,
    to_number,
)

#: Fraction of the cells that must be numbers or dates for the column to be one; the others then count as missing.
MIN_FRACTION = 0.9

#: Rows from which on a column with different values in all rows is taken for an identifier.
MIN_IDENTIFIER_ROWS = 20

#: Names of identifiers.
IDENTIFIER = re.compile(r"(.*[_ .-])?(id|ids|nr|no|number|key|index|uuid|guid|row|serial)|.*(Id|ID|Nr|No)|id.*no", re.I)

#: A text column is left out if fewer of its rows than this fraction have a frequent value.
MIN_FREQUENT_FRACTION = 0.25

#: A category is frequent if it is in this fraction of the rows, within these limits.
FREQUENT_FRACTION, MIN_COUNT, MAX_COUNT = 0.01, 2, 10


def plan_columns(
    table: ColumnTable,
    *,
    label: str | int | None = "auto",
    query: str | int | None = None,
    ignore: Collection[str | int] = (),
    given: Mapping[str, Mapping[str, Any]] | None = None,
    scaling: str = "standard",
) -> TablePlan:
    r"""Find out what becomes of each column of a table.

    Parameters
    ----------
    table : ColumnTable
    label : str, int or None
        Name or position of the label column; "auto": the column named label, target or class, otherwise the last one;
        "first", "last". None: there are no labels.
    query : str, int or None
        Name or position of the query column, for ranking.
    ignore : collection of str or int
        Columns to leave out.
    given : mapping of str to mapping, optional
        Fields of `ColumnPlan` by name of the column, which are kept as they are; the others are found.
    scaling : {"standard", "range", "none"}

    Returns
    -------
    plan : TablePlan

    Examples
    --------
    >>> import io
    >>> from maxmargin.datasets import read_columns
    >>> from maxmargin.preparation import plan_columns
    >>> lines = b"size;since;town;label", b"1,5;01.02.2020;Ulm;a", b"2;;Bonn;b", b";3.4.2021;Ulm;a"
    >>> table = read_columns(io.BytesIO(b"\n".join(lines)))
    >>> for column in plan_columns(table).columns:
    ...     print(column.name, column.type, column.decimal, *column.formats)
    size number ,
    since date . %d.%m.%Y
    town category .
    """
    names = [*table.columns, *table.unusable]
    given = {} if given is None else given
    for name in given:
        _position(table, names, name)
    query_name = None if query is None else names[_position(table, names, query)]
    ignored = {names[_position(table, names, column)] for column in ignore}
    label_name = _label(table, [name for name in names if name not in ignored and name != query_name], label)
    comma = _uses_commas(table)
    columns = []
    for name in names:
        if name in (label_name, query_name):
            continue
        if name in ignored:
            columns.append(ColumnPlan(name, "ignored", "as asked for"))
        elif name in table.unusable:
            columns.append(ColumnPlan(name, "ignored", f"type {table.unusable[name]}"))
        else:
            columns.append(_plan(name, table.columns[name], comma, dict(given.get(name, {}))))
    if all(column.type == "ignored" for column in columns):
        columns = [_kept(column, table) for column in columns]
    if all(column.type == "ignored" for column in columns):
        raise table.error(f"no column is left to learn from: {'; '.join(f'{c.name}: {c.reason}' for c in columns)}")
    if label_name is not None and label_name in table.unusable:
        raise table.error(f"the label column {label_name!r} has type {table.unusable[label_name]}; choose another one")
    decimal, is_number = _label_numbers(table.columns[label_name], comma) if label_name is not None else (".", False)
    return TablePlan(
        tuple(columns), label_name, query_name, decimal, is_number, scaling, tuple(table.columns), table.has_header
    )


def _plan(name: str, values: NDArray[Any], comma: bool, given: dict[str, Any]) -> ColumnPlan:
    """Return what becomes of a column, of which some fields may be given."""
    found = _found(name, values, comma) if given.get("type") in (None, "ignored") else _of_type(name, values, given)
    found = replace(found, **given)
    if "type" in given and "reason" not in given:
        found = replace(found, reason=f"{found.type}, as asked for")
    return found


def _of_type(name: str, values: NDArray[Any], given: Mapping[str, Any]) -> ColumnPlan:
    """Return what becomes of a column of a type that was asked for."""
    missing = _missing(values)
    if given["type"] == "category":
        return ColumnPlan(name, "category", min_count=_min_count(len(values)), missing=missing)
    if given["type"] == "date":
        cells = set(values.tolist()) - {""} if values.dtype.kind == "O" else set()
        formats = tuple(given.get("formats", ())) or find_date_formats(cells) or (ISO,)
        return ColumnPlan(name, "date", formats=formats, text_is_missing=True, missing=missing)
    decimal = "," if _is_comma_number(values, False) else "."
    if values.dtype.kind == "O":
        _, wrong = converted(values, lambda cell: to_number(cell, given.get("decimal", decimal)))
        missing += len(wrong)
    return ColumnPlan(name, "number", decimal=decimal, text_is_missing=True, missing=missing)


def _found(name: str, values: NDArray[Any], comma: bool) -> ColumnPlan:
    """Return what a column is."""
    missing = _missing(values)
    some = f", {missing:,} missing" if missing else ""
    if missing == len(values):
        return ColumnPlan(name, "ignored", "no values")
    if values.dtype.kind == "M":
        return ColumnPlan(name, "date", f"dates{some}", formats=(ISO,), missing=missing)
    if values.dtype.kind == "f":
        return _found_numbers(name, values, missing, some)
    counts = Counter(values.tolist())
    counts.pop("", None)
    if len(counts) == 1 and not missing:
        return ColumnPlan(name, "ignored", f"constant: {next(iter(counts))!r}")
    return (
        _found_comma_numbers(name, values, counts, comma, missing)
        or _found_dates(name, values, counts, missing)
        or _found_categories(name, counts, len(values), missing, some)
    )


def _found_numbers(name: str, values: NDArray[Any], missing: int, some: str) -> ColumnPlan:
    present = values[~np.isnan(values)]
    low, high = present.min(), present.max()
    if low == high and not missing:
        return ColumnPlan(name, "ignored", f"constant: {low:g}")
    identifier = not missing and _is_identifier(name, present)
    if identifier:
        return ColumnPlan(name, "ignored", "identifier: a different integer in every row")
    return ColumnPlan(name, "number", f"numbers from {low:g} to {high:g}{some}", missing=missing)


def _found_comma_numbers(
    name: str, values: NDArray[Any], counts: Counter[str], comma: bool, missing: int
) -> ColumnPlan | None:
    """Return the plan of a column of text most of whose cells are numbers."""
    decimal = "," if _is_comma_number(values, comma) else "."
    words = [cell for cell in counts if to_number(cell, decimal) is None]
    wrong = sum(counts[word] for word in words)
    present = len(values) - missing
    if wrong > (1 - MIN_FRACTION) * present or any(re.fullmatch(r"0\d+", cell) for cell in counts):
        return None
    numbers, _ = converted(values, lambda cell: to_number(cell, decimal))
    numbers = numbers[~np.isnan(numbers)]
    reason = f"numbers from {numbers.min():g} to {numbers.max():g}"
    if not missing and not wrong and _is_identifier(name, numbers):
        return ColumnPlan(name, "ignored", "identifier: a different integer in every row")
    if missing:
        reason += f", {missing:,} missing"
    if words:
        reason += f", and {wrong:,} words that count as missing: {listed(sorted(words))}"
    return ColumnPlan(name, "number", reason, decimal=decimal, text_is_missing=bool(words), missing=missing + wrong)


def _found_dates(name: str, values: NDArray[Any], counts: Counter[str], missing: int) -> ColumnPlan | None:
    """Return the plan of a column of text most of whose cells are dates."""
    formats = find_date_formats(list(counts))
    if not formats:
        return None
    days, wrong = converted(values, lambda cell: to_days(cell, formats))
    present = len(values) - missing
    if len(wrong) > (1 - MIN_FRACTION) * present:
        return None
    first, last = (np.datetime64(int(extreme), "D") for extreme in (np.nanmin(days), np.nanmax(days)))
    reason = f"dates from {first} to {last} ({', '.join(formats)})"
    if is_ambiguous(list(counts), formats):
        reason += ", where day and month could be the other way round"
    if missing:
        reason += f", {missing:,} missing"
    if len(wrong):
        words = sorted({values[row] for row in wrong})
        reason += f", and {len(wrong):,} other cells that count as missing: {listed(words)}"
    return ColumnPlan(
        name, "date", reason, formats=formats, text_is_missing=bool(len(wrong)), missing=missing + len(wrong)
    )


def _found_categories(name: str, counts: Counter[str], rows: int, missing: int, some: str) -> ColumnPlan:
    least = _min_count(rows)
    present = rows - missing
    frequent = sum(count for count in counts.values() if count >= least)
    if len(counts) == present and present >= MIN_IDENTIFIER_ROWS:
        return ColumnPlan(name, "ignored", f"identifier: different text in every row{some}")
    if frequent < MIN_FREQUENT_FRACTION * present and present >= MIN_IDENTIFIER_ROWS:
        return ColumnPlan(name, "ignored", f"text: {len(counts):,} different values in {present:,} rows{some}")
    common = [word for word, _ in counts.most_common(len(counts))]
    reason = f"{len(counts):,} categories: {listed(common)}{some}"
    return ColumnPlan(name, "category", reason, min_count=least, missing=missing)


def _is_identifier(name: str, numbers: NDArray[Any]) -> bool:
    """Return whether numbers are those of a list: different integers, consecutive or ascending or called so."""
    if len(numbers) < MIN_IDENTIFIER_ROWS or not np.array_equal(numbers, np.rint(numbers)):
        return False
    if len(np.unique(numbers)) < len(numbers):
        return False
    ascending = bool((np.diff(numbers) > 0).all())
    return ascending or numbers.max() - numbers.min() == len(numbers) - 1 or IDENTIFIER.fullmatch(name) is not None


def _kept(column: ColumnPlan, table: ColumnTable) -> ColumnPlan:
    """Return the plan of an identifier of numbers that is kept because there is nothing else."""
    values = table.columns.get(column.name)
    if not column.reason.startswith("identifier") or values is None or values.dtype.kind != "f":
        return column
    return replace(column, type="number", reason="a different integer in every row, but there is no other column")


def _min_count(rows: int) -> int:
    """Return the number of rows from which on a category has a column of its own."""
    return int(np.clip(np.ceil(FREQUENT_FRACTION * rows), MIN_COUNT, MAX_COUNT))


def _missing(values: NDArray[Any]) -> int:
    if values.dtype.kind == "O":
        return int(np.count_nonzero(values == ""))
    return int(np.count_nonzero(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)))


def _uses_commas(table: ColumnTable) -> bool:
    """Return whether any column has numbers that are read with a decimal comma only."""
    return any(_is_comma_number(values, False) for values in table.columns.values())


def _is_comma_number(values: NDArray[Any], default: bool) -> bool:
    """Return whether a decimal comma reads more cells as numbers than a point; `default` if they read the same."""
    if values.dtype.kind != "O":
        return False
    cells = [cell for cell in set(values.tolist()) if cell]
    point, comma = (sum(to_number(cell, decimal) is not None for cell in cells) for decimal in ".,")
    return comma > point or (default and comma == point > 0)


def _label(table: ColumnTable, names: list[str], label: str | int | None) -> str | None:
    """Return the name of the label column."""
    if label is None or not names:
        return None
    if label != "auto":
        return [*table.columns, *table.unusable][_position(table, [*table.columns, *table.unusable], label)]
    by_name = {name.lower(): name for name in names if name in table.columns} if table.has_header else {}
    return next((by_name[name] for name in LABEL_NAMES if name in by_name), names[-1])


def _label_numbers(values: NDArray[Any], comma: bool) -> tuple[str, bool]:
    """Return the decimal separator of labels, and whether labels that are read as text are numbers."""
    decimal = "," if _is_comma_number(values, comma) else "."
    if values.dtype.kind != "O":
        return decimal, False
    numbers, wrong = converted(values, lambda cell: to_number(cell, decimal))
    present = numbers[~np.isnan(numbers)]
    if not len(wrong):
        return decimal, len(present) > 0
    mostly = len(present) >= MIN_FRACTION * (len(present) + len(wrong))
    return decimal, mostly and not are_classes(present)


def _position(table: ColumnTable, names: list[str], column: str | int) -> int:
    return position_of(table.name, names, column)
