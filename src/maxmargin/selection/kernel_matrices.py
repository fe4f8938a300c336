"""The kernel matrix of all samples in memory, shared by the folds, values of C and pairs of classes of a search.

Where γ changes, only the function of a sum over the features does: with many features these sums, such as squared
distances, are kept as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.formula import KernelFormula, Term
from maxmargin.kernels.kernel_columns import native_formula, pack_columns
from maxmargin.kernels.points import evaluation_cost
from maxmargin.matrices.full_kernel_matrix import fill_kernel_matrix
from maxmargin.matrices.numerics import check_finite

#: The cost of an evaluation of the kernel above which sums over features are kept. Below it they are computed again in
#: the time that it takes to read them.
MIN_COST_OF_KEPT_SUMS = 100

#: New memory is provided by pages, in slices of some tens of milliseconds.
PAGE_BYTES, BYTES_PER_SLICE = 4096, 2**25

#: The most matrices in memory: while the last folds of one kernel are trained, the next is computed.
MAX_MATRICES = 2


def matrix_bytes(samples: int) -> int:
    """Return the memory of one kernel matrix."""
    return 8 * samples**2


class KernelMatrices:
    """Kernel matrices of the same samples for several kernels, computed when they are first needed.

    Parameters
    ----------
    X : array or sparse matrix
        All samples, or their kernel matrix.
    order : int array
        The samples in the order of the rows.
    budget : int
        Memory in bytes: at least one matrix.
    threads : int
    several : bool
        Whether there will be more than one kernel.
    """

    def __init__(self, X: Any, order: Indices, budget: int, threads: int, several: bool) -> None:
        self.order, self.threads = order, threads
        self._X = X
        size = matrix_bytes(len(order))
        most = max(1, budget // size)
        self._keeps_sums = several and most > 1
        self._most = min(MAX_MATRICES, most - self._keeps_sums) if several else 1
        self._values: dict[Kernel | None, Floats] = {}
        self._users: dict[Kernel | None, int] = {}
        self._sums: dict[Term, Floats] = {}
        self._free: list[Floats] = []
        self._changed = threading.Condition()

    @contextmanager
    def of(self, kernel: Kernel | None) -> Iterator[Floats]:
        """Yield the matrix of a kernel, None for the precomputed one; it stays in memory within the context."""
        with self._changed:
            self._changed.wait_for(lambda: kernel in self._values or self._has_room())
            if kernel not in self._values:
                self._values[kernel] = self._compute(kernel)
            self._users[kernel] = self._users.get(kernel, 0) + 1
            values = self._values[kernel]
        try:
            yield values
        finally:
            with self._changed:
                self._users[kernel] -= 1
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._values) < self._most or not all(self._users[kernel] for kernel in self._values)

    def _memory(self) -> Floats:
        """Return memory for a matrix: that of one that nobody uses, if there are too many."""
        if len(self._values) >= self._most:
            unused = next(kernel for kernel in self._values if not self._users[kernel])
            self._free.append(self._values.pop(unused))
        # New memory costs as much time as cheap kernel values.
        return self._free.pop() if self._free else _new_memory(len(self.order))

    def _compute(self, kernel: Kernel | None) -> Floats:
        values = self._memory()
        try:
            self._fill(kernel, values)
        except BaseException:
            self._free.append(values)
            raise
        return values

    def _fill(self, kernel: Kernel | None, values: Floats) -> None:
        if kernel is None:
            values[:] = self._X[self.order[:, None], self.order]
            return
        points = Points.wrap(self._X).take(self.order)
        kept = self._keeps_sums and evaluation_cost(points) > MIN_COST_OF_KEPT_SUMS
        if not (kept and isinstance(kernel, NativeKernel)):
            fill_kernel_matrix(kernel, points, values, self.threads)
            return
        formula = kernel.formula
        if formula.term not in self._sums:
            sums = _new_memory(len(points))
            columns = pack_columns(KernelFormula(formula.term), points, np.float64, self.threads)
            columns.fill(points, sums, np.arange(len(points)))
            self._sums = {formula.term: sums}
        _native.function_of_sums(native_formula(formula), self._sums[formula.term], values, self.threads)
        if sparse.issparse(points.data):  # see `fill_kernel_matrix`
            np.fill_diagonal(values, kernel.diagonal(points))
        check_finite(values)


def _new_memory(size: int) -> Floats:
    """Return memory for a matrix, of which the system provides every page here, in slices; check the deadline before.

    The first columns of a matrix are on all of its pages, so that no call after this one takes long.
    """
    values = np.empty((size, size))
    step = max(1, BYTES_PER_SLICE // (8 * size))
    for start in range(0, size, step):
        check_deadline()
        values[start : start + step].reshape(-1)[:: PAGE_BYTES // 8] = 0.0
    return values
