"""A matrix that the user has computed, in memory or in a memory-mapped file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from maxmargin.matrices.symmetric_matrix import Floats, Indices, product_by_blocks


@dataclass(frozen=True)
class PrecomputedMatrix:
    """The rows and columns `index` of a square array of values."""

    values: NDArray[np.floating]
    index: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != self.values.shape[1]:
            shape = " x ".join(map(str, self.values.shape))
            raise ValueError(
                f"a precomputed kernel matrix must be square, one row and one column per sample; this one is {shape}"
            )
        if not len(self.index):
            object.__setattr__(self, "index", np.arange(len(self.values)))

    @property
    def size(self) -> int:
        return len(self.index)

    @property
    def rows_at_once(self) -> int:
        return 1

    def diagonal(self) -> Floats:
        return np.asarray(self.values[self.index, self.index], dtype=np.float64)

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        picked = self.values[self.index[rows]][:, self.index[columns]]
        return np.ascontiguousarray(picked, dtype=np.float64)

    def matvec(self, vector: Floats) -> Floats:
        return product_by_blocks(self, np.asarray(vector))
