"""Probabilities as LIBSVM computes them, to the digits that it prints.

Several classes, with r_ij the probability of i rather than j (Wu, Lin & Weng 2004, the second method, algorithm 2):

    minimise pᵀ Q p   subject to   Σ p_i = 1,    Q_ii = Σ_{j≠i} r_ji²,   Q_ij = −r_ji r_ij

by updates of one p_t after the other, p_t ← p_t + (pᵀQp − (Qp)_t) / Q_tt and a division of all by the new sum, until
all (Qp)_t agree with pᵀQp to within 0.005/k. `maxmargin.models.calibration` solves the same problem exactly; what the
iteration leaves open is up to about 0.005.

One class: ten marks cut decision values into bins, of which each has a probability (Que & Lin 2025).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.calibration import MIN_PAIRWISE_PROBABILITY, MIN_PROBABILITY

#: The iteration ends when (Qp)_t and pᵀQp agree to this over the number of classes.
TOLERANCE = 0.005

#: How many values the tables Q of several samples have together.
TABLE_VALUES = 2**20

#: How many marks one class has, and where 0 would be among eleven.
MARKS, BOUNDARY = 10, 5


def couple_as_libsvm(pairwise: Floats, classes: int) -> Floats:
    """Return the probability of each class, given those of the first of each pair (0, 1), (0, 2), …, (1, 2), …."""
    pairwise = np.clip(pairwise, MIN_PAIRWISE_PROBABILITY, 1.0 - MIN_PAIRWISE_PROBABILITY)
    if classes == 2:
        return np.column_stack([pairwise[:, 0], 1.0 - pairwise[:, 0]])
    step = max(1, TABLE_VALUES // classes**2)
    return np.vstack([_couple(pairwise[k : k + step], classes) for k in range(0, len(pairwise), step) or [0]])


def _couple(pairwise: Floats, classes: int) -> Floats:
    count = len(pairwise)
    Q = np.zeros((count, classes, classes))
    for pair, (a, b) in enumerate(combinations(range(classes), 2)):
        of_a, of_b = pairwise[:, pair], 1.0 - pairwise[:, pair]
        Q[:, a, a] += of_b**2
        Q[:, b, b] += of_a**2
        Q[:, a, b] = Q[:, b, a] = -of_a * of_b
    found = np.full((count, classes), 1.0 / classes)
    going_on = np.arange(count)
    for _ in range(max(100, classes)):
        p, products = found[going_on], np.einsum("nij,nj->ni", Q[going_on], found[going_on])
        value = np.einsum("ni,ni->n", p, products)
        unfinished = np.abs(products - value[:, None]).max(axis=1) >= TOLERANCE / classes
        going_on, p, products, value = (part[unfinished] for part in (going_on, p, products, value))
        if not len(going_on):
            break
        found[going_on] = _sweep(Q[going_on], p, products, value)
    return found


def _sweep(Q: Floats, p: Floats, products: Floats, value: Floats) -> Floats:
    """Return p after an update of each of its parts in turn."""
    for t in range(p.shape[1]):
        own = Q[:, t, t]
        step = (value - products[:, t]) / own
        p[:, t] += step
        total = 1.0 + step
        value = (value + step * (step * own + 2.0 * products[:, t])) / total**2
        products = (products + step[:, None] * Q[:, t]) / total[:, None]
        p /= total[:, None]
    return p


def inside_as_libsvm(decision: Floats, marks: Floats) -> Floats:
    """Return the probabilities to be inside and outside."""
    inside = np.searchsorted(marks, decision, side="right") / MARKS
    inside = np.clip(inside, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return np.column_stack([inside, 1.0 - inside])


def marks_of_file(marks: Floats) -> Floats:
    """Return LIBSVM's ten marks for our eleven: those in the middle between two."""
    return np.asarray(0.5 * (marks[1:] + marks[:-1]))


def marks_of_estimator(marks: Floats) -> Floats:
    """Return our eleven marks for LIBSVM's ten, given that ours have 0 at the boundary; they ascend."""
    found = np.zeros(MARKS + 1)
    for k in range(BOUNDARY, MARKS):
        found[k + 1] = max(2.0 * marks[k] - found[k], found[k])
    for k in reversed(range(BOUNDARY)):
        found[k] = min(2.0 * marks[k] - found[k + 1], found[k + 1])
    return found
