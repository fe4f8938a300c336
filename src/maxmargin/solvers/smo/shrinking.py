"""Shrinking: leave out variables that rest on a bound and will probably stay there (Bottou & Lin 1.7.3).

A variable at its upper bound whose gradient exceeds every gradient that may still grow, or at its lower bound with
one below every gradient that may still fall, cannot be chosen. It is moved out of the active set. That is a bet:
near the end the whole gradient is reconstructed and every variable that does not meet the test comes back, and
nothing is called optimal before all variables have been looked at.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.solvers.smo.working_state import WorkingState


def shrink(state: WorkingState) -> None:
    """Leave out the active variables that are not expected to move."""
    keep = can_matter(state)
    if keep.all():
        return
    kept = int(keep.sum())
    # Swap the ones to leave out with the ones to keep: only what must move is moved.
    permutation = np.arange(len(keep))
    holes = np.flatnonzero(~keep[:kept])
    fillers = kept + np.flatnonzero(keep[kept:])
    permutation[holes], permutation[fillers] = fillers, holes
    state.reorder(permutation, kept)


def unshrink(state: WorkingState) -> None:
    """Bring every variable back, with its gradient up to date."""
    state.reconstruct_gradient()
    state.active = state.size


def reconsider(state: WorkingState) -> None:
    """Look at all variables again and leave out those that still are not expected to move."""
    unshrink(state)
    keep = can_matter(state)
    # Keep the order of what was active: rows that were computed for it stay valid.
    permutation: Indices = np.concatenate([np.flatnonzero(keep), np.flatnonzero(~keep)])
    state.reorder(permutation, int(keep.sum()))


class Variables(Protocol):
    """What the test looks at: arrays over the active variables, and how many groups there are."""

    lower: Floats
    upper: Floats
    group: np.ndarray
    groups: int

    @property
    def dual(self) -> Floats:
        """The variables."""
        ...

    @property
    def gradient(self) -> Floats:
        """The gradient of the dual objective."""
        ...

    @property
    def active(self) -> int:
        """How many leading entries of the arrays take part."""
        ...


class Extremes(NamedTuple):
    """Per group, the largest gradient that may grow and the smallest that may fall; last for those in no group."""

    highest: Floats
    lowest: Floats


def extremes(state: Variables) -> Extremes:
    """Return both ends of the violation of each group; for variables in no group the other end is 0."""
    part = slice(0, state.active)
    gradient, dual, group = state.gradient[part], state.dual[part], state.group[part]
    highest = _by_group(np.maximum, gradient, group, dual < state.upper[part], state.groups, -np.inf)
    lowest = _by_group(np.minimum, gradient, group, dual > state.lower[part], state.groups, np.inf)
    highest[-1], lowest[-1] = max(highest[-1], 0.0), min(lowest[-1], 0.0)
    return Extremes(highest, lowest)


def violations(state: Variables) -> tuple[Floats, Floats]:
    """Return by how much each active variable violates optimality when it grows, and when it falls; −∞ if it cannot."""
    up, down = np.empty(state.active), np.empty(state.active)
    _native.violations(*_criterion(state), up, down)
    return up, down


def can_matter(state: Variables) -> np.ndarray:
    """Return which active variables may still be chosen for a step."""
    keep = np.empty(state.active, dtype=bool)
    _native.can_matter(*_criterion(state), keep)
    return keep


def _criterion(state: Variables) -> tuple[Floats, Floats, Floats, Floats, np.ndarray, int]:
    """Return what the optimality criterion looks at."""
    part = slice(0, state.active)
    return (
        state.dual[part],
        state.gradient[part],
        state.lower[part],
        state.upper[part],
        state.group[part],
        state.groups,
    )


def _by_group(
    reduce: np.ufunc, gradient: Floats, group: np.ndarray, chosen: np.ndarray, groups: int, start: float
) -> Floats:
    """Return an extreme per group; the last entry, which index −1 reaches, is for variables in no group."""
    if groups == 1 and not (group < 0).any():
        return np.array([reduce.reduce(gradient[chosen], initial=start), start])
    extremes = np.full(groups + 1, start)
    reduce.at(extremes, group[chosen], gradient[chosen])
    return extremes
