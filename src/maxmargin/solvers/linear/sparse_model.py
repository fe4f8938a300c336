"""The quadratic model of a loss, with the penalty Σ |w_j|: what Newton's method asks of sparse weights.

    minimise over w   Σ |w_j| + slope·(w − w₀) + ½ (w − w₀)ᵀ H (w − w₀)

Steps along single weights find out which ones are not 0 (and each costs one row of H, whatever the number of samples);
where columns resemble each other they would take for ever to find the values. So equations for the weights that are
not 0, with their signs fixed, come in between: H_ss d = −(slope + sign), as far along d as the objective falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.problems.sparse_certificate import violations

#: Passes of steps along single weights between two solutions of equations.
PASSES = 10

#: How often equations are solved: about so many multiplications, and so often at least and at most.
WORK, LEAST, MOST = 10**10, 5, 100

#: What is added to the diagonal, relatively, so that equal columns have equations too.
RIDGE = 1e-13


def minimise_model(square: Floats, weights: Floats, slope: Floats, tolerance: float) -> Floats:
    """Return weights at which the violation of the model's optimality is small; `slope` is that at `weights`."""
    weights, slope, square = weights.copy(), slope.copy(), np.ascontiguousarray(square)
    crossed = False
    for _ in range(min(max(LEAST, WORK // max(1, len(weights)) ** 3), MOST)):
        if not crossed:
            _native.descend_model(square, weights, slope, tolerance, PASSES)
            if violations(weights, -slope).max(initial=0.0) <= tolerance:
                break
        change = _newton_step(square, weights, slope)
        crossed = bool(np.any((weights != 0) & (weights + change == 0)))
        weights += change
        slope += square @ change
    return weights


def _newton_step(square: Floats, weights: Floats, slope: Floats) -> Floats:
    """Return the step to the solution for the weights that are not 0, or what is good of it.

    Where a weight would change its sign the objective has a kink. Either all such weights stop at 0, or all go as far
    as the objective falls along the line: whatever is better.
    """
    used = np.flatnonzero(weights)
    step = np.zeros(len(weights))
    own, downhill = weights[used], slope[used] + np.sign(weights[used])
    part = square[np.ix_(used, used)]
    along = _solution(part, -downhill) if len(used) else None
    if along is None:
        return step
    stopped = np.where((own + along) * own > 0, along, -own)
    length, zero = _farthest(own, along, float(slope[used] @ along), float(along @ part @ along))
    farthest = np.where(zero, -own, length * along)

    def rise(change: Floats) -> float:
        return float((np.abs(own + change) - np.abs(own)).sum() + slope[used] @ change + 0.5 * change @ part @ change)

    step[used] = min((np.zeros(len(used)), stopped, farthest), key=rise)
    return step


def _solution(square: Floats, right: Floats) -> Floats | None:
    """Return H⁻¹ right, None where rounding leaves no such thing."""
    scale = np.sqrt(np.maximum(square.diagonal(), np.finfo(float).tiny))
    scaled = square / scale / scale[:, None]
    for ridge in (RIDGE, 1e3 * RIDGE, 1e6 * RIDGE):
        try:
            factor = cho_factor(scaled + ridge * len(scaled) * np.eye(len(scaled)), lower=True)
        except LinAlgError:
            continue
        return np.asarray(cho_solve(factor, right / scale) / scale)
    return None


def _farthest(weights: Floats, along: Floats, slope: float, bend: float) -> tuple[float, NDArray[np.bool_]]:
    """Return where Σ |w + t d| + slope t + ½ bend t² is least, and which weights are 0 there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.where(weights * along < 0, -weights / along, np.inf)
    rise = slope + float(np.sign(weights) @ along)
    for k in np.argsort(zeros):
        # Between two zeros the slope is rise + bend t; at a zero it jumps by 2 |d|.
        if not np.isfinite(zeros[k]) or rise + bend * zeros[k] >= 0:
            break
        rise += 2.0 * abs(along[k])
        if rise + bend * zeros[k] >= 0:
            return float(zeros[k]), zeros == zeros[k]
    return max(-rise / bend, 0.0) if bend > 0 else 0.0, np.zeros(len(weights), dtype=bool)
