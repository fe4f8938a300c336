"""The path of `native/removal_path.hpp` as in the literature: the equations of the free variables are solved anew at
every break point (Cauwenberghs & Poggio 2001).
"""

from typing import NamedTuple

import numpy as np


class End(NamedTuple):
    """How a path has ended; `exchanges` variables became free or ceased to be."""

    end: str
    value: float
    way: float
    gain: float
    exchanges: int
    dual: np.ndarray
    slack: np.ndarray
    offsets: np.ndarray


def follow(problem, dual, slack, table, i, goal, *, missing=None, needed=0.0, margin=0.0):
    """Move variable i of a dual problem from an optimum to 0, while the variables of `table` remain optimal.

    `problem` has a dense `matrix`, and `linear`, `ridge`, `lower`, `upper`, `group`, of groups that are not empty.
    """
    M = problem.matrix + np.diag(problem.ridge)
    groups = int(problem.group.max()) + 1
    members = (problem.group[:, None] == np.arange(groups)).astype(float)
    missing = np.zeros(groups) if missing is None else missing
    b, s, start, offsets = dual.copy(), slack.copy(), dual[i], np.zeros(groups)
    free = (b > problem.lower) & (b < problem.upper) & np.isin(np.arange(len(b)), table)
    exchanges, way, gain = int(free[i]), 0.0, 0.0
    free[i] = False
    value = problem.linear[i] - problem.ridge[i] * start - s[i]
    sign = np.sign(value) or -1.0
    while members[free].any(axis=0).all():
        d, rho = rates(M, members, free, i, -start, missing)
        ds = -M @ d - members @ rho
        ds[free] = 0.0
        value = problem.linear[i] - problem.ridge[i] * b[i] - s[i]
        slope = -problem.ridge[i] * d[i] - ds[i]
        crossing = (-sign * margin - value) / slope if slope * sign < 0 else np.inf
        last = np.inf if goal == "bound" else 1.0 - way
        steps = [(step(b, s, d, ds, free, problem, k), k) for k in table if k != i]
        event, at = min(steps, default=(np.inf, -1))
        crosses = goal != "value" and crossing <= min(event, last)
        t = crossing if crosses else min(event, last)
        b, s, offsets, way = b + t * d, s + t * ds, offsets + t * rho, way + t
        after = value + t * slope
        gain += 0.5 * (value + after) * t * start
        result = after, way, gain, exchanges, b, s, offsets
        if goal == "bound" and gain > needed:
            return End("proved", *result)
        if crosses:
            return End("unproved" if goal == "bound" else "crossed", *result)
        if t == last:
            return End("reached", *result)
        if free[at]:
            b[at] = problem.upper[at] if d[at] > 0 else problem.lower[at]
        s[at], free[at] = 0.0, not free[at]
        exchanges += 1
    return End("failed", value, way, gain, exchanges, b, s, offsets)


def rates(M, members, free, i, rate, missing):
    """Return the rates of the dual variables and offsets, given that of variable i and those of the totals."""
    count, groups = int(free.sum()), members.shape[1]
    system = np.block([[M[np.ix_(free, free)], members[free]], [members[free].T, np.zeros((groups, groups))]])
    right = np.concatenate([-M[free, i] * rate, missing - members[i] * rate])
    solved = np.linalg.solve(system, right)
    d = np.zeros(len(M))
    d[free], d[i] = solved[:count], rate
    return d, solved[count:]


def step(b, s, d, ds, free, problem, k):
    """Return after which step variable k reaches a bound, or its slack 0."""
    if free[k]:
        bound = problem.upper[k] if d[k] > 0 else problem.lower[k]
        return max(0.0, (bound - b[k]) / d[k]) if d[k] else np.inf
    leaves = ds[k] > 0 if b[k] == problem.lower[k] else ds[k] < 0
    return max(0.0, -s[k] / ds[k]) if leaves and problem.lower[k] < problem.upper[k] else np.inf
