"""Classes in the plane, made on the spot: for examples, demonstrations and tests.

All of them return samples X and labels 0 and 1, and the same for the same seed.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats

Labelled = tuple[Floats, np.ndarray]


def chessboard(n_samples: int = 1000, size: int = 4, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return points of a chessboard and the colours of their fields: easy to see, hard to learn.

    Parameters
    ----------
    n_samples : int
        How many points, uniform on the board.
    size : int
        Fields along each side; the board is [0, size]².
    noise : float
        Share of the labels that are turned round.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    if n_samples < 1 or size < 1 or not 0 <= noise <= 1:
        raise ValueError("a chessboard needs at least one sample, one field, and noise between 0 and 1")
    random = np.random.default_rng(seed)
    X = random.uniform(0, size, (n_samples, 2))
    y = np.floor(X).astype(int).sum(axis=1) % 2
    turned = random.random(n_samples) < noise
    return X, np.where(turned, 1 - y, y)


def two_gaussians(n_samples: int = 1000, n_features: int = 2, distance: float = 2.0, seed: int = 0) -> Labelled:
    """Return two overlapping gaussian clouds of unit variance: no rule has an error below Φ(−distance / 2).

    Parameters
    ----------
    n_samples : int
        How many points, half of them in each class.
    n_features : int
        The means are apart along the first feature; the others tell nothing.
    distance : float
        Between the means, at −distance/2 and distance/2. The best rule is the sign of the first feature.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, n_features=n_features, distance=distance)
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    X = random.normal(size=(n_samples, n_features))
    X[:, 0] += (y - 0.5) * distance
    return X, y


def rings(n_samples: int = 1000, n_rings: int = 2, noise: float = 0.1, seed: int = 0) -> Labelled:
    """Return points on circles around the origin, of radius 1, 2, …, whose labels alternate.

    Parameters
    ----------
    n_samples : int
        How many points, the same number on each circle, or nearly.
    n_rings : int
        How many circles.
    noise : float
        Standard deviation around the circle, in each direction.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, n_rings=n_rings, noise=noise)
    random = np.random.default_rng(seed)
    ring = random.permutation(np.arange(n_samples) % n_rings)
    angle = random.uniform(0, 2 * np.pi, n_samples)
    X = (1 + ring)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * random.normal(size=X.shape), ring % 2


def spirals(n_samples: int = 1000, turns: float = 1.5, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return two spirals, one inside the other (Lang and Witbrock, 1988): what neural networks once failed on.

    Parameters
    ----------
    n_samples : int
        How many points, half of them on each arm.
    turns : float
        How often each arm goes round the origin; its radius grows from 0 to 1 in proportion to the angle.
    noise : float
        Standard deviation around the arm, in each direction.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, turns=turns, noise=noise)
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    radius = np.sqrt(random.uniform(size=n_samples))  # points are as dense outside as inside
    angle = 2 * np.pi * turns * radius + np.pi * y
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * random.normal(size=X.shape), y


def xor(n_samples: int = 1000, n_features: int = 2, noise: float = 0.0, seed: int = 0) -> Labelled:
    """Return points of a cube, labelled by whether the signs of the first two features differ.

    Parameters
    ----------
    n_samples : int
        How many points, uniform on [−1, 1]ᵈ.
    n_features : int
        At least 2; those after the second tell nothing.
    noise : float
        Share of the labels that are turned round.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, noise=noise)
    if n_features < 2 or noise > 1:
        raise ValueError("xor needs at least two features, and noise between 0 and 1")
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (n_samples, n_features))
    y = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(int)
    turned = random.random(n_samples) < noise
    return X, np.where(turned, 1 - y, y)


def bananas(n_samples: int = 1000, noise: float = 0.2, seed: int = 0) -> Labelled:
    """Return two half moons that reach into each other.

    Parameters
    ----------
    n_samples : int
        How many points, half of them in each class.
    noise : float
        Standard deviation around the arc of radius 1, in each direction.
    seed : int
        Of the random generator.

    Returns
    -------
    X : float array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        0 or 1.
    """
    check_numbers(n_samples, noise=noise)
    random = np.random.default_rng(seed)
    y = halves(n_samples, random)
    angle = random.uniform(0, np.pi, n_samples)
    sign = 1 - 2 * y
    X = np.column_stack([sign * np.cos(angle) + y, sign * np.sin(angle) + 0.5 * y])
    return X + noise * random.normal(size=X.shape), y


def halves(n_samples: int, random: np.random.Generator) -> np.ndarray:
    """Return as many zeros as ones, or one more, in random order."""
    return random.permutation(np.arange(n_samples) % 2)


def check_numbers(n_samples: int, **others: float) -> None:
    """Raise if there is no sample, or if a number that must not be negative is; whole numbers must be at least 1."""
    if n_samples < 1:
        raise ValueError(f"at least one sample is needed, not {n_samples}")
    for name, value in others.items():
        least = 1 if name.startswith("n_") else 0
        if not np.isfinite(value) or value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
