"""Generated data of the kinds that users have: binary, categorical, few features, overlapping or uneven classes.

Every function takes a number of rows and returns samples and labels or targets, the same in every run. The numbers of
support vectors and their share at the bound are close to those of public data of the same kind.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.loading import Data, standardised

#: Shares of the classes of `uneven_classes`.
UNEVEN_SHARES = (0.7859, 0.155, 0.0554, 0.0025, 0.0008, 0.0002, 0.0002)


def binary_features(count: int, features: int = 300) -> Data:
    """Return rows with a seventh of the binary features set; the second class holds a tenth of the rows."""
    random = np.random.default_rng(1)
    topics = random.random((6, features)) ** 6
    topic = random.integers(0, 6, count)
    X = (random.random((count, features)) < topics[topic]).astype(np.float64)
    weights = random.normal(size=features) * (random.random(features) < 0.1)
    score = (X - X.mean(axis=0)) @ weights
    return X, (score + 0.1 * random.normal(size=count) > np.quantile(score, 0.9)).astype(np.int64)


def low_dimensional(count: int, features: int = 8) -> Data:
    """Return few features and a smooth boundary with some noise."""
    random = np.random.default_rng(2)
    X = random.normal(size=(count, features))
    score = _waves(X, random)
    return X, (score + 0.15 * random.normal(size=count) > np.median(score)).astype(np.int64)


def few_support_vectors(count: int) -> Data:
    """Return three features and two classes that a smooth boundary separates."""
    random = np.random.default_rng(3)
    X = random.normal(size=(3 * count, 3))
    score = X[:, 0] + np.sin(X[:, 1]) + 0.3 * X[:, 2] ** 2 - 0.8
    apart = np.abs(score) > 0.1
    return X[apart][:count], (score[apart][:count] > 0).astype(np.int64)


def categorical(count: int, attributes: int = 30) -> Data:
    """Return attributes of two to four values as indicators, many rows repeated."""
    random = np.random.default_rng(4)
    levels = np.resize([2, 2, 3, 2, 2, 2, 3, 2], attributes)
    pattern = [random.integers(0, many, 12) for many in levels]
    prototype = random.integers(0, 12, count)
    blocks, score = [], np.zeros(count)
    for many, values in zip(levels, pattern, strict=True):
        noisy = random.random(count) < 0.18
        value = np.where(noisy, random.integers(0, many, count), values[prototype])
        blocks.append(np.eye(many)[value])
        score += random.normal(size=many)[value]
    return np.hstack(blocks), (score + 0.8 * random.normal(size=count) > np.median(score)).astype(np.int64)


def overlapping(count: int, features: int, noise: float) -> Data:
    """Return physics-like classes that overlap, so that most support vectors are at the bound."""
    random = np.random.default_rng(5)
    X = random.normal(size=(count, features))
    X[:, ::3] = np.abs(X[:, ::3]) ** 1.5
    X, _ = standardised((X, np.empty(0)))
    score = _waves(X, random)
    score = (score - np.median(score)) / score.std()
    return X, (score + noise * random.logistic(size=count) > 0).astype(np.int64)


def uneven_classes(count: int, features: int = 9) -> Data:
    """Return seven classes that hold from 79 % to 0.02 % of the rows."""
    random = np.random.default_rng(6)
    classes = len(UNEVEN_SHARES)
    y = np.concatenate([np.arange(classes).repeat(2), random.choice(classes, count - 2 * classes, p=UNEVEN_SHARES)])
    centres = 1.8 * random.normal(size=(classes, features))
    X = centres[y] + random.normal(size=(count, features)) * np.linspace(0.5, 1.3, features)
    return X, y


def several_classes(count: int, features: int = 36, classes: int = 6) -> Data:
    """Return classes with neighbours they overlap with, and correlated features."""
    random = np.random.default_rng(7)
    y = random.integers(0, classes, count)
    mixing = random.normal(size=(classes, features))
    latent = np.eye(classes)[y] * 2.6 + random.normal(size=(count, classes))
    return standardised((latent @ mixing + 0.7 * random.normal(size=(count, features)), y))


def smooth_targets(count: int, features: int = 8, noise: float = 0.35) -> Data:
    """Return a smooth function of the features with noise, of variance 1."""
    random = np.random.default_rng(8)
    X = random.normal(size=(count, features))
    target = _waves(X, random)
    target = (target - target.mean()) / target.std()
    return X, (target + noise * random.normal(size=count)) / np.hypot(1.0, noise)


def small_sample(count: int, features: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random rows, labels of two classes that overlap, and targets."""
    random = np.random.default_rng(9)
    X = random.normal(size=(count, features))
    score = X @ random.normal(size=features) + np.sin(2 * X[:, 0]) + random.normal(size=count)
    return X, (score > np.median(score)).astype(np.int64), score


def _waves(X: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return a linear function, three products and three waves of random directions."""
    features = X.shape[1]
    value = X @ random.normal(size=features) / np.sqrt(features)
    for _ in range(3):
        first, second, wave = random.normal(size=(3, features)) / np.sqrt(features)
        value = value + (X @ first) * (X @ second) + np.sin(1.5 * (X @ wave) + random.normal())
    return value
