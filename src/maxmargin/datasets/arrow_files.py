"""Samples in Parquet and Arrow files, read and written with pyarrow (an optional dependency).

Numeric and boolean columns are features, string and dictionary columns are categorical; labels and queries are selected
by name as in CSV files. Missing values are an error that names the sample.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from maxmargin.datasets.categorical_columns import non_numeric_message
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.csv_files import table_columns
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table import Table


def read_parquet(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from a Parquet file."""
    _require_pyarrow(name)
    from pyarrow import parquet

    return _samples(name, lambda: parquet.read_table(stream), selection)


def read_arrow(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from an Arrow file (Feather) or Arrow stream."""
    _require_pyarrow(name)
    from pyarrow import ipc

    data = stream.read()
    opener = ipc.open_file if data[:6] == b"ARROW1" else ipc.open_stream
    return _samples(name, lambda: opener(data).read_all(), selection)


def write_parquet(samples: Samples, stream: IO[bytes]) -> None:
    """Write a Parquet file with a column for each feature and the labels as the last column."""
    _require_pyarrow(samples.name)
    from pyarrow import parquet

    parquet.write_table(_table(samples), stream)


def write_arrow(samples: Samples, stream: IO[bytes]) -> None:
    """Write an Arrow file with a column for each feature and the labels as the last column."""
    _require_pyarrow(samples.name)
    from pyarrow import ipc

    table = _table(samples)
    with ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def _samples(name: str, read: Any, selection: ColumnSelection) -> Samples:
    import pyarrow as pa

    try:
        table = read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataFileError(name, f"not a valid file: {str(error).splitlines()[0]}") from error
    if not table.num_rows or not table.num_columns:
        raise DataFileError(name, f"the table is empty: {table.num_rows} samples with {table.num_columns} columns")
    roles = selection.resolve(name, table.column_names, table.num_columns)
    categorical = () if isinstance(selection.categorical, str) else tuple(selection.categorical)
    strings: dict[int, list[str]] = {}
    numeric: list[int] = []
    columns = []
    for position in (*roles.features, roles.label, roles.query):
        if position is None:
            continue
        values = _values(name, roles.names[position], table.column(position))
        if position not in roles.features or isinstance(values, list) or roles.names[position] in categorical:
            strings[position] = values if isinstance(values, list) else _as_strings(table.column(position), values)
        else:
            numeric.append(position)
            columns.append(values)
    undeclared = {roles.names[column]: cells for column, cells in strings.items()
                  if column in roles.features and roles.names[column] not in categorical}  # fmt: skip
    if undeclared and selection.categorical != "one-hot":
        raise DataFileError(name, non_numeric_message(undeclared))
    numbers = np.column_stack(columns) if columns else np.zeros((table.num_rows, 0))
    return Table(name, roles, numeric, numbers, strings, None).samples(selection)


def _values(name: str, column: str, values: Any) -> Any:
    """Return the values of a column: numbers as an array, strings as a list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise DataFileError(name, f"sample {row + 1}: the value of column {column!r} is missing; fill it in")
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [value.strip() for value in values.to_pylist()]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)):  # fmt: skip
        raise DataFileError(
            name, f"column {column!r} has type {kind}, neither numbers nor strings; leave it out (--ignore)"
        )
    numbers = np.asarray(values.cast(pa.int8() if pa.types.is_boolean(kind) else kind).to_numpy(), dtype=np.float64)
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise DataFileError(name, f"sample {row + 1}: {numbers[row]} in column {column!r} is not finite")
    return numbers


def _as_strings(column: Any, numbers: Any) -> list[str]:
    """Return numbers as strings, integers with all their digits."""
    import pyarrow as pa

    return [str(value) for value in (column.to_pylist() if pa.types.is_integer(column.type) else numbers.tolist())]


def _table(samples: Samples) -> Any:
    import pyarrow as pa

    names, columns = zip(*table_columns(samples), strict=True)
    return pa.table([pa.array(np.ascontiguousarray(column)) for column in columns], names=names)


def _require_pyarrow(name: str) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataFileError(name, "this format requires pyarrow: pip install 'maxmargin[parquet]'") from error
