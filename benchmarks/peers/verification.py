"""Verify the coefficients of every library in float64 with the same certificate.

Libraries compute in different precisions and define convergence differently. Here their coefficients are a point of the
dual problem that maxmargin poses, whose violation, duality gap and primal value are recomputed. Of a linear machine
only the weights are known: its violation is the relative gap to a lower bound on the optimum (`weights_verification`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.peers.libraries import LINEAR_MACHINES, Coefficients, Parameters
from benchmarks.peers.weights_verification import primal_of, reference_dual
from maxmargin.formulations import c_classification, epsilon_regression, nu_classification, nu_regression, one_class
from maxmargin.kernels import Kernel, Points, make_kernel
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start

#: A violation up to this multiple of the tolerance is accepted, because of kernel rows in single precision.
TOLERANCE_FACTOR = 1.5

#: Infeasibility of coefficients, relative to the bounds, that is not reported.
FEASIBILITY_TOLERANCE = 1e-9

#: In the second attempt, coefficients this close to a bound, relative to the bounds, are set to it: single precision
#: rounds bounds, and a coefficient just off its bound would count as free.
BOUND_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Verification:
    """Verified properties of a solution.

    Attributes
    ----------
    violation : float
        Largest KKT violation; with several classes the maximum over all pairs. The relative gap of a linear machine.
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


def verify(X: Any, y: np.ndarray, parameters: Parameters, found: Coefficients) -> Verification:
    """Verify the solution of a library for samples with class codes 0, 1, … or targets `y`."""
    if parameters.machine in LINEAR_MACHINES:
        return verify_weights(X, y, parameters, found)
    matrix = matrix_of(X, parameters)
    if len(found.order):
        return verify_pairs(matrix, y, parameters, found)
    wanted = np.zeros(len(y))
    wanted[found.support] = found.values[0]
    problem = pose_function(matrix, y, parameters)
    solution, certificate, projected = certify_with_snapping(
        problem, as_variables(problem, wanted), parameters.tolerance
    )
    used, free = by_sample(problem, solution, len(y))
    return summary([certificate], used, free, [int(free.sum())], int(used.sum()) * len(y), projected)


def verify_weights(X: Any, y: np.ndarray, parameters: Parameters, found: Coefficients) -> Verification:
    """Verify the weights of a linear machine."""
    primal, dual = primal_of(X, y, parameters, found.values), reference_dual(X, y, parameters)
    relative = (primal - dual) / max(abs(primal), np.finfo(float).tiny)
    return Verification(relative, primal - dual, relative, primal, dual, 0, 0, [], 0, False)


def verify_pairs(matrix: SymmetricMatrix, codes: np.ndarray, p: Parameters, found: Coefficients) -> Verification:
    """Verify the coefficients of a classifier: a problem for each pair of classes."""
    in_some_pair, free_somewhere = np.zeros(len(codes), dtype=bool), np.zeros(len(codes), dtype=bool)
    certificates, free_by_pair, values, projected = [], [], 0, False
    for first, second in combinations(range(len(found.order)), 2):
        a, b = found.order[first], found.order[second]
        samples = np.flatnonzero((codes == a) | (codes == b))
        signs = np.where(codes[samples] == a, found.first_sign, -found.first_sign)
        wanted = of_pair(found, codes, first, second)[samples]
        problem = pose_pair(matrix.take(samples), signs, p)
        if p.machine == "NuSVC":  # libraries divide by the half-width of the margin: restore the sum of the variables
            wanted = wanted * (np.abs(problem.total).sum() / max(np.abs(wanted).sum(), np.finfo(float).tiny))
        solution, certificate, moved = certify_with_snapping(problem, wanted, p.tolerance)
        projected |= moved
        certificates.append(certificate)
        used, free = by_sample(problem, solution, len(samples))
        in_some_pair[samples[used]] = True
        free_somewhere[samples[free]] = True
        free_by_pair.append(int(free.sum()))
        of_a = codes[samples] == a
        values += int((used & of_a).sum()) * int((~of_a).sum()) + int((used & ~of_a).sum()) * int(of_a.sum())
    # The block of a support vector with its own class counts once, in however many pairs it occurs.
    sizes = np.bincount(codes)
    values += int(sizes[codes[in_some_pair]].sum())
    return summary(certificates, in_some_pair, free_somewhere, free_by_pair, values, projected)


def summary(
    certificates: list[Certificate],
    used: np.ndarray,
    free: np.ndarray,
    free_by_pair: list[int],
    values: int,
    projected: bool,
) -> Verification:
    """Return the verified properties of the problems of all pairs."""
    gap, primal = sum(c.gap for c in certificates), sum(c.primal for c in certificates)
    return Verification(
        violation=max(c.violation for c in certificates),
        gap=gap,
        relative_gap=gap / max(abs(primal), np.finfo(float).tiny),
        primal=primal,
        dual=sum(c.dual for c in certificates),
        support=int(used.sum()),
        free=int(free.sum()),
        free_by_pair=free_by_pair,
        values=values,
        projected=projected,
    )


def matrix_of(X: Any, parameters: Parameters) -> SymmetricMatrix:
    """Return the kernel matrix of a case, which `X` is if it is precomputed."""
    if parameters.kernel == "precomputed":
        return PrecomputedMatrix(X)
    return KernelMatrix(kernel_of(parameters), Points(X), parameters.threads)


def kernel_of(parameters: Parameters) -> Kernel:
    """Return the kernel of a case."""
    return make_kernel(parameters.kernel, parameters.gamma, parameters.coef0, parameters.degree)


def pose_pair(matrix: SymmetricMatrix, signs: np.ndarray, parameters: Parameters) -> DualProblem:
    """Return the dual problem of two classes."""
    if parameters.machine == "NuSVC":
        return nu_classification.pose(matrix, signs, np.ones(len(signs)), parameters.nu)
    return c_classification.pose(matrix, signs, np.full(len(signs), parameters.C))


def pose_function(matrix: SymmetricMatrix, targets: np.ndarray, p: Parameters) -> DualProblem:
    """Return the dual problem of a regression or a one-class SVM."""
    costs = np.full(len(targets), p.C)
    if p.machine == "SVR":
        return epsilon_regression.pose(matrix, targets, costs, p.epsilon)
    if p.machine == "NuSVR":
        return nu_regression.pose(matrix, targets, costs, p.nu)
    return one_class.pose(matrix, np.ones(len(targets)), p.nu)


def as_variables(problem: DualProblem, coefficients: np.ndarray) -> np.ndarray:
    """Return the variables of a problem for the coefficients of the samples: one or, for the sides of a tube, two."""
    if problem.size == len(coefficients):
        return coefficients
    return np.concatenate([np.maximum(coefficients, 0.0), np.minimum(coefficients, 0.0)])


def by_sample(problem: DualProblem, solution: np.ndarray, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples have a non-zero variable, and which one strictly between its bounds."""
    used = solution != 0
    free = used & (solution > problem.lower) & (solution < problem.upper)
    return used.reshape(-1, samples).any(axis=0), free.reshape(-1, samples).any(axis=0)


def of_pair(found: Coefficients, codes: np.ndarray, first: int, second: int) -> np.ndarray:
    """Return the coefficients of a pair of classes by training row; 0 for rows of other classes."""
    by_row = np.zeros(len(codes))
    classes = codes[found.support]
    for place, row in ((first, second - 1), (second, first)):
        columns = np.flatnonzero(classes == found.order[place])
        by_row[found.support[columns]] = found.values[row, columns]
    return by_row


def certify_with_snapping(
    problem: DualProblem, wanted: np.ndarray, tolerance: float
) -> tuple[np.ndarray, Certificate, bool]:
    """Return a feasible point, its certificate, and whether `wanted` was infeasible.

    If the tolerance is missed, coefficients close to a bound are set to it, and the better of both points is returned.
    """
    solution, moved = feasible(problem, wanted, FEASIBILITY_TOLERANCE)
    certificate = certify(problem, solution)
    if certificate.violation <= tolerance:
        return solution, certificate, moved
    other, also_moved = feasible(problem, wanted, BOUND_TOLERANCE)
    second = certify(problem, other)
    if second.violation < certificate.violation:
        return other, second, also_moved
    return solution, certificate, moved


def feasible(problem: DualProblem, wanted: np.ndarray, nearness: float) -> tuple[np.ndarray, bool]:
    """Return variables within the box and with the required sums, and whether they changed by more than rounding.

    The free variables absorb the error of a sum first: a variable moved slightly off its bound would count as free
    and increase the violation.
    """
    lower, upper = problem.lower, problem.upper
    size = float(np.maximum(np.abs(lower), np.abs(upper)).max())
    outside = np.maximum(lower - wanted, wanted - upper).max()
    moved = bool(outside > FEASIBILITY_TOLERANCE * size)
    rounded = np.where(np.abs(wanted - lower) <= nearness * size, lower, wanted)
    rounded = np.where(np.abs(wanted - upper) <= nearness * size, upper, rounded)
    rounded = np.clip(rounded, lower, upper)
    missed = False
    for group, total in enumerate(problem.total):
        inside = problem.group == group
        allowed = FEASIBILITY_TOLERANCE * size * max(1, np.count_nonzero(wanted[inside]))
        moved |= bool(abs(wanted[inside].sum() - total) > allowed)
        free = inside & (rounded > lower) & (rounded < upper)
        error = rounded[inside].sum() - total
        if abs(error) > FEASIBILITY_TOLERANCE * size and free.any():
            rounded = np.clip(rounded - np.where(free, error / free.sum(), 0.0), lower, upper)
        missed |= bool(abs(rounded[inside].sum() - total) > allowed)
    return (feasible_start(problem, rounded), True) if missed else (rounded, moved)
