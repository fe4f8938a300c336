"""The linear equations of the free variables, for many variations of a problem whose free variables differ little.

At the optimum of a variation the gradient of its free variables is the offset of their group. With the inverse of the
equations at the common point, those of a variation take a system of as many unknowns as variables have become free or
have reached a bound since (a Schur complement).
"""

from __future__ import annotations

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
    """The inverse of the equations of the free variables.

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
    inverse : float array
        Of the matrix of the variables, bordered by the groups.
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
        with blas_thread_limit(blas_threads(count, threads)):
            self.inverse = _bordered_inverse(square, self.border(variables))

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


def _bordered_inverse(matrix: Floats, border: Floats) -> Floats:
    """Return the inverse of [M E; Eᵀ 0], with a diagonal value of 1 for empty columns of E."""
    count, groups = border.shape
    empty = ~border.any(axis=0)
    inverse = np.zeros((count + groups, count + groups))
    own = _inverse(matrix)
    sums = own @ border
    of_groups = border.T @ sums
    of_groups[empty, empty] = -1.0
    of_groups = np.asarray(np.linalg.inv(of_groups), dtype=np.float64)
    weights = sums @ of_groups
    np.subtract(own, weights @ sums.T, out=inverse[:count, :count])
    inverse[:count, count:], inverse[count:, :count] = weights, weights.T
    inverse[count:, count:] = -of_groups
    return inverse


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, twice as fast if it is positive definite."""
    if not len(matrix):
        return matrix
    factor, failed = lapack.dpotrf(matrix.T, lower=False)
    if failed:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    inverse: Floats = lapack.dpotri(factor, lower=False, overwrite_c=True)[0].T  # the values below the diagonal
    for first in range(0, len(matrix), MIRRORED_ROWS):
        last = first + MIRRORED_ROWS
        inverse[first:last, last:] = inverse[last:, first:last].T
        block = np.tril(inverse[first:last, first:last])
        inverse[first:last, first:last] = block + np.tril(block, -1).T
    return inverse


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
