"""The concordance index of a ranking: the weighted fraction of pairs whose scores are in the order of their targets.

Pairs are counted by divide and conquer over the sorted targets: the scores of the upper half are located among the
sorted scores of the lower half, which takes O(n log² n) instead of O(n²) comparisons.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices


def concordance(scores: Floats, targets: Floats, queries: Indices, weights: Floats) -> tuple[float, float]:
    """Return the weight of the concordant pairs, tied scores counted half, and that of all pairs.

    A pair is two samples of one query with different targets; its weight is the product of the samples' weights.
    """
    concordant = total = 0.0
    order = np.lexsort((targets, queries))
    parts = np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
    while parts:
        part = parts.pop()
        middle = _boundary(targets[part])
        if middle is not None:
            low, high = part[:middle], part[middle:]
            concordant += _concordant_weight(scores[low], weights[low], scores[high], weights[high])
            total += float(weights[low].sum() * weights[high].sum())
            parts += [low, high]
    return concordant, total


def _boundary(targets: Floats) -> int | None:
    """Return a position near the middle where sorted targets change, None if they are all equal."""
    if targets[0] == targets[-1]:
        return None
    middle = targets[len(targets) // 2]
    left = int(np.searchsorted(targets, middle, side="left"))
    return left if left > 0 else int(np.searchsorted(targets, middle, side="right"))


def _concordant_weight(low: Floats, low_weights: Floats, high: Floats, high_weights: Floats) -> float:
    """Return the weight of the pairs in which the sample of `high` has the larger score, ties counted half."""
    order = np.argsort(low, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(low_weights[order])])
    left, right = (np.searchsorted(low[order], high, side=side) for side in ("left", "right"))
    return float(high_weights @ (0.5 * (below[left] + below[right])))
