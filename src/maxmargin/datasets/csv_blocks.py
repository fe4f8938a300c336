"""Parse blocks of lines of a CSV file with pyarrow, if it is installed.

pyarrow reads numbers as Python does, rounded correctly, an order of magnitude faster than Python's csv module, but it
accepts text after a closing quote, and its errors know no line number. So a block is either parsed here without any
doubt, or not at all: `parse_block` returns None, and `csv_rows` reads the block or explains what is wrong with it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats
from maxmargin.datasets.csv_lines import CsvBlock, Row

#: Number of bytes from which pyarrow is imported; the csv module reads fewer in less time than the import takes.
MIN_BYTES = 1 << 20

#: Number of bytes that pyarrow can hold in a block.
MAX_BYTES = 1 << 30

#: Number of bytes that one of pyarrow's threads takes at once, …
PART_BYTES = 1 << 20

#: … if it has at least this number of lines (pyarrow refuses a line that is longer than a part).
PART_LINES = 64


class ParsedRows(NamedTuple):
    """The values of a block of lines: numbers, strings by column, and the line number of each row."""

    numbers: Floats
    strings: dict[int, Row]
    lines: NDArray[np.int64]


def parse_block(
    block: CsvBlock,
    delimiter: str,
    width: int,
    numeric: Sequence[int],
    strings: Sequence[int],
    parallel: bool = True,
    missing: Sequence[str] = (),
) -> ParsedRows | None:
    """Parse a block of lines with `width` cells each; return None if it requires `csv_rows`.

    Parameters
    ----------
    block : CsvBlock
    delimiter : str
    width : int
    numeric, strings : sequence of int
        Positions of the columns of numbers and of strings; others are ignored.
    parallel : bool
        Whether columns are converted by all cores.
    missing : sequence of str
        Cells that are read as missing: nan among numbers, empty text. By default a missing cell requires `csv_rows`.
    """
    if not _has_pyarrow(len(block.text)) or not _is_regular(block.text, delimiter):
        return None
    table = _read_table(block, delimiter, width, numeric, strings, parallel, missing)
    lines = None if table is None else _line_numbers(block, table.num_rows)
    if lines is None:
        return None
    numbers = np.empty((len(lines), len(numeric)))
    for place in range(len(numeric)):
        numbers[:, place] = table.column(place).to_numpy()
    if np.isinf(numbers).any() or (not missing and np.isnan(numbers).any()):
        return None
    found: dict[int, Row] = {}
    for place, column in enumerate(strings, len(numeric)):
        cells = _cells(table.column(place).combine_chunks(), bool(missing))
        if cells is None:
            return None
        found[column] = cells
    return ParsedRows(numbers, found, lines)


def _has_pyarrow(size: int) -> bool:
    """Return whether a block of this size is worth the import of pyarrow, and pyarrow is installed."""
    if size > MAX_BYTES or (size < MIN_BYTES and "pyarrow.csv" not in sys.modules):
        return False
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


def _is_regular(text: bytes, delimiter: str) -> bool:
    """Return whether pyarrow accepts no more of a text than `csv_rows`, and the same delimiters."""
    if len(delimiter) > 1 or not delimiter.isascii() or text.startswith(b"\xef\xbb\xbf"):
        return False
    return not _may_have_long_cells(text, delimiter) and _has_regular_quotes(text, delimiter)


def _may_have_long_cells(text: bytes, delimiter: str) -> bool:
    """Return whether a cell may be longer than the csv module accepts."""
    # Such a cell contains one of these pieces, which has neither a line end nor, unless it is in quotes, a delimiter.
    size = max(csv.field_size_limit() // 2, 1)
    ends = [b"\n", b"\r"] if b'"' in text else [b"\n", b"\r", delimiter.encode()]
    pieces = range(0, len(text) - size + 1, size)
    return any(all(text.find(end, start, start + size) < 0 for end in ends) for start in pieces)


def _has_regular_quotes(text: bytes, delimiter: str) -> bool:
    """Return whether all quotes enclose whole cells without line ends, or are doubled within such cells."""
    if b'"' not in text:
        return True
    characters = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    if len(quotes) % 2:
        return False
    # A doubled quote closes and opens again.
    ends = np.array([*b'"\r\n', ord(delimiter)], np.uint8)
    outside = characters[np.concatenate([quotes[::2] - 1, quotes[1::2] + 1])]
    line_ends = np.flatnonzero((characters == ord("\n")) | (characters == ord("\r")))
    return bool(np.isin(outside, ends).all() and not (np.searchsorted(quotes, line_ends) % 2).any())


def _read_table(
    block: CsvBlock,
    delimiter: str,
    width: int,
    numeric: Sequence[int],
    strings: Sequence[int],
    parallel: bool,
    missing: Sequence[str],
) -> Any:
    """Return the columns of numbers, then those of strings, as a table of pyarrow; None if it finds an error."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    size = len(block.text)
    part = PART_BYTES if block.n_lines * PART_BYTES >= PART_LINES * size else size
    names = [str(column) for column in range(width)]
    types = {names[column]: pa.float64() for column in numeric} | {names[column]: pa.string() for column in strings}
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(block.text),
            arrow_csv.ReadOptions(column_names=names, use_threads=parallel, block_size=part),
            arrow_csv.ParseOptions(delimiter=delimiter),
            arrow_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=list(missing)),
        )
    except pa.ArrowInvalid:
        return None


def _line_numbers(block: CsvBlock, rows: int) -> NDArray[np.int64] | None:
    """Return the line number of each row, which are the lines that are not empty."""
    if rows == block.n_lines:
        return np.arange(block.first_line, block.first_line + rows)
    positions = np.flatnonzero([bool(line) for line in block.text.splitlines()])
    return block.first_line + positions if len(positions) == rows else None


def _cells(column: Any, may_be_missing: bool) -> Row | None:
    """Return the cells of a column of strings; None if one is missing and may not be."""
    encoded = column.dictionary_encode()
    values = [value.strip() for value in encoded.dictionary.to_pylist()]
    if not may_be_missing and ("" in values or "?" in values):
        return None
    return [values[place] for place in encoded.indices.to_pylist()]
