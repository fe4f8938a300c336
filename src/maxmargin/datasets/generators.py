"""Generators of small classification problems, mostly in two dimensions.

All return samples X and labels 0 and 1, and are reproducible by their seed.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats

Labelled = tuple[Floats, np.ndarray]


def chessboard(n_samples: int = 1000, size: int = 4, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return points of a chessboard, labelled by the colours of their squares.

    Parameters
    ----------
    n_samples : int
        Number of points, uniform on the board.
    size : int
        Number of squares along each side; the board is [0, size]².
    noise : float
        Fraction of flipped labels.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    if n_samples < 1 or size < 1 or not 0 <= noise <= 1:
        raise ValueError("chessboard needs at least one sample and one square, and noise between 0 and 1")
    random = np.random.default_rng(seed)
    X = random.uniform(0, size, (n_samples, 2))
    y = np.floor(X).astype(int).sum(axis=1) % 2
    flipped = random.random(n_samples) < noise
    return X, np.where(flipped, 1 - y, y)


def two_gaussians(n_samples: int = 1000, n_features: int = 2, distance: float = 2.0, seed: int = 0) -> Labelled:
    """Return two overlapping Gaussian clusters of unit variance; the Bayes error is Φ(−distance / 2).

    Parameters
    ----------
    n_samples : int
        Number of points, half of them in each class.
    n_features : int
        The means differ in the first feature; the others are noise.
    distance : float
        Distance of the means. The Bayes classifier is the sign of the first feature.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, n_features=n_features, distance=distance)
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    X = random.normal(size=(n_samples, n_features))
    X[:, 0] += (y - 0.5) * distance
    return X, y


def rings(n_samples: int = 1000, n_rings: int = 2, noise: float = 0.1, seed: int = 0) -> Labelled:
    """Return points on circles of radius 1, 2, … around the origin, with alternating labels.

    Parameters
    ----------
    n_samples : int
        Number of points, evenly distributed over the circles.
    n_rings : int
        Number of circles.
    noise : float
        Standard deviation of the noise added to each coordinate.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, n_rings=n_rings, noise=noise)
    random = np.random.default_rng(seed)
    ring = random.permutation(np.arange(n_samples) % n_rings)
    angle = random.uniform(0, 2 * np.pi, n_samples)
    X = (1 + ring)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * random.normal(size=X.shape), ring % 2


def spirals(n_samples: int = 1000, turns: float = 1.5, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return two intertwined spirals (Lang and Witbrock, 1988).

    Parameters
    ----------
    n_samples : int
        Number of points, half of them on each arm.
    turns : float
        Number of turns of each arm around the origin; the radius grows from 0 to 1 in proportion to the angle.
    noise : float
        Standard deviation of the noise added to each coordinate.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, turns=turns, noise=noise)
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    radius = np.sqrt(random.uniform(size=n_samples))  # uniform density along the arm
    angle = 2 * np.pi * turns * radius + np.pi * y
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * random.normal(size=X.shape), y


def xor(n_samples: int = 1000, n_features: int = 2, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return points of a cube, labelled by the exclusive or of the signs of the first two features.

    Parameters
    ----------
    n_samples : int
        Number of points, uniform on [−1, 1]ᵈ.
    n_features : int
        At least 2; the features after the second are noise.
    noise : float
        Fraction of flipped labels.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, noise=noise)
    if n_features < 2 or noise > 1:
        raise ValueError("xor needs at least 2 features, and noise between 0 and 1")
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n_samples, n_features))
    y = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(int)
    flipped = random.random(n_samples) < noise
    return X, np.where(flipped, 1 - y, y)


def bananas(n_samples: int = 1000, noise: float = 0.2, seed: int = 0) -> Labelled:
    """Return two interleaving half moons.

    Parameters
    ----------
    n_samples : int
        Number of points, half of them in each class.
    noise : float
        Standard deviation of the noise added to each coordinate.
    seed : int
        Seed of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_arguments(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    y = balanced_labels(n_samples, random)
    angle = random.uniform(0, np.pi, n_samples)
    sign = 1 - 2 * y
    X = np.column_stack([sign * np.cos(angle) + y, sign * np.sin(angle) + 0.5 * y])
    return X + noise * random.normal(size=X.shape), y


def balanced_labels(n_samples: int, random: np.random.Generator) -> np.ndarray:
    """Return labels 0 and 1 in random order, equally often (up to one)."""
    return random.permutation(np.arange(n_samples) % 2)


def check_arguments(n_samples: int, **others: float) -> None:
    """Raise ValueError if n_samples or another n_… is below 1, or another argument is negative or not finite."""
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least one sample, not {n_samples}")
    for name, value in others.items():
        least = 1 if name.startswith("n_") else 0
        if not np.isfinite(value) or value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
