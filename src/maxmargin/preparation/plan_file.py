"""The plan of a table as a TOML file: what was found, to be changed and given back."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from maxmargin.datasets import DataFileError
from maxmargin.datasets.errors import printable
from maxmargin.preparation.column_plan import ColumnPlan, TablePlan
from maxmargin.storage.output_files import write_atomically

#: The fields of a column by its type, in the order in which they are written.
FIELDS = {
    "number": ("decimal", "text_is_missing"),
    "date": ("formats", "parts", "cyclic", "text_is_missing"),
    "category": ("min_count",),
    "ignored": (),
}

#: The fields of the table.
TABLE_FIELDS = ("label", "query", "scaling")


class GivenPlan(NamedTuple):
    """What a file says about a table: label, query and scaling (None: nothing), and the fields of columns by name."""

    label: str | None
    query: str | None
    scaling: str | None
    columns: dict[str, dict[str, Any]]


def read_plan(path: str | os.PathLike[str]) -> GivenPlan:
    """Return what a TOML file says about the columns of a table.

    Raises
    ------
    DataFileError
        If the file is not TOML or has fields that no plan has.
    """
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataFileError(path, f"it is not a TOML file: {error}") from error
    columns = given.pop("columns", {})
    unknown = [name for name in given if name not in TABLE_FIELDS]
    if unknown or not isinstance(columns, dict):
        shown = f"{unknown[0]!r} is unknown; " if unknown else ""
        raise DataFileError(path, f"{shown}it may have {', '.join(TABLE_FIELDS)} and a table [columns.NAME] per column")
    checked = {}
    for name, fields in columns.items():
        if isinstance(fields, str):
            fields = {"type": fields}
        checked[name] = _checked(path, name, fields)
    for name, value in given.items():
        if not isinstance(value, str):
            raise DataFileError(path, f"{name} must be text, not {value!r}")
    return GivenPlan(given.get("label"), given.get("query"), given.get("scaling"), checked)


def _checked(path: str | os.PathLike[str], name: str, fields: Any) -> dict[str, Any]:
    """Return the fields of a column, lists as tuples."""
    known = {field for several in FIELDS.values() for field in several} | {"type"}
    if not isinstance(fields, dict) or not set(fields) <= known:
        wrong = sorted(set(fields) - known) if isinstance(fields, dict) else [repr(fields)]
        raise DataFileError(
            path, f"column {name!r}: {wrong[0]} is unknown; the fields are type, {', '.join(sorted(known - {'type'}))}"
        )
    values: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value for field, value in fields.items()
    }
    try:
        ColumnPlan(name, **{"type": "number", **values})
    except (ValueError, TypeError) as error:
        raise DataFileError(path, str(error)) from error
    return values


def write_plan(plan: TablePlan, path: str | os.PathLike[str]) -> None:
    """Write a plan as a TOML file for `read_plan`; what was found in each column is a comment."""
    lines = [f"{field} = {_toml(getattr(plan, field))}" for field in TABLE_FIELDS if getattr(plan, field) is not None]
    for column in plan.columns:
        lines += ["", f"[columns.{_toml(column.name)}]"]
        lines.append(f"type = {_toml(column.type)}{f'  # {printable(column.reason)}' if column.reason else ''}")
        lines += [f"{field} = {_toml(getattr(column, field))}" for field in FIELDS[column.type]]
    write_atomically(path, ["".join(f"{line}\n" for line in lines).encode()])


def _toml(value: Any) -> str:
    """Return a string, number, truth value or sequence in TOML, whose strings are those of JSON."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
