"""The columns of a table of features: what steps along single weights read.

Rows are stored one after the other, so that a column is spread over all of them. Here the table is stored again the
other way round, in its own precision: a copy, once for all machines on the same rows. To the native loops it is a set
of rows like any other, with samples in place of features. A constant feature is one more column.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.kernels.points import Points
from maxmargin.matrices.features import Features

#: If the columns wanted are at least this part of all, the products of all are summed up row by row.
MOST = 0.5

#: About how many values of dense columns are taken into double precision together.
PART_VALUES = 2**20

_making = Lock()


class FeatureColumns:
    """The columns of some rows of features.

    Parameters
    ----------
    rows : Features
        As they are; a constant feature that is not 0 becomes the last column.
    """

    def __init__(self, rows: Features) -> None:
        self.rows = rows
        self._turned = Features(Points(_turned(rows)), threads=rows.threads)

    @classmethod
    def of(cls, rows: Features) -> FeatureColumns:
        """Return the columns of some rows, which are made once for all machines that have the same."""
        points = rows.points
        key = "columns", rows.constant, id(points.index)  # the columns keep that index alive
        with _making:
            if key not in points.memo:
                points.memo[key] = cls(rows)
            columns: FeatureColumns = points.memo[key]
        return columns

    @property
    def count(self) -> int:
        """The number of columns."""
        return self._turned.size

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        """The values, and for compressed columns where they start and which samples they are."""
        return self._turned.arrays

    @property
    def stored(self) -> int:
        """The number of values in all columns."""
        return self._turned.stored

    def products(self, dual: Floats, picks: Indices | None = None) -> Floats:
        """Return Fᵀ b, of all columns or of some."""
        columns = self._turned if picks is None else self._turned.take(picks)
        return columns.decisions(np.append(dual, 0.0))

    def image(self, picks: Indices, weights: Floats) -> Floats:
        """Return F w, for weights of some columns."""
        return self._turned.take(picks).weights(weights)[:-1]

    def curvatures(self, factors: Floats) -> Floats:
        """Return Σ_i factors_i F_ij² of each column."""
        data = self._turned.points.data
        with np.errstate(over="ignore"):  # too large is infinite, and for others to report
            if sparse.issparse(data):
                squares = data.data.astype(np.float64) ** 2
                return np.asarray(sparse.csr_array((squares, data.indices, data.indptr), shape=data.shape) @ factors)
            out = np.empty(self.count)
            for columns in _stretches(self.count, self.rows.size):
                out[columns] = data[columns].astype(np.float64) ** 2 @ factors
        return out

    def squares(self, picks: Indices, factors: Floats, mean: Floats | None = None) -> Floats:
        """Return Σ_i factors_i (f_i − mean)(f_i − mean)ᵀ for some columns, with factors of at least 0."""
        if len(picks) >= MOST * self.count:
            return self._squares_by_rows(picks, factors, mean)
        data, roots = self._turned.points.data, np.sqrt(factors)
        if sparse.issparse(data):
            chosen = data[picks].astype(np.float64)
            chosen.data *= roots[chosen.indices]
            out = (chosen @ chosen.T).toarray()
            return np.asarray(out if mean is None else out - factors.sum() * np.outer(mean, mean))
        out = np.zeros((len(picks), len(picks)))
        centre = 0.0 if mean is None else mean[:, None]
        for samples in _stretches(self.rows.size, len(picks)):
            if factors[samples].any():
                block = (data[picks, samples] - centre) * roots[samples]
                out += block @ block.T
        return out

    def _squares_by_rows(self, picks: Indices, factors: Floats, mean: Floats | None) -> Floats:
        rows, width, constant = self.rows, self.rows.width, self.rows.constant
        centre = np.zeros(width + 1)
        if mean is not None:
            centre[picks] = mean
        # Rows sum up the squares of all columns; where some are not wanted their mean does not matter.
        taking_part = np.flatnonzero(factors)
        dense = not sparse.issparse(rows.points.data)
        origin = centre[:width] if mean is not None and dense else None
        total, sums, squares = rows.take(taking_part).moments(factors[taking_part], origin)
        lower = np.zeros((width + 1, width + 1))
        lower[:width, :width] = (
            squares if mean is None or dense else squares - total * np.outer(centre, centre)[:-1, :-1]
        )
        lower[width, :width], lower[width, width] = constant * sums, constant**2 * total
        lower = lower[np.ix_(picks, picks)]
        return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _turned(rows: Features) -> Any:
    """Return the table the other way round, as compressed rows or in C order."""
    points, constant = rows.points, rows.constant
    chosen = points.values()
    if sparse.issparse(chosen):
        turned = sparse.csr_array(chosen.T.tocsr())
        if constant:
            last = sparse.csr_array(np.full((1, rows.size), constant, dtype=turned.dtype))
            turned = sparse.csr_array(sparse.vstack([turned, last], format="csr"))
        return turned
    out = np.empty((rows.width + bool(constant), rows.size), dtype=chosen.dtype)
    out[: rows.width] = chosen.T
    out[rows.width :] = constant
    return out


def _stretches(count: int, size: int) -> list[slice]:
    step = max(1, PART_VALUES // max(1, size))
    return [slice(first, min(count, first + step)) for first in range(0, count, step)]
