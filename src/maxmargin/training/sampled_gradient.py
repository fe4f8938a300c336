"""The gradient of a sample of variables, for a bounded amount of work: what a fit that is out of time can still afford.

A model needs an offset, and probabilities or a noise scale need decision values. Where a limit has ended the solver
before the gradient was known, they come from a sample of the training data.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import interval_midpoint, known_extremes
from maxmargin.problems.split_problem import SplitProblem

#: The most multiplications for one sample, about 0.05 s, and the fewest and most variables.
SAMPLE_WORK, MIN_SAMPLE, MAX_SAMPLE = 2 * 10**8, 8, 512


def gradient_of_sample(problem: DualProblem, dual: Floats, parts: int = 1) -> tuple[Indices, Floats]:
    """Return a sample of the variables, as many of each group, and its gradient in double precision.

    The work is divided by `parts`, the number of problems that take samples.
    """
    support = np.flatnonzero(dual)
    if not len(support):
        sample = _spread(problem, MAX_SAMPLE)
        return sample, problem.linear[sample]
    affordable = SAMPLE_WORK // (parts * len(support) * max(1, problem.matrix.cost))
    sample = _spread(problem, min(max(affordable, MIN_SAMPLE), MAX_SAMPLE))
    product = problem.matrix.partial_product(sample, support, dual[support])
    return sample, problem.linear[sample] - product - problem.ridge[sample] * dual[sample]


def _spread(problem: DualProblem, count: int) -> Indices:
    """Return about `count` variables, as many of each group, chosen at random."""
    random = np.random.default_rng(problem.size)
    groups = [np.flatnonzero(problem.group == g) for g in np.unique(problem.group)[:count]]
    each = -(-count // len(groups))
    return np.sort(np.concatenate([random.permutation(members)[:each] for members in groups]))


def offset_of_sample(problem: DualProblem, dual: Floats) -> Floats:
    """Return the offset of each group that has the least loss on a sample, or the middle of its interval.

    The latter with a ridge or infinite bounds. From the largest gradient down, variables would take their upper bounds
    until the sum of the group is reached.
    """
    sample, gradient = gradient_of_sample(problem, dual)
    known = np.full(problem.size, np.nan)
    known[sample] = gradient
    if not problem.bounded or problem.ridge.any():
        return interval_midpoint(*known_extremes(problem, dual, known).offset_bounds)
    if problem.kinked:
        split = SplitProblem.of(problem)
        problem, gradient = split.problem, split.slack(known)
        sample = np.flatnonzero(np.isfinite(gradient))
        gradient = gradient[sample]
    width, group = problem.upper - problem.lower, problem.group[sample]
    wanted, available = problem.total - problem.group_sums(problem.lower), problem.group_sums(width)
    offsets = np.zeros(problem.groups)
    for g in np.unique(group[group >= 0]):
        members = np.flatnonzero(group == g)
        members = members[np.argsort(-gradient[members], kind="stable")]
        reached = np.cumsum(width[sample[members]])
        fraction = wanted[g] / available[g] if available[g] > 0 else 0.0
        at = min(int(np.searchsorted(reached, fraction * reached[-1])), len(members) - 1)
        offsets[g] = gradient[members[at]]
    return offsets
