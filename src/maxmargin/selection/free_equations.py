"""The linear equations of the free variables, for many variations of a problem whose free variables differ little.

At the optimum of a variation the gradient of its free variables is the offset of their group. With the inverse of the
equations at the common point, those of a variation take a system of as many unknowns as variables have become free or
have reached a bound since (a Schur complement).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.kernel_rows import blas_threads

#: Above this number of free variables the inverse takes too long.
MAX_FREE = 4000

#: More variables than this that have become free or have reached a bound are not solved for.
MAX_CHANGES = 200

#: Rows of a triangle that are mirrored at a time.
MIRRORED_ROWS = 128

#: Added to the diagonal, relative to its mean: samples may occur twice.
RELATIVE_RIDGE = 1e-10


class FreeInverse:
    """The inverse of the equations of the free variables, which is computed when it is first needed.

    Solutions for a few right-hand sides, and the numbers that spans need, take only a factorisation.

    Parameters
    ----------
    problem : DualProblem
    variables : int array
        The free ones.
    square : float array
        Their matrix; its diagonal is changed.
    threads : int

    Attributes
    ----------
    added_ridge : float
        That the diagonal of the matrix has got.
    places : int array
        Of the variables within a table of some more.
    """

    places: Indices

    def __init__(self, problem: DualProblem, variables: Indices, square: Floats, threads: int) -> None:
        self.problem, self.threads, self.variables = problem, threads, variables
        count, diagonal = len(variables), np.arange(len(variables))
        mean = float(square[diagonal, diagonal].mean()) if count else 1.0
        self.added_ridge = RELATIVE_RIDGE * mean
        square[diagonal, diagonal] += problem.ridge[variables] + self.added_ridge
        self._border = self.border(variables)
        self._blas_threads = blas_threads(count, threads)
        with blas_thread_limit(self._blas_threads):
            self._factor, self._explicit = _factor(square)
            self._sums = self._solved_square(self._border)
        self._diagonal = np.diagonal(self._explicit) if self._factor is None else None
        empty = ~self._border.any(axis=0)
        of_groups = self._border.T @ self._sums
        of_groups[empty, empty] = -1.0  # a diagonal value of 1 in the inverse
        self._of_groups = np.asarray(np.linalg.inv(of_groups), dtype=np.float64)

    def _solved_square(self, rhs: Floats) -> Floats:
        """Return the solution of the equations without the border."""
        if self._factor is None:
            return np.asarray(self._explicit @ rhs)
        return np.asarray(lapack.dpotrs(self._factor, rhs, lower=False)[0]) if rhs.size else rhs

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of [M E; Eᵀ 0], the matrix of the variables bordered by the groups."""
        count, groups = self._border.shape
        inverse = np.empty((count + groups, count + groups))
        with blas_thread_limit(self._blas_threads):
            own = self._explicit if self._factor is None else _product(self._inverse_factor())
            weights = self._sums @ self._of_groups
            np.subtract(own, weights @ self._sums.T, out=inverse[:count, :count])
        inverse[:count, count:], inverse[count:, :count] = weights, weights.T
        inverse[count:, count:] = -self._of_groups
        return inverse

    def _inverse_factor(self) -> Floats:
        """Return the inverse of the factor; its rows have the diagonal of the inverse of the matrix."""
        inverse: Floats = lapack.dtrtri(self._factor, lower=False)[0]
        self._diagonal = np.einsum("ij,ij->i", inverse, inverse)
        return inverse

    def solve(self, rhs: Floats) -> Floats:
        """Return the solution for columns of right-hand sides, by the inverse if it is known: that takes less time."""
        if "inverse" not in vars(self):
            return self._solved(rhs)
        with blas_thread_limit(self._blas_threads):
            return np.asarray(self.inverse @ rhs)

    def _solved(self, rhs: Floats) -> Floats:
        """Return the solution for columns of right-hand sides, without the inverse."""
        if not rhs.size:
            return rhs
        count = len(self.variables)
        with blas_thread_limit(self._blas_threads):
            top = self._solved_square(rhs[:count])
            offsets = self._of_groups @ (self._border.T @ top - rhs[count:])
            return np.concatenate([top - self._sums @ offsets, offsets])

    # What spans need does not depend on whether the inverse is known: of singular equations the errors would differ.

    def diagonal(self) -> Floats:
        """Return the diagonal of the inverse, for the variables."""
        if self._diagonal is None:
            with blas_thread_limit(self._blas_threads):
                self._inverse_factor()
        return np.asarray(self._diagonal - np.einsum("ij,jk,ik->i", self._sums, self._of_groups, self._sums))

    def quadratic(self, columns: Floats) -> Floats:
        """Return cᵀ A⁻¹ c for each column c, where A are the equations."""
        if self._factor is None or not columns.size:
            return np.asarray(np.einsum("ij,ij->j", columns, self._solved(columns)))
        count = len(self.variables)
        with blas_thread_limit(self._blas_threads):
            half = lapack.dtrtrs(self._factor, columns[:count], lower=False, trans=1)[0]
            of_groups = self._sums.T @ columns[:count] - columns[count:]
            own = np.einsum("ij,ij->j", half, half)
            return np.asarray(own - np.einsum("ij,ij->j", of_groups, self._of_groups @ of_groups))

    def border(self, variables: Indices) -> Floats:
        """Return the membership of variables in the groups."""
        return np.asarray(self.problem.group[variables][:, None] == np.arange(self.problem.groups), dtype=np.float64)

    def columns(self, square: Floats, variables: Indices, places: Indices) -> Floats:
        """Return the equations' columns of some variables of a table."""
        return np.vstack([square[np.ix_(self.places, places)], self.border(variables[places]).T])


class FreeSteps:
    """Steps to the solution of the equations of the free variables, for variations on one table.

    Parameters
    ----------
    inverse : FreeInverse
    variables : int array
        Of the table.
    square : float array
        Their matrix.
    """

    def __init__(self, inverse: FreeInverse, variables: Indices, square: Floats) -> None:
        self.inverse, self.threads = inverse, inverse.threads
        self._before = np.zeros(len(variables), dtype=bool)
        self._before[inverse.places] = True
        columns = inverse.columns(square, variables, np.arange(len(variables)))
        with blas_thread_limit(self.threads):
            self._projected = inverse.inverse @ columns
            self._reduced = square - columns.T @ self._projected
        diagonal = np.arange(len(variables))
        self._reduced[diagonal, diagonal] += inverse.problem.ridge[variables]

    def stepped(self, changes: Floats, gradients: Floats, lower: Floats, upper: Floats) -> Floats:
        """Return changes that are moved towards the solution of the equations, as far as the bounds allow."""
        inverse = self.inverse
        rhs = np.zeros((len(inverse.inverse), len(changes)))
        rhs[: len(inverse.places)] = gradients[:, inverse.places].T
        with blas_thread_limit(self.threads):
            solved = inverse.inverse @ rhs
            remaining = gradients - (self._projected.T @ rhs).T
        moved = changes.copy()
        for row in range(len(changes)):
            free = (changes[row] > lower[row]) & (changes[row] < upper[row])
            step = self._step(free, solved[:, row], remaining[row])
            if step is not None:
                moved[row] = longest_step(changes[row], step, lower[row], upper[row])
        return moved

    def _step(self, free: np.ndarray, solved: Floats, remaining: Floats) -> Floats | None:
        """Return the change that solves the equations of the variables `free`; None if they differ too much."""
        places, step = self.inverse.places, np.zeros(len(free))
        added, removed = np.flatnonzero(free & ~self._before), np.flatnonzero(~free[places])
        found = exchanged_solution(
            self.inverse.inverse, self._projected, self._reduced, solved, remaining, added, removed
        )
        if found is None:
            return None
        step[added] = found[1]
        step[places] = found[0][: len(places)]
        step[places[removed]] = 0.0
        return step if np.isfinite(step).all() else None


def exchanged_solution(
    inverse: Floats,
    projected: Floats,
    reduced: Floats,
    solved: Floats,
    remaining: Floats,
    added: Indices,
    removed: Indices,
) -> tuple[Floats, Floats] | None:
    """Return the solution of the equations after some variables have become free and others have reached a bound.

    Parameters
    ----------
    inverse : float array
        Of the equations of the variables that were free.
    projected, reduced : float arrays
        The solutions for the columns of other variables, and the Schur complement of these.
    solved, remaining : float arrays
        The solution without the change, and what it leaves of the right-hand sides of the others.
    added, removed : int arrays
        Which of the others are free now, and which of those that were free no longer are.

    Returns
    -------
    The solution for the variables that were free, and for those added; None if too many have changed.
    """
    new, both = len(added), len(added) + len(removed)
    if both > MAX_CHANGES:
        return None
    if not both:
        return solved, np.empty(0)
    across = projected[np.ix_(removed, added)]
    system = np.empty((both, both))
    system[:new, :new] = reduced[np.ix_(added, added)]
    system[new:, :new], system[:new, new:] = -across, -across.T
    system[new:, new:] = -inverse[np.ix_(removed, removed)]
    unknown = _solution(system, np.concatenate([remaining[added], -solved[removed]]))
    solved = solved - projected[:, added] @ unknown[:new] - inverse[:, removed] @ unknown[new:]
    return solved, unknown[:new]


def _solution(system: Floats, rhs: Floats) -> Floats:
    """Return the solution of linear equations, of a singular system one of least norm."""
    try:
        return np.asarray(np.linalg.solve(system, rhs))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, rhs, rcond=None)[0])


def _factor(matrix: Floats) -> tuple[Floats | None, Floats]:
    """Return the upper triangular factor of a symmetric matrix; None and the inverse if it is not positive definite."""
    if not len(matrix):
        return None, matrix
    factor, failed = lapack.dpotrf(matrix.T, lower=False, clean=True)
    if failed:
        return None, np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return factor, np.empty((0, 0))


def _product(triangle: Floats) -> Floats:
    """Return the product of an upper triangular matrix, which is overwritten, and its transpose."""
    product: Floats = lapack.dlauum(triangle, lower=False, overwrite_c=True)[0].T  # the values below the diagonal
    for first in range(0, len(product), MIRRORED_ROWS):
        last = first + MIRRORED_ROWS
        product[first:last, last:] = product[last:, first:last].T
        block = np.tril(product[first:last, first:last])
        product[first:last, first:last] = block + np.tril(block, -1).T
    return product


def longest_step(change: Floats, step: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the change after the step, or as much of it as the bounds allow."""
    moving = np.flatnonzero(step)
    way = np.where(step[moving] > 0, upper[moving] - change[moving], change[moving] - lower[moving])
    ratios = way / np.abs(step[moving])
    first = int(ratios.argmin()) if len(moving) else 0
    if not len(moving) or ratios[first] >= 1.0:
        return change + step
    stepped = np.clip(change + ratios[first] * step, lower, upper)
    stepped[moving[first]] = upper[moving[first]] if step[moving[first]] > 0 else lower[moving[first]]
    return np.asarray(stepped)
