"""Who really solved the problem: every contestant's coefficients, judged in float64 by one certificate.

Contestants compute in different precisions and have different ideas of "converged". Here their coefficients are put
into the problem that maxmargin poses, and the violation, the duality gap and the primal value are computed afresh.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.race.contestants import Coefficients
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start

#: A violation of up to this many tolerances is accepted: rows in single precision overshoot a little.
LENIENCE = 1.5

#: How far, relative to C, coefficients may be from feasible without a word.
ROUNDING = 1e-9

#: In a second look, coefficients this close to a bound, relative to C, are put onto it: a library that computes in
#: single precision means the bound, and a coefficient a hair's breadth off it counts as free otherwise.
NEARLY_BOUND = 1e-7


@dataclass(frozen=True)
class Judgement:
    """What is true of a solution.

    Attributes
    ----------
    violation : float
        Of the optimality criterion; with many classes the worst of all pairs.
    gap, primal, dual : float
        With many classes summed over the pairs; `relative_gap` is gap / primal.
    support, free : int
        Rows with a coefficient, and with one strictly between the bounds, in any pair.
    free_by_pair : list of int
        Free coefficients of each pair.
    values : int
        Kernel values that support vectors and their samples have: n S, or with many classes the sum over pairs with
        each block of class by class counted once.
    projected : bool
        Whether the coefficients were infeasible and had to be moved.
    """

    violation: float
    gap: float
    relative_gap: float
    primal: float
    dual: float
    support: int
    free: int
    free_by_pair: list[int]
    values: int
    projected: bool

    def stopped_short(self, tolerance: float) -> bool:
        """Whether the tolerance was missed by more than rounding explains."""
        return not self.violation <= LENIENCE * tolerance


def judge(
    X: Any, codes: np.ndarray, C: float, gamma: float, found: Coefficients, tolerance: float, threads: int
) -> Judgement:
    """Judge the coefficients that a contestant found for the classes `codes` = 0, 1, … of the rows of `X`."""
    points = Points(X)
    count = len(codes)
    in_some_pair, free_somewhere = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    violation = gap = primal = dual = 0.0
    free_by_pair, values, projected = [], 0, False
    for first, second in combinations(range(len(found.order)), 2):
        a, b = found.order[first], found.order[second]
        samples = np.flatnonzero((codes == a) | (codes == b))
        signs = np.where(codes[samples] == a, found.first_sign, -found.first_sign)
        problem = pose(KernelMatrix(Gaussian(gamma), points.take(samples), threads), signs, np.full(len(samples), C))
        wanted = of_pair(found, codes, first, second)[samples]
        solution, certificate, moved = certify_generously(problem, wanted, C, tolerance)
        projected |= moved
        violation = max(violation, certificate.violation)
        gap, primal, dual = gap + certificate.gap, primal + certificate.primal, dual + certificate.dual
        used = solution != 0
        free = used & (solution > problem.lower) & (solution < problem.upper)
        in_some_pair[samples[used]] = True
        free_somewhere[samples[free]] = True
        free_by_pair.append(int(free.sum()))
        of_a = codes[samples] == a
        values += int((used & of_a).sum()) * int((~of_a).sum()) + int((used & ~of_a).sum()) * int(of_a.sum())
    # A support vector meets its own class once, however many pairs it takes part in.
    sizes = np.bincount(codes)
    values += int(sizes[codes[in_some_pair]].sum())
    return Judgement(
        violation=violation,
        gap=gap,
        relative_gap=gap / max(abs(primal), np.finfo(float).tiny),
        primal=primal,
        dual=dual,
        support=int(in_some_pair.sum()),
        free=int(free_somewhere.sum()),
        free_by_pair=free_by_pair,
        values=values,
        projected=projected,
    )


def of_pair(found: Coefficients, codes: np.ndarray, first: int, second: int) -> np.ndarray:
    """Return the coefficients of the pair of the classes at two places, by training row; 0 for rows of others."""
    by_row = np.zeros(len(codes))
    classes = codes[found.support]
    for place, row in ((first, second - 1), (second, first)):
        columns = np.flatnonzero(classes == found.order[place])
        by_row[found.support[columns]] = found.values[row, columns]
    return by_row


def certify_generously(
    problem: DualProblem, wanted: np.ndarray, C: float, tolerance: float
) -> tuple[np.ndarray, Certificate, bool]:
    """Return a feasible point, its certificate, and whether `wanted` had to be moved for that.

    If the tolerance is missed, coefficients next to a bound are put onto it, and the better of the two counts.
    """
    solution, moved = feasible(problem, wanted, C, ROUNDING)
    certificate = certify(problem, solution)
    if certificate.violation <= tolerance:
        return solution, certificate, moved
    other, also_moved = feasible(problem, wanted, C, NEARLY_BOUND)
    second = certify(problem, other)
    if second.violation < certificate.violation:
        return other, second, also_moved
    return solution, certificate, moved


def feasible(problem: DualProblem, wanted: np.ndarray, C: float, nearness: float) -> tuple[np.ndarray, bool]:
    """Return the coefficients inside the box with the right sum, and whether that took more than rounding.

    What the sum lacks is shared by the free coefficients first: one at its bound that moved off it by a trifle would
    count as free, and spoil a good solution.
    """
    allowed = ROUNDING * C * max(1, np.count_nonzero(wanted))
    outside = np.maximum(problem.lower - wanted, wanted - problem.upper).max()
    moved = bool(outside > ROUNDING * C or abs(wanted.sum()) > allowed)
    close = nearness * C
    rounded = np.where(np.abs(wanted - problem.lower) <= close, problem.lower, wanted)
    rounded = np.where(np.abs(wanted - problem.upper) <= close, problem.upper, rounded)
    rounded = np.clip(rounded, problem.lower, problem.upper)
    free = (rounded > problem.lower) & (rounded < problem.upper)
    if abs(rounded.sum()) > ROUNDING * C and free.any():
        shifted = rounded - np.where(free, rounded.sum() / free.sum(), 0.0)
        rounded = np.clip(shifted, problem.lower, problem.upper)
    if abs(rounded.sum()) > allowed:
        return feasible_start(problem, rounded), True
    return rounded, moved
