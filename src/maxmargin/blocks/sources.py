"""Sources of rows: what a table is read from, before blocks are validated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

#: Size of the values of a block in bytes, unless the user names a number of rows: small beside the memory of any
#: computer, and large enough that the Python code of a block takes no time beside its values.
BLOCK_BYTES = 2**25

#: Rows of a block by default if rows have few values, or none.
MAX_BLOCK_ROWS = 2**20

#: Number types that are used as they are.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


class Rows(NamedTuple):
    """Consecutive rows as a source gives them: samples, labels, weights, and the name of the part they are from."""

    X: Any
    y: Any
    sample_weight: Any
    part: str


class RowError(Exception):
    """A row that cannot be read, of the block that is being read; `row` is None if it concerns the whole block."""

    def __init__(self, part: str, problem: str, row: int | None = None) -> None:
        super().__init__(problem)
        self.part, self.problem, self.row = part, problem, row


class Source(ABC):
    """A table that can be read several times.

    Attributes
    ----------
    name : str
        For messages.
    n_rows, n_features : int
    dtype : float32 or float64
        Of the values after conversion.
    is_sparse, has_labels, has_weights : bool
    has_open_width : bool
        Whether `n_features` is only the largest index that occurs, and may be increased.
    """

    name: str
    n_rows: int
    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool
    has_labels: bool = False
    has_weights: bool = False
    has_open_width: bool = False

    @abstractmethod
    def read(self, block_rows: int | None) -> Iterator[Rows]:
        """Read all rows once, in blocks of `block_rows` rows or of the default size."""

    def check_unchanged(self) -> None:
        """Raise if a file is not as it was when the source was opened; data in memory have nothing to check."""
        return


class JoinedSource(Source):
    """Several sources, one after another."""

    def __init__(self, parts: Sequence[Source]) -> None:
        if all(part.has_open_width for part in parts):
            for part in parts:
                part.n_features = max(other.n_features for other in parts)
        first = parts[0]
        self.name = f"{first.name} and {len(parts) - 1} more" if len(parts) > 1 else first.name
        self.n_rows = sum(part.n_rows for part in parts)
        self.n_features, self.dtype, self.is_sparse = first.n_features, first.dtype, first.is_sparse
        self.has_labels, self.has_weights = first.has_labels, first.has_weights
        self._parts = parts
        for number, part in enumerate(parts):
            for found, expected in zip(_properties(part), _properties(first), strict=True):
                if found != expected:
                    raise ValueError(
                        f"the parts of a table must agree, but part {number} ({part.name}) has {found} and part 0 "
                        f"({first.name}) has {expected}"
                    )

    def read(self, block_rows: int | None) -> Iterator[Rows]:
        for part in self._parts:
            yield from part.read(block_rows)

    def check_unchanged(self) -> None:
        for part in self._parts:
            part.check_unchanged()


def rows_per_block(row_bytes: float) -> int:
    """Return the default number of rows of a block, for rows of a size in bytes."""
    return int(min(MAX_BLOCK_ROWS, max(1, BLOCK_BYTES // max(1, row_bytes))))


def float_type(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the type that values are converted to: float32 and float64 are kept, other numbers become float64."""
    native = dtype.newbyteorder("=")
    if native in FLOATS:
        return native
    if dtype.kind not in "biuf":
        raise ValueError(f"{name}: the values must be numbers, not of type {dtype}")
    return FLOATS[0]


def check_shape(shape: Sequence[int], name: str) -> tuple[int, int]:
    """Return the shape of a table with at least one row and one column, or raise."""
    if len(shape) != 2:
        raise ValueError(f"{name}: a table has two dimensions, rows and columns, not the shape {tuple(shape)}")
    rows, columns = (int(size) for size in shape)
    if rows < 1 or columns < 1:
        raise ValueError(f"{name}: the table is empty: {rows} rows with {columns} columns")
    return rows, columns


def _properties(part: Source) -> tuple[str, ...]:
    """Return what all parts of a table have in common."""
    return (
        f"{part.n_features} columns",
        f"{part.dtype} values",
        "sparse rows" if part.is_sparse else "dense rows",
        "labels" if part.has_labels else "no labels",
        "sample weights" if part.has_weights else "no sample weights",
    )
