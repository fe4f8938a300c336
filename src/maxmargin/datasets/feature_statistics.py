"""Ranges, means and deviations of features, of samples that are in memory or read block by block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats

#: Values of dense rows that are converted to float64 at once.
PIECE_VALUES = 2**20


def is_table(X: Any) -> bool:
    """Whether X is a table of `maxmargin.blocks`, a package that is built on this one."""
    return not isinstance(X, np.ndarray) and not sparse.issparse(X) and hasattr(X, "n_rows") and hasattr(X, "__iter__")


@dataclass
class FeatureStatistics:
    """Statistics of each feature over the rows so far.

    Attributes
    ----------
    rows : int
    least, largest, mean : float arrays
    squares : float array
        Σ (x − mean)².
    """

    rows: int
    least: Floats
    largest: Floats
    mean: Floats
    squares: Floats

    @classmethod
    def of(cls, blocks: Iterable[Any], width: int, squares: bool = True) -> FeatureStatistics:
        """Return the statistics of blocks of samples, without means and squares if these are not needed."""
        found = cls(0, np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width), np.zeros(width))
        for block in blocks:
            for X in [block] if sparse.issparse(block) else _pieces(block):
                if min(X.shape):
                    found._add(X, squares)
        return found

    def _add(self, X: Any, squares: bool) -> None:
        self._add_range(X)
        if squares:
            self._add_moments(X)
        self.rows += X.shape[0]

    def _add_range(self, X: Any) -> None:
        for all_rows, method, keep in ((self.least, "min", np.minimum), (self.largest, "max", np.maximum)):
            extreme = getattr(X, method)(axis=0)
            dense = extreme.toarray() if sparse.issparse(extreme) else extreme
            keep(all_rows, np.asarray(dense, dtype=np.float64).ravel(), out=all_rows)

    def _add_moments(self, X: Any) -> None:
        """Add the mean and the squares of more rows (Chan, Golub and LeVeque 1983)."""
        rows = X.shape[0]
        if sparse.issparse(X):
            columns = X.tocsc()
            columns.sum_duplicates()
            stored, data = np.diff(columns.indptr), columns.data.astype(np.float64)
            mean = _sums_of_columns(data, columns.indptr) / rows  # SciPy adds up float32 in float32
            centred = data - np.repeat(mean, stored)
            squares = _sums_of_columns(centred**2, columns.indptr) + (rows - stored) * mean**2
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            squares = np.square(X - mean).sum(axis=0)
        change, total = mean - self.mean, self.rows + rows
        self.mean += change * (rows / total)
        self.squares += squares + change**2 * (self.rows * rows / total)


def _sums_of_columns(values: Floats, starts: Any) -> Floats:
    """Return the sum of the values of each column, from its start to that of the next one."""
    sums: Floats = np.add.reduceat(np.append(values, 0.0), starts[:-1]) * (np.diff(starts) > 0)
    return sums


def _pieces(X: Any) -> Iterable[Any]:
    step = max(1, PIECE_VALUES // max(1, X.shape[1]))
    return (X[first : first + step] for first in range(0, X.shape[0], step))
