"""How samples leave that machines still use: by age, or because there is a budget.

A support vector that leaves takes its dual variable d along. With a bias the others must take over d, so that the sum
stays; whatever they do, D changes, and what a budget costs in dual value is counted. Three ways to make up for it:

    remove     d goes to the variables that gain most, or lose least, by it
    project    d Φ(x) is replaced by a combination of the most similar samples, within their boxes
               (Orabona, Keshet & Caputo 2008; Wang, Crammer & Vucetic 2012)
    merge      two samples of one class become one between them, where d Φ(x) + d' Φ(x') is approximated best
               (Wang, Crammer & Vucetic 2012); gaussian kernels of dense samples
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.online.merging import best_merger, put_in
from maxmargin.online.sample_constraints import Novelty

if TYPE_CHECKING:
    from maxmargin.online.learner import OnlineLearner

#: The most samples that one is projected on.
NEIGHBOURS = 32

#: The most pair steps among them.
MOST_STEPS = 1000

#: Stands in for the square of a sample that is 0.
TINY = 1e-300


@dataclass(frozen=True)
class Budget:
    """At most so many samples in memory, and what happens to the others: "remove", "project" or "merge"."""

    most: int
    strategy: str

    def apply(self, learner: OnlineLearner) -> tuple[int, float]:
        """Make samples leave until the budget is kept; return how many did, and what that cost in dual value."""
        used = learner.used()
        excess = len(used) - self.most
        if excess <= 0:
            return 0, 0.0
        idle = used[~learner.dual[:, used].any(axis=0)][:excess]  # they support nothing: the oldest go first
        clear(learner, idle)
        before = learner.dual_value()
        for _ in range(excess - len(idle)):
            STRATEGIES[self.strategy](learner, least_useful(learner))
        return excess, before - learner.dual_value()


def least_useful(learner: OnlineLearner) -> int:
    """Return the slot whose dual variables cost least in dual value if the offset is their price."""
    used = learner.used()
    cost = np.zeros(len(used))
    for m in range(len(learner.roles)):
        d, g = learner.dual[m, used], learner.gradient[m, used] - learner.offset(m)
        cost += d * (g + 0.5 * d * learner.table.diagonal[used])
    return int(used[np.argmin(cost)])


def remove(learner: OnlineLearner, slot: int) -> None:
    """Let a sample go; its dual variables go to those that gain most by it."""
    bequeath(learner, slot)
    for m, d in enumerate(take_out(learner, slot)):
        absorb(learner, m, d)


def project(learner: OnlineLearner, slot: int) -> None:
    """Let a sample go; the most similar ones move to where the dual value is highest, all others fixed.

    Of samples between their bounds, with gradients that are all alike, that is the least-squares approximation.
    """
    others = learner.used()
    others = others[others != slot]
    similar = np.abs(learner.row(slot)[others]) / np.sqrt(np.maximum(learner.table.diagonal[others], TINY))
    nearest = np.sort(others[np.argsort(-similar, kind="stable")[:NEIGHBOURS]])
    rows = np.array([learner.row(int(k)) for k in nearest]).reshape(len(nearest), learner.count)
    remove(learner, slot)
    for m in range(len(learner.roles)):
        before = learner.dual[m, nearest]
        after = _solve(learner, m, nearest, np.ascontiguousarray(rows[:, nearest]))
        learner.dual[m, nearest] = after
        learner.gradient[m, : learner.count] -= (after - before) @ rows


def merge(learner: OnlineLearner, slot: int) -> None:
    """Let a sample and one of its class become a single one between them; without any other of its class, let it go."""
    merger = best_merger(learner, slot)
    if merger is None:
        remove(learner, slot)
        return
    lacking = take_out(learner, slot) + take_out(learner, merger.partner)
    lacking -= put_in(learner, merger)
    for m, d in enumerate(lacking):
        absorb(learner, m, d)


#: What ``budget_strategy`` can be.
STRATEGIES: dict[str, Callable[[OnlineLearner, int], None]] = {"remove": remove, "project": project, "merge": merge}


def forget_the_old(learner: OnlineLearner, age: int, costs: Floats) -> int:
    """Let samples go that were followed by `age` others, and return how many; `costs` are those that came last.

    In novelty detection every sample has raised the sum of the dual variables by ν times its cost, whether it is still
    in memory or not: that is taken back.
    """
    everyone = np.concatenate([learner.recent, costs])
    learner.recent, expired = everyone[-age:], float(everyone[:-age].sum())
    lacking = np.array([-role.nu * expired if isinstance(role, Novelty) else 0.0 for role in learner.roles])
    used = learner.used()
    old = used[learner.slots.arrived[used] < learner.seen - age]
    for slot in old:
        lacking += take_out(learner, int(slot))
    for m, d in enumerate(lacking):
        absorb(learner, m, d)
    return len(old)


def clear(learner: OnlineLearner, slots: Indices) -> None:
    """Empty the boxes of samples without dual variables: no machine has use for them any more."""
    for array in (learner.dual, learner.lower, learner.upper):
        array[:, slots] = 0.0


def take_out(learner: OnlineLearner, slot: int) -> Floats:
    """Set the dual variables of a sample to 0, and empty its boxes; return what they were."""
    values = learner.dual[:, slot].copy()
    if values.any():
        learner.gradient[:, : learner.count] += values[:, None] * learner.row(slot)
    clear(learner, np.array([slot]))
    return values


def bequeath(learner: OnlineLearner, slot: int) -> None:
    """Give the cost of a sample to the most similar one of its class, which stands for both from now on.

    Without that the boxes of few samples would soon be too small for the stream: the sum of novelty detection grows
    with it.
    """
    used = learner.used()
    alike = used[(learner.slots.label[used] == learner.slots.label[slot]) & (used != slot)]
    if not len(alike):
        return
    heir = alike[np.argmax(learner.row(slot)[alike])]
    learner.slots.cost[heir] += learner.slots.cost[slot]
    for m, role in enumerate(learner.roles):
        part = role.part(learner.slots.label[[heir]], learner.slots.cost[[heir]])
        learner.lower[m, heir], learner.upper[m, heir] = part.lower[0], part.upper[0]


def absorb(learner: OnlineLearner, machine: int, amount: float) -> None:
    """Add `amount` to the sum of a machine's dual variables, where that gains most or costs least.

    Without a bias nobody lacks it.
    """
    if not learner.bias:
        return
    n, m = learner.count, machine
    b, g, diagonal = learner.dual[m, :n], learner.gradient[m, :n], learner.table.diagonal[:n]
    sign = 1.0 if amount > 0 else -1.0
    rest = abs(amount)
    while rest > 0:
        bound = learner.upper[m, :n] if sign > 0 else learner.lower[m, :n]
        room = np.minimum(sign * (bound - b), rest)
        free = np.flatnonzero(room > 0)
        if not len(free):
            return  # what is left is rounding
        rate = sign * g[free] - 0.5 * room[free] * diagonal[free]  # gain for each unit that is placed
        k = int(free[np.argmax(rate)])
        step = float(room[k])
        b[k] = bound[k] if step >= sign * (bound[k] - b[k]) else b[k] + sign * step
        g -= sign * step * learner.row(k)
        rest -= step


def _solve(learner: OnlineLearner, machine: int, slots: Indices, square: Floats) -> Floats:
    """Return the best dual variables of some slots, all others fixed; `square` has their kernel values."""
    dual: Floats = learner.dual[machine, slots]
    linear = learner.gradient[machine, slots] + square @ dual
    gradient, outcome = np.empty(len(slots)), np.array([[-1, 0, 0]])
    batch = _native.ProblemBatch(
        matrix=square,
        indices=np.empty(0, dtype=np.int64),
        edges=np.array([0, len(slots)]),
        linear=linear,
        lower=learner.lower[machine, slots],
        upper=learner.upper[machine, slots],
        ridge=np.zeros(len(slots)),
        grouped=learner.bias,
    )
    limits = _native.StepLimits(tolerance=learner.tolerance, max_steps=MOST_STEPS, max_seconds=np.inf)
    _native.solve_small_problems(batch, dual, gradient, outcome, limits, 0, 1)
    return dual
