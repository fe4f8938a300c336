"""Regularisation paths: linear models for many values of C, each warm-started from the one before."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats
from maxmargin.estimators.linear import LinearSVC
from maxmargin.machines.linear.linear_estimator import LinearEstimator


@dataclass(frozen=True)
class LinearPath:
    """Models along a path of costs.

    Attributes
    ----------
    Cs : float array
        The costs, as they were given.
    models : list of estimators
        One fitted estimator for each cost.
    seconds : float array
        The time of each fit.
    """

    Cs: Floats
    models: list[Any]
    seconds: Floats

    @property
    def certificates(self) -> list[Any]:
        """The certificate of each model, or a list with one per class or output."""
        return [model.certificate_ for model in self.models]

    @property
    def coefs(self) -> Floats:
        """The weights of all models, one above the other."""
        return np.array([model.coef_ for model in self.models])

    @property
    def intercepts(self) -> Floats:
        """The intercepts of all models, one above the other."""
        return np.array([model.intercept_ for model in self.models])


def linear_path(
    X: Any, y: Any, Cs: Iterable[float], *, estimator: LinearEstimator | None = None, sample_weight: Any = None
) -> LinearPath:
    """Fit a linear model for each of the costs `Cs`, with warm starts.

    They are fitted from the smallest to the largest: small costs make small weights, which are soon found, and each
    solution is a start for the next.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels, or targets where the estimator is a `LinearSVR`.
    Cs : iterable of float
        The costs, in any order.
    estimator : LinearSVC or LinearSVR, optional
        Holds all other parameters; ``LinearSVC()`` by default. It is not changed.
    sample_weight : array-like of shape (n_samples,), optional
        Factors on C by sample.

    Returns
    -------
    LinearPath
        Models, certificates and times, in the order of `Cs`.

    Examples
    --------
    >>> from maxmargin import linear_path
    >>> path = linear_path([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], Cs=[0.1, 1, 10])
    >>> path.coefs.ravel().round(2)
    array([0.2 , 0.36, 0.4 ])
    >>> all(certificate.relative_gap <= 1e-4 for certificate in path.certificates)
    True
    """
    model = clone(LinearSVC() if estimator is None else estimator)
    if not isinstance(model, LinearEstimator) or "C" not in model.get_params():
        raise ValueError(f"estimator must be a LinearSVC or a LinearSVR, not {model!r}")
    costs = np.array(list(Cs), dtype=np.float64)
    if costs.ndim != 1 or not len(costs):
        raise ValueError("Cs must be numbers, at least one")
    started_warm = model.warm_start
    models: list[Any] = [None] * len(costs)
    seconds = np.zeros(len(costs))
    for position in np.argsort(costs, kind="stable"):
        begin = perf_counter()
        model = copy(model).set_params(C=float(costs[position]), warm_start=True)
        models[position] = model.fit(X, y, sample_weight=sample_weight)
        seconds[position] = perf_counter() - begin
    for fitted in models:
        fitted.set_params(warm_start=started_warm)
    return LinearPath(costs, models, seconds)
