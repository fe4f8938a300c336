"""Descent along single weights like the pseudo-code: the twins of the loops in `native/sparse_weights.hpp`."""

from __future__ import annotations

import numpy as np

SUFFICIENT, HALVINGS = 0.01, 30


def violation_at(weight, slope):
    return max(abs(slope) - 1.0, 0.0) if weight == 0 else abs(slope + np.sign(weight))


def newton_step(weight, slope, curvature):
    """Minimise |w + d| + slope d + ½ curvature d²."""
    if slope + 1.0 <= curvature * weight:
        return -(slope + 1.0) / curvature
    if slope - 1.0 >= curvature * weight:
        return -(slope - 1.0) / curvature
    return -weight


def take_pass(columns, state, order):
    """Take a step along each weight, in place; return the largest violation met.

    `state` has weights, slack, inverse_ridge, lower, upper and curvature, under these names.
    """
    s, worst = state, 0.0

    def answer(slack):
        return np.clip(slack * s["inverse_ridge"], s["lower"], s["upper"])

    def loss(slack):
        b = answer(slack)
        return np.sum(b * (slack - 0.5 * b / s["inverse_ridge"]))

    for j in order:
        x, w, most = columns[j], s["weights"][j], s["curvature"][j]
        b = answer(s["slack"])
        slope, bend = -x @ b, np.sum((x**2 * s["inverse_ridge"])[b == s["slack"] * s["inverse_ridge"]])
        violation = violation_at(w, slope)
        worst = max(worst, violation)
        if violation == 0:
            continue
        step = newton_step(w, slope, bend if bend > 0 else most) if most > 0 else -w
        promised = abs(w + step) - abs(w) + slope * step
        for halvings in range(HALVINGS + 2):
            penalty = abs(w + step) - abs(w)
            change = loss(s["slack"] - step * x) - loss(s["slack"])
            bound = penalty + slope * step + 0.5 * most * step**2
            if step == 0 or bound <= SUFFICIENT * promised or penalty + change <= SUFFICIENT * promised:
                break
            step, promised = (0.5 * step if halvings < HALVINGS else 0.0), 0.5 * promised
        s["weights"][j] += step
        s["slack"] -= step * x
    return worst


def take_model_passes(square, weights, slope, tolerance, passes):
    """Take passes over the weights of a quadratic model, in place; return the largest violation of the last."""
    worst = 0.0
    for _ in range(passes):
        worst = 0.0
        for j in range(len(weights)):
            violation = violation_at(weights[j], slope[j])
            worst = max(worst, violation)
            if violation == 0:
                continue
            step = newton_step(weights[j], slope[j], square[j, j]) if square[j, j] > 0 else -weights[j]
            weights[j] += step
            slope += step * square[j]
        if worst <= tolerance:
            break
    return worst
