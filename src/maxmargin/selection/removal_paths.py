"""Samples removed from an optimum, each along the path on which its variable moves to 0.

While one variable moves, the optimum of all others is piecewise linear: the free variables follow linear equations
until one of them reaches a bound, or the slack of a variable at a bound becomes 0. With the inverse of the equations at
the common point, a path of k break points costs k² additions of vectors (`native/removal_path.hpp`); most have less
than ten.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline, seconds_until_deadline
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.common_point import EXACT_TOLERANCE, CommonPoint, moved

#: The most break points of a path.
MAX_EXCHANGES = 200

#: By how much a value must differ from 0 for its sign to be proved, relative to the scale of the gradient.
MARGIN = 1e-9

#: The largest violation of optimality at the end of a path that is due to rounding, relative to the scale.
ROUNDING = 1e-8


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


@dataclass(frozen=True)
class Removed:
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
    changes, slacks : float arrays
        Of the variables of the table.
    """

    end: Indices
    values: Floats
    duals: Floats
    offsets: Floats
    gains: Floats
    exchanges: Indices
    changes: Floats
    slacks: Floats


class Ends(NamedTuple):
    """The points at the ends of some paths; arrays have a row for each.

    Attributes
    ----------
    duals, gradients : float arrays
    late : bool array
        Which variables violate the optimality conditions; the one that was removed does not count.
    unique : bool array of shape (samples,)
        Whether the offsets are: every group has a free variable.
    """

    duals: Floats
    gradients: Floats
    late: np.ndarray
    unique: np.ndarray


class RemovalPaths:
    """The paths from a common point, on which some of its variables may change.

    Parameters
    ----------
    point : CommonPoint
        With an inverse of the equations of its free variables, of which every group has one.
    others : int array
        The variables at a bound that may become free.
    """

    def __init__(self, point: CommonPoint, others: Indices) -> None:
        assert point.inverse is not None
        problem = point.problem
        self.point, self.inverse = point, point.inverse
        self.free, self.others = point.inverse.variables, others
        self.variables = np.concatenate([self.free, others])
        self.place = np.full(problem.size, -1, dtype=np.int64)
        self.place[self.variables] = np.arange(len(self.variables))
        self.slack = problem.minus_groups(point.gradient, point.offset)
        self.slack[self.free] = 0.0
        self._coupled = self._couplings(others)
        self._projected = self._solved(self._coupled)
        at = self.variables
        self._table = _native.RemovalTable(
            columns=self._columns(),
            dual=point.dual[at],
            slack=self.slack[at],
            lower=problem.lower[at],
            upper=problem.upper[at],
            groups=problem.groups,
            curvature=float(problem.curvature.max()),
        )

    def _couplings(self, variables: Indices) -> Floats:
        """Return the matrix and the groups between the free variables and others."""
        block = self.point.table.values(self.free, variables)
        return np.vstack([block, self.inverse.border(variables).T])

    def _solved(self, couplings: Floats) -> Floats:
        with blas_thread_limit(self.point.threads):
            return np.asarray(self.inverse.inverse @ couplings)

    def _columns(self) -> Floats:
        """Return the columns of the equations between the values of the variables, one in each row."""
        point, free, size = self.point, len(self.free), len(self.variables)
        inverse, projected = self.inverse.inverse, self._projected
        columns = np.empty((size + point.problem.groups,) * 2)
        totals = slice(size, None)
        columns[:free, :free] = -inverse[:free, :free]
        columns[:free, free:size] = projected[:free]
        columns[:free, totals] = -inverse[:free, free:]
        columns[totals, :free] = inverse[free:, :free]
        columns[totals, free:size] = -projected[free:]
        columns[totals, totals] = inverse[free:, free:]
        columns[free:size, :free] = -projected[:free].T
        columns[free:size, totals] = -projected[free:].T
        with blas_thread_limit(point.threads):
            columns[free:size, free:size] = self._coupled.T @ projected
        columns[free:size, free:size] -= point.table.values(self.others, self.others)
        own = np.arange(free, size)
        columns[own, own] -= point.problem.ridge[self.others]
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
        outcome = np.full((count, 2), -1, dtype=np.int64)
        numbers = np.zeros((count, 3 + groups))
        wanted = (count if goal is not Goal.BOUND else 0, size)
        changes, slacks = np.zeros(wanted), np.zeros(wanted)
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
        _native.remove_samples(self._table, samples, results, int(goal), MAX_EXCHANGES, seconds, point.threads)
        check_deadline()
        duals = (1.0 - numbers[:, 1]) * point.dual[variables]
        offsets = point.offset + numbers[:, 3:]
        return Removed(outcome[:, 0], numbers[:, 0], duals, offsets, numbers[:, 2], outcome[:, 1], changes, slacks)

    def _own_columns(self, variables: Indices) -> tuple[Floats, Floats]:
        """Return the columns of variables that are not in the table, one in each row, and their own slacks there."""
        point, free = self.point, len(self.free)
        coupled = self._couplings(variables)
        solved = self._solved(coupled)
        size = len(self.variables)
        own = np.empty((len(variables), size + point.problem.groups))
        own[:, :free], own[:, size:] = -solved[:free].T, -solved[free:].T
        with blas_thread_limit(point.threads):
            own[:, free:size] = coupled.T @ self._projected
        own[:, free:size] -= point.table.values(self.others, variables).T
        response = np.einsum("ij,ij->j", coupled, solved)
        response -= point.problem.curvature[variables]
        return own, response

    def _twins(self, variables: Indices) -> Indices:
        """Return the place of the other variable of the same sample, −1 if there is none."""
        other = self._others_of(variables)
        return np.where(other >= 0, self.place[other], -1)

    def _others_of(self, variables: Indices) -> Indices:
        """Return the other variable of the same sample, −1 if there is none."""
        point = self.point
        first = np.flatnonzero(point.second >= 0)
        other = np.full(point.problem.size, -1, dtype=np.int64)
        other[first], other[point.second[first]] = point.second[first], first
        return other[variables]

    def ends(self, removed: Removed, variables: Indices) -> Ends:
        """Return the dual points at the ends of paths, with gradients that are computed from kernel values."""
        point, at = self.point, self.variables
        problem, rows = point.problem, np.arange(len(variables))
        outside = np.flatnonzero(self.place[variables] < 0)
        extended = point.table.extended(np.sort(variables[outside]))
        changes = np.zeros((len(variables), len(extended.variables)))
        places = np.full(problem.size, -1, dtype=np.int64)
        places[extended.variables] = np.arange(len(extended.variables))
        changes[:, places[at]] = removed.changes
        changes[outside, places[variables[outside]]] = (removed.duals - point.dual[variables])[outside]
        gradients = extended.gradients(point.gradient, changes)
        duals = np.tile(point.dual, (len(variables), 1))
        duals[:, at] = moved(point.dual[at], removed.changes, problem.lower[at], problem.upper[at])
        duals[rows, variables] = removed.duals
        slack = gradients - removed.offsets[:, problem.group] if problem.groups else gradients
        limit = ROUNDING * point.scale
        late = (slack > limit) & (duals < problem.upper)
        late |= (slack < -limit) & (duals > problem.lower)
        late[rows, variables] = False
        second = self._others_of(variables)
        late[rows[second >= 0], second[second >= 0]] = False
        free = (duals > problem.lower) & (duals < problem.upper)
        free[rows, variables] = False
        unique = np.ones(len(variables), dtype=bool)
        for g in range(problem.groups):
            unique &= free[:, problem.group == g].any(axis=1)
        return Ends(duals, gradients, late, unique)


def can_remove(point: CommonPoint) -> bool:
    """Whether there are paths from a point: its equations are solved, and every group has a free variable."""
    if point.inverse is None or (point.problem.ungrouped and point.problem.groups):
        return False
    free = point.inverse.variables
    if not len(free) or len(np.unique(point.problem.group[free])) < point.problem.groups:
        return False
    return not point.violators(point.dual, point.gradient, point.offset, EXACT_TOLERANCE).any()
