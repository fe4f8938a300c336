"""Samples packed for solvers that compute kernel rows in native code, when they need them.

In one-vs-one, most samples of a pair of classes are not support vectors: neither all kernel values of the pair nor
blocks of them are computed, only the rows of variables that change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin._typing import Indices
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.kernel_columns import DenseColumns, native_formula
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Problems of more variables are finished on computed rows only if they need at most so many: with more support vectors
#: block decomposition in single precision is faster. Tuned on `uneven_classes` and generated classes that overlap.
MAX_SIZE, MAX_ROWS = 2048, 160


@dataclass(frozen=True)
class PackedKernel:
    """The kernel matrix of all samples, in the order of classes, computed row by row.

    Attributes
    ----------
    columns : DenseColumns
        The samples, packed.
    data : array
        The samples.
    stored_values : int
        The number of kernel values that a problem may store. It comes back unfinished if it needs more, or if it has
        more than `MAX_SIZE` variables and needs more than `MAX_ROWS` rows.
    place : int array
        The row of the matrix of each sample.
    diagonal : float
        The largest magnitude on the diagonal.
    """

    columns: DenseColumns
    data: Any
    stored_values: int
    place: Indices
    diagonal: float

    @classmethod
    def of(
        cls, kernel: Kernel, points: Points, members: Sequence[Indices], stored_values: int, threads: int
    ) -> PackedKernel | None:
        """Return the packed samples of some classes; None if native code does not evaluate the kernel on them."""
        if not isinstance(kernel, NativeKernel) or not isinstance(points.data, np.ndarray):
            return None
        # Every class begins with a panel of the native loops, padded with one of its samples: vectors that begin within
        # a cache line take longer to load.
        width = _native.double_panel
        padded = [np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % width)]) for rows in members]
        order = np.concatenate(padded)
        place = np.full(points.count, -1)
        place[points.index[order[::-1]]] = np.arange(len(order))[::-1]  # the first place of each
        columns = DenseColumns(kernel.formula, points.take(order), np.dtype(np.float64), threads, np.empty(0))
        return cls(columns, points.data, stored_values, place, float(np.abs(kernel.diagonal(points)).max()))

    def samples(self, threads: int) -> _native.KernelSamples:
        """Return the arguments of the native solver, with memory for the rows of so many problems at the same time."""
        memory = np.empty((threads, self.stored_values))  # untouched pages take no memory
        return _native.KernelSamples(
            formula=native_formula(self.columns.formula),
            columns=self.columns.packed,
            memory=memory,
            large=MAX_SIZE,
            max_rows=MAX_ROWS,
        )

    def rows(self, matrix: SymmetricMatrix) -> Indices | None:
        """Return the rows that are a kernel matrix of some samples; None if it is another matrix."""
        if not isinstance(matrix, KernelMatrix) or matrix.points.data is not self.data:
            return None
        return self.place[matrix.points.index]
