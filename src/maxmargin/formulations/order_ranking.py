"""The geometry of a ranking whose pairs are too many to be listed: numbers of pairs, and sums by sample."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import margin_of
from maxmargin.problems import Certificate
from maxmargin.problems.order_ranking import PairWindow


@dataclass(frozen=True)
class RankSummary:
    """Geometry of a solved ranking with many pairs.

    Attributes
    ----------
    margin : float
        1/‖w‖, the distance along w that separates two samples whose scores differ by 1.
    squared_norm : float
        ‖w‖².
    pairs, free, bounded, non_support : int
        The number of pairs; of those whose scores differ by 1 (to the tolerance), by less, and by more.
    slack : float array
        For each training sample, Σ C_p ξ_p over the pairs in which it has the larger target.
    samples : int array
        The training samples.
    """

    margin: float
    squared_norm: float
    pairs: int
    free: int
    bounded: int
    non_support: int
    slack: Floats = field(repr=False)
    samples: Indices = field(repr=False)


def read(window: PairWindow, certificate: Certificate, samples: Indices) -> RankSummary:
    """Return the geometry of the dual vector of a window of the training rows `samples`."""
    free, bounded = window.window_counts()
    order = np.lexsort((window.problem.levels, window.problem.queries))
    level, query = window.problem.levels[order], window.problem.queries[order]
    starts = np.searchsorted(query, query)
    lower = np.searchsorted(query * (len(order) + 1) + level, query * (len(order) + 1) + level) - starts
    pairs = int(lower.sum())
    return RankSummary(
        margin=margin_of(certificate.squared_norm),
        squared_norm=certificate.squared_norm,
        pairs=pairs,
        free=free,
        bounded=bounded,
        non_support=pairs - free - bounded,
        slack=certificate.slack,
        samples=samples,
    )
