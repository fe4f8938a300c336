"""Small data sets made on the spot: for examples, demonstrations and tests."""

from __future__ import annotations

import numpy as np

from maxmargin.matrices.symmetric_matrix import Floats


def chessboard(n_samples: int = 1000, size: int = 4, noise: float = 0.0, seed: int = 0) -> tuple[Floats, np.ndarray]:
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
