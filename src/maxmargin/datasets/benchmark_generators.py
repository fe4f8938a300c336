"""Generators of benchmark problems of the literature: classification, regression, ranking, novelty detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.datasets.generators import Labelled, balanced_labels, check_arguments


def twonorm(n_samples: int = 1000, n_features: int = 20, seed: int = 0) -> Labelled:
    """Return Breiman's twonorm: two Gaussian clusters of unit variance at (a, …, a) and (−a, …, −a), a = 2/√d.

    The Bayes classifier is the sign of the sum of all features; the Bayes error is Φ(−2) = 2.28 %.

    Parameters
    ----------
    n_samples : int
        Number of samples, half of them in each class.
    n_features : int
        20 in Breiman (1996), *Bias, variance, and arcing classifiers*.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, n_features=n_features)
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    mean = 2 / np.sqrt(n_features) * (2 * y - 1)
    return mean[:, None] + random.normal(size=(n_samples, n_features)), y


def ringnorm(n_samples: int = 1000, n_features: int = 20, seed: int = 0) -> Labelled:
    """Return Breiman's ringnorm: a Gaussian cluster of variance 1 inside one of variance 4.

    The wide cluster is centred at 0, the narrow one at (a, …, a), a = 2/√d. The Bayes decision boundary is a sphere;
    the Bayes error is 1.3 % for 20 features.

    Parameters
    ----------
    n_samples : int
        Number of samples, half of them in each class.
    n_features : int
        20 in Breiman (1996), *Bias, variance, and arcing classifiers*.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 for the wide cluster, 1 for the narrow one.
    """
    check_arguments(n_samples, n_features=n_features)
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    X = random.normal(size=(n_samples, n_features)) * (2 - y)[:, None]
    return X + (2 / np.sqrt(n_features) * y)[:, None], y


def waveform(n_samples: int = 1000, noise: float = 1.0, seed: int = 0) -> Labelled:
    """Return the waveforms of Breiman, Friedman, Olshen and Stone (1984): three classes, 21 features.

    Each class mixes two of three triangular waves in random proportion. The Bayes error is about 14 %.

    Parameters
    ----------
    n_samples : int
        Number of samples, of random classes.
    noise : float
        Standard deviation of the noise added to each feature.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 21)
    y : int array of shape (n_samples,)
        0, 1 or 2.
    """
    check_arguments(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    times = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(times - np.array([[7], [15], [11]])), 0.0)
    y = random.integers(0, 3, n_samples)
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    weight = random.uniform(size=(n_samples, 1))
    X = weight * waves[first] + (1 - weight) * waves[second]
    return X + noise * random.normal(size=X.shape), y


def documents(
    n_samples: int = 1000, n_features: int = 10_000, length: int = 50, seed: int = 0
) -> tuple[Any, np.ndarray]:
    """Return word counts of documents on two topics: sparse data with many features, for linear classifiers.

    Word frequencies follow Zipf's law (the k-th word has a frequency proportional to 1/k). Half of the words are twice
    as likely in one topic as in the other.

    Parameters
    ----------
    n_samples : int
        Number of documents, half of them on each topic.
    n_features : int
        Size of the vocabulary.
    length : int
        Number of words of each document.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
        Word counts.
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, n_features=n_features)
    if length < 1:
        raise ValueError(f"length must be at least 1, not {length}")
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    ratio = random.choice([0.5, 1.0, 2.0], n_features, p=[0.25, 0.5, 0.25])
    frequency = 1 / np.arange(1, n_features + 1)
    words = np.empty((n_samples, length), dtype=np.int32)
    for topic, weights in enumerate((frequency, frequency * ratio)):
        rows = y == topic
        words[rows] = random.choice(n_features, (int(rows.sum()), length), p=weights / weights.sum())
    X = sparse.csr_matrix(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, length)), shape=(n_samples, n_features)
    )
    X.sum_duplicates()
    return X, y


def sinc(n_samples: int = 200, noise: float = 0.1, seed: int = 0) -> tuple[Floats, Floats]:
    """Return noisy values of sin(x)/x (Vapnik, Golowich and Smola, 1997).

    Parameters
    ----------
    n_samples : int
        Number of samples, uniform on [−10, 10].
    noise : float
        Standard deviation of the noise added to the targets.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 1)
    y : float array of shape (n_samples,)
    """
    check_arguments(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    x = random.uniform(-10, 10, n_samples)
    return x[:, None], np.sinc(x / np.pi) + noise * random.normal(size=n_samples)


def friedman1(n_samples: int = 1000, n_features: int = 10, noise: float = 1.0, seed: int = 0) -> tuple[Floats, Floats]:
    """Return Friedman's first regression problem (1991): five relevant features, the others are noise.

        y = 10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + noise

    Parameters
    ----------
    n_samples : int
        Number of samples, uniform on [0, 1]ᵈ.
    n_features : int
        At least 5.
    noise : float
        Standard deviation of the noise added to the targets.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
    """
    check_arguments(n_samples, noise=noise)
    if n_features < 5:
        raise ValueError(f"n_features must be at least 5, not {n_features}")
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n_samples, n_features))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + noise * random.normal(size=n_samples)


def ranked_queries(
    n_samples: int = 500, per_query: int = 10, n_features: int = 5, noise: float = 0.1, seed: int = 0
) -> tuple[Floats, Floats, np.ndarray]:
    """Return documents of queries with relevance grades 0 to 4, for ranking.

    A linear function of the features ranks the documents of a query. Each query adds an offset to all its documents,
    so that grades are not comparable across queries.

    Parameters
    ----------
    n_samples : int
        Total number of documents.
    per_query : int
        Number of documents per query; the last query may have fewer.
    n_features : int
        Number of features of each document.
    noise : float
        Standard deviation of the noise added to the score before grading.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
        Grades: 4 for the best fifth of the documents of a query, 0 for the last fifth.
    query : int array of shape (n_samples,)
        1, 2, …
    """
    check_arguments(n_samples, n_features=n_features, noise=noise)
    if per_query < 2:
        raise ValueError(f"per_query must be at least 2, not {per_query}")
    random = np.random.default_rng(seed)
    query = np.arange(n_samples) // per_query
    count = int(query[-1]) + 1
    X = random.normal(size=(n_samples, n_features)) + 2 * random.normal(size=(count, n_features))[query]
    score = X @ random.normal(size=n_features) + noise * random.normal(size=n_samples)
    order = np.lexsort((score, query))
    start = np.searchsorted(query, np.arange(count))
    size = np.bincount(query)
    rank = np.empty(n_samples)
    rank[order] = np.arange(n_samples) - start[query[order]]
    return X, np.floor(5 * rank / size[query]), query + 1


def outliers(n_samples: int = 500, n_features: int = 2, contamination: float = 0.05, seed: int = 0) -> Labelled:
    """Return two Gaussian clusters and uniform outliers, for novelty detection.

    Parameters
    ----------
    n_samples : int
        Total number of points.
    n_features : int
        The clusters are centred at (−2, …, −2) and (2, …, 2), with standard deviation ½.
    contamination : float
        Fraction of outliers, uniform on [−6, 6]ᵈ.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        1 for inliers, −1 for outliers, as predicted by novelty detectors.
    """
    check_arguments(n_samples, n_features=n_features, contamination=contamination)
    if contamination > 1:
        raise ValueError(f"contamination must be between 0 and 1, not {contamination}")
    random = np.random.default_rng(seed)
    y = np.ones(n_samples, dtype=int)
    y[random.permutation(n_samples)[: round(contamination * n_samples)]] = -1
    centre = random.choice([-2.0, 2.0], (n_samples, 1))
    inside = centre + 0.5 * random.normal(size=(n_samples, n_features))
    outside = random.uniform(-6, 6, (n_samples, n_features))
    return np.where((y == 1)[:, None], inside, outside), y
