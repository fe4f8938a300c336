"""A feasible point, close to a given one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.precision import GROUP_SUM_TOLERANCE
from maxmargin.problems.dual_problem import DualProblem

#: Support vectors above which the quadratic term of a start is estimated by as many rows of the matrix.
MAX_EXACT_SUPPORT = 2048

#: Permutations of up to this many variables are kept: a random generator takes as long as the steps of a small fit.
MAX_KEPT_PERMUTATION = 2048


def feasible_start(problem: DualProblem, wanted: Floats | None = None) -> Floats:
    """Return a feasible dual vector: `wanted` (or 0) clipped to the box, and each group's sum repaired.

    The difference of a group's sum from its total is distributed over its non-zero variables, in proportion to their
    distances from the bounds; then others, chosen at random, are set to their bounds, so that few become non-zero and
    hardly any becomes free. A feasible `wanted` is returned unchanged.
    """
    n = problem.size
    if wanted is None and problem.facts.zero_fits:
        return _from_zero(problem)
    dual = np.zeros(n) if wanted is None else np.array(wanted, dtype=np.float64)
    if dual.shape != (n,):
        raise ValueError(f"a start must have one entry for each of the {n} variables, not shape {dual.shape}")
    if not np.isfinite(dual).all():
        raise ValueError("a start must be finite")
    np.maximum(dual, problem.lower, out=dual)
    np.minimum(dual, problem.upper, out=dual)
    missing_sums = problem.total - problem.group_sums(dual)
    scale = problem.group_sums(np.abs(dual)) + np.abs(problem.total)
    for g in np.flatnonzero(np.abs(missing_sums) > GROUP_SUM_TOLERANCE * scale):
        members = np.flatnonzero(problem.group == g)
        used = members[dual[members] != 0]
        missing = _distribute(problem, dual, used, float(missing_sums[g]))
        _move_to_bounds(problem, dual, members, missing)
    return dual


def recorded_start(problem: DualProblem, recorded: Floats | None) -> Floats | None:
    """Return a recorded point, such as one from a file, made feasible; None if its dual value is below that of 0.

    No solver that starts from 0 and ascends records such a point, and one of huge numbers would cost the precision of
    all that follows. Where 0 is not feasible, the totals of the groups limit all points.
    """
    if recorded is None or recorded.shape != (problem.size,) or not np.isfinite(recorded).all():
        return None
    point = feasible_start(problem, recorded)
    with np.errstate(over="ignore", invalid="ignore"):
        worse = problem.zero_is_feasible and not _estimated_value(problem, point) >= 0.0
    return None if worse else point


def _estimated_value(problem: DualProblem, dual: Floats) -> float:
    """Return the dual value of a point; of many support vectors its quadratic term is estimated.

    The estimate is by rows of the matrix, drawn with probabilities in proportion to the variables.
    """
    used = np.flatnonzero(dual)
    point, sizes = dual[used], np.abs(dual[used])
    value = point @ problem.linear[used] - sizes @ problem.kink[used] - 0.5 * (point * point) @ problem.ridge[used]
    if not value > 0.0:
        return float(value)
    if len(used) <= MAX_EXACT_SUPPORT:
        return float(value - 0.5 * point @ problem.matrix.take(used).matvec(point))
    ends = np.cumsum(sizes)
    drawn = np.searchsorted(ends, np.random.default_rng(0).random(MAX_EXACT_SUPPORT) * ends[-1])
    products = problem.matrix.block(used[drawn], used) @ point
    return float(value - 0.5 * ends[-1] * np.mean(np.sign(point[drawn]) * products))


def _from_zero(problem: DualProblem) -> Floats:
    """Return the start of a problem whose bounds include 0."""
    dual, everything = np.zeros(problem.size), problem.groups == 1 and not problem.ungrouped
    for g, total in enumerate(problem.total.tolist()) if problem.facts.largest_total else ():
        if total:
            members = np.arange(problem.size) if everything else (problem.group == g).nonzero()[0]
            _move_to_bounds(problem, dual, members, total)
    return dual


def _move_to_bounds(problem: DualProblem, dual: Floats, members: np.ndarray, missing: float) -> None:
    """Move `members` to their bounds, one after the other, until the sum has changed by `missing`."""
    bounds = problem.upper if missing > 0 else problem.lower
    few = len(members) <= MAX_KEPT_PERMUTATION
    order = members[(_permutation if few else _permutation.__wrapped__)(len(members))]
    if not _native.move_to_bounds(order, bounds, dual, missing):  # a bound is infinite
        _distribute(problem, dual, members, missing)


@lru_cache(maxsize=8)
def _permutation(count: int) -> np.ndarray:
    """Return a permutation, the same for the same size."""
    return np.random.default_rng(count).permutation(count)


def _distribute(problem: DualProblem, dual: Floats, members: np.ndarray, missing: float) -> float:
    """Change the sum of `members` by `missing`, within their bounds; return what the bounds did not allow."""
    bounds = problem.upper if missing > 0 else problem.lower
    distance = np.abs(bounds[members] - dual[members])
    if not len(members) or missing == 0 or not distance.sum() > 0:
        return missing
    unlimited = np.isinf(distance)
    if not unlimited.any() and distance.sum() <= abs(missing):
        change = np.sign(missing) * distance
    else:
        weight = unlimited.astype(float) if unlimited.any() else distance
        change = weight * (missing / weight.sum())
    before = dual[members].sum()
    dual[members] = np.clip(dual[members] + change, problem.lower[members], problem.upper[members])
    return float(missing - (dual[members].sum() - before))
