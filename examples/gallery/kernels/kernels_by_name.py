"""
Kernels by name, as objects, combined, and as a function
========================================================

The same data with six kernels. On two intertwined spirals only a narrow radial kernel has the right shape.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC
from maxmargin.datasets import spirals
from maxmargin.kernels import Gaussian, Linear
from maxmargin.plotting import DecisionRegionsDisplay

X, y = spirals(300, seed=0)


def cauchy(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """1 / (1 + γ ‖a − b‖²), one row per sample of A, one column per sample of B."""
    squares = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
    return 1 / (1 + 5 * squares)


kernels = {
    "linear": SVC(kernel="linear"),
    "poly, degree 5": SVC(kernel="poly", degree=5, coef0=1, C=100),
    "rbf": SVC(kernel="rbf", gamma=3, C=100),
    "laplacian": SVC(kernel="laplacian", gamma=1, C=100),
    "0.5 * Gaussian(3) + Linear()": SVC(kernel=0.5 * Gaussian(3.0) + Linear(), C=100),
    "a function": SVC(kernel=cauchy, C=100),
}
figure, axes = plt.subplots(2, 3, figsize=(13, 8.6), layout="constrained")
for (name, model), ax in zip(kernels.items(), axes.flat, strict=True):
    DecisionRegionsDisplay.from_estimator(model.fit(X, y), X, y, ax=ax)
    ax.get_legend().remove()
    ax.set_title(f"{name}: {model.score(X, y):.0%}")
