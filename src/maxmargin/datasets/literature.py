"""Data that the literature compares machines on, made from their definitions: classes, regression, ranking, novelty."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.datasets.generators import Labelled, check_numbers, halves


def twonorm(n_samples: int = 1000, n_features: int = 20, seed: int = 0) -> Labelled:
    """Return Breiman's twonorm: two gaussian clouds of unit variance around (a, …, a) and (−a, …, −a), a = 2/√d.

    The best rule is the sign of the sum of all features, and its error is Φ(−2) = 2.28 %.

    Parameters
    ----------
    n_samples : int
        How many, half of them in each class.
    n_features : int
        20 in Breiman (1996), *Bias, variance, and arcing classifiers*.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, n_features=n_features)
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    mean = 2 / np.sqrt(n_features) * (2 * y - 1)
    return mean[:, None] + random.normal(size=(n_samples, n_features)), y


def ringnorm(n_samples: int = 1000, n_features: int = 20, seed: int = 0) -> Labelled:
    """Return Breiman's ringnorm: a gaussian cloud of variance 1 inside one of variance 4.

    The wide cloud is around 0, the narrow one around (a, …, a), a = 2/√d. No plane separates them; the best rule is a
    sphere, and its error is 1.3 % for 20 features.

    Parameters
    ----------
    n_samples : int
        How many, half of them in each class.
    n_features : int
        20 in Breiman (1996), *Bias, variance, and arcing classifiers*.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 for the wide cloud, 1 for the narrow one.
    """
    check_numbers(n_samples, n_features=n_features)
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    X = random.normal(size=(n_samples, n_features)) * (2 - y)[:, None]
    return X + (2 / np.sqrt(n_features) * y)[:, None], y


def waveform(n_samples: int = 1000, noise: float = 1.0, seed: int = 0) -> Labelled:
    """Return the waveforms of Breiman, Friedman, Olshen and Stone (1984): three classes of 21 features.

    Each class mixes two of three triangular waves in random proportion. The best rule has an error of about 14 %.

    Parameters
    ----------
    n_samples : int
        How many, of random classes.
    noise : float
        Standard deviation that is added to each feature.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 21)
    y : int array of shape (n_samples,)
        0, 1 or 2.
    """
    check_numbers(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    places = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(places - np.array([[7], [15], [11]])), 0.0)
    y = random.integers(0, 3, n_samples)
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    share = random.uniform(size=(n_samples, 1))
    X = share * waves[first] + (1 - share) * waves[second]
    return X + noise * random.normal(size=X.shape), y


def documents(
    n_samples: int = 1000, n_features: int = 10_000, length: int = 50, seed: int = 0
) -> tuple[Any, np.ndarray]:
    """Return texts of two topics as counts of words: sparse, of many features, for linear machines.

    Words are as frequent as in a language (Zipf: the k-th has a share proportional to 1/k). Half of the words are twice
    as likely in the one topic as in the other.

    Parameters
    ----------
    n_samples : int
        How many texts, half of them of each topic.
    n_features : int
        How many words there are.
    length : int
        Words of each text.
    seed : int
        Of the random generator.

    Returns
    -------
    X : CSR matrix of shape (n_samples, n_features)
        How often each word occurs.
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, n_features=n_features)
    if length < 1:
        raise ValueError(f"length must be at least 1, not {length}")
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    leaning = random.choice([0.5, 1.0, 2.0], n_features, p=[0.25, 0.5, 0.25])
    frequency = 1 / np.arange(1, n_features + 1)
    words = np.empty((n_samples, length), dtype=np.int32)
    for topic, weights in enumerate((frequency, frequency * leaning)):
        rows = y == topic
        words[rows] = random.choice(n_features, (int(rows.sum()), length), p=weights / weights.sum())
    X = sparse.csr_matrix(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, length)), shape=(n_samples, n_features)
    )
    X.sum_duplicates()
    return X, y


def sinc(n_samples: int = 200, noise: float = 0.1, seed: int = 0) -> tuple[Floats, Floats]:
    """Return noisy values of sin(x)/x, the first example of support vector regression (Vapnik, Golowich, Smola, 1997).

    Parameters
    ----------
    n_samples : int
        How many, uniform on [−10, 10].
    noise : float
        Standard deviation of the targets.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 1)
    y : float array of shape (n_samples,)
    """
    check_numbers(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    x = random.uniform(-10, 10, n_samples)
    return x[:, None], np.sinc(x / np.pi) + noise * random.normal(size=n_samples)


def friedman1(n_samples: int = 1000, n_features: int = 10, noise: float = 1.0, seed: int = 0) -> tuple[Floats, Floats]:
    """Return Friedman's first regression problem (1991): five features count, in five ways, and the others do not.

        y = 10 sin(π x₁ x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + noise

    Parameters
    ----------
    n_samples : int
        How many, uniform on [0, 1]ᵈ.
    n_features : int
        At least 5.
    noise : float
        Standard deviation of the targets.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
    """
    check_numbers(n_samples, noise=noise)
    if n_features < 5:
        raise ValueError(f"friedman1 needs at least 5 features, not {n_features}")
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n_samples, n_features))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + noise * random.normal(size=n_samples)


def ranked_queries(
    n_samples: int = 500, per_query: int = 10, n_features: int = 5, noise: float = 0.1, seed: int = 0
) -> tuple[Floats, Floats, np.ndarray]:
    """Return answers to queries with grades 0 to 4, for ranking: only grades of the same query can be compared.

    A linear function of the features ranks the answers, and each query adds something of its own to all its answers,
    so that grades tell nothing across queries.

    Parameters
    ----------
    n_samples : int
        How many answers in all.
    per_query : int
        How many answers each query has; the last may have fewer.
    n_features : int
        Of each answer.
    noise : float
        Standard deviation that is added before grades are given.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : float array of shape (n_samples,)
        Grades: 4 for the best fifth of a query's answers, 0 for the last.
    query : int array of shape (n_samples,)
        1, 2, …
    """
    check_numbers(n_samples, n_features=n_features, noise=noise)
    if per_query < 2:
        raise ValueError(f"a query needs at least 2 answers, not {per_query}")
    random = np.random.default_rng(seed)
    query = np.arange(n_samples) // per_query
    count = int(query[-1]) + 1
    X = random.normal(size=(n_samples, n_features)) + 2 * random.normal(size=(count, n_features))[query]
    score = X @ random.normal(size=n_features) + noise * random.normal(size=n_samples)
    order = np.lexsort((score, query))
    start = np.searchsorted(query, np.arange(count))
    size = np.bincount(query)
    place = np.empty(n_samples)
    place[order] = np.arange(n_samples) - start[query[order]]
    return X, np.floor(5 * place / size[query]), query + 1


def outliers(n_samples: int = 500, n_features: int = 2, share: float = 0.05, seed: int = 0) -> Labelled:
    """Return two gaussian clouds and points anywhere around them, for machines that find what is unusual.

    Parameters
    ----------
    n_samples : int
        How many points in all.
    n_features : int
        The clouds are around (−2, …, −2) and (2, …, 2), with standard deviation ½.
    share : float
        Of points that are uniform on [−6, 6]ᵈ, whatever the clouds are.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        1 for points of a cloud, −1 for the others, as one-class machines predict.
    """
    check_numbers(n_samples, n_features=n_features, share=share)
    if share > 1:
        raise ValueError(f"share must be between 0 and 1, not {share}")
    random = np.random.default_rng(seed)
    y = np.ones(n_samples, dtype=int)
    y[random.permutation(n_samples)[: round(share * n_samples)]] = -1
    centre = random.choice([-2.0, 2.0], (n_samples, 1))
    inside = centre + 0.5 * random.normal(size=(n_samples, n_features))
    outside = random.uniform(-6, 6, (n_samples, n_features))
    return np.where((y == 1)[:, None], inside, outside), y
