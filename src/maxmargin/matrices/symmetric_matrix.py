"""The matrix of a dual problem, seen as an operator over sample indices.

A solver asks for rows, blocks, the diagonal and products; how values come about (from a kernel and data, from a
file, from a cache) is the matrix's own affair. Matrices wrap one another and never know of one another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.resources import limited_blas

if TYPE_CHECKING:
    from maxmargin.matrices.features import Features
    from maxmargin.matrices.single_columns import SingleColumns

#: The largest block of values that a product of a matrix with a vector builds at once, in bytes.
BLOCK_BYTES = 8 * 2**20


class SymmetricMatrix(Protocol):
    """A symmetric matrix of float64 values; single precision is a convenience that `single` offers."""

    @property
    def size(self) -> int:
        """The number of rows."""
        ...

    @property
    def rows_at_once(self) -> int:
        """How many rows it is sensible to ask for together."""
        ...

    @property
    def cost(self) -> int:
        """About how many multiplications a value takes, 1 if it only has to be read."""
        ...

    def checksum(self) -> int:
        """Return a number that changes when the data behind the matrix do."""
        ...

    def at_hand(self) -> Floats | None:
        """Return the whole matrix if it is in memory already, as a finite C-ordered array not to be written to."""
        ...

    def diagonal(self) -> Floats:
        """Return the diagonal."""
        ...

    def rows(self, indices: Indices) -> Floats:
        """Return whole rows."""
        ...

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return the values at the crossings of `rows` and `columns`."""
        ...

    def matvec(self, vector: Floats) -> Floats:
        """Return the product with a vector, without building the matrix."""
        ...

    def source(self) -> SymmetricMatrix:
        """Return the same matrix without values that were computed in advance."""
        ...

    def take(self, indices: Indices) -> SymmetricMatrix:
        """Return the matrix of some of the variables."""
        ...

    def single(self, columns: Indices) -> SingleColumns:
        """Return some columns, to be read in single precision."""
        ...

    def features(self) -> Features | None:
        """Return the rows whose products are the values, None if there are none or nobody knows them."""
        ...


def product_by_blocks(matrix: SymmetricMatrix, vector: Floats, most_rows: int | None = None) -> Floats:
    """Multiply by asking for blocks of bounded size, only in the columns where the vector is not zero."""
    columns = np.flatnonzero(vector)
    return partial_product(matrix, np.arange(matrix.size), columns, vector[columns], most_rows)


def partial_product(
    matrix: SymmetricMatrix, rows: Indices, columns: Indices, weights: Floats, most_rows: int | None = None
) -> Floats:
    """Return Σ weights · column at some rows, by blocks of bounded size."""
    out = np.zeros(len(rows))
    if len(columns):
        step = max(1, BLOCK_BYTES // (8 * len(columns)))
        step = step if most_rows is None else min(step, most_rows)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            block = matrix.block(rows[part], columns)
            with limited_blas(1):  # its threads would spin beside us (`products.py`); plain sums lose digits
                out[part] = block @ weights
    return out
