"""Proofs of signs by the duality gap at the ends of paths, of problems with at most one group.

Let a be the variable of the sample at the end, v the value there and G the gap of the problem in which the variable is
a: the objective without the sample is D + a v + G, with the dual value D. Moving the variable on by t, against a free
one of its group, raises D by at least t |v| − ½ t² d, d the curvature of that pair. That is a lower bound of the least
objective of functions whose value is 0: if it exceeds the objective, v has the sign of the model without the sample
(docs/mathematics.md). Nothing is assumed about the accuracy of the path, only sums are rounded.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.selection.common_point import ROUNDING
from maxmargin.selection.removal_errors import SlackErrors
from maxmargin.selection.removal_paths import Removed
from maxmargin.selection.removal_refinement import refined, values_at


def feasible(errors: SlackErrors, removed: Removed, variables: Indices) -> tuple[Removed, Indices]:
    """Return the ends of paths within the bounds and with the totals, and the variable farthest from its bounds.

    The second is a place in the table; where it is at a bound as well, no variable is free.
    """
    paths, at = errors.paths, errors.paths.variables
    point, problem = paths.point, paths.point.problem
    dual, rows = point.dual[at], np.arange(len(variables))
    if not len(at):
        return removed, np.zeros(len(variables), dtype=np.int64)
    changes = np.clip(dual + removed.changes, problem.lower[at], problem.upper[at]) - dual
    place = paths.place[variables]
    inside = np.flatnonzero(place >= 0)
    changes[inside, place[inside]] = (removed.duals - point.dual[variables])[inside]
    room = np.minimum(dual + changes - problem.lower[at], problem.upper[at] - dual - changes)
    room[inside, place[inside]] = 0.0
    partner = np.argmax(room, axis=1)
    if problem.groups:
        missing = float(problem.total[0] - problem.group_sums(point.dual)[0]) - changes.sum(axis=1)
        missing[place < 0] -= (removed.duals - point.dual[variables])[place < 0]
        changes[rows, partner] += missing
    return removed._replace(changes=changes), partner


def proved_signs(
    errors: SlackErrors, removed: Removed, variables: Indices, partner: Indices, shares: Floats
) -> tuple[Removed, np.ndarray]:
    """Return the ends of paths with their values from kernel values, and which signs are proved.

    Parameters
    ----------
    errors : SlackErrors
    removed : Removed
        Feasible ends.
    variables, partner : int arrays
        Of the samples, and those far from their bounds.
    shares : float array
        Of the variables that are not in the table in the gap.
    """
    problem, at = errors.paths.point.problem, errors.paths.variables
    removed = removed._replace(values=values_at(errors, removed, variables))
    width = problem.upper[at] - problem.lower[at]
    by_ridge = np.abs(removed.changes) * errors.ridge
    others = errors.norms(removed, variables) + np.sqrt(len(at)) * removed.violations
    gaps = by_ridge @ width + np.sqrt(len(at)) * float(width.max(initial=0.0)) * others
    if len(at) and problem.ridge[at].min() > 0:  # share of the gap at most slack² / (2 ridge)
        squares = (by_ridge * by_ridge) @ (1.0 / problem.ridge[at]) + others * others / problem.ridge[at].min()
        gaps = np.minimum(gaps, squares)
    slack = by_ridge[np.arange(len(variables)), partner] + others if len(at) else others
    proved = _exceeds(errors, removed, variables, partner, slack, gaps + shares)
    rows = np.flatnonzero(~proved & np.isfinite(removed.values))
    if len(rows):
        some = refined(errors, removed.at(rows), variables[rows])
        slacks = some.slacks + errors.errors(some, variables[rows])
        gaps = _gaps(errors, some, variables[rows], slacks)
        slack = np.abs(slacks[np.arange(len(rows)), partner[rows]]) if len(at) else np.zeros(len(rows))
        proved[rows] = _exceeds(errors, some, variables[rows], partner[rows], slack, gaps + shares[rows])
        removed = removed.updated(rows, some)
    return removed, proved


def _exceeds(
    errors: SlackErrors, removed: Removed, variables: Indices, partner: Indices, slack: Floats, gaps: Floats
) -> np.ndarray:
    """Return where the lower bound exceeds the objective, given bounds of the partners' slacks and of the gaps."""
    paths, problem = errors.paths, errors.paths.point.problem
    diagonal, size = np.abs(problem.matrix.diagonal()), np.abs(removed.values)
    curvature, slope = diagonal[variables].copy(), size
    room = np.full(len(variables), np.inf)
    if problem.groups:
        at = paths.variables[partner]
        curvature = 2.0 * (curvature + diagonal[at]) + problem.ridge[at]
        dual = paths.point.dual[at] + removed.changes[np.arange(len(variables)), partner]
        room, slope = np.minimum(dual - problem.lower[at], problem.upper[at] - dual), size - slack
        room[room <= ROUNDING * (problem.upper[at] - problem.lower[at])] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(slope > 0, np.minimum(slope / curvature, np.maximum(room, 0.0)), 0.0)
        gain = np.where(step > 0, step * slope - 0.5 * step * step * curvature, 0.0)
    exceeds: np.ndarray = gain - removed.duals * removed.values > gaps
    return exceeds


def _gaps(errors: SlackErrors, removed: Removed, variables: Indices, slacks: Floats) -> Floats:
    """Return the shares of the variables of the table in the gap, added up, from their slacks."""
    paths, at = errors.paths, errors.paths.variables
    problem, dual = paths.point.problem, paths.point.dual[at] + removed.changes
    rooms = np.where(slacks > 0, problem.upper[at] - dual, dual - problem.lower[at])
    shares = np.abs(slacks) * np.maximum(rooms, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.fmin(shares, 0.5 * slacks * slacks / problem.ridge[at])
    shares[at == variables[:, None]] = 0.0
    return np.asarray(shares.sum(axis=1))


def proved_gains(errors: SlackErrors, removed: Removed, variables: Indices) -> Floats:
    """Return lower bounds of the gains at feasible ends of paths, whatever the rounding errors of the paths are."""
    paths, at = errors.paths, errors.paths.variables
    point, problem = paths.point, paths.point.problem
    changes = np.where(at == variables[:, None], 0.0, removed.changes)
    own = removed.duals - point.dual[variables]
    shifts = (removed.offsets - point.offset)[:, problem.group[at]] if problem.groups else 0.0
    products = errors.slack - shifts - removed.slacks - errors.ridge * removed.changes
    gains = changes @ errors.slack - 0.5 * np.einsum("ij,ij->i", changes, products)
    gains -= 0.5 * np.linalg.norm(changes, axis=1) * errors.norms(removed, variables)
    product = np.einsum("ij,ij->i", point.rows.block(variables, at), removed.changes)
    product += np.where(paths.place[variables] < 0, problem.matrix.diagonal()[variables] * own, 0.0)
    slope = problem.minus_groups(point.gradient, point.offset)[variables] - problem.linear[variables]
    slope += problem.ridge[variables] * point.dual[variables]
    return np.asarray(gains + own * (slope - 0.5 * product))
