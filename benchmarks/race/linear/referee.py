"""How far a linear machine is from the optimum, whoever trained it: only its weights are asked for.

For weights w and bias b the primal value P(w, b) is computed in float64. No dual point is known of a peer, so the
optimal value is bounded from below by D*, the dual value of maxmargin's certificate in a fit to a finer tolerance
(with many classes the sums over all machines):

    relative gap = (P(w, b) − D*) / P(w, b)   ≥   (P(w, b) − optimum) / P(w, b)

It is at most the reference's own relative gap too large, for everyone alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.race.linear.contestants import Weights

POWERS = {"hinge": 1, "squared_hinge": 2}


def primal(X: Any, codes: np.ndarray, C: float, loss: str, weights: Weights) -> float:
    """Return P, summed over the machines: one for two classes, else one for each class against the rest."""
    wanted = 1 if codes.max() == 1 else int(codes.max()) + 1
    coef, intercept = np.asarray(weights.coef, dtype=float), np.asarray(weights.intercept, dtype=float)
    if coef.shape != (wanted, X.shape[1]) or intercept.shape != (wanted,):
        raise ValueError(f"weights of {wanted} machines with {X.shape[1]} features expected, not {coef.shape}")
    value = 0.0
    for machine in range(wanted):
        signs = np.where(codes == (1 if wanted == 1 else machine), 1.0, -1.0)
        slack = np.maximum(0.0, 1.0 - signs * (X @ coef[machine] + intercept[machine]))
        value += 0.5 * float(coef[machine] @ coef[machine] + intercept[machine] ** 2)
        value += C * float((slack ** POWERS[loss]).sum())
    return value


def relative_gap(value: float, bound: float) -> float:
    """Return (P − D*) / P; infinite where P is not a finite number."""
    if not np.isfinite(value):
        return float("inf")
    return (value - bound) / max(abs(value), np.finfo(float).tiny)
