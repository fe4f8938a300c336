"""Kernels by name, as objects, combined, and as a function."""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import minmax_scale

from maxmargin import SVC
from maxmargin.kernels import ChiSquared, Gaussian, Linear

X, y = load_wine(return_X_y=True)
X = minmax_scale(X)


def overlap(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Histogram intersection: Σ_k min(a_k, b_k), one row per sample of A, one column per sample of B."""
    return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)


for name, kernel in {
    "RBF": "rbf",
    "chi-squared object": ChiSquared(0.5),
    "RBF plus linear": 0.5 * Gaussian(1.0) + Linear(),
    "a function": overlap,
}.items():
    print(f"{name:22} {cross_val_score(SVC(kernel=kernel, C=5), X, y).mean():.3f}")
