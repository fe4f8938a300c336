"""Samples in Parquet and Arrow files, read and written with pyarrow (an optional dependency).

Numeric and boolean columns are features, string and dictionary columns are categorical; labels and queries are selected
by name as in CSV files. Missing values are an error that names the sample.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets.categorical_columns import non_numeric_message
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.column_table import ColumnTable, checked_names, is_missing, text_array
from maxmargin.datasets.compression import TOO_LARGE
from maxmargin.datasets.csv_files import table_columns
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.exact_numbers import INEXACT, inexact_position, to_float64
from maxmargin.datasets.samples import Samples
from maxmargin.datasets.table import Table
from maxmargin.resources import check_memory, format_bytes


class CellError(ValueError):
    """A value that cannot be used; `sample` is the index of the sample, None if it concerns the whole column."""

    def __init__(self, message: str, sample: int | None = None) -> None:
        super().__init__(message)
        self.sample = sample


def read_parquet(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from a Parquet file."""
    return _samples(name, _checked(name, _parquet_table, stream), selection)


def read_arrow(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from an Arrow file (Feather) or Arrow stream."""
    return _samples(name, _checked(name, _arrow_table, stream), selection)


def read_arrow_columns(stream: IO[bytes], name: str, kind: str) -> ColumnTable:
    """Return the columns of a Parquet or Arrow file as they come, with missing cells."""
    table = _checked(name, _parquet_table if kind == "parquet" else _arrow_table, stream)
    columns: dict[str, NDArray[Any]] = {}
    unusable: dict[str, str] = {}
    names = checked_names(name, table.column_names)
    for column, values in zip(names, table.columns, strict=True):
        found = _as_it_comes(values)
        if found is None:
            unusable[column] = str(values.type)
        else:
            columns[column] = found
    if not columns:
        raise DataFileError(name, "no column has numbers, dates or text")
    return ColumnTable(name, columns, unusable=unusable)


def _as_it_comes(values: Any) -> NDArray[Any] | None:
    """Return a column as numbers, dates or text with missing cells; None if it is neither."""
    import pyarrow as pa
    import pyarrow.types as kinds

    values = values.combine_chunks()
    if kinds.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if is_text(kind):
        return text_array([cell if (cell := (value or "").strip()) and not is_missing(cell) else ""
                           for value in values.to_pylist()])  # fmt: skip
    if kinds.is_date(kind) or kinds.is_timestamp(kind):
        dates: NDArray[Any] = values.cast(pa.timestamp("s"), safe=False).to_numpy(zero_copy_only=False)
        return dates
    if kinds.is_integer(kind):
        whole = values.drop_null().to_numpy()
        if inexact_position(whole) is not None:  # such as 64-bit keys, which float64 would confuse
            return text_array(["" if value is None else str(value) for value in values.to_pylist()])
    if kinds.is_boolean(kind):
        values = values.cast(pa.int8())
    elif not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)):
        return None
    numbers: NDArray[Any] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _parquet_table(stream: IO[bytes], name: str) -> Any:
    from pyarrow import parquet

    file = parquet.ParquetFile(stream)
    check_memory(_parquet_bytes(file.metadata), f"{name}: {file.metadata.num_rows:,} samples", TOO_LARGE)
    return file.read()


def _arrow_table(stream: IO[bytes], name: str) -> Any:
    import pyarrow as pa
    from pyarrow import ipc

    data = stream.read()
    if data[:6] == b"ARROW1":
        file = ipc.open_file(data)
        schema, batches = file.schema, (file.get_batch(number) for number in range(file.num_record_batches))
    else:
        schema, batches = (reader := ipc.open_stream(data)).schema, iter(reader)
    found, size = [], 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        check_memory(size, f"{name}, of which {format_bytes(size)} are read,", TOO_LARGE)
    return pa.Table.from_batches(found, schema)


def _parquet_bytes(metadata: Any) -> int:
    """Return the memory for the decompressed columns of a file and for their float64 values."""
    groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
    values = 9 * metadata.num_rows * metadata.num_columns
    return int(max(values, sum(group.total_byte_size for group in groups)) + values)


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


def _checked(name: str, read: Any, stream: IO[bytes]) -> Any:
    """Return the table that a function reads, or raise an error that names the file."""
    _require_pyarrow(name)
    import pyarrow as pa

    try:
        table = read(stream, name)
        table.validate(full=True)
    except pa.ArrowMemoryError as error:
        raise MemoryError from error  # the caller explains it
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataFileError(name, f"not a valid file: {str(error).splitlines()[0]}") from error
    if not table.num_rows or not table.num_columns:
        raise DataFileError(name, f"the table is empty: {table.num_rows} samples with {table.num_columns} columns")
    return table


def _samples(name: str, table: Any, selection: ColumnSelection) -> Samples:
    roles = selection.resolve(name, table.column_names, table.num_columns)
    categorical = () if isinstance(selection.categorical, str) else tuple(selection.categorical)
    strings: dict[int, list[str]] = {}
    numeric: list[int] = []
    columns = []
    for position in (*roles.features, roles.label, roles.query):
        if position is None:
            continue
        is_feature = position in roles.features and roles.names[position] not in categorical
        values = _column(name, roles.names[position], table.column(position), is_feature)
        if not is_feature or isinstance(values, list):
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


def _column(name: str, column: str, values: Any, is_feature: bool) -> Any:
    """Return the values of a column, or raise an error that names the file and the sample."""
    try:
        return column_values(column, values, is_feature)
    except CellError as error:
        at = "" if error.sample is None else f"sample {error.sample + 1}: "
        raise DataFileError(name, f"{at}{error}") from error


def column_values(column: str, values: Any, is_feature: bool) -> Any:
    """Return the values of a column: numbers as an array, strings as a list; integers of features must be exact."""
    import pyarrow as pa

    values = without_dictionary(column, values)
    kind = values.type
    if is_text(kind):
        return [value.strip() for value in values.to_pylist()]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
            or pa.types.is_decimal(kind)):  # fmt: skip
        raise CellError(f"column {column!r} has type {kind}, neither numbers nor strings; leave it out (--ignore)")
    given = values.cast(pa.int8() if pa.types.is_boolean(kind) else kind).to_numpy()
    inexact = inexact_position(given) if is_feature else None
    if inexact is not None:
        raise CellError(f"column {column!r} has {given[inexact]}, {INEXACT}", inexact[0])
    numbers = to_float64(given)
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise CellError(f"{numbers[row]} in column {column!r} is not finite", row)
    return numbers


def without_dictionary(column: str, values: Any) -> Any:
    """Return the values of a column, those of a dictionary instead of its codes, or raise if some are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise CellError(f"the value of column {column!r} is missing; fill it in", row)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
        if values.null_count:
            raise CellError(f"column {column!r} has a category that is missing; fill it in")
    return values


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is one of strings."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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
