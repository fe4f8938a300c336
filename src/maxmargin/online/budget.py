"""Removal of support vectors from the memory, by age or to keep within a budget.

Removing a support vector removes its dual variable d. With a bias the other variables must compensate for d, so that
their sum stays constant. The decrease of the dual objective caused by a budget is recorded. Three strategies:

    remove     d is distributed to the variables with the largest gain, or smallest loss, in the dual objective
    project    d Φ(x) is replaced by a combination of the most similar samples, within their bounds
               (Orabona, Keshet & Caputo 2008; Wang, Crammer & Vucetic 2012)
    merge      two samples of one class are replaced by one between them that approximates d Φ(x) + d' Φ(x') best
               (Wang, Crammer & Vucetic 2012); Gaussian kernels and dense samples only

For a Gaussian kernel with κ = k(x, x'), the point z = h x + (1 − h) x' has k(x, z) = κ^((1−h)²) and k(x', z) = κ^(h²).
The best multiple of Φ(z) for d Φ(x) + d' Φ(x') is d k(x, z) + d' k(x', z), with the error d² + d'² + 2 d d' κ −
(d k(x, z) + d' k(x', z))². The cost of the merged sample is the sum of both costs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.online.memory import OnlineMemory
from maxmargin.online.sample_constraints import NoveltyDetection
from maxmargin.online.sample_store import SlotData

#: The most samples on which one is projected, and the most pair steps of the projection.
MAX_NEIGHBOURS, MAX_PROJECTION_STEPS = 32, 1000

#: Replaces the squared norm of a sample that is 0.
TINY = 1e-300

#: The golden ratio, and the iterations of the golden-section search: an accuracy of 1e-4.
GOLDEN, GOLDEN_SECTION_STEPS = (np.sqrt(5.0) - 1.0) / 2.0, 20


@dataclass(frozen=True)
class Budget:
    """The largest number of samples in memory, and the strategy "remove", "project" or "merge"."""

    max_samples: int
    strategy: str

    def apply(self, memory: OnlineMemory) -> tuple[int, float]:
        """Remove samples until the budget is kept; return their number and the decrease of the dual objective."""
        used = memory.used()
        excess = len(used) - self.max_samples
        if excess <= 0:
            return 0, 0.0
        no_support = used[~memory.dual[:, used].any(axis=0)][:excess]  # the oldest non-support vectors first
        _exclude(memory, no_support)
        before = memory.dual_value()
        for _ in range(excess - len(no_support)):
            BUDGET_STRATEGIES[self.strategy](memory, least_useful(memory))
        return excess, before - memory.dual_value()


def least_useful(memory: OnlineMemory) -> int:
    """Return the slot whose removal decreases the dual objective least, with the offset as the multiplier."""
    used = memory.used()
    loss = np.zeros(len(used))
    for m in range(len(memory.subproblems)):
        d, g = memory.dual[m, used], memory.gradient[m, used] - memory.offset(m)
        loss += d * (g + 0.5 * d * memory.table.diagonal[used])
    return int(used[np.argmin(loss)])


def remove(memory: OnlineMemory, slot: int) -> None:
    """Remove a sample and distribute its dual variables."""
    _transfer_cost(memory, slot)
    for m, d in enumerate(_take_out(memory, slot)):
        _distribute(memory, m, d)


def project(memory: OnlineMemory, slot: int) -> None:
    """Remove a sample and optimise the variables of the most similar ones, with all others fixed.

    For free variables with equal gradients this is the least-squares approximation.
    """
    others = memory.used()
    others = others[others != slot]
    similarity = np.abs(memory.row(slot)[others]) / np.sqrt(np.maximum(memory.table.diagonal[others], TINY))
    nearest = np.sort(others[np.argsort(-similarity, kind="stable")[:MAX_NEIGHBOURS]])
    rows = np.array([memory.row(int(k)) for k in nearest]).reshape(len(nearest), memory.count)
    remove(memory, slot)
    for m in range(len(memory.subproblems)):
        before = memory.dual[m, nearest]
        after = _optimise(memory, m, nearest, np.ascontiguousarray(rows[:, nearest]))
        memory.dual[m, nearest] = after
        memory.gradient[m, : memory.count] -= (after - before) @ rows


def merge(memory: OnlineMemory, slot: int) -> None:
    """Merge a sample with another of its class; remove it if there is none."""
    merger = best_merger(memory, slot)
    if merger is None:
        remove(memory, slot)
        return
    missing = _take_out(memory, slot) + _take_out(memory, merger.partner)
    missing -= _append_merged(memory, merger)
    for m, d in enumerate(missing):
        _distribute(memory, m, d)


#: The values of ``budget_strategy``.
BUDGET_STRATEGIES: dict[str, Callable[[OnlineMemory, int], None]] = {
    "remove": remove,
    "project": project,
    "merge": merge,
}


def forget_old_samples(memory: OnlineMemory, age: int, costs: Floats) -> int:
    """Remove samples that were followed by `age` others, and return their number; `costs` are the latest.

    In novelty detection every sample has increased the sum of the dual variables by ν times its cost, whether it is in
    memory or not; the increase is reversed.
    """
    costs = np.concatenate([memory.recent_costs, costs])
    memory.recent_costs, expired = costs[-age:], float(costs[:-age].sum())
    missing = np.array([-p.nu * expired if isinstance(p, NoveltyDetection) else 0.0 for p in memory.subproblems])
    used = memory.used()
    old = used[memory.slots.arrived[used] < memory.seen - age]
    for slot in old:
        missing += _take_out(memory, int(slot))
    for m, d in enumerate(missing):
        _distribute(memory, m, d)
    return len(old)


def _exclude(memory: OnlineMemory, slots: Indices) -> None:
    """Exclude samples from all subproblems."""
    for array in (memory.dual, memory.lower, memory.upper):
        array[:, slots] = 0.0


def _take_out(memory: OnlineMemory, slot: int) -> Floats:
    """Exclude a sample from all subproblems; return its previous dual variables."""
    values = memory.dual[:, slot].copy()
    if values.any():
        memory.gradient[:, : memory.count] += values[:, None] * memory.row(slot)
    _exclude(memory, np.array([slot]))
    return values


def _same_class(memory: OnlineMemory, slot: int) -> Indices:
    """Return the other samples of the class of a sample."""
    used = memory.used()
    others: Indices = used[(memory.slots.label[used] == memory.slots.label[slot]) & (used != slot)]
    return others


def _transfer_cost(memory: OnlineMemory, slot: int) -> None:
    """Add the cost of a sample to the most similar one of its class.

    Otherwise the bounds of the remaining samples would become too small for the sum of the dual variables, which grows
    with the stream in novelty detection.
    """
    candidates = _same_class(memory, slot)
    if len(candidates):
        nearest = int(candidates[np.argmax(memory.row(slot)[candidates])])
        memory.slots.cost[nearest] += memory.slots.cost[slot]
        memory.set_bounds(nearest)


def _distribute(memory: OnlineMemory, subproblem: int, amount: float) -> None:
    """Add `amount` to the sum of the dual variables where the dual objective gains most; nothing without a bias."""
    if not memory.bias:
        return
    n, m = memory.count, subproblem
    b, g, diagonal = memory.dual[m, :n], memory.gradient[m, :n], memory.table.diagonal[:n]
    sign = 1.0 if amount > 0 else -1.0
    rest = abs(amount)
    while rest > 0:
        bound = memory.upper[m, :n] if sign > 0 else memory.lower[m, :n]
        possible = np.minimum(sign * (bound - b), rest)
        movable = np.flatnonzero(possible > 0)
        if not len(movable):
            return  # the rest is due to rounding errors
        rate = sign * g[movable] - 0.5 * possible[movable] * diagonal[movable]  # gain per unit
        k = int(movable[np.argmax(rate)])
        step = float(possible[k])
        b[k] = bound[k] if step >= sign * (bound[k] - b[k]) else b[k] + sign * step
        g -= sign * step * memory.row(k)
        rest -= step


def _optimise(memory: OnlineMemory, subproblem: int, slots: Indices, square: Floats) -> Floats:
    """Return the optimal dual variables of some slots with all others fixed; `square` has their kernel values."""
    dual: Floats = memory.dual[subproblem, slots]
    linear = memory.gradient[subproblem, slots] + square @ dual
    gradient, outcome, offset = np.empty(len(slots)), np.array([[-1, 0, 0, 0]]), np.empty((1, int(memory.bias)))
    batch = _native.ProblemBatch(
        matrix=square,
        indices=np.empty(0, dtype=np.int64),
        edges=np.array([0, len(slots)]),
        linear=linear,
        lower=memory.lower[subproblem, slots],
        upper=memory.upper[subproblem, slots],
        ridge=np.zeros(len(slots)),
        groups=int(memory.bias),
        group=np.empty(0, dtype=np.int32),
        kink=np.empty(0),
    )
    limits = _native.StepLimits(tolerance=memory.tolerance, max_steps=MAX_PROJECTION_STEPS, max_seconds=np.inf)
    _native.solve_small_problems(batch, dual, gradient, outcome, offset, limits, 0, 1)
    return dual


class Merger(NamedTuple):
    """Two slots, the weight h of the first in the merged sample, and its dual variable in each subproblem."""

    slot: int
    partner: int
    weight: float
    dual: Floats


def best_merger(memory: OnlineMemory, slot: int) -> Merger | None:
    """Return the merger of a sample with the smallest error, None if there is no other of its class."""
    partners = _same_class(memory, slot)
    if not len(partners):
        return None
    kappa = np.clip(memory.row(slot)[partners], TINY, 1.0)
    own, other = memory.dual[:, slot][:, None], memory.dual[:, partners]

    def merged(h: Floats) -> Floats:
        """Return the dual variables of the merged samples in each subproblem."""
        values: Floats = own * kappa ** ((1.0 - h) ** 2) + other * kappa ** (h**2)
        return values

    low, high = np.zeros(len(partners)), np.ones(len(partners))
    for _ in range(GOLDEN_SECTION_STEPS):
        first, second = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        better = (merged(first) ** 2).sum(axis=0) >= (merged(second) ** 2).sum(axis=0)
        low, high = np.where(better, low, first), np.where(better, second, high)
    h = 0.5 * (low + high)
    error = (own**2 + other**2 + 2.0 * own * other * kappa - merged(h) ** 2).sum(axis=0)
    best = int(np.argmin(error))
    return Merger(slot, int(partners[best]), float(h[best]), merged(h)[:, best])


def _append_merged(memory: OnlineMemory, merger: Merger) -> Floats:
    """Append the merged sample and return its dual variables."""
    pair = np.array([merger.slot, merger.partner])
    values = memory.samples.points.take(pair).values()
    point = merger.weight * values[:1] + (1.0 - merger.weight) * values[1:]
    data = memory.slots.take(pair)
    newest = int(np.argmax(data.arrived))
    no_identity = np.array([-1])  # never equal to that of an observed sample
    cost = np.array([data.cost.sum()])
    memory.append(point, SlotData(data.label[:1], cost, no_identity, data.arrived[newest : newest + 1]))
    k = memory.count - 1
    row = memory.row(k)
    memory.set_bounds(k)
    taken = np.clip(merger.dual, memory.lower[:, k], memory.upper[:, k])
    for m in range(len(memory.subproblems)):
        memory.gradient[m, k] = memory.linear(m)[k] - memory.dual[m, : k + 1] @ row
        memory.dual[m, k] = taken[m]
        memory.gradient[m, : k + 1] -= taken[m] * row
    return taken
