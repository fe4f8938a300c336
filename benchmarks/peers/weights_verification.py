"""The objective values of linear machines: the primal value of given weights, and a lower bound on the optimum.

The intercept is regularised, as in LIBLINEAR. With several classes all values are sums over the binary models.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.libraries import Parameters

#: The relative gap of the fit whose dual value bounds the optimum.
REFERENCE_TOLERANCE = 1e-8


def primal_of(X: Any, y: np.ndarray, parameters: Parameters, weights: np.ndarray) -> float:
    """Return ½‖w‖² + ½ b² + C Σ loss, with a row (w, b) of `weights` for each binary model."""
    value = 0.0
    for model, row in enumerate(weights):
        decisions = X @ row[:-1] + row[-1]
        if parameters.machine == "LinearSVR":
            losses = np.maximum(0.0, np.abs(y - decisions) - parameters.epsilon)
        else:
            signs = np.where(y == (1 if len(weights) == 1 else model), 1.0, -1.0)
            losses = np.maximum(0.0, 1.0 - signs * decisions) ** 2
        value += 0.5 * float(row @ row) + parameters.C * float(losses.sum())
    return value


def reference_dual(X: Any, y: np.ndarray, parameters: Parameters) -> float:
    """Return the dual value of maxmargin's certificate at a small tolerance."""
    import maxmargin

    options = parameters.options() | {"tol": REFERENCE_TOLERANCE, "intercept_scaling": 1}
    found = getattr(maxmargin, parameters.machine)(**options).fit(X, y).certificate_
    return float(sum(c.dual for c in found) if isinstance(found, list) else found.dual)
