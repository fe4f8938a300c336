"""The problem of a fold as `native/fold_path.hpp` solves it: pair steps on all variables until most cannot be selected,
then on the others, on rows in single precision, with the equations of the free variables in between. The gradient is in
double precision, as in the native code where the tolerance is small; the sum of one group is kept.
"""

from dataclasses import dataclass, replace

import numpy as np
from tests.reference import fused_pairwise

STEPS, FIRST_PART, NEXT_PART = 256, 0.6, 0.75
PART_TOLERANCE, PART_REDUCTION = 0.8, 0.1
FREE_COST, NEXT_FREE_COST, MAX_DIFFERENT = 0.04, 1.5, 0.35


@dataclass
class Problem:
    """max linear·b − ½ bᵀMb − ½ Σ ridge b², lower ≤ b ≤ upper, with the sum of each group as it is."""

    matrix: np.ndarray
    linear: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    group: np.ndarray

    def gradient(self, dual):
        """Return the gradient of the objective."""
        return self.linear - self.matrix.astype(np.float64) @ dual - self.ridge * dual

    def extremes(self, dual):
        """Return the largest gradient that can increase and the smallest that can decrease, of the group of each."""
        gradient = self.gradient(dual)
        rising = np.where(dual < self.upper, gradient, -np.inf)
        falling = np.where(dual > self.lower, gradient, np.inf)
        of_group = range(int(self.group.max()) + 1)
        highest = np.array([rising[self.group == g].max() for g in of_group])
        lowest = np.array([falling[self.group == g].min() for g in of_group])
        return gradient, highest[self.group], lowest[self.group]

    def violation(self, dual):
        """Return by how much optimality is violated."""
        _, highest, lowest = self.extremes(dual)
        return float((highest - lowest).max())

    def selectable(self, dual):
        """Return which variables a rule can select."""
        gradient, highest, lowest = self.extremes(dual)
        return ((dual < self.upper) & (gradient >= lowest)) | ((dual > self.lower) & (gradient <= highest))

    def part(self, keep, dual):
        """Return the problem of some variables in single precision, while the others stay."""
        block = self.matrix[np.ix_(keep, keep)].astype(np.float32)
        linear = self.gradient(dual)[keep] + block.astype(np.float64) @ dual[keep] + self.ridge[keep] * dual[keep]
        parts = {name: getattr(self, name)[keep] for name in ("lower", "upper", "ridge", "group")}
        return replace(self, matrix=block, linear=linear, **parts)

    def steps(self, dual, tolerance, count):
        """Return the dual vector after so many pair steps, and how many there were."""
        pairs, after = fused_pairwise.steps(
            self.matrix, self.linear, self.lower, self.upper, self.ridge, tolerance, count, self.group, start=dual
        )
        return after, len(pairs)


def solve(problem, dual, tolerance):
    """Return the solution, the number of rounds, and how often the equations were solved."""
    rounds = equations = 0
    factored = np.zeros(len(dual), dtype=bool)
    while True:
        dual, optimal = on_all(problem, dual, tolerance)
        if optimal:
            return dual, rounds, equations
        dual, count = on_part(problem, dual, tolerance, factored)
        rounds, equations = rounds + 1, equations + count


def on_all(problem, dual, tolerance):
    """Take steps on all variables until the point is optimal or most variables cannot be selected."""
    while problem.selectable(dual).mean() > FIRST_PART:
        dual, count = problem.steps(dual, tolerance, STEPS)
        if count < STEPS:
            return dual, True
    return dual, problem.violation(dual) <= tolerance


def on_part(problem, dual, tolerance, factored):
    """Take steps on the variables that can be selected, fewer and fewer of them; change which ones are factored."""
    tolerance = max(PART_TOLERANCE * tolerance, PART_REDUCTION * problem.violation(dual))
    members = np.flatnonzero(problem.selectable(dual))
    part, own = problem.part(members, dual), dual[members]
    equations, credit = 0, 0.0
    while True:
        own, count = part.steps(own, tolerance, STEPS + len(own))
        credit += count * len(own)
        if count < STEPS + len(own):
            break
        keep = part.selectable(own)
        if 0 < keep.sum() <= NEXT_PART * len(own):
            dual = with_values(dual, members, own)
            members, part, own = members[keep], part.part(keep, own), own[keep]
        free = (own > part.lower) & (own < part.upper)
        now = np.zeros(len(dual), dtype=bool)
        now[members[free]] = True
        serves = (now != factored).sum() <= MAX_DIFFERENT * now.sum()
        if now.any() and credit >= (NEXT_FREE_COST * now.sum() ** 2 if serves else FREE_COST * now.sum() ** 3):
            factored[:] = factored if serves else now
            own, credit, equations = solve_free(part, own, free), 0.0, equations + 1
    return with_values(dual, members, own), equations


def with_values(dual, members, values):
    """Return the dual vector with other values of some variables."""
    after = dual.copy()
    after[members] = values
    return after


def solve_free(part, dual, free):
    """Return the point towards the solution of the equations of the free variables at which the objective is largest.

    Variables that would leave their bounds are fixed at them, all at once, and released if they would move inwards.
    """
    matrix = part.matrix.astype(np.float64) + np.diag(part.ridge)
    gradient, active, step = part.gradient(dual), free.copy(), np.zeros(len(dual))
    while True:
        step[active] = 0.0
        count = int(active.sum())
        ones = np.ones((count, 1))
        system = np.block([[matrix[np.ix_(active, active)], ones], [ones.T, np.zeros((1, 1))]])
        right = np.append((gradient - matrix @ step)[active], -step.sum())
        *inside, offset = np.linalg.solve(system, right)
        step[active] = inside
        slack = gradient - matrix @ step - offset
        below, above = active & (dual + step < part.lower), active & (dual + step > part.upper)
        step[below], step[above] = (part.lower - dual)[below], (part.upper - dual)[above]
        released = free & ~active & np.where(step > 0, slack < 0, slack > 0)
        if not (below | above | released).any():
            break
        active = (active & ~below & ~above) | released
    slope, curvature = step @ gradient, step @ matrix @ step
    return dual + step * min(1.0, slope / curvature)
