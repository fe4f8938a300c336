"""A cache of all rows of a matrix, each computed when first needed, if the full matrix fits into the budget.

It is for solvers that change many variables per step: a step is one matrix-vector product, and a row that was needed
once is needed in almost every step. Solvers that change two variables per step use `cached_matrix`.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES, SymmetricMatrix

#: A vector with less than this fraction of non-zeros is multiplied by those rows alone.
MAX_SPARSE_FRACTION = 1 / 4


class LazyRowCache:
    """Rows of and products with a symmetric matrix, whose rows are computed when first needed.

    Parameters
    ----------
    matrix : SymmetricMatrix
        The source of values.
    budget : int
        Maximum size of the cache in bytes. If all rows do not fit, none is cached and every product computes anew.

    Attributes
    ----------
    evaluations : int
        Values computed so far.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int) -> None:
        size = matrix.size
        self.matrix = matrix
        self.evaluations = 0
        fits = 8 * size**2 <= budget
        in_memory = matrix.in_memory() if fits else None
        # Rows not yet computed are zero, and their weights are, too. Untouched pages of zeros take no memory.
        self._values: Floats | None = in_memory if in_memory is not None or not fits else np.zeros((size, size))
        self._known = np.full(size, in_memory is not None)
        self._all = in_memory is not None

    def rows(self, indices: Indices) -> Floats:
        """Return full rows, read-only."""
        if self._values is None:
            return self._compute(indices)
        self._provide(indices)
        return self._values[indices]

    def product(self, vector: Floats) -> Floats:
        """Return the product with a vector; only rows where it is not 0 are needed."""
        columns = np.flatnonzero(vector)
        if self._values is None:
            self.evaluations += self.matrix.size * len(columns)
            return self.matrix.matvec(vector)
        self._provide(columns)
        if len(columns) < MAX_SPARSE_FRACTION * len(vector):
            return np.asarray(vector[columns] @ self._values[columns])
        return np.asarray(vector @ self._values)

    def _provide(self, indices: Indices) -> None:
        """Compute missing rows in blocks of bounded size."""
        if self._all:
            return
        assert self._values is not None
        missing = indices[~self._known[indices]]
        step = max(1, BLOCK_BYTES // (8 * self.matrix.size))
        for start in range(0, len(missing), step):
            check_deadline()
            part = missing[start : start + step]
            self._values[part] = self._compute(part)
            self._known[part] = True
        self._all = bool(self._known.all())

    def _compute(self, indices: Indices) -> Floats:
        values = self.matrix.rows(indices)
        self.evaluations += values.size
        check_finite(values)
        return values
