"""Rows of a matrix in memory, each computed when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit

#: Rows that are computed at a time.
ROWS_PER_REQUEST = 256

#: So many rows are read value by value; more are mostly next to each other in memory.
SCATTERED_ROWS = 512

#: Up to this size, products of matrices take one thread: others would wait longer than they compute.
SINGLE_THREADED = 512


def blas_threads(size: int, threads: int) -> int:
    """Return the number of threads for products of matrices, the smaller side of which has a size."""
    return threads if size > SINGLE_THREADED else 1


class KernelRows:
    """Rows of the matrix of a problem.

    Parameters
    ----------
    problem : DualProblem
    budget : int
        Bytes for rows; values of rows beyond it are computed again whenever they are needed. The memory grows with the
        rows; while they are copied, it is up to half as much again.
    threads : int
    """

    def __init__(self, problem: DualProblem, budget: int, threads: int) -> None:
        self.problem, self.threads = problem, threads
        self._most = budget // (8 * problem.size)
        self._place = np.full(problem.size, -1, dtype=np.int64)
        self._known = 0
        self._values = np.empty((0, problem.size))

    def add(self, variables: Indices) -> bool:
        """Compute the rows of variables; return whether there is memory for all of them."""
        missing = variables[self._place[variables] < 0]
        known = self._known
        if not len(missing) or known + len(missing) > self._most:
            return not len(missing)
        self._make_room(known + len(missing))
        for first in range(0, len(missing), ROWS_PER_REQUEST):
            check_deadline()
            some = missing[first : first + ROWS_PER_REQUEST]
            self._values[known + first : known + first + len(some)] = self.problem.matrix.rows(some)
        self._place[missing] = known + np.arange(len(missing))
        self._known += len(missing)
        return True

    def _make_room(self, rows: int) -> None:
        """Let there be room for so many rows and half as many again, so that each is copied about once."""
        if rows <= len(self._values):
            return
        room = min(rows + rows // 2, self._most, self.problem.size)
        values = np.empty((room, self.problem.size))
        values[: self._known] = self._values[: self._known]
        self._values = values

    def stored(self, variables: Indices, count: int) -> tuple[Indices, Floats]:
        """Return up to so many of some variables, whose rows are in memory, and these rows."""
        known = variables[self._place[variables] >= 0][:count]
        return known, self._values[self._place[known]]

    def block(self, rows: Indices, columns: Indices) -> Floats:
        """Return the values of some rows at some columns."""
        if not self.add(rows):
            return self.problem.matrix.block(rows, columns)
        if len(rows) <= SCATTERED_ROWS:
            return self._values[self._place[rows][:, None], columns]
        block = np.empty((len(rows), len(columns)))
        for part, values in self._runs(rows):
            block[part] = values.take(columns, axis=1)
        return block

    def product(self, weights: Floats, variables: Indices) -> Floats:
        """Return the products of weights and the rows of some variables."""
        if not self.add(variables):
            return np.asarray(weights @ self.problem.matrix.rows(variables))
        at = self._place[variables]
        first, last = (int(at.min()), int(at.max()) + 1) if len(at) else (0, 0)
        of_rows = np.zeros((len(weights), last - first))  # others in between are multiplied by 0
        of_rows[:, at - first] = weights
        return np.asarray(of_rows @ self._values[first:last])

    def _runs(self, variables: Indices) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of variables that are next to each other in memory, and which they are."""
        at = self._place[variables]
        edges = [0, *(np.flatnonzero(np.diff(at) != 1) + 1).tolist(), len(at)]
        for first, last in pairwise(edges):
            if first < last:
                yield slice(first, last), self._values[at[first] : at[first] + last - first]

    def decrease(self, variables: Indices, changes: Floats) -> Floats:
        """Return how changes of some variables decrease the gradient of all variables."""
        if self.add(variables):
            with blas_thread_limit(self.threads):
                product = self.product(changes[None], variables)[0]
        else:
            product = self.problem.matrix.partial_product(np.arange(self.problem.size), variables, changes)
        product[variables] += self.problem.ridge[variables] * changes
        return np.asarray(product)
