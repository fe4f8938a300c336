"""Arrays in memory, memory maps and .npy files as sources of rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.file_stamps import FileStamp
from maxmargin.blocks.sources import Rows, Source, check_shape, float_type, rows_per_block


class ArraySource(Source):
    """An array, an ``np.memmap`` or the array of a file, of shape (rows, columns); optionally labels and weights."""

    is_sparse = False

    def __init__(
        self, X: np.ndarray[Any, Any] | FileArray, name: str, y: Any = None, sample_weight: Any = None
    ) -> None:
        self.name = name
        self.n_rows, self.n_features = check_shape(X.shape, name)
        self.dtype = float_type(X.dtype, name)
        self._X, self._y, self._weight = X, y, sample_weight
        self.origin: Sequence[FileStamp] = ()  # of the files that the arrays were converted from
        self.has_labels, self.has_weights = y is not None, sample_weight is not None
        if y is not None and tuple(y.shape) != (self.n_rows,):
            raise ValueError(f"{name}: y must have the shape ({self.n_rows},), not {tuple(y.shape)}")

    def read(self, block_rows: int | None) -> Iterator[Rows]:
        step = block_rows or rows_per_block(self.n_features * self.dtype.itemsize)
        for first in range(0, self.n_rows, step):
            y, weight = (None if one is None else one[first : first + step] for one in (self._y, self._weight))
            yield Rows(self._X[first : first + step], y, weight, self.name)

    def check_unchanged(self) -> None:
        for stamp in self.origin:
            if os.path.exists(stamp.path):  # the arrays are complete without it
                stamp.check()
        if isinstance(self._X, FileArray):
            self._X.check_unchanged()
        elif isinstance(self._X, np.memmap):
            _check_size(self._X, self.name)


def _check_size(X: np.memmap[Any, Any], name: str) -> None:
    """Raise if the file of a memory map is shorter than the map: reading it would end the process.

    The modification time of a map that the user may write to says nothing.
    """
    path = X.filename
    if path is not None and os.path.exists(path) and os.path.getsize(path) < X.offset + X.nbytes:
        raise ValueError(f"{name}: the file {os.fspath(path)} was truncated after it was mapped into memory")
