"""The gradient of a sample of variables, for a bounded amount of work: what a fit that is out of time can still afford.

A model needs an offset, and probabilities or a noise scale need decision values. Where a limit has ended the solver
before the gradient was known, they come from a sample of the training data.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import partial_product
from maxmargin.problems import DualProblem

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
    product = partial_product(problem.matrix, sample, support, dual[support])
    return sample, problem.linear[sample] - product - problem.ridge[sample] * dual[sample]


def _spread(problem: DualProblem, count: int) -> Indices:
    """Return about `count` variables, as many of each group, chosen at random."""
    random = np.random.default_rng(problem.size)
    groups = [np.flatnonzero(problem.group == g) for g in np.unique(problem.group)[:count]]
    each = -(-count // len(groups))
    return np.sort(np.concatenate([random.permutation(members)[:each] for members in groups]))
