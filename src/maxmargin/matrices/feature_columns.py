"""A transposed copy of the feature rows, for coordinate descent over single weights.

The copy has the precision of the rows and is made once for all subproblems on the same rows. The native loops treat it
as a set of rows with samples in place of features. A constant feature is the last column.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.kernels.points import Points
from maxmargin.matrices.features import Features

#: From this fraction of the columns on, second moments of all columns are summed up row by row.
MIN_FRACTION_FOR_ROWS = 0.5

#: Approximate number of values of dense columns that are converted to float64 at a time.
CONVERSION_VALUES = 2**20

_memo_lock = Lock()


class FeatureColumns:
    """The columns of some feature rows.

    Parameters
    ----------
    rows : Features
        A constant feature other than 0 becomes the last column.
    """

    def __init__(self, rows: Features) -> None:
        self.rows = rows
        self._transposed = Features(Points(_transposed(rows)), threads=rows.threads)

    @classmethod
    def of(cls, rows: Features) -> FeatureColumns:
        """Return the columns of some rows, from the memo of the data if they were made before."""
        points = rows.points
        key = "columns", rows.constant, id(points.index)  # the columns keep that index alive
        with _memo_lock:
            if key not in points.memo:
                points.memo[key] = cls(rows)
            columns: FeatureColumns = points.memo[key]
        return columns

    @property
    def count(self) -> int:
        """The number of columns."""
        return self._transposed.size

    @property
    def native(self) -> _native.DataRows:
        """The columns as the compiled loops take them."""
        return self._transposed.native

    @property
    def stored(self) -> int:
        """The number of values in all columns."""
        return self._transposed.stored

    def products(self, dual: Floats, picks: Indices | None = None) -> Floats:
        """Return Fᵀ b, for all columns or some."""
        columns = self._transposed if picks is None else self._transposed.take(picks)
        return columns.decisions(np.append(dual, 0.0))

    def image(self, picks: Indices, weights: Floats) -> Floats:
        """Return F w, for weights of some columns."""
        return self._transposed.take(picks).weights(weights)[:-1]

    def curvatures(self, factors: Floats) -> Floats:
        """Return Σ_i factors_i F_ij² of each column."""
        data = self._transposed.points.data
        with np.errstate(over="ignore"):  # infinite values are reported by the caller
            if sparse.issparse(data):
                squares = data.data.astype(np.float64) ** 2
                return np.asarray(sparse.csr_array((squares, data.indices, data.indptr), shape=data.shape) @ factors)
            out = np.empty(self.count)
            for columns in _batches(self.count, self.rows.size):
                check_deadline()
                out[columns] = data[columns].astype(np.float64) ** 2 @ factors
        return out

    def squares(self, picks: Indices, factors: Floats, mean: Floats | None = None) -> Floats:
        """Return Σ_i factors_i (f_i − mean)(f_i − mean)ᵀ for some columns; the factors are at least 0."""
        if len(picks) >= MIN_FRACTION_FOR_ROWS * self.count:
            return self._squares_by_rows(picks, factors, mean)
        data, roots = self._transposed.points.data, np.sqrt(factors)
        if sparse.issparse(data):
            chosen = data[picks].astype(np.float64)
            chosen.data *= roots[chosen.indices]
            out = (chosen @ chosen.T).toarray()
            return np.asarray(out if mean is None else out - factors.sum() * np.outer(mean, mean))
        out = np.zeros((len(picks), len(picks)))
        centre = 0.0 if mean is None else mean[:, None]
        for samples in _batches(self.rows.size, len(picks)):
            check_deadline()
            if factors[samples].any():
                block = (data[picks, samples] - centre) * roots[samples]
                out += block @ block.T
        return out

    def _squares_by_rows(self, picks: Indices, factors: Floats, mean: Floats | None) -> Floats:
        rows, width, constant = self.rows, self.rows.width, self.rows.constant
        centre = np.zeros(width + 1)
        if mean is not None:
            centre[picks] = mean
        # The second moments of all columns are summed up; the mean of columns outside `picks` does not matter.
        used = np.flatnonzero(factors)
        dense = not sparse.issparse(rows.points.data)
        origin = centre[:width] if mean is not None and dense else None
        total, sums, squares = rows.take(used).moments(factors[used], origin)
        lower = np.zeros((width + 1, width + 1))
        lower[:width, :width] = (
            squares if mean is None or dense else squares - total * np.outer(centre, centre)[:-1, :-1]
        )
        lower[width, :width], lower[width, width] = constant * sums, constant**2 * total
        lower = lower[np.ix_(picks, picks)]
        return np.asarray(np.tril(lower) + np.tril(lower, -1).T)


def _transposed(rows: Features) -> Any:
    """Return the transposed data, CSR or in C order."""
    points, constant = rows.points, rows.constant
    chosen = points.values()
    if sparse.issparse(chosen):
        transposed = sparse.csr_array(chosen.T.tocsr())
        if constant:
            last = sparse.csr_array(np.full((1, rows.size), constant, dtype=transposed.dtype))
            transposed = sparse.csr_array(sparse.vstack([transposed, last], format="csr"))
        return transposed
    out = np.empty((rows.width + bool(constant), rows.size), dtype=chosen.dtype)
    for samples in _batches(rows.size, rows.width):  # several times faster than all at once, too
        check_deadline()
        out[: rows.width, samples] = chosen[samples].T
    out[rows.width :] = constant
    return out


def _batches(count: int, size: int) -> list[slice]:
    step = max(1, CONVERSION_VALUES // max(1, size))
    return [slice(first, min(count, first + step)) for first in range(0, count, step)]
