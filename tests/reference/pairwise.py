"""The reference of the native pair loop: Algorithm 1.3 in plain Python, one function per selection rule.

Each rule returns (violation, up, down). The native loop must take exactly the same steps. Where a variable has a kink,
its slope is that of the side to which it moves, and a step ends at 0.
"""

from __future__ import annotations

import numpy as np

from maxmargin.problems import DualProblem, feasible_start

TINY = 1e-12


def pairwise(problem: DualProblem, selection: str, tolerance: float = 1e-3, max_steps: int = 100_000, start=None):
    """Return the dual vector and the list of pairs (up, down) that moved."""
    everything = np.arange(problem.size)
    M = problem.matrix.block(everything, everything)
    select = {
        "most_violating_pair": most_violating_pair,
        "second_order": second_order,
        "maximum_gain": maximum_gain,
    }[selection]
    b = feasible_start(problem, start)
    g = problem.gradient(b)
    path: list[tuple[int, int]] = []
    while True:
        violation, i, j = select(problem, M, b, g, path[-1] if path else None)
        if violation <= tolerance or len(path) == max_steps:
            return b, path
        up, down = slopes(problem, b, g)
        low, high = rooms(problem, b)
        if j is None:  # a variable in no group moves alone
            slope = up[i] if up[i] > -down[i] else down[i]
            step = slope / curvature(problem, M, i) if curvature(problem, M, i) > 0 else np.sign(slope) * np.inf
            step = np.clip(step, -low[i], high[i])
            g -= step * M[i]
            g[i] -= problem.ridge[i] * step
            direction, room = (1, high[i]) if step > 0 else (-1, low[i])
            b[i] = end(problem, b, i, direction) if abs(step) >= room else snapped(problem, i, b[i] + step)
            path.append((i, -1) if step > 0 else (-1, i))
            continue
        along = curvature(problem, M, i) + curvature(problem, M, j) - 2.0 * M[i, j]
        newton = (up[i] - down[j]) / along if along > 0 else np.inf
        max_up, max_down = high[i], low[j]
        step = min(newton, max_up, max_down)
        g -= step * (M[i] - M[j])
        g[i] -= problem.ridge[i] * step
        g[j] += problem.ridge[j] * step
        b[i] = end(problem, b, i, 1) if step >= max_up else snapped(problem, i, b[i] + step)
        b[j] = end(problem, b, j, -1) if step >= max_down else snapped(problem, j, b[j] - step)
        path.append((i, j))


def slopes(problem, b, g):
    """Return the slope of the objective along each variable when it increases, and when it decreases."""
    return g - np.where(b < 0, -1, 1) * problem.kink, g - np.where(b > 0, 1, -1) * problem.kink


def end(problem, b, k, direction):
    """Return where a step of a variable ends: at its bound, or at 0 if there is a kink between."""
    if problem.kink[k] > 0 and b[k] * direction < 0:
        return 0.0
    return problem.upper[k] if direction > 0 else problem.lower[k]


def rooms(problem, b):
    """Return by how much each variable can decrease and increase until a step of it ends."""
    everything = range(problem.size)
    low = np.array([b[k] - end(problem, b, k, -1) for k in everything])
    return low, np.array([end(problem, b, k, 1) - b[k] for k in everything])


def snapped(problem, k, value):
    """Return the bound if a value differs from it by rounding only."""
    lower, upper = problem.lower[k], problem.upper[k]
    if np.isfinite(upper) and upper - value <= 1e-14 * abs(upper):
        return upper
    if np.isfinite(lower) and value - lower <= 1e-14 * abs(lower):
        return lower
    return value


def curvature(problem, M, i):
    return M[i, i] + problem.ridge[i]


def worst_group(problem, b, g):
    """The group whose optimality is violated most: its violation, and the two ends of it."""
    best = (-np.inf, None, None)
    up, down = slopes(problem, b, g)
    for name in range(problem.groups):
        can_increase = np.flatnonzero((b < problem.upper) & (problem.group == name))
        can_decrease = np.flatnonzero((b > problem.lower) & (problem.group == name))
        if len(can_increase) and len(can_decrease):
            i = can_increase[np.argmax(up[can_increase])]
            j = can_decrease[np.argmin(down[can_decrease])]
            if up[i] - down[j] > best[0]:
                best = (up[i] - down[j], i, j)
    return best


def choose(problem, M, b, g, gain, pair):
    """The pair of the worst group, or, where variables in no group are worse, the best of those alone."""
    violation, i, j = worst_group(problem, b, g)
    alone = single(problem, M, b, g, gain)
    if alone[0] > max(violation, 0.0):
        return alone
    return (violation, *pair(i, j)) if violation > 0 else (max(violation, 0.0), i, j)


def most_violating_pair(problem, M, b, g, previous):
    return choose(problem, M, b, g, lambda k, slope, room: slope, lambda i, j: (i, j))


def second_order(problem, M, b, g, previous):
    def gain_alone(k, slope, room):
        return slope**2 / max(curvature(problem, M, k), TINY)

    def pair(i, j):
        best, partner = -np.inf, None
        up, down = slopes(problem, b, g)
        for k in np.flatnonzero((b > problem.lower) & (down < up[i]) & (problem.group == problem.group[i])):
            along = curvature(problem, M, i) + curvature(problem, M, k) - 2.0 * M[i, k]
            gain = (up[i] - down[k]) * (up[i] - down[k]) / (along if along > TINY else TINY)
            if gain > best:
                best, partner = gain, k
        return i, partner

    return choose(problem, M, b, g, gain_alone, pair)


def maximum_gain(problem, M, b, g, previous):
    def clipped(slope, along, room):
        step = min(slope / along if along > 0 else np.inf, room)
        return np.inf if np.isinf(step) else step * (slope - 0.5 * step * along)

    def gain_alone(k, slope, room):
        return clipped(slope, curvature(problem, M, k), room)

    def pair(i, j):
        fallback = second_order(problem, M, b, g, previous)[1:]
        usable = previous is not None and -1 not in previous and problem.group[previous[0]] == problem.group[i]
        if not usable or all(in_corner(problem, b, p) for p in previous):
            return fallback
        best, chosen = 0.0, fallback
        growing, falling = slopes(problem, b, g)
        low, high = rooms(problem, b)
        for p in previous:
            for k in np.flatnonzero(problem.group == problem.group[p]):
                up, down = (p, k) if growing[p] - falling[k] > 0 else (k, p)
                slope, room = growing[up] - falling[down], min(high[up], low[down])
                if k == p or room <= 0 or slope <= 0:
                    continue
                along = curvature(problem, M, p) + curvature(problem, M, k) - 2.0 * M[p, k]
                gain = clipped(slope, along, room)
                if gain > best:
                    best, chosen = gain, (up, down)
        return chosen

    return choose(problem, M, b, g, gain_alone, pair)


def in_corner(problem, b, k):
    width = problem.upper[k] - problem.lower[k]
    margin = 1e-8 * width if np.isfinite(width) else 0.0
    low, high = rooms(problem, b)
    return high[k] <= margin or low[k] <= margin


def single(problem, M, b, g, gain):
    best, chosen, violation = -np.inf, 0, 0.0
    up, down = slopes(problem, b, g)
    low, high = rooms(problem, b)
    for k in np.flatnonzero(problem.group < 0):
        slope, room = (up[k], high[k]) if up[k] > -down[k] else (-down[k], low[k])
        if slope <= 0 or room <= 0:
            continue
        violation = max(violation, slope)
        if (value := gain(k, slope, room)) > best:
            best, chosen = value, k
    return violation, chosen, None
