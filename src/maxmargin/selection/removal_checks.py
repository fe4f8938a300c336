"""Whether the ends of the paths along which samples are removed are optima of all variables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.removal_errors import SlackErrors
from maxmargin.selection.removal_paths import End, RemovalPaths, Removed
from maxmargin.selection.removal_refinement import refined

#: The largest violation of optimality at the end of a path, relative to the unit of decision values,
ROUNDING = 1e-7

#: or to the sum of the terms of a slack, if that is more: no end is better than the rounding errors of that sum;
SUM_ROUNDING = 16 * DOUBLE_EPSILON

#: and never more than this share of the tolerance.
TOLERATED = 0.1

#: The largest difference from a total, relative to the largest distance of two bounds.
TOTAL_ROUNDING = 1e-9

#: Refinements of an end that violates it.
REFINEMENTS = 2

#: Columns that are checked at a time.
COLUMNS = 2048

#: The largest relative error of one rounding to single precision.
SINGLE_ROUNDOFF = 2.0**-24

#: Products in single precision are added up in double precision after so many terms.
PIECE = 256

#: Changes of some variables, a row for each path, and these variables.
Changes = list[tuple[np.ndarray, Indices]]


class CheckedEnds(NamedTuple):
    """The ends of some paths, checked.

    Attributes
    ----------
    removed : Removed
        Some of them refined.
    optimal : bool array
        Which are optima of all variables.
    late : bool array
        Which of the variables that are not in the table violate the optimality conditions at ends that are optima of
        the table: a row for each path.
    shares : float array
        The shares of the variables that are not in the table in the duality gap, added up.
    """

    removed: Removed
    optimal: np.ndarray
    late: np.ndarray
    shares: Floats


class OptimalityCheck:
    """The check of the ends of some paths.

    Parameters
    ----------
    paths : RemovalPaths
        To which no variables are added any more.
    unit : float
        Of decision values, in slacks.
    """

    def __init__(self, paths: RemovalPaths, unit: float) -> None:
        self.paths, self.errors = paths, SlackErrors(paths)
        point = paths.point
        self._largest = float(np.abs(point.problem.matrix.diagonal()).max())
        of_sums = SUM_ROUNDING * (self._largest * float(np.abs(point.dual).sum()) + point.scale)
        self._width = float((point.problem.upper - point.problem.lower).max())
        tolerated = TOLERATED * point.tolerance * unit
        self.limit = min(max(ROUNDING * unit, of_sums), tolerated)

    def check(self, removed: Removed, variables: Indices) -> CheckedEnds:
        """Check the ends of paths from their kernel values."""
        ended = (removed.end == End.REACHED) | (removed.end == End.CROSSED)
        removed, rounded = self._refined(removed, variables, ended)
        known = ended & ~rounded & (removed.violations <= self.limit)
        late, shares = self._violations_of_others(removed, self._changes(removed, variables), variables)
        late[~known] = False
        return CheckedEnds(removed, known & ~late.any(axis=1), late, shares)

    def _refined(self, removed: Removed, variables: Indices, ended: np.ndarray) -> tuple[Removed, np.ndarray]:
        """Return the ends of paths, and which have slacks that are not those of their dual variables.

        Rounding errors have grown at these. A bound decides for most paths; the ends of the others are refined.
        """
        by_ridge = (np.abs(removed.changes) * self.errors.ridge).max(axis=1, initial=0.0)
        rounded: np.ndarray = ~(self.errors.norms(removed, variables) + by_ridge <= self.limit)
        rounded |= self._misses_totals(removed, variables)
        for refinement in range(REFINEMENTS + 1):
            rows = np.flatnonzero(rounded & ended)
            if not len(rows):
                break
            some = removed.at(rows)
            if refinement:
                some = refined(self.errors, some, variables[rows])
                removed = removed.updated(rows, some)
            errors = np.abs(self.errors.errors(some, variables[rows])).max(axis=1, initial=0.0)
            rounded[rows] = ~(errors <= self.limit) | self._misses_totals(some, variables[rows])
        return removed, rounded

    def _misses_totals(self, removed: Removed, variables: Indices) -> np.ndarray:
        """Return at which ends the sums of the groups differ from their totals by more than rounding errors."""
        if not self.paths.point.problem.groups:
            return np.zeros(len(variables), dtype=bool)
        left = np.abs(self.errors.totals_left(removed, variables)).max(axis=1)
        missed: np.ndarray = ~(left <= TOTAL_ROUNDING * self._width)
        return missed

    @np.errstate(over="ignore", invalid="ignore")
    def _violations_of_others(
        self, removed: Removed, changes: Changes, variables: Indices
    ) -> tuple[np.ndarray, Floats]:
        """Return which variables that are not in the table violate the optimality conditions, and their shares.

        Single precision decides for most of them.
        """
        problem, limit = self.paths.point.problem, self.limit
        shares, width = np.zeros(len(variables)), problem.upper - problem.lower
        rest, late = np.flatnonzero(self.paths.place < 0), np.zeros((len(variables), problem.size), dtype=bool)
        second = self.paths.others_of(variables)
        sums = sum(np.abs(part).sum(axis=1) for part, _ in changes)
        error = SINGLE_ROUNDOFF * (PIECE + 8) * self._largest * float(np.max(sums, initial=0.0))
        single = [(part.astype(np.float32), of) for part, of in changes]
        for first in range(0, len(rest), COLUMNS):
            some = rest[first : first + COLUMNS]
            blocks = [self.paths.point.rows.block(of, some) for _, of in changes]
            slacks = np.tile(self.paths.slack[some].astype(np.float32), (len(variables), 1))
            if problem.groups:
                slacks -= (removed.offsets - self.paths.point.offset).astype(np.float32)[:, problem.group[some]]
            slacks -= self._single_product(single, blocks)
            terms = np.abs(slacks).max(initial=0.0) + np.abs(self.paths.slack[some]).max(initial=0.0)
            rounding = error + 4 * SINGLE_ROUNDOFF * float(terms)
            rises, falls = (
                self.paths.point.dual[some] < problem.upper[some],
                self.paths.point.dual[some] > problem.lower[some],
            )
            # What overflows in single precision is doubtful.
            doubtful = (~(slacks < -rounding) & rises) | (~(slacks > rounding) & falls)
            row, column = np.nonzero(doubtful)
            exact = self.paths.slack[some[column]]
            if problem.groups:
                exact = exact - (removed.offsets - self.paths.point.offset)[row, problem.group[some[column]]]
            for pairs in range(0, len(row), COLUMNS):
                part = slice(pairs, pairs + COLUMNS)
                for (each, _), block in zip(changes, blocks, strict=True):
                    exact[part] -= np.einsum("ij,ij->i", each[row[part]], block.T[column[part]])
            excess = np.maximum(np.where(rises[column], exact, 0.0), np.where(falls[column], -exact, 0.0))
            excess[(some[column] == variables[row]) | (some[column] == second[row])] = 0.0
            late[row, some[column]] = excess > limit
            np.add.at(shares, row, np.maximum(excess, 0.0) * width[some[column]])
        return late, shares

    def _single_product(self, changes: Changes, blocks: list[Floats]) -> np.ndarray:
        """Return the product of changes and blocks, added up in pieces so that rounding errors are small."""
        product = np.zeros((len(changes[0][0]), blocks[0].shape[1]), dtype=np.float64)
        with blas_thread_limit(self.paths.blas_threads):
            for (part, _), block in zip(changes, blocks, strict=True):
                values = block.astype(np.float32)
                for first in range(0, len(block), PIECE):
                    product += part[:, first : first + PIECE] @ values[first : first + PIECE]
        return product.astype(np.float32)

    def _changes(self, removed: Removed, variables: Indices) -> Changes:
        """Return the changes of the variables of the table, and of those removed that are not in it, with these."""
        outside = np.flatnonzero(self.paths.place[variables] < 0)
        own = np.zeros((len(variables), len(outside)))
        own[outside, np.arange(len(outside))] = (removed.duals - self.paths.point.dual[variables])[outside]
        return [(removed.changes, self.paths.variables), (own, variables[outside])]
