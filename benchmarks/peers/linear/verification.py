"""The relative gap of a linear model, from its weights alone.

The primal value P(w, b) is computed in float64. Peers return no dual point, so that the optimal value is bounded from
below by D*, the dual value of maxmargin's certificate at a smaller tolerance (with several classes both are sums over
the binary problems):

    relative gap = (P(w, b) − D*) / P(w, b)   ≥   (P(w, b) − optimum) / P(w, b)

It overestimates by at most the relative gap of the reference fit, equally for all libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.linear.libraries import Weights

POWERS = {"hinge": 1, "squared_hinge": 2}


def primal(X: Any, codes: np.ndarray, C: float, loss: str, weights: Weights) -> float:
    """Return P, summed over the binary models: one for two classes, else one per class (one-vs-rest)."""
    wanted = 1 if codes.max() == 1 else int(codes.max()) + 1
    coef, intercept = np.asarray(weights.coef, dtype=float), np.asarray(weights.intercept, dtype=float)
    if coef.shape != (wanted, X.shape[1]) or intercept.shape != (wanted,):
        raise ValueError(f"expected weights of {wanted} models with {X.shape[1]} features, got shape {coef.shape}")
    value = 0.0
    for model in range(wanted):
        signs = np.where(codes == (1 if wanted == 1 else model), 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * (X @ coef[model] + intercept[model]))
        value += 0.5 * float(coef[model] @ coef[model] + intercept[model] ** 2)
        value += C * float((slack ** POWERS[loss]).sum())
    return value


def relative_gap(value: float, bound: float) -> float:
    """Return (P − D*) / P; infinite if P is not finite."""
    if not np.isfinite(value):
        return float("inf")
    return (value - bound) / max(abs(value), np.finfo(float).tiny)
