"""Second-order pair steps on single-precision rows, like the pseudo-code: the twin of `native/one_group.hpp`."""

from __future__ import annotations

import numpy as np

TINY = np.float32(1e-12)


def steps(matrix, linear, lower, upper, ridge, tolerance, limit):
    """Return the pairs that move, and the dual; `matrix` is float32, all variables are in one group of total 0."""
    dual, gradient, path = np.zeros(len(linear)), linear.copy(), []
    bend = (matrix.diagonal().astype(np.float64) + ridge).astype(np.float32)
    while len(path) < limit:
        may_grow, may_fall = dual < upper, dual > lower
        up = int(np.argmax(np.where(may_grow, gradient, -np.inf)))
        if gradient[up] - np.where(may_fall, gradient, np.inf).min() <= tolerance:
            break
        slope = np.where(may_fall, gradient[up] - gradient, 0.0).astype(np.float32)
        slope = np.maximum(slope, np.float32(0))
        total = np.maximum((bend[up] + bend) - np.float32(2) * matrix[up], TINY)
        down = int(np.argmax(slope * slope / total))
        curvature = matrix[up, up] + ridge[up] + matrix[down, down] + ridge[down] - 2.0 * float(matrix[up, down])
        step = min(
            (gradient[up] - gradient[down]) / curvature if curvature > 0 else np.inf,
            upper[up] - dual[up],
            dual[down] - lower[down],
        )
        dual[up] += step
        dual[down] -= step
        gradient[up] -= ridge[up] * step
        gradient[down] += ridge[down] * step
        gradient -= step * (matrix[up].astype(np.float64) - matrix[down].astype(np.float64))
        path.append((up, down))
    return path, dual
