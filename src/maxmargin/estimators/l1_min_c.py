"""The C below which all weights of a classifier with the penalty Σ|w_j| are 0.

At w = 0 the slope of the loss along feature j is Σ_i y_i r_i x_ij, r_i the derivative of the loss of sample i at its
decision value b; the penalty keeps w_j at 0 while C |Σ_i y_i r_i x_ij| ≤ 1 (Zhu, Rosset, Hastie & Tibshirani 2004).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from maxmargin._typing import Floats
from maxmargin.machines.validation.parameters import check_choice, check_flag, check_number


def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float | None = 1.0,
) -> float:
    """Return the lowest C at which a linear classifier with ``penalty="l1"`` has a weight that is not 0.

    A grid of C for such a classifier begins there. The result is that of `sklearn.svm.l1_min_c`; with
    ``intercept_scaling=None`` it is the bound for `LinearSVC` as it is by default here, whose intercept is not
    regularised.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two or more classes; of more, the bound is the least over one-vs-rest.
    loss : {"squared_hinge", "log"}, default="squared_hinge"
        "log" is the loss of logistic regression.
    fit_intercept : bool, default=True
    intercept_scaling : float or None, default=1.0
        Value of the constant feature whose weight is the intercept, and is regularised like the others; None if it is
        not regularised. As in the estimator.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If all weights are 0 at any C.

    Examples
    --------
    >>> from maxmargin import LinearSVC, l1_min_c
    >>> X, y = [[0.0, 1.0], [1.0, 3.0], [3.0, 2.0], [4.0, 5.0]], [0, 0, 1, 1]
    >>> bound = l1_min_c(X, y, intercept_scaling=None)
    >>> [bool(LinearSVC(penalty="l1", C=C).fit(X, y).coef_.any()) for C in (0.9 * bound, 1.2 * bound)]
    [False, True]
    """
    check_choice("loss", loss, ("squared_hinge", "log"))
    check_flag("fit_intercept", fit_intercept)
    X, y = check_array(X, accept_sparse=("csr", "csc")), column_or_1d(y)
    check_consistent_length(X, y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"l1_min_c needs labels of at least two classes, but all are {classes[0]!r}")
    positive = np.arange(1 if len(classes) == 2 else 0, len(classes))
    signs = np.where(numbers == positive[:, None], 1.0, -1.0)
    free = fit_intercept and intercept_scaling is None
    slopes = signs * _derivatives(signs, loss, free)
    largest = float(np.abs(slopes @ X).max())
    if fit_intercept and not free:
        scaling = check_number("intercept_scaling", intercept_scaling, above=0)
        largest = max(largest, scaling * float(np.abs(slopes.sum(axis=1)).max()))
    if not largest > 0:
        raise ValueError("no C gives a weight that is not 0: every feature is orthogonal to the labels")
    return 1.0 / largest


def _derivatives(signs: Floats, loss: str, free: bool) -> Floats:
    """Return the absolute derivative of the loss of each sample at w = 0 and b = 0, or the best b if it is free."""
    fraction = np.mean(signs > 0, axis=1, keepdims=True)
    other = np.where(signs > 0, 1.0 - fraction, fraction) if free else np.full_like(signs, 0.5)
    return 4.0 * other if loss == "squared_hinge" else other
