"""A score of novelty detectors on data without labels: coverage of the data against coverage of a background.

A detector is good if its region contains what it has not seen of the data, and little else. The fraction of held-out
samples inside alone is largest for a region that is everything; the distance of the fraction outside from ν alone is
met by regions of any shape. So the volume of the region counts as well: Tax & Duin (Uniform object generation for
optimizing one-class classifiers, 2001) minimise the sum of held-out errors and the volume, estimated on artificial
samples; Steinwart, Hush & Scovel (A classification framework for anomaly detection, 2005) show that this is a
classification of the data against a background measure, whose error is zero only for a level set of their density;
Goix (2016) calls it excess mass.

The score is the fraction of held-out samples inside minus the fraction of background samples inside, between −1 and 1:
0 for a region that is empty, everything, or drawn without regard to the data. Half of the background is uniform in the
bounding box of the data: the volume. In many dimensions uniform samples are far from all data, and a half whose
features are those of the data, but shuffled independently, remains informative (Hastie, Tibshirani & Friedman, The
Elements of Statistical Learning, 14.2.4). Sparse data, whose bounding box is dense, have the shuffled half only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _sparse as sparse

#: Samples of the background. The standard error of its fraction is at most 0.011, and all points have the same samples.
BACKGROUND_SAMPLES = 2000


class BackgroundScore:
    """Score a novelty detector by the fraction of samples inside minus the fraction of background samples inside.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        All samples, from which the background is made.
    samples : int, default=2000
        Number of background samples.
    seed : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import OneClassSVM
    >>> from maxmargin.search.novelty_score import BackgroundScore
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = BackgroundScore(X)
    >>> bool(score(OneClassSVM(nu=0.1, gamma=0.5).fit(X), X) > score(OneClassSVM(nu=0.1, gamma=1e-4).fit(X), X))
    True
    """

    __name__ = "coverage minus background"

    def __init__(self, X: Any, samples: int = BACKGROUND_SAMPLES, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        if sparse.issparse(X):
            self.background = _shuffled_sparse(X, samples, random)
        else:
            self.background = np.vstack(
                [_uniform(X, samples // 2, random), _shuffled(X, samples - samples // 2, random)]
            )

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of a fitted detector on held-out samples; `y` is ignored."""
        inside = np.average(estimator.predict(X) == 1, weights=sample_weight)
        return float(inside - np.mean(estimator.predict(self.background) == 1))


def _uniform(X: Any, samples: int, random: np.random.Generator) -> Any:
    """Return samples that are uniform in the bounding box of X."""
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    places = random.random((samples, X.shape[1]))
    return low * (1 - places) + high * places  # without the difference, which may overflow


def _shuffled(X: Any, samples: int, random: np.random.Generator) -> Any:
    """Return samples whose features are drawn from those of X independently of each other."""
    rows = random.integers(len(X), size=(samples, X.shape[1]))
    return np.take_along_axis(X, rows, axis=0).astype(np.float64)


def _shuffled_sparse(X: Any, samples: int, random: np.random.Generator) -> Any:
    """Return the same of a sparse matrix: each feature has about as many nonzeros as its share."""
    columns = X.tocsc()
    counts = np.diff(columns.indptr)
    drawn = random.binomial(samples, counts / X.shape[0])
    indices = [random.choice(samples, count, replace=False) for count in drawn]
    values = [
        random.choice(columns.data[start:end], count) if count else np.empty(0)
        for start, end, count in zip(columns.indptr[:-1], columns.indptr[1:], drawn, strict=True)
    ]
    starts = np.concatenate([[0], np.cumsum(drawn)])
    parts = (np.concatenate([[], *values]), np.concatenate([np.empty(0, dtype=np.intp), *indices]), starts)
    return sparse.csc_matrix(parts, shape=(samples, X.shape[1])).tocsr()
