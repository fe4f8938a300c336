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
    lengths = _lengths(rows, words, random)
    ranks = _ranks(int(lengths.sum()), features, random)
    # The vocabulary is not ordered by frequency.
    X = _weighted(random.permutation(features).astype(np.int32)[ranks], lengths, features)
    coefficients = np.zeros(features)
    informative = np.unique(random.choice(X.indices, INFORMATIVE * features // 1000))
    coefficients[informative] = random.normal(size=len(informative))
    score = X @ coefficients
    score += 0.1 * score.std() * random.normal(size=rows)
    y = (score > np.median(score)).astype(np.int64)
    flipped = random.random(rows) < FLIPPED
    y[flipped] = 1 - y[flipped]
    return X, y


def repeated_text(rows: int = 6_400, features: int = 55_000, words: int = 160, seed: int = 0) -> Data:
    """Return documents that are mostly edited copies of others, and labels 0 and 1, of which a tenth are wrong.

    There are three copies of an original on average, with up to a fifth of the words replaced. Copies with different
    labels make large costs hard: coordinate ascent takes thousands of passes.
    """
    random = np.random.default_rng(seed)
    originals = max(2, rows // 3)
    lengths = _lengths(originals, words, random)
    words_of = _ranks(int(lengths.sum()), features, random)
    starts = np.cumsum(lengths) - lengths
    original = random.integers(0, originals, rows)
    copied = lengths[original]
    within = np.arange(copied.sum()) - np.repeat(np.cumsum(copied) - copied, copied)
    ranks = words_of[np.repeat(starts[original], copied) + within]
    edited = random.random(len(ranks)) < np.repeat(0.2 * random.random(rows), copied)
    ranks[edited] = _ranks(int(edited.sum()), features, random)
    X = _weighted(random.permutation(features).astype(np.int32)[ranks], copied, features)
    y = random.integers(0, 2, originals)[original]
    return X, np.where(random.random(rows) < 0.1, 1 - y, y)


def _lengths(count: int, words: int, random: np.random.Generator) -> np.ndarray:
    """Return the numbers of words of documents."""
    return np.maximum(3, np.rint(random.lognormal(np.log(words) - 0.18, 0.6, count))).astype(np.int64)


def _ranks(count: int, features: int, random: np.random.Generator) -> np.ndarray:
    """Return words, by the rank of their frequency."""
    spread = (features + STOP_WORDS) / STOP_WORDS
    return np.minimum((STOP_WORDS * (spread ** random.random(count) - 1.0)).astype(np.int64), features - 1)


def _weighted(columns: np.ndarray, lengths: np.ndarray, features: int) -> sparse.csr_matrix:
    """Return the rows of documents, given the columns of their words one after the other."""
    rows, starts = len(lengths), np.concatenate([[0], np.cumsum(lengths)])
    X = sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(rows, features))
    X.sum_duplicates()
    documents = np.bincount(X.indices, minlength=features)
    X.data = np.log1p(X.data) * np.log(rows / np.maximum(documents, 1))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, np.finfo(float).tiny), np.diff(X.indptr))
    return X
