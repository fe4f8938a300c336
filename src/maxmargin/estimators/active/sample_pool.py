"""A pool of unlabelled samples: available, pending and settled rows.

Equal rows are one sample: once one of them is queried or labelled, the others are not queried.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array

from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.estimators.active.active_query import samples_of
from maxmargin.estimators.active.incremental_learner import count_rows
from maxmargin.kernels.points import rows_of
from maxmargin.machines.validation.training_data import is_table


class SamplePool:
    """Unlabelled samples and their states.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, or sequence of objects
    y : array-like, optional
        The labels, if they are known.
    estimator : estimator
        Determines whether missing values are allowed.
    """

    def __init__(self, X: Any, y: Any, estimator: Any) -> None:
        if is_table(X):
            finite = not get_tags(estimator).input_tags.allow_nan
            X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=finite, input_name="the pool")
        self.X = samples_of(X)
        self.size = count_rows(self.X)
        if not self.size:
            raise ValueError("the pool has no samples")
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and self.y.shape != (self.size,):
            raise ValueError(f"y must have one label for each of the {self.size} samples of the pool")
        self.first = first_equal_rows(self.X)
        self.settled = np.zeros(self.size, dtype=bool)
        self.open = self.first == np.arange(self.size)  # only the first of equal rows is ever queried
        self.pending: list[int] = []

    @property
    def available(self) -> Indices:
        """The rows that may be queried."""
        return np.flatnonzero(self.open).astype(np.int64)

    def rows(self, index: Indices) -> Any:
        """Return some samples."""
        return rows_of(self.X, index)

    def check(self, index: Any) -> Indices:
        """Return rows as an array, or raise unless they are distinct, in the pool, and neither labelled nor skipped."""
        rows = np.atleast_1d(np.asarray(index))
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"an index must be an integer, or a list of integers, not {index!r}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.size:
            raise IndexError(f"the pool has the samples 0 to {self.size - 1}; {rows.tolist()} has others")
        if len(np.unique(rows)) < len(rows) or self.settled[rows].any():
            raise ValueError(f"a sample can be labelled or skipped once, but {rows.tolist()} has repetitions")
        return rows.astype(np.int64)

    def ask(self, rows: Indices) -> None:
        """Mark rows as pending."""
        self.open[rows] = False
        self.pending.extend(rows.tolist())

    def close(self, rows: Indices) -> None:
        """Mark rows, and those equal to them, as settled: labelled or skipped."""
        self.settled[rows] = True
        settled = set(rows.tolist())
        self.pending = [row for row in self.pending if row not in settled]
        self.open[self.first[rows]] = False


def first_equal_rows(X: Any) -> Indices:
    """Return for each row of a table the first row equal to it; samples of other kinds count as distinct."""
    count = count_rows(X)
    firsts: dict[bytes, int] = {}
    if sparse.issparse(X):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = (X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends)
    elif is_table(X):
        keys = ((row + row.dtype.type(0)).tobytes() for row in X)  # −0.0 is 0.0
    else:
        return np.arange(count, dtype=np.int64)
    return np.fromiter((firsts.setdefault(key, row) for row, key in enumerate(keys)), dtype=np.int64, count=count)
