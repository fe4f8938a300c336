"""Generate synthetic bag-of-words data: a million features, few of them frequent.

Words are drawn with probabilities ∝ 1 / (rank + 20), Zipf's law without the most frequent ranks (stop words); document
lengths are log-normal; values are logarithms of counts times inverse document frequencies, rows have norm 1.
The labels follow a sparse weight vector, with noise.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.peers.loading import Data

#: Number of the most frequent ranks that are left out.
STOP_WORDS = 20

#: Informative words per thousand features, and the fraction of flipped labels.
INFORMATIVE, FLIPPED = 3, 0.03


def text_like(rows: int = 100_000, features: int = 1_000_000, words: int = 80, seed: int = 0) -> Data:
    """Return samples as compressed sparse rows, and labels 0 and 1; the same for the same arguments."""
    random = np.random.default_rng(seed)
    lengths = np.maximum(3, np.rint(random.lognormal(np.log(words) - 0.18, 0.6, rows))).astype(np.int64)
    spread = (features + STOP_WORDS) / STOP_WORDS
    ranks = (STOP_WORDS * (spread ** random.random(lengths.sum()) - 1.0)).astype(np.int64)
    # The vocabulary is not ordered by frequency.
    columns = random.permutation(features).astype(np.int32)[np.minimum(ranks, features - 1)]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(rows, features))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log(rows / np.maximum(documents, 1))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, np.finfo(float).tiny), np.diff(X.indptr))
    coefficients = np.zeros(features)
    informative = np.unique(random.choice(X.indices, INFORMATIVE * features // 1000))
    coefficients[informative] = random.normal(size=len(informative))
    score = X @ coefficients
    score += 0.1 * score.std() * random.normal(size=rows)
    y = (score > np.median(score)).astype(np.int64)
    flipped = random.random(rows) < FLIPPED
    y[flipped] = 1 - y[flipped]
    return X, y
