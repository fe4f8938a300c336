"""Probabilities computed with LIBSVM's algorithms, equal to the digits that it prints.

For several classes, with r_ij the probability of i against j (Wu, Lin & Weng 2004, second method, algorithm 2):

    minimise pᵀ Q p   subject to   Σ p_i = 1,    Q_ii = Σ_{j≠i} r_ji²,   Q_ij = −r_ji r_ij

by cyclic updates p_t ← p_t + (pᵀQp − (Qp)_t) / Q_tt with normalisation, until all (Qp)_t agree with pᵀQp to within
0.005/k. `maxmargin.models.calibration` solves the same problem exactly; the error of the iteration is up to 0.005.

For one class, ten marks divide the decision values into bins with a probability each (Que & Lin 2025).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.calibration import MIN_PAIRWISE_PROBABILITY, MIN_PROBABILITY

#: Tolerance of |(Qp)_t − pᵀQp|, multiplied by the number of classes.
TOLERANCE = 0.005

#: Number of values of the matrices Q that are processed at once.
BATCH_VALUES = 2**20

#: Number of marks of a one-class model, and the position of 0 among our eleven marks.
MARKS, BOUNDARY = 10, 5


def couple_as_libsvm(pairwise: Floats, classes: int) -> Floats:
    """Return class probabilities from those of the first class of each pair (0, 1), (0, 2), …, (1, 2), …."""
    pairwise = np.clip(pairwise, MIN_PAIRWISE_PROBABILITY, 1.0 - MIN_PAIRWISE_PROBABILITY)
    if classes == 2:
        return np.column_stack([pairwise[:, 0], 1.0 - pairwise[:, 0]])
    step = max(1, BATCH_VALUES // classes**2)
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
    active = np.arange(count)
    for _ in range(max(100, classes)):
        p, products = found[active], np.einsum("nij,nj->ni", Q[active], found[active])
        value = np.einsum("ni,ni->n", p, products)
        unconverged = np.abs(products - value[:, None]).max(axis=1) >= TOLERANCE / classes
        active, p, products, value = (part[unconverged] for part in (active, p, products, value))
        if not len(active):
            break
        found[active] = _cyclic_update(Q[active], p, products, value)
    return found


def _cyclic_update(Q: Floats, p: Floats, products: Floats, value: Floats) -> Floats:
    """Return p after one cyclic update of its components."""
    for t in range(p.shape[1]):
        diagonal = Q[:, t, t]
        step = (value - products[:, t]) / diagonal
        p[:, t] += step
        total = 1.0 + step
        value = (value + step * (step * diagonal + 2.0 * products[:, t])) / total**2
        products = (products + step[:, None] * Q[:, t]) / total[:, None]
        p /= total[:, None]
    return p


def inside_as_libsvm(decision: Floats, marks: Floats) -> Floats:
    """Return the probabilities of being an inlier and an outlier."""
    inside = np.searchsorted(marks, decision, side="right") / MARKS
    inside = np.clip(inside, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return np.column_stack([inside, 1.0 - inside])


def marks_of_file(marks: Floats) -> Floats:
    """Return LIBSVM's ten marks for our eleven: the midpoints."""
    return np.asarray(0.5 * (marks[1:] + marks[:-1]))


def marks_of_estimator(marks: Floats) -> Floats:
    """Return our eleven marks, ascending and 0 at the boundary, whose midpoints are LIBSVM's ten marks."""
    found = np.zeros(MARKS + 1)
    for k in range(BOUNDARY, MARKS):
        found[k + 1] = max(2.0 * marks[k] - found[k], found[k])
    for k in reversed(range(BOUNDARY)):
        found[k] = min(2.0 * marks[k] - found[k + 1], found[k + 1])
    return found
