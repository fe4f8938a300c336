"""A dual vector for an exact kernel from that of a machine on landmarks.

Landmarks do not tell neighbouring samples apart, so their machine leaves many samples of one class next to one another
at their bounds, and the same vector has a far larger norm, and a low dual value, in the exact problem. Multiplying the
variables of each group of neighbours of one sign by a factor of their own restores the balance. The best factors are
the solution of a problem with one variable for each group,

    maximise D(b)   over   b_i = t_g dual_i for i in g,

whose matrix consists of mean kernel values between groups; they are estimated from a few samples of each. Nothing here
is a bound: the dual value of the result is computed elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.matrices import PrecomputedMatrix, SymmetricMatrix
from maxmargin.problems import DualProblem, feasible_start
from maxmargin.problems.feasible_start import estimated_value
from maxmargin.solvers import PairwiseSolver, StoppingRule

#: The number of groups, at most; their matrix takes 32 MB. Up to this many support vectors, each is a group.
MAX_GROUPS = 2048

#: Samples of a group from which its mean kernel values are estimated.
SAMPLES_PER_GROUP = 8

#: Kernel values that are computed at a time.
VALUES_AT_ONCE = 2**22

#: Steps of the solver for each group, at most.
STEPS_PER_GROUP = 100

#: The kernel values among the support vectors of the result take about this many multiplications, where variables can
#: be moved to their bounds to have fewer of them: half a minute on two cores.
MAX_WORK = 1.2 * 10**12


def adapted_dual(problem: DualProblem, dual: Floats) -> Floats:
    """Return the dual vector of the problem, or one with a factor for each group if its dual value is higher.

    0 must be feasible. Values of many support vectors are compared by estimates.
    """
    random = np.random.default_rng(0)
    used = np.flatnonzero(dual)
    if not len(used):
        return dual
    group = _groups(problem.matrix, used, dual[used] > 0, random)
    factors = _best_factors(problem, dual, used, group, random)
    adapted = np.zeros(problem.size)
    adapted[used] = factors[group] * dual[used]
    adapted = feasible_start(problem, adapted)
    better = estimated_value(problem, adapted) > estimated_value(problem, dual)
    return thinned(problem, adapted if better else dual, random)


def thinned(problem: DualProblem, dual: Floats, random: np.random.Generator) -> Floats:
    """Return a dual vector with fewer support vectors, nearer to their bounds, whose kernel values take less work.

    Each variable stays with a probability and is divided by it, so that sums over neighbours stay about the same.
    """
    most = int(np.sqrt(2.0 * MAX_WORK / problem.matrix.cost))
    used = np.flatnonzero(dual)
    if len(used) <= most or not problem.bounded:
        return dual
    size, bound = np.abs(dual[used]), np.where(dual > 0, problem.upper, -problem.lower)[used]
    low, high = 1.0, float((bound / size).max())
    for _ in range(50):
        factor = np.sqrt(low * high)
        low, high = (low, factor) if np.minimum(1.0, factor * size / bound).sum() > most else (factor, high)
    share = np.minimum(1.0, low * size / bound)
    kept = random.random(len(used)) < share
    out = np.zeros(problem.size)
    out[used[kept]] = dual[used[kept]] / share[kept]
    return feasible_start(problem, out)


def _groups(
    matrix: SymmetricMatrix, used: Indices, positive: NDArray[np.bool_], random: np.random.Generator
) -> Indices:
    """Return the number of the group of each support vector: the nearest of some samples in feature space, by sign."""
    if len(used) <= MAX_GROUPS:
        return np.arange(len(used))
    centres = used[np.sort(random.choice(len(used), MAX_GROUPS // 2, replace=False))]
    squares, cell = 0.5 * matrix.diagonal()[centres], np.empty(len(used), dtype=np.intp)
    step = max(1, VALUES_AT_ONCE // len(centres))
    for start in range(0, len(used), step):
        check_deadline()
        rows = slice(start, start + step)
        cell[rows] = np.argmax(matrix.block(used[rows], centres) - squares, axis=1)
    return np.unique(2 * cell + positive, return_inverse=True)[1]


def _best_factors(
    problem: DualProblem, dual: Floats, used: Indices, group: Indices, random: np.random.Generator
) -> Floats:
    """Return the factor of each group with the highest estimate of the dual value."""
    values = dual[used]
    sums: Floats = np.bincount(group, values).astype(np.float64)
    with np.errstate(over="ignore"):
        room = np.where(values > 0, problem.upper[used], problem.lower[used]) / values
    most = np.full(len(sums), np.inf)
    np.minimum.at(most, group, room)
    most *= np.abs(sums)
    reduced = DualProblem(
        matrix=PrecomputedMatrix(_mean_values(problem.matrix, used, group, random)),
        linear=np.bincount(group, problem.linear[used] * values) / sums,
        lower=np.where(sums > 0, 0.0, -most),
        upper=np.where(sums > 0, most, 0.0),
        ridge=np.bincount(group, problem.ridge[used] * values**2) / sums**2,
        group=np.zeros(len(sums), dtype=np.int32) if problem.groups else np.full(len(sums), -1, dtype=np.int32),
        total=problem.total,
    )
    rule = StoppingRule(violation=1e-3, max_iterations=STEPS_PER_GROUP * len(sums))
    factors: Floats = PairwiseSolver(stopping=rule).solve(reduced, sums).dual / sums
    return factors


def _mean_values(matrix: SymmetricMatrix, used: Indices, group: Indices, random: np.random.Generator) -> Floats:
    """Return the mean kernel value between each two groups, estimated from a few samples of each."""
    shuffled = random.permutation(len(used))
    order = shuffled[np.argsort(group[shuffled], kind="stable")]
    first = np.searchsorted(group[order], np.arange(group.max() + 1))
    place = np.arange(len(order)) - first[group[order]]
    drawn = order[place < SAMPLES_PER_GROUP]
    samples, starts = used[drawn], np.searchsorted(group[drawn], np.arange(group.max() + 1))
    counts = np.diff(np.append(starts, len(drawn)))
    means = np.empty((len(drawn), len(starts)))
    step = max(1, VALUES_AT_ONCE // len(drawn))
    for start in range(0, len(drawn), step):
        check_deadline()
        rows = slice(start, start + step)
        means[rows] = np.add.reduceat(matrix.block(samples[rows], samples), starts, axis=1) / counts
    mean: Floats = np.add.reduceat(means, starts, axis=0) / counts[:, None]
    return 0.5 * (mean + mean.T)
