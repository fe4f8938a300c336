"""Which variables make the next block: the free ones, and those that violate optimality most.

From both ends of the gradient where there are one or two groups (Joachims 1999). Where every sample has a group of its
own, a variable cannot move without a partner, and a block is made of the worst groups.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.solvers.block.block_state import BlockState

#: With more groups than this, a working set is made of whole groups: a variable cannot move without a partner.
MANY_GROUPS = 2


def choose(state: BlockState, up: Floats, down: Floats, size: int) -> Indices:
    """Return a working set: free variables as one half, and the worst violators of both kinds."""
    if state.groups > MANY_GROUPS:
        return _choose_groups(state, np.maximum(up, down), size)
    free = state.free()
    most = min(size // 2, size - 2)  # the worst pair must fit
    if len(free) > most:
        free = free[_largest(np.maximum(up, down)[free], most)]
    up[free] = down[free] = -np.inf
    growing = _largest(up, (size - len(free)) // 2)
    down[growing] = -np.inf
    falling = _largest(down, size - len(free) - len(growing))
    up[growing] = up[falling] = -np.inf
    rest = _largest(up, size - len(free) - len(growing) - len(falling))
    return np.concatenate([free, growing, falling, rest])


def _choose_groups(state: BlockState, violation: Floats, size: int) -> Indices:
    """Return a working set of the worst groups: free variables as one half, and members that violate optimality."""
    group = state.group
    worst = np.full(state.groups + 1, -np.inf)  # the last, which index −1 reaches, is for variables in no group
    np.maximum.at(worst, group, violation)
    free = (state.lower < state.dual) & (state.dual < state.upper)
    members = np.flatnonzero(free | (violation > 0))
    members = members[np.lexsort((-violation[members], group[members], -worst[group[members]]))]
    first = members[free[members]][: size // 2]
    chosen = np.zeros(len(group), dtype=bool)
    chosen[first] = True
    rest = members[~chosen[members]]  # the worst pair must fit, also if neither is free
    return np.concatenate([first[: size - 2], rest[: max(2, size - len(first))]])


def _largest(values: Floats, count: int) -> Indices:
    """Return where the largest values are, those above 0 only."""
    picks = np.flatnonzero(values > 0)
    if len(picks) <= max(0, count):
        return picks
    return np.argpartition(values, len(values) - count)[-count:] if count > 0 else picks[:0]
