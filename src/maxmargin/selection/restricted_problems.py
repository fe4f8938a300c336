"""Many variations of one dual problem, each solved over the same few variables from the same point.

A fold of one sample, or a question about it, changes the bounds, the linear term or the total of a problem a little:
the solution moves in the variables that are free or close to leaving their bounds. All variations are posed in the
change of these variables, on one table of kernel values, and solved in native calls on all threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline, seconds_until_deadline
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.kernel_rows import KernelRows
from maxmargin.solvers.smo.small_problem_batch import MAX_FREE, NO_INDICES, NO_KINKS, SmallProblemBatch

#: Pair steps after which the point of a variation is returned as it is: for each variable, and in an exact solution.
STEPS_PER_VARIABLE, MOST_STEPS = 100, 200_000

#: By how much the sum that is needed may exceed what the bounds allow, relative to it: rounding errors.
RELATIVE_SUM_ERROR = 1e-9


class KernelTable:
    """Some variables, and their values with each other, which are computed when they are first needed.

    Parameters
    ----------
    rows : KernelRows
    variables : int array
        In ascending order.
    """

    def __init__(self, rows: KernelRows, variables: Indices) -> None:
        self.rows, self.variables = rows, variables

    @cached_property
    def square(self) -> Floats:
        """The values of the variables with each other."""
        return self.rows.block(self.variables, self.variables)

    def extended(self, others: Indices) -> ExtendedTable:
        """Return the table of these variables and, after them, others."""
        if not len(others):
            return ExtendedTable(self.rows, self.variables, self.square)
        across = self.rows.block(self.variables, others)
        own = self.rows.problem.matrix.block(others, others)
        square = np.block([[self.square, across], [across.T, own]])
        return ExtendedTable(self.rows, np.concatenate([self.variables, others]), square)


@dataclass(frozen=True)
class ExtendedTable:
    """The values of the variables of a table and a few more."""

    rows: KernelRows
    variables: Indices
    square: Floats

    def gradients(self, gradient: Floats, changes: Floats) -> Floats:
        """Return the gradient after each of some changes of the variables."""
        problem = self.rows.problem
        after = np.tile(gradient, (len(changes), 1))
        after[:, self.variables] -= problem.ridge[self.variables] * changes
        if self.rows.add(self.variables):
            with blas_thread_limit(self.rows.threads):
                after -= self.rows.product(changes, self.variables)
            return after
        everything = np.arange(problem.size)
        for row, change in zip(after, changes, strict=True):
            moved = np.flatnonzero(change)
            row -= problem.matrix.partial_product(everything, self.variables[moved], change[moved])
        return after


class SolvedVariations(NamedTuple):
    """Changes and gradients of the variables, offsets of the groups, and which variations have a feasible point."""

    changes: Floats
    gradients: Floats
    offsets: Floats
    feasible: np.ndarray


@dataclass(frozen=True)
class Variations:
    """Variations of a problem in the change of some variables; arrays have a row for each variation.

    Attributes
    ----------
    table : ExtendedTable
        Of these variables.
    gradient, lower, upper, ridge : float arrays
        At the common point; the bounds of the change.
    missing : float array of shape (variations, groups)
        What the changes of each group must sum to.
    near : float array, optional
        Changes to start from; by default none.
    """

    table: ExtendedTable
    gradient: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    missing: Floats
    near: Floats | None = None

    def solve(self, tolerance: float, exact: bool, threads: int, max_steps: int | None = None) -> SolvedVariations:
        """Return the solutions.

        `exact` solves the equations of few free variables as well. Points after `max_steps` are returned as they are.
        """
        problem, (count, size) = self.table.rows.problem, self.gradient.shape
        group = problem.group[self.table.variables]
        near = np.zeros((count, size)) if self.near is None else self.near
        start, feasible = np.clip(near, self.lower, self.upper), np.ones(count, dtype=bool)
        for g in range(problem.groups):
            restore_sums(start, feasible, self, g, group == g)
        start[~feasible] = 0.0
        batch = SmallProblemBatch(
            values=self.table.square,
            edges=size * np.arange(count + 1),
            rows=NO_INDICES,
            linear=self.gradient.ravel(),
            lower=np.minimum(self.lower, start).ravel(),
            upper=np.maximum(self.upper, start).ravel(),
            ridge=self.ridge.ravel(),
            start=start.ravel(),
            groups=problem.groups,
            group=np.tile(group, count) if problem.groups > 1 else np.empty(0, dtype=np.int32),
            kink=NO_KINKS,
        )
        check_deadline()
        left = seconds_until_deadline()
        found = batch.solve(
            tolerance,
            threads,
            max_free=MAX_FREE if exact else 0,
            max_steps=max_steps or (MOST_STEPS if exact else STEPS_PER_VARIABLE * size),
            deadline=None if np.isinf(left) else perf_counter() + left,
        )
        if found.interrupted:
            raise KeyboardInterrupt
        check_deadline()
        return SolvedVariations(
            found.dual.reshape(count, size), found.gradient.reshape(count, size), found.offsets, feasible
        )


def restore_sums(start: Floats, feasible: np.ndarray, of: Variations, g: int, members: np.ndarray) -> None:
    """Move changes of the variables of a group, within bounds, so that they sum to what is missing.

    The variables of the steepest ascent are moved to their bounds one after the other, so that few of them change.
    """
    lower, upper, now = of.lower[:, members], of.upper[:, members], start[:, members]
    missing = of.missing[:, g] - now.sum(axis=1)
    rows = np.flatnonzero(missing)
    if not len(rows):
        return
    sign = np.sign(missing[rows])[:, None]
    room = np.where(sign > 0, upper[rows] - now[rows], now[rows] - lower[rows])
    order = np.argsort(-sign * of.gradient[rows][:, members], axis=1, kind="stable")
    room = np.take_along_axis(room, order, axis=1)
    reached = np.cumsum(room, axis=1)
    needed = np.abs(missing[rows])[:, None]
    largest = reached[:, -1:] if reached.shape[1] else np.zeros((len(rows), 1))
    feasible[rows[(largest < needed * (1.0 - RELATIVE_SUM_ERROR)).ravel()]] = False
    steps = np.zeros_like(room)
    np.put_along_axis(steps, order, sign * np.clip(needed - (reached - room), 0.0, room), axis=1)
    now[rows] += steps
    start[:, members] = np.clip(now, lower, upper)
