"""Samples removed from an optimum, each along the path on which its variable moves to 0.

While one variable moves, the optimum of all others is piecewise linear: the free variables follow linear equations
until one of them reaches a bound, or the slack of a variable at a bound becomes 0. With the inverse of the equations at
the common point, a path of k break points costs k² additions of vectors (`native/removal_path.hpp`); most have less
than ten.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline, seconds_until_deadline
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.common_point import EXACT_TOLERANCE, CommonPoint
from maxmargin.selection.kernel_rows import blas_threads

#: The most break points of a path.
MAX_EXCHANGES = 200

#: Samples whose spans are computed at a time.
COLUMNS = 2048

#: The value beyond 0 at which a path ends whose sign has changed, relative to the scale of the gradient.
MARGIN = 1e-3


class Goal(IntEnum):
    """Where a path ends: `RemovalGoal` in native/solver_loops.hpp."""

    VALUE = 0
    SIGN = 1
    BOUND = 2


class End(IntEnum):
    """How a path has ended: `RemovalEnd` in native/solver_loops.hpp; NOT_BEGUN after the time limit."""

    NOT_BEGUN = -1
    REACHED = 0
    CROSSED = 1
    PROVED = 2
    UNPROVED = 3
    FAILED = 4


class Removed(NamedTuple):
    """The ends of the paths of some samples; arrays have a row for each.

    Attributes
    ----------
    end : int array
        Of `End`.
    values : float array
        linear − ridge b − slack of the variable.
    duals : float array
        Of the variable.
    offsets : float array of shape (samples, groups)
        Of the groups.
    gains : float array
        Of the objective less the linear term and the ridge of the variable.
    exchanges : int array
        How many variables have become free or ceased to be.
    violations : float array
        Of optimality, by the variables of the table.
    unique : bool array
        Whether the offsets are: every group has a free variable.
    changes, slacks : float arrays
        Of the variables of the table.
    missing : float array of shape (samples, groups)
        By how much the totals were to change.
    """

    end: Indices
    values: Floats
    duals: Floats
    offsets: Floats
    gains: Floats
    exchanges: Indices
    violations: Floats
    unique: np.ndarray
    changes: Floats
    slacks: Floats
    missing: Floats

    def at(self, rows: Indices) -> Removed:
        """Return the ends of some paths."""
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in self._fields}
        return self._replace(**parts)

    def updated(self, rows: Indices, ends: Removed) -> Removed:
        """Return the ends of all paths, of which those of some are others."""
        parts: dict[str, Any] = {name: getattr(self, name).copy() for name in self._fields}
        for name, part in parts.items():
            part[rows] = getattr(ends, name)
        return self._replace(**parts)


class RemovalPaths:
    """The paths from a common point, on which some of its variables may change.

    Parameters
    ----------
    point : CommonPoint
        With an inverse of the equations of its free variables, of which every group has one.
    others : int array
        The variables at a bound that may become free.

    Attributes
    ----------
    coupled, projected, reduced : float arrays
        The columns of these variables in the equations of the free ones, their solutions, and the Schur complement.
    """

    def __init__(self, point: CommonPoint, others: Indices) -> None:
        assert point.inverse is not None
        problem = point.problem
        self.point, self.inverse, self.free = point, point.inverse, point.inverse.variables
        self.blas_threads = blas_threads(len(self.free), point.threads)
        self.slack = problem.minus_groups(point.gradient, point.offset)
        self.slack[self.free] = 0.0
        self.others = others[:0]
        self.coupled = self.projected = np.empty((len(self.free) + problem.groups, 0))
        self.reduced = np.empty((0, 0))
        self.add(others)

    def add(self, others: Indices) -> None:
        """Let more variables become free."""
        point = self.point
        coupled, before = self._couplings(others), len(self.others)
        projected = self._solved(coupled)
        self.coupled, self.projected = np.hstack([self.coupled, coupled]), np.hstack([self.projected, projected])
        self.others = np.concatenate([self.others, others])
        reduced = np.empty((len(self.others), len(self.others)))
        reduced[:before, :before] = self.reduced
        reduced[:, before:] = self.point.rows.block(others, self.others).T
        with blas_thread_limit(self.blas_threads):
            reduced[:, before:] -= self.coupled.T @ projected
        reduced[before:, :before] = reduced[:before, before:].T
        own = np.arange(before, len(self.others))
        reduced[own, own] += point.problem.ridge[others]
        self.reduced = reduced
        self.variables = at = np.concatenate([self.free, self.others])
        self.place = np.full(point.problem.size, -1, dtype=np.int64)
        self.place[at] = np.arange(len(at))
        self._table: _native.RemovalTable | None = None

    def _native_table(self) -> _native.RemovalTable:
        """Return the variables and the columns of their equations for native calls."""
        point, at = self.point, self.variables
        return _native.RemovalTable(
            columns=self._columns(),
            dual=point.dual[at],
            slack=self.slack[at],
            lower=point.problem.lower[at],
            upper=point.problem.upper[at],
            group=point.problem.group[at],
            groups=point.problem.groups,
            curvature=float(point.problem.curvature.max()),
        )

    def _couplings(self, variables: Indices) -> Floats:
        """Return the matrix and the groups between the free variables and others."""
        block = self.point.rows.block(self.free, variables)
        return np.vstack([block, self.inverse.border(variables).T])

    def _solved(self, couplings: Floats) -> Floats:
        return self.inverse.solve(couplings)

    def _columns(self) -> Floats:
        """Return the columns of the equations between the values of the variables, one in each row."""
        free, size = len(self.free), len(self.variables)
        inverse, projected = self.inverse.inverse, self.projected
        columns = np.empty((size + self.point.problem.groups,) * 2)
        totals = slice(size, None)
        columns[:free, :free] = -inverse[:free, :free]
        columns[:free, free:size] = projected[:free]
        columns[:free, totals] = -inverse[:free, free:]
        columns[totals, :free] = inverse[free:, :free]
        columns[totals, free:size] = -projected[free:]
        columns[totals, totals] = inverse[free:, free:]
        columns[free:size, :free] = -projected[:free].T
        columns[free:size, totals] = -projected[free:].T
        columns[free:size, free:size] = -self.reduced
        return columns

    def remove(
        self, variables: Indices, goal: Goal, *, missing: Floats | None = None, gains: Floats | None = None
    ) -> Removed:
        """Follow the paths of some variables, none of which is 0.

        Parameters
        ----------
        variables : int array
        goal : Goal
        missing : float array of shape (variables, groups), optional
            How the totals change on the way; by default they stay.
        gains : float array, optional
            Of the objective without the terms of the sample that prove a sign, for `Goal.BOUND`.
        """
        check_deadline()
        point, count, size = self.point, len(variables), len(self.variables)
        problem, groups = point.problem, point.problem.groups
        place = self.place[variables]
        own, response = self._own_columns(variables[place < 0])
        responses = np.zeros(count)
        responses[place < 0] = response
        outcome = np.full((count, 3), -1, dtype=np.int64)
        numbers = np.zeros((count, 4 + groups))
        changes, slacks = np.zeros((count, size)), np.zeros((count, size))
        samples = _native.Removals(
            place=place,
            twin=self._twins(variables),
            own_columns=own,
            response=responses,
            dual=point.dual[variables],
            slack=self.slack[variables],
            linear=problem.linear[variables],
            ridge=problem.ridge[variables],
            gain=np.zeros(count) if gains is None else gains,
            margin=MARGIN * point.scale,
            missing=np.empty((0, groups)) if missing is None else missing,
        )
        results = _native.RemovalResults(outcome=outcome, numbers=numbers, changes=changes, slacks=slacks)
        seconds = seconds_until_deadline()
        if self._table is None:
            self._table = self._native_table()
        _native.remove_samples(self._table, samples, results, int(goal), MAX_EXCHANGES, seconds, point.threads)
        check_deadline()
        return Removed(
            end=outcome[:, 0],
            values=numbers[:, 0],
            duals=(1.0 - numbers[:, 1]) * point.dual[variables],
            offsets=point.offset + numbers[:, 4:],
            gains=numbers[:, 2],
            exchanges=outcome[:, 1],
            violations=numbers[:, 3],
            unique=outcome[:, 2] == 1,
            changes=changes,
            slacks=slacks,
            missing=np.zeros((count, groups)) if missing is None else missing,
        )

    def spans(self, variables: Indices) -> Floats:
        """Return the squared spans of variables.

        That is the squared distance of the sample from the affine span of the free support vectors; of the others, if
        it is one of them.
        """
        place, spans = self.place[variables], np.empty(len(variables))
        is_free = (place >= 0) & (place < len(self.free))
        with np.errstate(divide="ignore"):
            spans[is_free] = 1.0 / self.inverse.diagonal()[place[is_free]]
        for first in range(0, int((~is_free).sum()), COLUMNS):
            some = np.flatnonzero(~is_free)[first : first + COLUMNS]
            own = variables[some]
            spans[some] = self.point.problem.curvature[own] - self.inverse.quadratic(self._couplings(own))
        return np.asarray(np.maximum(spans - self.point.problem.ridge[variables], 0.0))

    def _own_columns(self, variables: Indices) -> tuple[Floats, Floats]:
        """Return the columns of variables that are not in the table, one in each row, and their own slacks there."""
        point, free, size = self.point, len(self.free), len(self.variables)
        coupled = self._couplings(variables)
        solved = self._solved(coupled)
        own = np.empty((len(variables), size + point.problem.groups))
        own[:, :free], own[:, size:] = -solved[:free].T, -solved[free:].T
        if len(self.others):
            with blas_thread_limit(self.blas_threads):
                own[:, free:size] = coupled.T @ self.projected
            own[:, free:size] -= point.rows.block(self.others, variables).T
        return own, np.einsum("ij,ij->j", coupled, solved) - point.problem.curvature[variables]

    def _twins(self, variables: Indices) -> Indices:
        """Return the place of the other variable of the same sample, −1 if there is none."""
        other = self.others_of(variables)
        return np.where(other >= 0, self.place[other], -1)

    def others_of(self, variables: Indices) -> Indices:
        """Return the other variable of the same sample, −1 if there is none."""
        point = self.point
        first = np.flatnonzero(point.second >= 0)
        other = np.full(point.problem.size, -1, dtype=np.int64)
        other[first], other[point.second[first]] = point.second[first], first
        return other[variables]


def can_remove(point: CommonPoint) -> bool:
    """Whether there are paths from a point: its equations are solved, and every group has a free variable."""
    if point.inverse is None or (point.problem.ungrouped and point.problem.groups):
        return False
    free = point.inverse.variables
    if not len(free) or len(np.unique(point.problem.group[free])) < point.problem.groups:
        return False
    return not point.violators(point.dual, point.gradient, point.offset, EXACT_TOLERANCE).any()
