"""How samples leave that machines still use: by age, or because there is a budget.

A support vector that leaves takes its dual variable d along. With a bias the others must take over d, so that the sum
stays; whatever they do, D changes, and what a budget costs in dual value is counted. Three ways to make up for it:

    remove     d goes to the variables that gain most, or lose least, by it
    project    d Φ(x) is replaced by its least-squares approximation from the most similar samples, within their boxes
               (Orabona, Keshet & Caputo 2008; Wang, Crammer & Vucetic 2012)
    merge      two samples of one class become one between them, where d Φ(x) + d' Φ(x') is approximated best
               (Wang, Crammer & Vucetic 2012); gaussian kernels of dense samples
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.online.roles import Novelty

if TYPE_CHECKING:
    from maxmargin.online.learner import OnlineLearner

#: The most samples that one is projected on.
NEIGHBOURS = 64

#: How often variables that would leave their box are fixed there and the others solved again.
ROUNDS = 8

#: Added to the diagonal of a least-squares problem, relative to it: copies of samples make it singular.
RIDGE = 1e-7


@dataclass(frozen=True)
class Budget:
    """At most so many samples in memory, and what happens to the others: "remove", "project" or "merge"."""

    most: int
    strategy: str

    def apply(self, learner: OnlineLearner) -> float:
        """Make samples leave until the budget is kept; return what that cost in dual value."""
        used = learner.used()
        excess = len(used) - self.most
        if excess <= 0:
            return 0.0
        idle = used[~learner.dual[:, used].any(axis=0)][:excess]  # they support nothing: the oldest go first
        clear(learner, idle)
        value = learner.dual_value()
        for _ in range(excess - len(idle)):
            STRATEGIES[self.strategy](learner, least_useful(learner))
        return value - learner.dual_value()


def least_useful(learner: OnlineLearner) -> int:
    """Return the slot whose dual variables would cost least in dual value if they became 0 at the price of the offset."""
    used = learner.used()
    cost = np.zeros(len(used))
    for m in range(len(learner.roles)):
        d, g = learner.dual[m, used], learner.gradient[m, used] - learner.offset(m)
        cost += d * (g + 0.5 * d * learner.table.diagonal[used])
    return int(used[np.argmin(cost)])


def remove(learner: OnlineLearner, slot: int) -> None:
    """Let a sample go; its dual variables go to those that gain most by it."""
    for m, d in enumerate(take_out(learner, slot)):
        absorb(learner, m, d)


def project(learner: OnlineLearner, slot: int) -> None:
    """Let a sample go; it is replaced by a combination of the samples that are most similar."""
    row = np.array(learner.row(slot), dtype=np.float64)
    others = learner.used()
    others = others[others != slot]
    nearest = others[np.argsort(-np.abs(row[others]) / np.sqrt(np.maximum(learner.table.diagonal[others], 1e-300)))]
    nearest = np.sort(nearest[:NEIGHBOURS])
    rows = np.array([learner.row(int(k)) for k in nearest], dtype=np.float64).reshape(len(nearest), learner.count)
    square = rows[:, nearest]
    square[np.diag_indices_from(square)] *= 1.0 + RIDGE
    for m, d in enumerate(take_out(learner, slot)):
        if d == 0.0:
            continue
        low = learner.lower[m, nearest] - learner.dual[m, nearest]
        high = learner.upper[m, nearest] - learner.dual[m, nearest]
        change = _least_squares(square, d * row[nearest], low, high, d if learner.bias else None)
        before = learner.dual[m, nearest]
        after = np.clip(before + change, learner.lower[m, nearest], learner.upper[m, nearest])
        learner.dual[m, nearest] = after
        learner.gradient[m, : learner.count] -= (after - before) @ rows
        absorb(learner, m, d - float((after - before).sum()))


def merge(learner: OnlineLearner, slot: int) -> None:
    """Let a sample and one of its class become a single one between them; without any other of its class, let it go."""
    from maxmargin.online.merging import best_merger, put_in

    merger = best_merger(learner, slot)
    if merger is None:
        remove(learner, slot)
        return
    lacking = take_out(learner, slot, inherited=False) + take_out(learner, merger.partner, inherited=False)
    lacking -= put_in(learner, merger)
    for m, d in enumerate(lacking):
        absorb(learner, m, d)


#: What ``budget_strategy`` can be.
STRATEGIES: dict[str, Callable[[OnlineLearner, int], None]] = {"remove": remove, "project": project, "merge": merge}


def forget_the_old(learner: OnlineLearner, age: int, costs: Floats) -> None:
    """Let samples go that were followed by `age` others; `costs` are those of the samples that came last.

    In novelty detection every sample has raised the sum of the dual variables by ν times its cost, whether it is still
    in memory or not: that is taken back.
    """
    everyone = np.concatenate([learner.recent, costs])
    learner.recent, expired = everyone[-age:], float(everyone[:-age].sum())
    lacking = np.array([-role.nu * expired if isinstance(role, Novelty) else 0.0 for role in learner.roles])
    for slot in np.flatnonzero(learner.slots.arrived < learner.seen - age):
        lacking += take_out(learner, int(slot), inherited=False)
    for m, d in enumerate(lacking):
        absorb(learner, m, d)


def clear(learner: OnlineLearner, slots: Indices) -> None:
    """Empty the boxes of samples without dual variables: no machine has use for them any more."""
    for array in (learner.dual, learner.lower, learner.upper):
        array[:, slots] = 0.0


def take_out(learner: OnlineLearner, slot: int, inherited: bool = True) -> Floats:
    """Set the dual variables of a sample to 0; return what they were, which without a bias nobody lacks.

    In novelty detection its room goes to the most similar sample if it is `inherited`: else the sum would not fit into the
    boxes of the others.
    """
    n, values = learner.count, learner.dual[:, slot].copy()
    if values.any():
        row = np.array(learner.row(slot), dtype=np.float64)
        learner.gradient[:, :n] += values[:, None] * row
        if inherited and isinstance(learner.roles[0], Novelty):
            others = learner.used()
            others = others[others != slot]
            heir = int(others[np.argmax(row[others])])
            learner.slots.cost[heir] += learner.slots.cost[slot]
            learner.upper[:, heir] = learner.slots.cost[heir]
    clear(learner, np.array([slot]))
    return values if learner.bias else np.zeros_like(values)


def absorb(learner: OnlineLearner, machine: int, amount: float) -> None:
    """Add `amount` to the sum of a machine's dual variables, where that gains most or costs least."""
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


def _least_squares(square: Floats, target: Floats, low: Floats, high: Floats, total: float | None) -> Floats:
    """Return the x in a box that minimises ½ xᵀ square x − target·x, with a given sum if there is one.

    Variables that would leave their box are fixed on its edge and the others solved again: near enough for what follows.
    """
    x, free = np.zeros(len(target)), high > low
    for _ in range(ROUNDS):
        inside = np.flatnonzero(free)
        if not len(inside):
            break
        right = target[inside] - square[np.ix_(inside, np.flatnonzero(~free))] @ x[~free]
        matrix = square[np.ix_(inside, inside)]
        if total is not None:
            ones = np.ones((len(inside), 1))
            matrix = np.block([[matrix, ones], [ones.T, np.zeros((1, 1))]])
            right = np.append(right, total - x[~free].sum())
        solved = np.linalg.lstsq(matrix, right, rcond=None)[0][: len(inside)]
        x[inside] = np.clip(solved, low[inside], high[inside])
        outside = x[inside] != solved
        if not outside.any():
            break
        free[inside[outside]] = False
    return x
