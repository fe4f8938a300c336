"""Rows of a class matrix for a block solver: it is the rows of its base that are stored, once for all classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.multiclass_matrix import MulticlassMatrix
from maxmargin.matrices.row_store import RowStore
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix


def row_store(matrix: SymmetricMatrix, budget: int, threads: int) -> RowStore:
    """Return a store of rows that suits the matrix."""
    return (ClassRows if isinstance(matrix, MulticlassMatrix) else RowStore)(matrix, budget, threads)


class ClassRows(RowStore):
    """The store of a class matrix, which keeps nothing itself but asks a store of the base.

    Since no row is as long as the variables are many, none counts as stored: `slot` says −1 for all of them.
    """

    def __init__(self, matrix: SymmetricMatrix, budget: int, threads: int) -> None:
        assert isinstance(matrix, MulticlassMatrix)
        super().__init__(matrix, 0, threads)
        self._classes, self._base = matrix, RowStore(matrix.base, budget, threads)

    @property
    def cost(self) -> int:
        """About how many multiplications one value takes."""
        return self._base.cost

    def combine(self, rows: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row."""
        of, kind, base = self._classes.sample[rows], self._classes.label[rows], self._base
        product = np.zeros((self._classes.classes, base.matrix.size))
        for c in np.unique(kind):
            here = kind == c
            product[c] = base.combine(of[here], weights[here])
        self._count()
        return product[self._classes.label, self._classes.sample]

    def square(self, rows: Indices, out: NDArray[np.float32]) -> None:
        """Write the values between some rows to `out`."""
        samples, place = np.unique(self._classes.sample[rows], return_inverse=True)
        order = self._base.stored_last(samples)
        table = np.empty((len(samples), len(samples)), dtype=np.float32)
        self._base.square(order, table)
        where = np.empty(len(samples), dtype=np.int64)
        where[np.searchsorted(samples, order)] = np.arange(len(samples))
        at = where[place]
        _native.gather(table, at, at, out, self.threads)
        kind = self._classes.label[rows]
        out *= kind[:, None] == kind
        out.ravel()[:: len(rows) + 1] = self._diagonal[rows]
        self._count()

    def _count(self) -> None:
        base = self._base
        self.hits, self.misses = base.hits, base.misses
        self.evaluations, base.evaluations = self.evaluations + base.evaluations, 0
