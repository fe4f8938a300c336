"""The rows f_i behind a matrix M_ij = f_i · f_j, where there are any: what makes a machine linear.

With them a product with the matrix is two products with the data, M b = F (Fᵀ b), and the weights w = Fᵀ b can be kept
instead of the gradients of all samples. Products are computed in double precision from the data as they are: dense or
compressed, in single or double precision, without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin import _native
from maxmargin.kernels.points import Floats, Indices, Points

#: Multiplications that pay for one more thread: to start it takes as long as some ten thousand.
WORTH_A_THREAD = 2 * 10**5

_NO_INTEGERS = np.empty(0, dtype=np.int64)
_NO_FLOATS = np.empty(0)


@dataclass(frozen=True)
class Features:
    """One row of features for each variable.

    Parameters
    ----------
    points : Points
        The rows, dense or compressed, without the constant feature.
    constant : float
        The value of one more feature, the last, that all rows have; 0 for none.
    threads : int
        How many threads compute products.
    """

    points: Points
    constant: float = 0.0
    threads: int = 1

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.points)

    @property
    def width(self) -> int:
        """The number of features, without the constant one."""
        return int(self.points.data.shape[1])

    @property
    def dimension(self) -> int:
        """The number of weights: one for each feature, and the last for the constant one (0 if there is none)."""
        return self.width + 1

    @cached_property
    def stored(self) -> int:
        """The number of values in all rows: what a pass over the data takes."""
        data = self.points.data
        if not sparse.issparse(data):
            return self.size * self.width
        if self._all:
            return int(data.nnz)
        return int(np.diff(data.indptr)[self.points.index].sum())

    def threads_for(self, multiplications: int) -> int:
        """Return how many threads so much work is worth."""
        return max(1, min(self.threads, multiplications // WORTH_A_THREAD))

    def decisions(self, weights: Floats) -> Floats:
        """Return F w."""
        if not weights.any():
            return np.zeros(self.size)
        out = np.empty(self.size)
        threads = self.threads_for(self.stored)
        _native.row_decisions(*self.arrays, self.picks, self._all, weights[:-1].copy(), out, threads)
        return out + self.constant * weights[-1] if self.constant else out

    def weights(self, dual: Floats) -> Floats:
        """Return Fᵀ b."""
        dual = np.ascontiguousarray(dual, dtype=np.float64)
        if not dual.any():
            return np.zeros(self.dimension)
        out = np.empty(self.width)
        threads = self.threads_for(self.stored)
        _native.combine_rows(*self.arrays, self.picks, self._all, dual, out, threads)
        return np.append(out, self.constant * dual.sum())

    def squared_norms(self) -> Floats:
        """Return ‖f_i‖² of each row, without the constant feature."""
        out = np.empty(self.size)
        _native.row_squared_norms(*self.arrays, self.width, self.picks, self._all, out, self.threads_for(self.stored))
        return out

    def take(self, rows: Indices) -> Features:
        """Return some of the rows."""
        return Features(self.points.take(rows), self.constant, self.threads)

    def squares(self, factors: Floats, mean: Floats | None = None) -> Floats:
        """Return the lower triangle of Σ factors_i f_i f_iᵀ, with a row and a column for the constant feature.

        With a `mean`, which must be that of the rows by these factors, they are counted from there.
        """
        width, dense = self.width, not sparse.issparse(self.points.data)
        out, square = np.zeros((width + 1, width + 1)), np.empty((width, width))
        factors = np.ascontiguousarray(factors, dtype=np.float64)
        origin = _NO_FLOATS if mean is None or not dense else mean[:-1].copy()
        per_row = self.stored // max(1, self.size)
        threads = self.threads_for(self.stored * per_row // (16 if dense else 2))
        _native.sum_squares(*self.arrays, self.picks, self._all, factors, origin, square, threads)
        if mean is not None and not dense:
            square -= factors.sum() * np.outer(mean[:-1], mean[:-1])
        out[:width, :width] = square
        if self.constant and mean is None:
            out[width, :] = self.constant * self.weights(factors)
        return out

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """The values, and for compressed rows where they start and which features they are."""
        data = self.points.data
        if not sparse.issparse(data):
            return data, _NO_INTEGERS, _NO_INTEGERS
        starts, features = data.indptr, data.indices
        if starts.dtype != features.dtype:
            starts = starts.astype(features.dtype)
        return data.data, starts, features

    @cached_property
    def picks(self) -> Indices:
        """The row of the data of each variable; empty if they are all rows in order."""
        return _NO_INTEGERS if self._all else np.ascontiguousarray(self.points.index, dtype=np.int64)

    @cached_property
    def _all(self) -> bool:
        index = self.points.index
        return len(index) == self.points.data.shape[0] and bool((index == np.arange(len(index))).all())
