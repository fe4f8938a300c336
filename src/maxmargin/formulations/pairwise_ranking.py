"""Pairwise ranking: of two samples of one query, the one with the larger target should have the larger score.

    primal   minimise ½‖w‖² + Σ_p C_p ξ_p   subject to   w·(Φ(x_i) − Φ(x_j)) ≥ 1 − ξ_p,  ξ_p ≥ 0
             for every pair p = (i, j) of one query with t_i > t_j
    dual     M of the differences Φ(x_i) − Φ(x_j),  linear = 1,  bounds [0, C_p],  no group

(Herbrich, Graepel & Obermayer 2000; Joachims 2002, SVMlight's `qid`.) An offset would cancel in every
difference and is omitted. The coefficient of a sample is the sum of the variables of the pairs in which it is first,
minus that of the pairs in which it is second.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion, margin_of, support_partition
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def count_pairs(targets: Floats, queries: Indices) -> int:
    """Return the number of pairs of samples of one query with different targets."""
    return int(_lower_neighbours(targets, queries)[2].sum())


def list_pairs(targets: Floats, queries: Indices) -> tuple[Indices, Indices]:
    """Return the pairs of samples of one query with different targets: those with the larger target, and the others."""
    order, begin, below = _lower_neighbours(targets, queries)
    preceding = np.cumsum(below) - below
    second = np.arange(int(below.sum())) + np.repeat(begin - preceding, below)
    return np.repeat(order, below), order[second]


def _lower_neighbours(targets: Floats, queries: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the samples sorted by query and target, the start of their query, and the number with smaller targets."""
    order = np.lexsort((targets, queries))
    place = np.arange(len(order))
    first_of_query = np.diff(queries[order], prepend=queries[order[:1]] - 1) != 0
    first_of_target = first_of_query | (np.diff(targets[order], prepend=np.nan) != 0)
    begin = np.maximum.accumulate(np.where(first_of_query, place, 0))
    first_equal = np.maximum.accumulate(np.where(first_of_target, place, 0))
    return order, begin, first_equal - begin


def pose(matrix: SymmetricMatrix, first: Indices, second: Indices, costs: Floats) -> DualProblem:
    """Return the dual problem of pairs in which `first` should be ranked above `second`, with costs C_p."""
    pairs = len(first)
    return DualProblem(
        matrix=DifferenceMatrix(matrix, first, second),
        linear=np.ones(pairs),
        lower=np.zeros(pairs),
        upper=costs,
        group=np.full(pairs, -1, dtype=np.int32),
        total=np.zeros(0),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the ranking function."""
    return KernelExpansion(_difference_matrix(problem).sample_coefficients(dual), 0.0)


@dataclass(frozen=True)
class RankGeometry:
    """Geometry of a solved ranking.

    Attributes
    ----------
    margin : float
        1/‖w‖, the distance along w that separates two samples whose scores differ by 1.
    squared_norm : float
        ‖w‖².
    pairs : int array of shape (n_pairs, 2)
        The training samples of each pair: the one with the larger target, then the other.
    slack : float array
        ξ of each pair: 0 if the scores differ by at least 1, above 1 if they are in the wrong order.
    free, bounded, non_support : int arrays
        Rows of `pairs` whose scores differ by exactly 1, by less, and by more.
    samples : int array
        The training samples.
    """

    margin: float
    squared_norm: float
    pairs: Indices = field(repr=False)
    slack: Floats = field(repr=False)
    free: Indices = field(repr=False)
    bounded: Indices = field(repr=False)
    non_support: Indices = field(repr=False)
    samples: Indices = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> RankGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    matrix = _difference_matrix(problem)
    free, bounded, non_support = support_partition(problem, dual, np.arange(problem.size))
    return RankGeometry(
        margin=margin_of(certificate.squared_norm),
        squared_norm=certificate.squared_norm,
        pairs=np.column_stack([samples[matrix.first], samples[matrix.second]]),
        slack=np.maximum(0.0, certificate.slack),
        free=free,
        bounded=bounded,
        non_support=non_support,
        samples=samples,
    )


def _difference_matrix(problem: DualProblem) -> DifferenceMatrix:
    """Return the matrix that `pose` made."""
    assert isinstance(problem.matrix, DifferenceMatrix)
    return problem.matrix
