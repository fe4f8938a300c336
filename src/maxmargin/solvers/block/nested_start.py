"""A start for a large problem from the solutions of nested samples of it (Graf et al. 2005 and others).

Where noise makes most support vectors rest on their bounds, a sample of the data shows which side of the margin every
variable is on, and with it the bound that it will rest on. Placing all of them at once saves the many rounds that would
find them one block after the other.

The sample is solved with bounds as many times wider as it is smaller, so that its weight vector is that of the whole.
Then each group is filled up from its largest slack down, until it sums to what it must.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem, feasible_start

#: Each sample is so many times smaller than the next.
RATIO = 4

#: So many samples. Much smaller ones, with bounds so much wider, look separable when the whole is not.
LEVELS = 2

#: The smallest sample has at least so many variables.
SMALLEST = 250

#: At least this part of the variables must be in use. Where it is less, a few rounds find them, and with a large cost a
#: wrong bound is far away from the right one.
IN_USE = 0.3


def nested_samples(size: int) -> list[Indices]:
    """Return samples of the variables, each a part of the next: spread at random, always the same ones."""
    order = np.random.default_rng(size).permutation(size)
    sizes = [size // RATIO**level for level in range(LEVELS, 0, -1)]
    return [np.sort(order[:count]) for count in sizes if count >= SMALLEST]


def can_start(problem: DualProblem) -> bool:
    """Whether a start of this kind exists: every slack has a bound on its side, a sample has members of every group."""
    return problem.bounded and not problem.ridge.any() and problem.groups * SMALLEST <= problem.size


def pose_sample(problem: DualProblem, sample: Indices) -> DualProblem:
    """Return the problem of the sample, with wider bounds."""
    widening = problem.size / len(sample)
    return DualProblem(
        matrix=problem.matrix.take(sample),
        linear=problem.linear[sample],
        lower=problem.lower[sample] * widening,
        upper=problem.upper[sample] * widening,
        group=problem.group[sample],
        total=problem.total,
    )


def worth_it(problem: DualProblem, dual: Floats) -> bool:
    """Whether the solution of a sample says that a start will pay: many variables in use, most of them on a bound."""
    used = dual != 0
    resting = used & ((dual == problem.lower) | (dual == problem.upper))
    return bool(used.mean() > IN_USE) and 2 * int(resting.sum()) > int(used.sum())


def place(problem: DualProblem, slack: Floats) -> Floats:
    """Return the feasible point with the largest slacks of each group on the upper bound, the others on the lower.

    One variable of each group takes what remains in between.
    """
    dual = np.where(slack > 0, problem.upper, problem.lower)
    for g in range(problem.groups):
        members = np.flatnonzero(problem.group == g)
        order = members[np.argsort(-slack[members], kind="stable")]
        width = problem.upper[order] - problem.lower[order]
        missing = max(0.0, problem.total[g] - problem.lower[order].sum())
        filled = np.concatenate([[0.0], np.cumsum(width)])
        full = int(np.searchsorted(filled, missing, side="right")) - 1  # so many fit altogether
        dual[order[:full]] = problem.upper[order[:full]]
        dual[order[full:]] = problem.lower[order[full:]]
        if full < len(order):
            last = order[full]
            remains = problem.total[g] - (dual[order].sum() - dual[last])
            dual[last] = min(max(remains, problem.lower[last]), problem.upper[last])
    return dual


def extend(problem: DualProblem, sample: Indices, dual: Floats) -> Floats:
    """Return the feasible point with the solution of a sample, within the bounds of the whole, and no other variables.

    Whoever has no time for more gets the machine of the sample, not one that knows nothing.
    """
    point = np.zeros(problem.size)
    point[sample] = dual * (len(sample) / problem.size)
    return feasible_start(problem, point)
