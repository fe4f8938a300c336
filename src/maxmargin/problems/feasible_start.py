"""A point that satisfies the constraints, as close as is cheap to a point that is wanted."""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.precision import GROUP_SUM_TOLERANCE
from maxmargin.problems.dual_problem import DualProblem


def feasible_start(problem: DualProblem, wanted: Floats | None = None) -> Floats:
    """Return a feasible dual vector: `wanted` (or 0) put into the box, and each group's sum repaired.

    What a group lacks is shared among the variables that are in use, in proportion to the room they have; then others,
    spread over the group, are filled up to their bounds, so that few become non-zero and hardly any stays in between. A
    feasible `wanted` comes back unchanged.
    """
    n = problem.size
    if wanted is None and problem.zero_is_feasible:
        return np.zeros(n)
    dual = np.zeros(n) if wanted is None else np.array(wanted, dtype=np.float64)
    if dual.shape != (n,):
        raise ValueError(f"a start must have one entry for each of the {n} variables, not shape {dual.shape}")
    if not np.isfinite(dual).all():
        raise ValueError("a start must be finite")
    dual = np.minimum(np.maximum(dual, problem.lower), problem.upper)
    lacking = problem.total - problem.group_sums(dual)
    scale = problem.group_sums(np.abs(dual)) + np.abs(problem.total)
    for g in np.flatnonzero(np.abs(lacking) > GROUP_SUM_TOLERANCE * scale):
        members = np.flatnonzero(problem.group == g)
        used = members[dual[members] != 0]
        missing = _share(problem, dual, used, float(lacking[g]))
        _fill_up(problem, dual, members, missing)
    return dual


def _fill_up(problem: DualProblem, dual: Floats, members: np.ndarray, missing: float) -> None:
    """Move `members` to their bounds, one after the other, until the sum has changed by `missing`."""
    bounds = problem.upper if missing > 0 else problem.lower
    if np.isinf(bounds[members]).any():
        _share(problem, dual, members, missing)
        return
    order = np.random.default_rng(len(members)).permutation(members)  # spread at random, always the same
    reached = np.cumsum(np.abs(bounds[order] - dual[order]))
    full = int(np.searchsorted(reached, abs(missing), side="right"))
    dual[order[:full]] = bounds[order[:full]]
    if full < len(order):
        rest = abs(missing) - (reached[full - 1] if full else 0.0)
        last = order[full]
        moved = dual[last] + np.sign(missing) * rest
        dual[last] = min(max(moved, problem.lower[last]), problem.upper[last])


def _share(problem: DualProblem, dual: Floats, members: np.ndarray, missing: float) -> float:
    """Move `members` by `missing` in all, within their bounds; return what could not be placed."""
    bounds = problem.upper if missing > 0 else problem.lower
    room = np.abs(bounds[members] - dual[members])
    if not len(members) or missing == 0 or not room.sum() > 0:
        return missing
    unlimited = np.isinf(room)
    if unlimited.any():
        room = unlimited.astype(float)
        shares = room * (missing / room.sum())
    elif room.sum() <= abs(missing):
        shares = np.sign(missing) * room
    else:
        shares = room * (missing / room.sum())
    before = dual[members].sum()
    dual[members] = np.clip(dual[members] + shares, problem.lower[members], problem.upper[members])
    return float(missing - (dual[members].sum() - before))
