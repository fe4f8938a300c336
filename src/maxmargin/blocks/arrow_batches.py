"""Columns of Parquet and Arrow files in tables of a number of rows, which pyarrow reads batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.datasets.errors import DataFileError

#: Bytes of a column that are read at once: without a limit, the compressed columns of a whole row group are.
BUFFER_BYTES = 2**16

#: Rows that are read at once: few enough that they stay in the cache of the processor while their columns are written
#: to the rows of a block, and that they take little memory beside it.
BATCH_ROWS = 2**13

#: First bytes of a Parquet file, and of an Arrow file; an Arrow stream has neither.
PARQUET, ARROW = b"PAR1", b"ARROW1"


class ArrowFile:
    """A file of a schema and rows; subclasses read its batches.

    Attributes
    ----------
    name : str
    schema : pyarrow.Schema
    n_rows : int
    stamp : FileStamp
    """

    schema: Any
    n_rows: int

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.stamp = FileStamp.of(path)
        with self._explained():
            self._open()

    def tables(self, columns: Sequence[int], sizes: Iterable[int] = repeat(BATCH_ROWS)) -> Iterator[dict[int, Any]]:
        """Yield the values of columns, by position, in tables of these numbers of rows; the last one may have fewer."""
        import pyarrow as pa

        order, wanted = sorted(set(columns)), iter(sizes)
        held: list[Any] = []
        count, size = 0, next(wanted)
        with self._explained():
            for batch in self._batches(order):
                held.append(batch)
                count += batch.num_rows
                while count >= size:
                    table = pa.Table.from_batches(held)
                    yield _columns(table.slice(0, size), order)
                    held, count = table.slice(size).to_batches(), count - size
                    size = next(wanted, self.n_rows)
            if count:
                yield _columns(pa.Table.from_batches(held), order)

    def _open(self) -> None:
        """Find the schema and the number of rows."""
        raise NotImplementedError

    def _batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Yield record batches of columns."""
        raise NotImplementedError

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Replace errors of pyarrow by one that names the file."""
        import pyarrow as pa

        try:
            yield
        except pa.ArrowMemoryError as error:
            raise MemoryError(f"{self.name}: a batch does not fit into memory; write smaller row groups") from error
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError, KeyError) as error:
            reason = (str(error).splitlines() or ["damaged"])[0]
            raise DataFileError(self.name, f"truncated or not a valid file: {reason}") from error


class ParquetTable(ArrowFile):
    """A Parquet file."""

    def _open(self) -> None:
        with self._reader() as file:
            self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows

    def _batches(self, columns: Sequence[int]) -> Iterator[Any]:
        names = self.schema.names
        with self._reader() as file:
            if len(set(names)) == len(names):
                yield from file.iter_batches(
                    batch_size=BATCH_ROWS, columns=[names[at] for at in columns], use_threads=True
                )
            else:  # columns of the same name are selected by position
                for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=True):
                    yield batch.select(list(columns))

    def _reader(self) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(self.name, buffer_size=BUFFER_BYTES, pre_buffer=False)


class ArrowTable(ArrowFile):
    """An Arrow file (Feather) or an Arrow stream."""

    def _open(self) -> None:
        with self._reader() as reader:
            self.schema = reader.schema
        self.n_rows = sum(batch.num_rows for batch in self._batches([0])) if len(self.schema) else 0

    def _batches(self, columns: Sequence[int]) -> Iterator[Any]:
        with self._reader(columns) as reader:
            if hasattr(reader, "num_record_batches"):
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
            else:
                yield from reader

    @contextmanager
    def _reader(self, columns: Sequence[int] | None = None) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import ipc

        options = ipc.IpcReadOptions(included_fields=None if columns is None else list(columns), use_threads=True)
        with open(self.name, "rb") as start:
            is_file = start.read(len(ARROW)) == ARROW
        with pa.memory_map(self.name) as stream:
            yield (ipc.open_file if is_file else ipc.open_stream)(stream, options=options)


def open_arrow_file(path: Path) -> ArrowFile:
    """Return the reader of a Parquet or Arrow file."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{path}: this format requires pyarrow: pip install 'maxmargin[parquet]'") from error
    with open(path, "rb") as stream:
        start = stream.read(len(PARQUET))
    return ParquetTable(path) if start == PARQUET else ArrowTable(path)


def _columns(table: Any, order: Sequence[int]) -> dict[int, Any]:
    table.validate(full=True)  # strings of a damaged file may lie outside its memory
    return {column: table.column(at) for at, column in enumerate(order)}
