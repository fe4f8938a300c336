"""Labels, targets and sample weights that are given apart from the table: arrays, .npy files, and lists of those."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin.blocks.file_arrays import FileArray


class Column:
    """One value for each row of a table, read by ranges of rows."""

    def __init__(self, given: Any, what: str, n_rows: int, table: str) -> None:
        self._parts = [_vector(part, what) for part in (given if _is_list_of_parts(given) else [given])]
        self._ends = np.cumsum([len(part) for part in self._parts])
        if self._ends[-1] != n_rows:
            raise ValueError(f"{what} has {self._ends[-1]} values, but {table} has {n_rows} rows")

    def rows(self, first: int, last: int) -> Any:
        """Return the values of a range of rows."""
        pieces, begin = [], 0
        for part, end in zip(self._parts, self._ends.tolist(), strict=True):
            if first < end and begin < last:
                pieces.append(np.asarray(part[max(first - begin, 0) : last - begin]).reshape(-1))
            begin = end
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def check_unchanged(self) -> None:
        """Raise if a file is not as it was."""
        for part in self._parts:
            if isinstance(part, FileArray):
                part.check_unchanged()


def _vector(given: Any, what: str) -> Any:
    """Return values of one dimension; a file is read by ranges."""
    if isinstance(given, str | os.PathLike):
        values: Any = FileArray(given)
        what = f"{what} ({values.name})"
    else:
        values = np.asarray(given)
    if len(values.shape) != 1 and not (len(values.shape) == 2 and values.shape[1] == 1):
        raise ValueError(f"{what} must have one dimension, not the shape {tuple(values.shape)}")
    return values


def _is_list_of_parts(given: Any) -> bool:
    """Whether a list holds arrays or files, not single labels: these may be strings, too."""
    return isinstance(given, Sequence) and bool(given) and all(_is_part(item) for item in given)


def _is_part(item: Any) -> bool:
    if isinstance(item, str):
        return item.endswith(".npy")
    return isinstance(item, os.PathLike) or (isinstance(item, np.ndarray) and item.ndim > 0)
