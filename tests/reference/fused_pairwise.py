"""Second-order pair steps on float32 rows as in the pseudo-code: the reference of `native/fused_pairwise.hpp`."""

from __future__ import annotations

import numpy as np

MIN_CURVATURE = np.float32(1e-12)


def steps(matrix, linear, lower, upper, ridge, tolerance, limit):
    """Return the pairs that move, and the dual; `matrix` is float32, all variables are in one group of total 0."""
    dual, gradient, path = np.zeros(len(linear)), linear.copy(), []
    diagonal = (matrix.diagonal().astype(np.float64) + ridge).astype(np.float32)
    while len(path) < limit:
        can_increase, can_decrease = dual < upper, dual > lower
        up = int(np.argmax(np.where(can_increase, gradient, -np.inf)))
        if gradient[up] - np.where(can_decrease, gradient, np.inf).min() <= tolerance:
            break
        slope = np.where(can_decrease, gradient[up] - gradient, 0.0).astype(np.float32)
        slope = np.maximum(slope, np.float32(0))
        curvatures = np.maximum((diagonal[up] + diagonal) - np.float32(2) * matrix[up], MIN_CURVATURE)
        down = int(np.argmax(slope * slope / curvatures))
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
