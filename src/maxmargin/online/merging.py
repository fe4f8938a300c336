"""Two samples of one class become one: the point between them where their images are approximated best.

For a gaussian kernel with κ = k(x, x'), the point z = h x + (1 − h) x' has k(x, z) = κ^((1−h)²) and k(x', z) = κ^(h²).
The best multiple of Φ(z) for d Φ(x) + d' Φ(x') is d k(x, z) + d' k(x', z), and what it leaves is d² + d'² + 2 d d' κ −
(d k(x, z) + d' k(x', z))² (Wang, Crammer & Vucetic 2012). The new sample stands for both: its cost is the sum of
theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.online.slots import Slots

if TYPE_CHECKING:
    from maxmargin.online.learner import OnlineLearner

#: The golden ratio, and how often it narrows the search: to a ten-thousandth.
GOLDEN, NARROWINGS = (np.sqrt(5.0) - 1.0) / 2.0, 20


class Merger(NamedTuple):
    """Two slots, the share of the first in the point between them, and the dual variable of that in each machine."""

    slot: int
    partner: int
    share: float
    dual: Floats


def best_merger(learner: OnlineLearner, slot: int) -> Merger | None:
    """Return the merger of a sample that leaves least; None if there is no other of its class."""
    used = learner.used()
    partners = used[(learner.slots.label[used] == learner.slots.label[slot]) & (used != slot)]
    if not len(partners):
        return None
    kappa = np.clip(learner.row(slot)[partners], 1e-300, 1.0)
    own, other = learner.dual[:, slot][:, None], learner.dual[:, partners]

    def replaced(share: Floats) -> Floats:
        """Return the dual variables of the points between, machine by machine."""
        values: Floats = own * kappa ** ((1.0 - share) ** 2) + other * kappa ** (share**2)
        return values

    low, high = np.zeros(len(partners)), np.ones(len(partners))
    for _ in range(NARROWINGS):
        first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        better = (replaced(first) ** 2).sum(axis=0) >= (replaced(second) ** 2).sum(axis=0)
        low, high = np.where(better, low, first), np.where(better, second, high)
    share = 0.5 * (low + high)
    left = (own**2 + other**2 + 2.0 * own * other * kappa - replaced(share) ** 2).sum(axis=0)
    best = int(np.argmin(left))
    return Merger(slot, int(partners[best]), float(share[best]), replaced(share)[:, best])


def put_in(learner: OnlineLearner, merger: Merger) -> Floats:
    """Put the point between two samples in a slot of its own; return its dual variables."""
    pair = np.array([merger.slot, merger.partner])
    values = learner.samples.points.take(pair).values()
    point = merger.share * values[:1] + (1.0 - merger.share) * values[1:]
    about = learner.slots.take(pair)
    cost, newest = np.array([about.cost.sum()]), int(np.argmax(about.arrived))
    nobody = np.array([-1])  # no sample that may come again
    learner.append(point, Slots(about.label[:1], cost, nobody, about.arrived[newest : newest + 1]))
    k = learner.count - 1
    row = learner.row(k)
    taken = np.zeros(len(learner.roles))
    for m, role in enumerate(learner.roles):
        part = role.part(about.label[:1], cost)
        learner.lower[m, k], learner.upper[m, k] = part.lower[0], part.upper[0]
        learner.gradient[m, k] = part.linear[0] - learner.dual[m, : k + 1] @ row
        taken[m] = np.clip(merger.dual[m], part.lower[0], part.upper[0])
        learner.dual[m, k] = taken[m]
        learner.gradient[m, : k + 1] -= taken[m] * row
    return taken
