"""The reference twin of the native pair loop: Algorithm 1.3 in plain Python, one rule a function.

Each rule returns (violation, up, down). It is slow and obvious; the native loop must take exactly the same steps.
"""

from __future__ import annotations

import numpy as np

from maxmargin.problems import DualProblem

TINY = 1e-12


def pairwise(problem: DualProblem, selection: str, tolerance: float = 1e-3, max_steps: int = 100_000):
    """Return the dual vector and the list of pairs (up, down) that moved."""
    everything = np.arange(problem.size)
    M = problem.matrix.block(everything, everything)
    select = {
        "most_violating_pair": most_violating_pair,
        "second_order": second_order,
        "maximum_gain": maximum_gain,
    }[selection]
    b = np.zeros(problem.size)
    g = problem.linear.copy()
    path: list[tuple[int, int]] = []
    while True:
        violation, i, j = select(problem, M, b, g, path[-1] if path else None)
        if violation <= tolerance or len(path) == max_steps:
            return b, path
        if j is None:  # a variable in no group moves alone
            step = g[i] / curvature(problem, M, i) if curvature(problem, M, i) > 0 else np.sign(g[i]) * np.inf
            step = np.clip(step, problem.lower[i] - b[i], problem.upper[i] - b[i])
            g -= step * M[i]
            g[i] -= problem.ridge[i] * step
            b[i] += step
            path.append((i, -1) if step > 0 else (-1, i))
            continue
        bend = curvature(problem, M, i) + curvature(problem, M, j) - 2.0 * M[i, j]
        newton = (g[i] - g[j]) / bend if bend > 0 else np.inf
        up_room, down_room = problem.upper[i] - b[i], b[j] - problem.lower[j]
        step = min(newton, up_room, down_room)
        g -= step * (M[i] - M[j])
        g[i] -= problem.ridge[i] * step
        g[j] += problem.ridge[j] * step
        b[i] = problem.upper[i] if step >= up_room else b[i] + step
        b[j] = problem.lower[j] if step >= down_room else b[j] - step
        path.append((i, j))


def curvature(problem, M, i):
    return M[i, i] + problem.ridge[i]


def most_violating_pair(problem, M, b, g, previous):
    if problem.groups == 0:
        return single(problem, M, b, g, lambda k, slope, room: slope)
    can_increase = np.flatnonzero(b < problem.upper)
    can_decrease = np.flatnonzero(b > problem.lower)
    i = can_increase[np.argmax(g[can_increase])]
    j = can_decrease[np.argmin(g[can_decrease])]
    return g[i] - g[j], i, j


def second_order(problem, M, b, g, previous):
    if problem.groups == 0:
        return single(problem, M, b, g, lambda k, slope, room: slope**2 / max(curvature(problem, M, k), TINY))
    violation, i, _ = most_violating_pair(problem, M, b, g, previous)
    best, partner = -np.inf, None
    for k in np.flatnonzero((b > problem.lower) & (g < g[i])):
        bend = curvature(problem, M, i) + curvature(problem, M, k) - 2.0 * M[i, k]
        gain = (g[i] - g[k]) * (g[i] - g[k]) / (bend if bend > TINY else TINY)
        if gain > best:
            best, partner = gain, k
    return violation, i, partner


def maximum_gain(problem, M, b, g, previous):
    def clipped(slope, bend, room):
        step = min(slope / bend if bend > 0 else np.inf, room)
        return step * (slope - 0.5 * step * bend)

    if problem.groups == 0:
        return single(problem, M, b, g, lambda k, slope, room: clipped(slope, curvature(problem, M, k), room))
    violation, i, j = second_order(problem, M, b, g, previous)
    if previous is None or all(in_corner(problem, b, p) for p in previous):
        return violation, i, j
    best = 0.0
    for p in previous:
        for k in range(problem.size):
            if k == p:
                continue
            slope = g[p] - g[k]
            up, down = (p, k) if slope > 0 else (k, p)
            room = min(problem.upper[up] - b[up], b[down] - problem.lower[down])
            if room <= 0:
                continue
            bend = curvature(problem, M, p) + curvature(problem, M, k) - 2.0 * M[p, k]
            gain = clipped(abs(slope), bend, room)
            if gain > best:
                best, i, j = gain, up, down
    return violation, i, j


def in_corner(problem, b, k):
    width = problem.upper[k] - problem.lower[k]
    margin = 1e-8 * width if np.isfinite(width) else 0.0
    return problem.upper[k] - b[k] <= margin or b[k] - problem.lower[k] <= margin


def single(problem, M, b, g, gain):
    best, chosen, violation = -np.inf, 0, 0.0
    for k in range(problem.size):
        room = problem.upper[k] - b[k] if g[k] > 0 else b[k] - problem.lower[k]
        if g[k] == 0 or room <= 0:
            continue
        violation = max(violation, abs(g[k]))
        if (value := gain(k, abs(g[k]), room)) > best:
            best, chosen = value, k
    return violation, chosen, None
