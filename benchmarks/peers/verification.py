"""Verify the coefficients of every library in float64 with the same certificate.

Libraries compute in different precisions and define convergence differently. Here their coefficients are a point of the
dual problem that maxmargin poses, whose violation, duality gap and primal value are recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.peers.libraries import Coefficients
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start

#: A violation up to this multiple of the tolerance is accepted, because of kernel rows in single precision.
TOLERANCE_FACTOR = 1.5

#: Infeasibility of coefficients, relative to C, that is not reported.
FEASIBILITY_TOLERANCE = 1e-9

#: In the second attempt, coefficients this close to a bound, relative to C, are set to it: single precision rounds
#: bounds, and a coefficient just off its bound would count as free.
BOUND_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Verification:
    """Verified properties of a solution.

    Attributes
    ----------
    violation : float
        Largest KKT violation; with several classes the maximum over all pairs.
    gap, primal, dual : float
        With several classes summed over the pairs; `relative_gap` is gap / primal.
    support, free : int
        Rows with a non-zero coefficient, and with one strictly between the bounds, in any pair.
    free_by_pair : list of int
        Free coefficients of each pair.
    values : int
        Kernel values between samples and support vectors: n S, or with several classes the sum over pairs with each
        block of two classes counted once.
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
        """Return whether the tolerance was missed by more than rounding explains."""
        return not self.violation <= TOLERANCE_FACTOR * tolerance


def verify(
    X: Any, codes: np.ndarray, C: float, gamma: float, found: Coefficients, tolerance: float, threads: int
) -> Verification:
    """Verify the coefficients of a library for the classes `codes` = 0, 1, … of the rows of `X`."""
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
        solution, certificate, moved = certify_with_snapping(problem, wanted, C, tolerance)
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
    # The block of a support vector with its own class counts once, in however many pairs it occurs.
    sizes = np.bincount(codes)
    values += int(sizes[codes[in_some_pair]].sum())
    return Verification(
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
    """Return the coefficients of a pair of classes by training row; 0 for rows of other classes."""
    by_row = np.zeros(len(codes))
    classes = codes[found.support]
    for place, row in ((first, second - 1), (second, first)):
        columns = np.flatnonzero(classes == found.order[place])
        by_row[found.support[columns]] = found.values[row, columns]
    return by_row


def certify_with_snapping(
    problem: DualProblem, wanted: np.ndarray, C: float, tolerance: float
) -> tuple[np.ndarray, Certificate, bool]:
    """Return a feasible point, its certificate, and whether `wanted` was infeasible.

    If the tolerance is missed, coefficients close to a bound are set to it, and the better of both points is returned.
    """
    solution, moved = feasible(problem, wanted, C, FEASIBILITY_TOLERANCE)
    certificate = certify(problem, solution)
    if certificate.violation <= tolerance:
        return solution, certificate, moved
    other, also_moved = feasible(problem, wanted, C, BOUND_TOLERANCE)
    second = certify(problem, other)
    if second.violation < certificate.violation:
        return other, second, also_moved
    return solution, certificate, moved


def feasible(problem: DualProblem, wanted: np.ndarray, C: float, nearness: float) -> tuple[np.ndarray, bool]:
    """Return coefficients within the box and with the required sum, and whether they changed by more than rounding.

    The free coefficients absorb the error of the sum first: a coefficient moved slightly off its bound would count as
    free and increase the violation.
    """
    allowed = FEASIBILITY_TOLERANCE * C * max(1, np.count_nonzero(wanted))
    outside = np.maximum(problem.lower - wanted, wanted - problem.upper).max()
    moved = bool(outside > FEASIBILITY_TOLERANCE * C or abs(wanted.sum()) > allowed)
    close = nearness * C
    rounded = np.where(np.abs(wanted - problem.lower) <= close, problem.lower, wanted)
    rounded = np.where(np.abs(wanted - problem.upper) <= close, problem.upper, rounded)
    rounded = np.clip(rounded, problem.lower, problem.upper)
    free = (rounded > problem.lower) & (rounded < problem.upper)
    if abs(rounded.sum()) > FEASIBILITY_TOLERANCE * C and free.any():
        shifted = rounded - np.where(free, rounded.sum() / free.sum(), 0.0)
        rounded = np.clip(shifted, problem.lower, problem.upper)
    if abs(rounded.sum()) > allowed:
        return feasible_start(problem, rounded), True
    return rounded, moved
