"""A dual vector for an exact kernel from that of a machine on landmarks, and its squared norm.

Landmarks do not tell neighbouring samples apart, so their machine leaves many samples of one class next to one another
at their bounds, and the same vector has a far larger norm, and a low dual value, in the exact problem. Multiplying the
variables of each group of neighbours of one sign by a factor of their own restores the balance. The best factors are
the solution of a problem with one variable for each group,

    maximise D(b)   over   b_i = t_g dual_i for i in g,

whose matrix is known with the form bᵀMb, divided by groups. It takes the same kernel values as the form itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.matrices import PrecomputedMatrix, SymmetricMatrix
from maxmargin.matrices.group_forms import form_error, group_forms
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem
from maxmargin.solvers import PairwiseSolver, StoppingRule

#: The number of groups, at most; their matrix takes 32 MB. Up to this many support vectors, each is a group.
MAX_GROUPS = 2048

#: Kernel values that are computed at a time to find the groups.
VALUES_AT_ONCE = 2**22

#: Steps of the solver for each group, at most.
STEPS_PER_GROUP = 100

#: If the kernel values among the support vectors take more multiplications than this, half a minute on two cores, and
#: the dual value is estimated to be low, a random part of the support vectors is used.
MAX_WORK = 8 * 10**11

#: Variables from which the dual value is estimated.
DRAWN = 2048

#: A dual value is low if it is below this fraction of the linear term: at the optimum of a problem it is at least ½.
LOW_VALUE = 0.25


class AdaptedDual(NamedTuple):
    """A dual vector b, and bᵀMb with a bound on its rounding error."""

    dual: Floats
    squared_norm: float
    error: float


class GroupedDual(NamedTuple):
    """Support vectors in the order of their groups, their variables, and where groups begin."""

    used: Indices
    values: Floats
    starts: Indices


def adapted_dual(problem: DualProblem, dual: Floats) -> AdaptedDual:
    """Return the multiples, by group, of a dual vector of highest dual value. The vector 0 must be feasible."""
    grouped = grouped_dual(problem, dual)
    return with_best_factors(problem, grouped, group_forms(problem.matrix.take(grouped.used), *grouped[1:]))


def grouped_dual(problem: DualProblem, dual: Floats) -> GroupedDual:
    """Return the support vectors by groups of neighbours of one sign, a random part of them if they are too many."""
    random = np.random.default_rng(0)
    used = _chosen(problem, dual, random)
    group = _groups(problem.matrix, used, dual[used] > 0, random)
    order = np.argsort(group, kind="stable")
    used, group = used[order], group[order]
    return GroupedDual(used, dual[used], np.flatnonzero(np.diff(group, prepend=-1)))


def with_best_factors(problem: DualProblem, grouped: GroupedDual, forms: Floats) -> AdaptedDual:
    """Return the multiples, by group, of highest dual value, where `forms` is bᵀMb divided by groups."""
    used, values, starts = grouped
    factors = _best_factors(problem, used, values, starts, forms)
    of_variables = np.repeat(factors, np.diff(starts, append=len(used)))
    adapted = np.zeros(problem.size)
    adapted[used] = np.clip(of_variables * values, problem.lower[used], problem.upper[used])
    norm = float(factors @ forms @ factors)
    return AdaptedDual(adapted, norm, form_error(problem.matrix.take(used), adapted[used], len(starts)))


def _chosen(problem: DualProblem, dual: Floats, random: np.random.Generator) -> Indices:
    """Return the support vectors; a random part of them where all would take too long and be of little use."""
    used = np.flatnonzero(dual)
    most = int(np.sqrt(2.0 * MAX_WORK / problem.matrix.cost))
    if len(used) <= most:
        return used
    linear, norm = inner(problem.linear, dual), _estimated_form(problem.matrix, used, dual[used], random)
    if linear - 0.5 * norm > LOW_VALUE * linear:
        return used
    return np.sort(random.choice(used, most, replace=False))


def _estimated_form(matrix: SymmetricMatrix, used: Indices, values: Floats, random: np.random.Generator) -> float:
    """Return an estimate of bᵀMb from some pairs of variables, drawn with probabilities in proportion to them."""
    ends = np.cumsum(np.abs(values))
    drawn = np.searchsorted(ends, random.random(DRAWN) * ends[-1])
    block, signs = matrix.block(used[drawn], used[drawn]), np.sign(values[drawn])
    np.fill_diagonal(block, 0.0)  # two draws are independent, a draw and itself are not
    return float(ends[-1] ** 2 * (signs @ block @ signs) / (DRAWN * (DRAWN - 1)))


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


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _best_factors(problem: DualProblem, used: Indices, values: Floats, starts: Indices, forms: Floats) -> Floats:
    """Return the factor of each group, with which the dual value is highest; 1 where numbers overflow."""
    sums = np.add.reduceat(values, starts)
    room = np.where(values > 0, problem.upper[used], problem.lower[used]) / values
    most = np.minimum.reduceat(room, starts) * np.abs(sums)
    matrix = forms / sums / sums[:, None]
    linear = np.add.reduceat(problem.linear[used] * values, starts) / sums
    ridge = np.add.reduceat(problem.ridge[used] * values**2, starts) / sums**2
    if not (np.isfinite(matrix).all() and np.isfinite(linear).all() and np.isfinite(ridge).all()):
        return np.ones(len(starts))
    reduced = DualProblem(
        matrix=PrecomputedMatrix(matrix),
        linear=linear,
        lower=np.where(sums > 0, 0.0, -most),
        upper=np.where(sums > 0, most, 0.0),
        ridge=ridge,
        group=np.full(len(starts), problem.groups - 1, dtype=np.int32),
        total=problem.total,
    )
    rule = StoppingRule(violation=1e-3, max_iterations=STEPS_PER_GROUP * len(starts))
    factors: Floats = PairwiseSolver(stopping=rule).solve(reduced, sums).dual / sums
    return np.where(np.isfinite(factors), np.maximum(factors, 0.0), 1.0)
