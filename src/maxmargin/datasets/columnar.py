"""Samples as Parquet and Arrow files, by pyarrow, which is imported on request.

Columns of numbers and truth values are features, columns of text and of dictionaries are words; roles are given out by
name as in tables of text. Nulls are an error that says where.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from maxmargin.datasets.column_roles import ColumnChoice
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table import Table
from maxmargin.datasets.table_text import table_columns
from maxmargin.datasets.word_columns import refusal


def read_parquet(stream: IO[bytes], name: str, choice: ColumnChoice) -> Samples:
    """Return the samples of a Parquet file."""
    _require_pyarrow(name)
    from pyarrow import parquet

    return _samples(name, lambda: parquet.read_table(stream), choice)


def read_arrow(stream: IO[bytes], name: str, choice: ColumnChoice) -> Samples:
    """Return the samples of an Arrow file (Feather) or an Arrow stream."""
    _require_pyarrow(name)
    from pyarrow import ipc

    data = stream.read()
    opener = ipc.open_file if data[:6] == b"ARROW1" else ipc.open_stream
    return _samples(name, lambda: opener(data).read_all(), choice)


def write_parquet(samples: Samples, stream: IO[bytes]) -> None:
    """Write a column for each feature, and the labels as the last."""
    _require_pyarrow(samples.name)
    from pyarrow import parquet

    parquet.write_table(_table(samples), stream)


def write_arrow(samples: Samples, stream: IO[bytes]) -> None:
    """Write an Arrow file: a column for each feature, and the labels as the last."""
    _require_pyarrow(samples.name)
    from pyarrow import ipc

    table = _table(samples)
    with ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)


def _samples(name: str, read: Any, choice: ColumnChoice) -> Samples:
    import pyarrow as pa

    try:
        table = read()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataFileError(name, f"it cannot be read: {str(error).splitlines()[0]}") from error
    if not table.num_rows or not table.num_columns:
        raise DataFileError(name, f"there are {table.num_rows} samples with {table.num_columns} columns")
    roles = choice.resolve(name, table.column_names, table.num_columns)
    asked = () if isinstance(choice.words, str) else tuple(choice.words)
    words: dict[int, list[str]] = {}
    numeric: list[int] = []
    columns = []
    for position in (*roles.features, roles.label, roles.query):
        if position is None:
            continue
        values = _values(name, roles.names[position], table.column(position))
        if position not in roles.features or isinstance(values, list) or roles.names[position] in asked:
            words[position] = values if isinstance(values, list) else _texts(table.column(position), values)
        else:
            numeric.append(position)
            columns.append(values)
    strange = {roles.names[column]: cells for column, cells in words.items()
               if column in roles.features and roles.names[column] not in asked}  # fmt: skip
    if strange and choice.words != "one-hot":
        raise DataFileError(name, refusal(strange))
    numbers = np.column_stack(columns) if columns else np.zeros((table.num_rows, 0))
    return Table(name, roles, numeric, numbers, words, None).samples(choice)


def _values(name: str, column: str, values: Any) -> Any:
    """Return numbers as an array, and words as a list."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if values.null_count:
        place = pc.index(pc.is_null(values), True).as_py()
        raise DataFileError(name, f"sample {place + 1}: the cell of column {column!r} is missing")
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return [word.strip() for word in values.to_pylist()]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)):  # fmt: skip
        raise DataFileError(
            name, f"column {column!r} is of type {kind}, neither numbers nor words; leave it out (--ignore)"
        )
    numbers = np.asarray(values.cast(pa.int8() if pa.types.is_boolean(kind) else kind).to_numpy(), dtype=np.float64)
    if not np.isfinite(numbers).all():
        place = int(np.argmin(np.isfinite(numbers)))
        raise DataFileError(name, f"sample {place + 1}: {numbers[place]} in column {column!r} is not finite")
    return numbers


def _texts(column: Any, numbers: Any) -> list[str]:
    """Return numbers as text: whole ones with all their digits."""
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
        raise DataFileError(name, "Parquet and Arrow files need the package pyarrow (the extra 'parquet')") from error
