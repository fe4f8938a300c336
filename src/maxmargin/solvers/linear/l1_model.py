"""Minimise a quadratic model with an L1 penalty: the subproblem of Newton's method for sparse weights.

    minimise over w   Σ |w_j| + slope·(w − w₀) + ½ (w − w₀)ᵀ H (w − w₀)

Coordinate descent identifies the nonzero weights; each step costs one row of H, whatever the number of samples. With
correlated columns it converges slowly, so it alternates with Newton steps for the nonzero weights with fixed signs,
H_ss d = −(slope + sign), followed by a line search along d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.precision import SMALLEST_DOUBLE
from maxmargin.problems.l1_certificate import l1_violations

#: Passes of coordinate descent between two Newton steps.
PASSES_PER_NEWTON_STEP = 10

#: The most Newton steps: this many multiplications divided by those of a factorisation, within these two limits.
MULTIPLICATIONS, MIN_NEWTON_STEPS, MAX_NEWTON_STEPS = 10**10, 5, 100

#: Relative increase of the diagonal, so that equal columns do not make the system singular.
RELATIVE_RIDGE = 1e-13


def minimise_model(square: Floats, weights: Floats, slope: Floats, tolerance: float) -> Floats:
    """Return weights at which the model's KKT violation is within the tolerance; `slope` is that at `weights`."""
    weights, slope, square = weights.copy(), slope.copy(), np.ascontiguousarray(square)
    sign_changed = False
    steps = MULTIPLICATIONS // max(1, len(weights)) ** 3
    for _ in range(min(max(MIN_NEWTON_STEPS, steps), MAX_NEWTON_STEPS)):
        if not sign_changed:
            _native.descend_quadratic_model(square, weights, slope, tolerance, PASSES_PER_NEWTON_STEP)
            if l1_violations(weights, -slope).max(initial=0.0) <= tolerance:
                break
        change = _newton_step(square, weights, slope)
        sign_changed = bool(np.any((weights != 0) & (weights + change == 0)))
        weights += change
        slope += square @ change
    return weights


@np.errstate(over="ignore", invalid="ignore")  # a step along which the objective is not finite is not taken
def _newton_step(square: Floats, weights: Floats, slope: Floats) -> Floats:
    """Return the Newton step of the nonzero weights, shortened where signs would change.

    The objective has a kink where a weight changes its sign. Either all such weights stop at 0, or the step ends at the
    minimum along the line: whichever gives the lower objective.
    """
    used = np.flatnonzero(weights)
    step = np.zeros(len(weights))
    own, gradient = weights[used], slope[used] + np.sign(weights[used])
    part = square[np.ix_(used, used)]
    direction = _solve(part, -gradient) if len(used) else None
    if direction is None:
        return step
    clipped = np.where((own + direction) * own > 0, direction, -own)
    length, zero = _minimum_along(own, direction, float(slope[used] @ direction), float(direction @ part @ direction))
    shortened = np.where(zero, -own, length * direction)

    def increase(change: Floats) -> float:
        return float((np.abs(own + change) - np.abs(own)).sum() + slope[used] @ change + 0.5 * change @ part @ change)

    step[used] = min((np.zeros(len(used)), clipped, shortened), key=increase)
    return step


def _solve(square: Floats, right: Floats) -> Floats | None:
    """Return H⁻¹ right, None if H is numerically singular."""
    scale = np.sqrt(np.maximum(square.diagonal(), SMALLEST_DOUBLE))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = square / scale / scale[:, None]
    if not np.isfinite(scaled).all():
        raise ValueError(NON_FINITE_MESSAGE)
    for ridge in (RELATIVE_RIDGE, 1e3 * RELATIVE_RIDGE, 1e6 * RELATIVE_RIDGE):
        try:
            factor = cho_factor(scaled + ridge * len(scaled) * np.eye(len(scaled)), lower=True)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, right / scale) / scale)
    return None


def _minimum_along(
    weights: Floats, direction: Floats, slope: float, curvature: float
) -> tuple[float, NDArray[np.bool_]]:
    """Return the t that minimises Σ |w + t d| + slope t + ½ curvature t², and which weights are 0 there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.where(weights * direction < 0, -weights / direction, np.inf)
    derivative = slope + float(np.sign(weights) @ direction)
    for k in np.argsort(zeros):
        # Between two zeros the derivative is linear in t; at a zero it jumps by 2 |d|.
        if not np.isfinite(zeros[k]) or derivative + curvature * zeros[k] >= 0:
            break
        derivative += 2.0 * abs(direction[k])
        if derivative + curvature * zeros[k] >= 0:
            return float(zeros[k]), zeros == zeros[k]
    return max(-derivative / curvature, 0.0) if curvature > 0 else 0.0, np.zeros(len(weights), dtype=bool)
