"""A matrix of variables that stand for a sample *and* a class: M_uv = base[of_u, of_v] within a class, 0 between two.

All-in-one machines for k classes have a weight vector for each class and k variables for each sample; weight vectors of
different classes meet nowhere, so their matrix is k copies of the kernel matrix along the diagonal (K ⊗ I). It is never
formed: a value of the base is computed once for all classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES, Float32Columns, SymmetricMatrix

#: The largest table of rows of the base that is built at once, in bytes.
TABLE_BYTES = 2**26


@dataclass(frozen=True)
class MulticlassMatrix:
    """The matrix of variables that stand for the samples `of` of another matrix, each in its class `kind`."""

    base: SymmetricMatrix
    of: Indices
    kind: Indices

    @staticmethod
    def of_all(base: SymmetricMatrix, classes: int) -> MulticlassMatrix:
        """Return the matrix of a variable for every sample and class: those of the first sample first."""
        count = base.size
        return MulticlassMatrix(base, np.repeat(np.arange(count), classes), np.tile(np.arange(classes), count))

    @cached_property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.kind.max(initial=0)) + 1

    @property
    def size(self) -> int:
        return len(self.of)

    @property
    def rows_per_request(self) -> int:
        return max(1, self.base.rows_per_request // self.classes)

    @property
    def cost(self) -> int:
        return max(1, self.base.cost // self.classes)

    def checksum(self) -> int:
        return self.base.checksum()

    def in_memory(self) -> None:
        return None

    def diagonal(self) -> Floats:
        return self.base.diagonal()[self.of]

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        samples, back = np.unique(self.of[columns], return_inverse=True)
        asked, place = np.unique(self.of[rows], return_inverse=True)
        values = self.base.block(asked, samples)[place[:, None], back]
        values *= self.kind[rows][:, None] == self.kind[columns]
        return values

    def matvec(self, vector: Floats) -> Floats:
        """Return the product with a vector; blocks of the base meet the parts of all classes at once."""
        shares = self.by_sample(vector)
        used = np.flatnonzero(shares.any(axis=1))
        shares, count = shares[used], self.base.size
        product = np.zeros((count, self.classes))
        # Blocks of bounded size, never more than a quarter of the base at once.
        step = max(1, min(count // 4, BLOCK_BYTES // (8 * max(1, len(used)))))
        for start in range(0, count if len(used) else 0, step):
            part = np.arange(start, min(count, start + step))
            product[part] = self.base.block(part, used) @ shares
        return product[self.of, self.kind]

    def uncached(self) -> MulticlassMatrix:
        return MulticlassMatrix(self.base.uncached(), self.of, self.kind)

    def take(self, indices: Indices) -> MulticlassMatrix:
        return MulticlassMatrix(self.base, self.of[indices], self.kind[indices])

    def features(self) -> None:
        return None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _ClassColumns(self, columns)

    def by_sample(self, values: Floats) -> Floats:
        """Return the values of the variables as a table of samples and classes; several of one place are summed up."""
        places = self.of * self.classes + self.kind
        table = np.bincount(places, weights=values, minlength=self.base.size * self.classes)
        return table.astype(np.float64, copy=False).reshape(self.base.size, self.classes)


class _ClassColumns:
    """Some columns in single precision."""

    def __init__(self, matrix: MulticlassMatrix, columns: Indices) -> None:
        self._matrix, self._kind = matrix, matrix.kind[columns]
        self._samples, self._back = np.unique(matrix.of[columns], return_inverse=True)
        self._columns = matrix.base.float32_columns(self._samples)

    @property
    def cost(self) -> int:
        return self._columns.cost

    def fill(self, rows: Indices, out: NDArray[np.float32], slots: Indices) -> int:
        computed, width = 0, len(self._back)
        step = max(1, TABLE_BYTES // (4 * max(1, len(self._samples))))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            samples, place = np.unique(self._matrix.of[part], return_inverse=True)
            table = np.empty((len(samples), len(self._samples)), dtype=np.float32)
            computed += self._columns.fill(samples, table, np.arange(len(samples)))
            for k, row in enumerate(part):
                same = self._matrix.kind[row] == self._kind
                out[slots[start + k], :width] = np.where(same, table[place[k], self._back], np.float32(0))
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = np.zeros(len(rows)), 0
        kinds = self._matrix.kind[rows]
        for c in range(self._matrix.classes):
            here = np.flatnonzero(kinds == c)
            own = np.where(self._kind == c, weights, 0.0)
            if not len(here) or not own.any():
                continue
            share = np.bincount(self._back, weights=own, minlength=len(self._samples)).astype(np.float64, copy=False)
            product[here], new = self._columns.combine(self._matrix.of[rows[here]], share)
            computed += new
        return product, computed
