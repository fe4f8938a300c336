"""The coupling of pairwise probabilities as its authors iterate it: one sample, one probability after the other."""

from itertools import combinations

import numpy as np


def coupled(pairwise, classes, tolerance=1e-12, rounds=100_000):
    """Algorithm 2 of Wu, Lin & Weng (2004)."""
    r = np.zeros((classes, classes))
    for value, (a, b) in zip(pairwise, combinations(range(classes), 2), strict=True):
        r[a, b], r[b, a] = value, 1 - value
    q = -r * r.T
    q[np.diag_indices(classes)] = [sum(r[j, i] ** 2 for j in range(classes) if j != i) for i in range(classes)]
    p = np.full(classes, 1 / classes)
    for _ in range(rounds):
        if np.abs(q @ p - p @ q @ p).max() < tolerance:
            return p
        for t in range(classes):
            p[t] = (-(q[t] @ p - q[t, t] * p[t]) + p @ q @ p) / q[t, t]
            p /= p.sum()
    raise AssertionError("the iteration did not end")
