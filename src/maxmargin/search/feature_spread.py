"""The mean distance of two samples in each feature: what γ of the feature is relative to."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats

#: Pairs of samples from which the mean of distances is estimated that are no squares.
PAIRS = 2000


def feature_spread(kernel: str, X: Any, weights: Floats) -> Floats:
    """Return the mean of (x − z)², |x − z| or (x − z)² / (x + z) over pairs of samples, for each feature."""
    if kernel in ("rbf", "gaussian"):
        return 2.0 * _variance(X, weights)
    random = np.random.default_rng(0)
    first, second = random.choice(X.shape[0], (2, PAIRS), p=weights / weights.sum())
    difference = X[first] - X[second]
    if kernel == "laplacian":
        return np.asarray(abs(difference).mean(axis=0)).ravel()
    total = X[first] + X[second]
    if sparse.issparse(X):
        ratio = difference.multiply(difference).multiply(total.power(-1))
        return np.asarray(ratio.mean(axis=0)).ravel()
    ratio = np.divide(difference**2, total, out=np.zeros_like(total), where=total != 0)
    return np.asarray(ratio.mean(axis=0))


def _variance(X: Any, weights: Floats) -> Floats:
    """Return the variance of each feature; exactly 0 for one that is constant."""
    share = weights / weights.sum()
    if not sparse.issparse(X):
        centred = X - X[0]  # no cancellation where values are far from 0
        mean = share @ centred
        return np.asarray(np.maximum(share @ centred**2 - mean**2, 0.0))
    mean = share @ X
    return np.asarray(np.maximum(share @ X.multiply(X).tocsr() - mean**2, 0.0))
