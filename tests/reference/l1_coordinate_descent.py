"""Coordinate descent for the l1 penalty as in the pseudo-code: the reference of `native/l1_coordinate_descent.hpp`."""

from __future__ import annotations

import numpy as np

SUFFICIENT_DECREASE, MAX_HALVINGS = 0.01, 30


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
    s, largest = state, 0.0

    def response(slack):
        return np.clip(slack * s["inverse_ridge"], s["lower"], s["upper"])

    def loss(slack):
        b = response(slack)
        return np.sum(b * (slack - 0.5 * b / s["inverse_ridge"]))

    for j in order:
        x, w, max_curvature = columns[j], s["weights"][j], s["curvature"][j]
        b = response(s["slack"])
        slope, curvature = -x @ b, np.sum((x**2 * s["inverse_ridge"])[b == s["slack"] * s["inverse_ridge"]])
        violation = violation_at(w, slope)
        largest = max(largest, violation)
        if violation == 0:
            continue
        step = newton_step(w, slope, curvature if curvature > 0 else max_curvature) if max_curvature > 0 else -w
        expected = abs(w + step) - abs(w) + slope * step
        for halvings in range(MAX_HALVINGS + 2):
            penalty = abs(w + step) - abs(w)
            change = loss(s["slack"] - step * x) - loss(s["slack"])
            bound = penalty + slope * step + 0.5 * max_curvature * step**2
            if (
                step == 0
                or bound <= SUFFICIENT_DECREASE * expected
                or penalty + change <= SUFFICIENT_DECREASE * expected
            ):
                break
            step, expected = (0.5 * step if halvings < MAX_HALVINGS else 0.0), 0.5 * expected
        s["weights"][j] += step
        s["slack"] -= step * x
    return largest


def take_model_passes(square, weights, slope, tolerance, passes):
    """Take passes over the weights of a quadratic model, in place; return the largest violation of the last."""
    largest = 0.0
    for _ in range(passes):
        largest = 0.0
        for j in range(len(weights)):
            violation = violation_at(weights[j], slope[j])
            largest = max(largest, violation)
            if violation == 0:
                continue
            step = newton_step(weights[j], slope[j], square[j, j]) if square[j, j] > 0 else -weights[j]
            weights[j] += step
            slope += step * square[j]
        if largest <= tolerance:
            break
    return largest
