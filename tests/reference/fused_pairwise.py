"""Second-order pair steps on float32 rows as in the pseudo-code: the reference of `native/fused_pairwise.hpp`."""

from __future__ import annotations

import numpy as np

MIN_CURVATURE = np.float32(1e-12)


def steps(matrix, linear, lower, upper, ridge, tolerance, limit, group=None, kink=0.0, start=None):
    """Return the pairs that move, and the dual; `matrix` is float32, the sum of each group stays that of the start.

    With a kink the objective has the term −kink |b|, and a step ends at 0.
    """
    n = len(linear)
    dual, path = np.zeros(n) if start is None else start.copy(), []
    gradient = linear - matrix.astype(np.float64) @ dual - ridge * dual
    group = np.zeros(n, dtype=int) if group is None else group
    diagonal = (matrix.diagonal().astype(np.float64) + ridge).astype(np.float32)
    while len(path) < limit:
        can_increase, can_decrease = dual < upper, dual > lower
        rising = np.where(can_increase, gradient + np.where(dual < 0, kink, -kink), -np.inf)
        falling = np.where(can_decrease, gradient + np.where(dual > 0, -kink, kink), np.inf)
        lowest = np.array([falling[group == g].min(initial=np.inf) for g in range(group.max() + 1)])
        up = int(np.argmax(rising - lowest[group]))
        if rising[up] - lowest[group[up]] <= tolerance:
            break
        slope = np.where(can_decrease & (group == group[up]), rising[up] - falling, 0.0).astype(np.float32)
        slope = np.maximum(slope, np.float32(0))
        curvatures = np.maximum((diagonal[up] + diagonal) - np.float32(2) * matrix[up], MIN_CURVATURE)
        down = int(np.argmax(slope * slope / curvatures))
        curvature = matrix[up, up] + ridge[up] + matrix[down, down] + ridge[down] - 2.0 * float(matrix[up, down])
        step = min(
            (rising[up] - falling[down]) / curvature if curvature > 0 else np.inf,
            (0.0 if kink and dual[up] < 0 else upper[up]) - dual[up],
            dual[down] - (0.0 if kink and dual[down] > 0 else lower[down]),
        )
        dual[up] += step
        dual[down] -= step
        gradient[up] -= ridge[up] * step
        gradient[down] += ridge[down] * step
        gradient -= step * (matrix[up].astype(np.float64) - matrix[down].astype(np.float64))
        path.append((up, down))
    return path, dual
