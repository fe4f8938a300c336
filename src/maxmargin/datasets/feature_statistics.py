"""Ranges, means and deviations of the features of a table that is read block by block."""

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
    def of(cls, table: Any, squares: bool = True) -> FeatureStatistics:
        """Return the statistics of a table, without means and squares if these are not needed."""
        width = int(table.n_features)
        found = cls(0, np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width), np.zeros(width))
        for block in table:
            for X in [block.X] if sparse.issparse(block.X) else _pieces(block.X):
                found._add_range(X)
                if squares:
                    found._add_moments(X)
                found.rows += X.shape[0]
        return found

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
            stored, data = np.diff(columns.indptr), columns.data.astype(np.float64)
            mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / rows
            centred = np.append((data - np.repeat(mean, stored)) ** 2, 0.0)
            squares = np.add.reduceat(centred, columns.indptr[:-1]) * (stored > 0) + (rows - stored) * mean**2
        else:
            mean = X.mean(axis=0, dtype=np.float64)
            squares = np.square(X - mean).sum(axis=0)
        change, total = mean - self.mean, self.rows + rows
        self.mean += change * (rows / total)
        self.squares += squares + change**2 * (self.rows * rows / total)


def _pieces(X: Any) -> Iterable[Any]:
    step = max(1, PIECE_VALUES // X.shape[1])
    return (X[first : first + step] for first in range(0, X.shape[0], step))
