"""Open a table of any kind as blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.array_sources import ArraySource
from maxmargin.blocks.checked_blocks import CheckedBlocks
from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.iterable_source import IterableSource
from maxmargin.blocks.mapped_arrays import MappedArray
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.blocks.sources import JoinedSource, Source


def open(source: Any, y: Any = None, sample_weight: Any = None, *, block_rows: int | None = None) -> RowBlocks:
    """Open a table as blocks of rows, which need not fit into memory together.

    Parameters
    ----------
    source : array, sparse matrix, path, list of those, iterable or function
        What the rows are read from.
    y, sample_weight : array, path of an .npy file, list of those, or None
        One value for each row, instead of those of the source.
    block_rows : int, optional
        Number of rows of a block; by default about 32 MB of values.

    Returns
    -------
    blocks : RowBlocks
    """
    if block_rows is not None and not (isinstance(block_rows, Integral) and block_rows >= 1):
        raise ValueError(f"block_rows must be a whole number of at least 1, or None, not {block_rows!r}")
    if isinstance(source, RowBlocks) and y is None and sample_weight is None and block_rows is None:
        return source
    rows = None if block_rows is None else int(block_rows)
    return CheckedBlocks(_source(source), y, sample_weight, rows)


def _source(given: Any) -> Source:
    if isinstance(given, str | os.PathLike):
        return _file(Path(given))
    if isinstance(given, np.ndarray):
        return ArraySource(given, "the array")
    if sparse.issparse(given):
        return CsrSource.of(given, "the sparse matrix")
    # Collections of Dask are recognised here, before the objects of a user: they can be iterated over, but by rows.
    if isinstance(given, Sequence):
        return _joined(given)
    if hasattr(given, "__iter__") or callable(given):
        return IterableSource(given)
    raise ValueError(f"a table cannot be read from {type(given).__name__}")


def _file(path: Path) -> Source:
    return ArraySource(MappedArray(path), str(path))


def _joined(given: Sequence[Any]) -> Source:
    if not given:
        raise ValueError("the list of tables is empty")
    for number, part in enumerate(given):
        if not (isinstance(part, str | os.PathLike | np.ndarray) or sparse.issparse(part)):
            raise ValueError(
                "a list of tables must hold arrays, sparse matrices or paths, but item "
                f"{number} is of type {type(part).__name__}; a single table of numbers is np.asarray(rows)"
            )
    return JoinedSource([_source(part) for part in given])
