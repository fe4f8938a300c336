"""Shrinking: leave out variables that rest on a bound and will probably stay there (Bottou & Lin 1.7.3).

A variable at its upper bound whose gradient exceeds every gradient that may still grow, or at its lower bound with
one below every gradient that may still fall, cannot be chosen. It is moved out of the active set. That is a bet:
near the end the whole gradient is reconstructed and every variable that does not meet the test comes back, and
nothing is called optimal before all variables have been looked at.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Indices
from maxmargin.backends.optimality import can_be_selected
from maxmargin.solvers.smo.working_state import WorkingState


def shrink(state: WorkingState) -> None:
    """Leave out the active variables that are not expected to move."""
    keep = can_be_selected(state)
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
    keep = can_be_selected(state)
    # Keep the order of what was active: rows that were computed for it stay valid.
    permutation: Indices = np.concatenate([np.flatnonzero(keep), np.flatnonzero(~keep)])
    state.reorder(permutation, int(keep.sum()))
