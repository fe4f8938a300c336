"""Refinement of the ends of paths: the equations of the variables that are free there, solved for the errors left.

The equations of a path have a small ridge, and rounding errors grow with its break points. A step of the equations at
the end, with the errors of the slacks as their right-hand side, removes most of both.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.resources import blas_thread_limit
from maxmargin.selection.free_equations import exchanged_solution
from maxmargin.selection.removal_errors import SlackErrors
from maxmargin.selection.removal_paths import Removed

#: Rounding errors of a dual variable at the end of a path, relative to the distance of its bounds.
CLOSE = 1e-8


def refined(errors: SlackErrors, removed: Removed, variables: Indices) -> Removed:
    """Return refined ends of paths: steps that would pass a bound are not taken."""
    paths, at = errors.paths, errors.paths.variables
    problem, dual = paths.point.problem, paths.point.dual[at]
    lower, upper, group = problem.lower[at], problem.upper[at], problem.group[at]
    left, totals = errors.errors(removed, variables), errors.totals_left(removed, variables)
    close = CLOSE * (upper - lower)
    ends = dual + removed.changes
    own = at == variables[:, None]
    free = (ends > lower) & (ends < upper) & (removed.slacks == 0.0) & ~own
    steps, shifts = np.zeros(left.shape), np.zeros(removed.offsets.shape)
    for row in range(len(variables)):
        found = _solution(errors, free[row], left[row], totals[row])
        after = ends[row] if found is None else ends[row] + found[0]
        if found is not None and ((after >= lower - close) & (after <= upper + close)).all():
            steps[row], shifts[row] = np.clip(after, lower, upper) - ends[row], found[1]
    with blas_thread_limit(paths.blas_threads):
        slacks = removed.slacks + left - steps @ paths.point.rows.block(at, at) - problem.ridge[at] * steps
    if problem.groups:
        slacks -= shifts[:, group]
    slacks[free] = 0.0
    ends = ends + steps
    out = np.maximum(np.where(ends < upper, slacks, 0.0), np.where(ends > lower, -slacks, 0.0))
    better = removed._replace(changes=removed.changes + steps, offsets=removed.offsets + shifts, slacks=slacks)
    violations = np.where(own, 0.0, out).max(axis=1, initial=0.0)
    inside = free & (upper - ends > close) & (ends - lower > close)
    unique = np.ones(len(variables), dtype=bool)
    for g in range(problem.groups):
        unique &= inside[:, group == g].any(axis=1)
    better = better._replace(unique=unique)
    return better._replace(values=values_at(errors, better, variables), violations=violations)


def _solution(errors: SlackErrors, free: np.ndarray, left: Floats, totals: Floats) -> tuple[Floats, Floats] | None:
    """Return the changes of the variables and of the offsets by which slacks become 0 and totals are kept."""
    paths = errors.paths
    before, inverse = len(paths.free), paths.inverse.inverse
    solved = inverse @ np.concatenate([left[:before], totals])
    remaining = left[before:] - paths.coupled.T @ solved
    added, removed = np.flatnonzero(free[before:]), np.flatnonzero(~free[:before])
    found = exchanged_solution(inverse, paths.projected, paths.reduced, solved, remaining, added, removed)
    if found is None or not np.isfinite(found[0]).all():
        return None
    step = np.zeros(len(free))
    step[:before], step[before + added] = found[0][:before], found[1]
    step[removed] = 0.0
    return step, found[0][before:]


def values_at(errors: SlackErrors, removed: Removed, variables: Indices) -> Floats:
    """Return the values at the ends of paths, from their kernel values."""
    paths, point = errors.paths, errors.paths.point
    problem = point.problem
    change = removed.duals - point.dual[variables]
    product = np.einsum("ij,ij->i", point.rows.block(variables, paths.variables), removed.changes)
    product += np.where(paths.place[variables] < 0, problem.matrix.diagonal()[variables] * change, 0.0)
    slack = problem.minus_groups(point.gradient, point.offset)[variables] - product - problem.ridge[variables] * change
    if problem.groups:
        rows = np.arange(len(variables))
        slack -= (removed.offsets - point.offset)[rows, problem.group[variables]]
    return np.asarray(problem.linear[variables] - problem.ridge[variables] * removed.duals - slack)
