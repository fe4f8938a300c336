"""Rows of a matrix that are kept once they were asked for, where there is room for all of them.

It serves solvers that move many variables at once: then a step is one product of the matrix with a vector, and a row
that was needed once will be needed in almost every step. Solvers that move two have `cached_matrix`.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES, SymmetricMatrix

#: A vector with fewer non-zero entries than one in so many is multiplied by those rows alone.
SPARSE = 4


class LazyRowCache:
    """Products with a symmetric matrix, whose rows are computed when a vector first needs them.

    Parameters
    ----------
    matrix : SymmetricMatrix
        Where values come from.
    budget : int
        Bytes that may be taken. All rows are kept if they fit; if they do not, none is, and each product computes anew.

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
        # Rows that are not known are zero, and so are the weights they meet. Pages of zeros take no memory.
        self._values: Floats | None = in_memory if in_memory is not None or not fits else np.zeros((size, size))
        self._known = np.full(size, in_memory is not None)
        self._all = in_memory is not None

    def rows(self, indices: Indices) -> Floats:
        """Return whole rows, not to be written to."""
        if self._values is None:
            return self._compute(indices)
        self._provide(indices)
        return self._values[indices]

    def product(self, vector: Floats) -> Floats:
        """Return the product with a vector; only rows where it is not zero are needed."""
        columns = np.flatnonzero(vector)
        if self._values is None:
            self.evaluations += self.matrix.size * len(columns)
            return self.matrix.matvec(vector)
        self._provide(columns)
        if SPARSE * len(columns) < len(vector):
            return np.asarray(vector[columns] @ self._values[columns])
        return np.asarray(vector @ self._values)

    def _provide(self, indices: Indices) -> None:
        """Compute the rows that are not there yet, a block of bounded size at a time."""
        if self._all:
            return
        assert self._values is not None
        missing = indices[~self._known[indices]]
        step = max(1, BLOCK_BYTES // (8 * self.matrix.size))
        for start in range(0, len(missing), step):
            part = missing[start : start + step]
            self._values[part] = self._compute(part)
            self._known[part] = True
        self._all = bool(self._known.all())

    def _compute(self, indices: Indices) -> Floats:
        values = self.matrix.rows(indices)
        self.evaluations += values.size
        check_finite(values)
        return values
