"""How well scores agree with an order: the part of the pairs that are the right way round.

Pairs are counted without listing them: the targets are halved again and again, and each sample of the upper half finds
its place among the sorted scores of the lower (n log² n instead of n² comparisons).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices


def concordance(scores: Floats, targets: Floats, queries: Indices, weights: Floats) -> tuple[float, float]:
    """Return the weight of the pairs in the right order, equal scores counted half, and that of all pairs.

    Pairs are samples of one query with different targets; a pair weighs the product of its samples' weights.
    """
    right = total = 0.0
    order = np.lexsort((targets, queries))
    parts = np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
    while parts:
        part = parts.pop()
        middle = _boundary(targets[part])
        if middle is not None:
            low, high = part[:middle], part[middle:]
            right += _in_order(scores[low], weights[low], scores[high], weights[high])
            total += float(weights[low].sum() * weights[high].sum())
            parts += [low, high]
    return right, total


def _boundary(targets: Floats) -> int | None:
    """Return a place near the middle where sorted targets change, None if they are all alike."""
    if targets[0] == targets[-1]:
        return None
    middle = targets[len(targets) // 2]
    left = int(np.searchsorted(targets, middle, side="left"))
    return left if left > 0 else int(np.searchsorted(targets, middle, side="right"))


def _in_order(low: Floats, low_weights: Floats, high: Floats, high_weights: Floats) -> float:
    """Return the weight of the pairs in which the sample of `high` has the larger score, equal ones counted half."""
    order = np.argsort(low, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(low_weights[order])])
    left, right = (np.searchsorted(low[order], high, side=side) for side in ("left", "right"))
    return float(high_weights @ (0.5 * (below[left] + below[right])))
