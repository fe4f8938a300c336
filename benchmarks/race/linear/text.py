"""Rows like those of text in the bag-of-words model, generated: a million features, few of them often.

Words are drawn with probabilities ∝ 1 / (rank + 20), Zipf's law with its top cut off as a list of stop words does;
lengths of rows are log-normal; values are logarithms of counts times inverse document frequencies, rows have length 1.
The labels follow a sparse weight vector, with noise.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from benchmarks.race.loading import Data

#: Ranks that are left out at the top.
STOP_WORDS = 20

#: Words of a thousand features that say something about the label, rather frequent ones, and the share of wrong labels.
TELLING, WRONG = 3, 0.03


def text_like(rows: int = 100_000, features: int = 1_000_000, words: int = 80, seed: int = 0) -> Data:
    """Return samples as compressed sparse rows, and labels 0 and 1; the same for the same arguments."""
    random = np.random.default_rng(seed)
    lengths = np.maximum(3, np.rint(random.lognormal(np.log(words) - 0.18, 0.6, rows))).astype(np.int64)
    spread = (features + STOP_WORDS) / STOP_WORDS
    ranks = (STOP_WORDS * (spread ** random.random(lengths.sum()) - 1.0)).astype(np.int64)
    # Words stand in no order of frequency in a vocabulary.
    columns = random.permutation(features).astype(np.int32)[np.minimum(ranks, features - 1)]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(rows, features))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log(rows / np.maximum(documents, 1))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, np.finfo(float).tiny), np.diff(X.indptr))
    truth = np.zeros(features)
    telling = np.unique(random.choice(X.indices, TELLING * features // 1000))
    truth[telling] = random.normal(size=len(telling))
    score = X @ truth
    score += 0.1 * score.std() * random.normal(size=rows)
    y = (score > np.median(score)).astype(np.int64)
    wrong = random.random(rows) < WRONG
    y[wrong] = 1 - y[wrong]
    return X, y
