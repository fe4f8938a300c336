"""Ranking: of two samples of one query, the one with the larger target should have the larger score.

    primal   minimise ½‖w‖² + Σ_p C_p ξ_p   subject to   w·(Φ(x_i) − Φ(x_j)) ≥ 1 − ξ_p,  ξ_p ≥ 0
             for every pair p = (i, j) of one query with t_i > t_j
    dual     M of the differences Φ(x_i) − Φ(x_j),  linear = 1,  bounds [0, C_p],  no group

(Herbrich, Graepel & Obermayer 2000; Joachims 2002, SVMlight's `qid`.) An offset would cancel in every difference: there
is none. The coefficient of a sample is the sum over the pairs that it wins minus that over the pairs that it loses.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem


def count_pairs(targets: Floats, queries: Indices) -> int:
    """Return how many pairs of samples of one query differ in their targets."""
    return int(_rivals(targets, queries)[2].sum())


def list_pairs(targets: Floats, queries: Indices) -> tuple[Indices, Indices]:
    """Return the pairs of samples of one query that differ in their targets: the larger first, then the smaller."""
    order, begin, below = _rivals(targets, queries)
    behind = np.cumsum(below) - below
    losers = np.arange(int(below.sum())) + np.repeat(begin - behind, below)
    return np.repeat(order, below), order[losers]


def _rivals(targets: Floats, queries: Indices) -> tuple[Indices, Indices, Indices]:
    """Return the samples sorted by query and target, where the query of each begins, and how many it is above of."""
    order = np.lexsort((targets, queries))
    place = np.arange(len(order))
    first_of_query = np.diff(queries[order], prepend=queries[order[:1]] - 1) != 0
    first_of_target = first_of_query | (np.diff(targets[order], prepend=np.nan) != 0)
    begin = np.maximum.accumulate(np.where(first_of_query, place, 0))
    alike = np.maximum.accumulate(np.where(first_of_target, place, 0))
    return order, begin, alike - begin


def pose(matrix: SymmetricMatrix, first: Indices, second: Indices, costs: Floats) -> DualProblem:
    """Return the dual problem of pairs of which `first` should be above `second`, with costs C_p."""
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
    """Return the score as a function of a sample."""
    return KernelExpansion(_pairs_of(problem).sample_coefficients(dual), 0.0)


@dataclass(frozen=True)
class RankGeometry:
    """What a solved ranking looks like.

    Attributes
    ----------
    margin : float
        1/‖w‖, the distance along w that separates two samples whose scores differ by 1.
    squared_norm : float
        ‖w‖².
    pairs : int array of shape (n_pairs, 2)
        The training samples of each pair: the one with the larger target, then the other.
    slack : float array
        ξ of each pair: 0 if the scores differ by at least 1, above 1 if they are the wrong way round.
    free, bounded, non_support : int arrays
        Rows of `pairs`: scores that differ by exactly 1, by less (at their cost), and by more.
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
    """Read the machine off a solution of the problem that `pose` made of the training rows `samples`."""
    matrix = _pairs_of(problem)
    norm = np.sqrt(max(certificate.squared_norm, 0.0))
    at_cost = (dual != 0) & (dual == problem.upper)
    return RankGeometry(
        margin=float(1.0 / norm) if norm > 0 else float("inf"),
        squared_norm=certificate.squared_norm,
        pairs=np.column_stack([samples[matrix.first], samples[matrix.second]]),
        slack=np.maximum(0.0, certificate.slack),
        free=np.flatnonzero((dual != 0) & ~at_cost),
        bounded=np.flatnonzero(at_cost),
        non_support=np.flatnonzero(dual == 0),
        samples=samples,
    )


def _pairs_of(problem: DualProblem) -> DifferenceMatrix:
    """Return the matrix that `pose` made."""
    assert isinstance(problem.matrix, DifferenceMatrix)
    return problem.matrix
