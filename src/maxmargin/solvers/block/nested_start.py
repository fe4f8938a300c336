"""A start for a large problem from the solutions of nested samples of it (Graf et al. 2005 and others).

Where noise makes most support vectors bounded, a sample of the data shows on which side of the margin every variable
is, and with it its bound. Placing all variables at once saves the many rounds that would move them one working set
after the other.

The sample is solved with bounds wider by the inverse of its fraction, so that its weight vector is that of the whole.
Then each group is filled up from its largest slack down, until its sum is right (`selection.place_at_bounds`).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem, feasible_start

#: Each sample is this fraction of the next, and there are so many. Two, since smaller samples, whose bounds are so much
#: wider, look separable when the whole is not.
SAMPLE_RATIO, NUMBER_OF_SAMPLES = 4, 2

#: The smallest sample has at least so many variables.
MIN_SAMPLE_SIZE = 250

#: At least this fraction of a sample must be support vectors. Where it is less, a few rounds find them, and with a
#: large cost a wrong bound is far away from the right one.
MIN_SUPPORT_FRACTION = 0.3


def nested_samples(size: int) -> list[Indices]:
    """Return samples of the variables, each a part of the next: random, but always the same for one size."""
    order = np.random.default_rng(size).permutation(size)
    sizes = [size // SAMPLE_RATIO**level for level in range(NUMBER_OF_SAMPLES, 0, -1)]
    return [np.sort(order[:count]) for count in sizes if count >= MIN_SAMPLE_SIZE]


def can_start_nested(problem: DualProblem) -> bool:
    """Whether each slack has a bound on its side, and a sample has members of every group."""
    return problem.bounded and not problem.ridge.any() and problem.groups * MIN_SAMPLE_SIZE <= problem.size


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
        kink=problem.kink[sample],
    )


def is_mostly_bounded(problem: DualProblem, dual: Floats) -> bool:
    """Whether a start from this solution of a sample will pay: many support vectors, most of them bounded."""
    support = dual != 0
    at_bound = support & ((dual == problem.lower) | (dual == problem.upper))
    return bool(support.mean() > MIN_SUPPORT_FRACTION) and 2 * int(at_bound.sum()) > int(support.sum())


def extend(problem: DualProblem, sample: Indices, dual: Floats) -> Floats:
    """Return the feasible point with the solution of a sample, within the bounds of the whole, and 0 elsewhere.

    It is the answer when a limit ends the solve before the whole problem was started.
    """
    point = np.zeros(problem.size)
    point[sample] = dual * (len(sample) / problem.size)
    return feasible_start(problem, point)
