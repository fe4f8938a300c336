"""The matrix K_ij = k(x_i, x_j) of a kernel and a set of samples, computed when asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.kernels import Kernel, Points
from maxmargin.matrices.symmetric_matrix import Floats, Indices, product_by_blocks

#: About how many values a vectorised kernel computes per request: enough to pay for the call.
REQUEST_VALUES = 2**16
#: How many rows a user's own function is asked for at once: some company pays for the call, much would be wasted.
FUNCTION_ROWS = 8


@dataclass(frozen=True)
class KernelMatrix:
    """K_ij = k(x_i, x_j). Nothing is stored; wrap it in `CachedMatrix` to keep rows."""

    kernel: Kernel
    points: Points

    def __post_init__(self) -> None:
        self.kernel.check(self.points)

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def rows_at_once(self) -> int:
        if not self.kernel.vectorised:
            return min(FUNCTION_ROWS, max(1, self.size // 4))
        return max(1, REQUEST_VALUES // max(1, self.size))

    def at_hand(self) -> None:
        return None

    def diagonal(self) -> Floats:
        return self.kernel.diagonal(self.points)

    def rows(self, indices: Indices) -> Floats:
        return self.kernel.evaluate(self.points.take(indices), self.points)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.kernel.evaluate(self.points.take(rows), self.points.take(columns))

    def matvec(self, vector: Floats) -> Floats:
        # A user's own function sees a quarter of the samples at most: never the whole matrix at once.
        most = self.size if self.kernel.vectorised else max(1, self.size // 4)
        return product_by_blocks(self, np.asarray(vector), most)
