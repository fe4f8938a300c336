"""The optimum by a generic interior-point solver, and what it proves about a certificate.

The point b of clarabel is only approximately optimal and feasible. What it proves does not depend on that: D(b), with b
made feasible, is at most the optimum, and P(Σ b_i Φ(x_i), ρ) is at least the optimum, for any ρ. Both are evaluated
exactly by `exact_values`. A claimed upper bound below that D, or a claimed lower bound above that P, is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.kernels import Polynomial, Product, Scaled, Sigmoid, Sum
from maxmargin.problems import DualProblem
from maxmargin.testing.quadratic_program import solve_quadratic_program

from .arithmetic import MULTIPLE
from .exact_values import evaluate
from .recorder import CertifiedPoint

#: The largest problem that is solved a second time.
MAX_VARIABLES = 80

#: Steps of the golden section search for an offset.
OFFSET_STEPS = 80


def check_optimum(point: CertifiedPoint) -> Iterator[str]:
    """Yield a sentence if the optimum lies outside the interval of the certificate."""
    problem = point.problem
    if problem.size > MAX_VARIABLES or point.l1_penalty or not _ordinary(problem):
        return
    value, dual = solve_quadratic_program(problem)
    lower, upper = point.certificate.dual, point.certificate.primal
    if not np.isfinite(dual).all() or lower <= value <= upper:
        return
    slack = problem.linear - problem.matrix.matvec(dual)
    offset = np.array([_best_offset(problem, slack, problem.group == g, g) for g in range(problem.groups)])
    other = replace(point, dual=dual, weights=None, certificate=replace(point.certificate, offset=offset))
    try:
        exact = evaluate(other, MULTIPLE)
    except ValueError:  # the point is too far from feasible
        return
    if exact.dual - _infeasibility(problem, dual, slack) > upper:
        yield f"the optimum is at least {float(exact.dual)!r}, above the claimed upper bound {upper!r}"
    if exact.primal < lower:
        yield f"the optimum is at most {float(exact.primal)!r}, below the claimed lower bound {lower!r}"


def _infeasibility(problem: DualProblem, dual: np.ndarray, slack: np.ndarray) -> float:
    """Return a bound on how far D(b) may exceed the optimum because the sums of b are rounded: Σ |ρ| |Σ b − total|."""
    largest = float(np.abs(slack).max(initial=0.0)) + 1.0
    sums = [math.fsum([*dual[problem.group == g].tolist(), -float(problem.total[g])]) for g in range(problem.groups)]
    return 2.0 * largest * sum(map(abs, sums))


def _best_offset(problem: DualProblem, slack: np.ndarray, members: np.ndarray, group: int) -> float:
    """Return about the offset of least loss of a group."""
    z, lower, upper = slack[members], problem.lower[members], problem.upper[members]
    ridge, total = problem.ridge[members], problem.total[group]

    def loss(rho: float) -> float:
        if (ridge > 0).all():
            beta = np.clip((z - rho) / ridge, lower, upper)
            return float((beta * (z - rho - 0.5 * ridge * beta)).sum() + rho * total)
        return float(np.maximum(upper * (z - rho), lower * (z - rho)).sum() + rho * total)

    low, high = float(z.min()) - 1.0, float(z.max()) + 1.0
    golden = (np.sqrt(5.0) - 1) / 2
    for _ in range(OFFSET_STEPS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return 0.5 * (low + high)


def _ordinary(problem: DualProblem) -> bool:
    """Whether a problem is within what the generic solver handles: moderate numbers, a semi-definite matrix."""
    if _may_be_indefinite(_kernel(problem.matrix)):
        return False
    everything = np.arange(problem.size)
    matrix = problem.matrix.block(everything, everything)
    bounds = np.concatenate([problem.lower, problem.upper])
    largest = max(np.abs(np.concatenate([matrix.ravel(), problem.linear, problem.ridge])).max(initial=0.0), 0.0)
    bounded = bool(np.isfinite(bounds).all() or (problem.ridge > 0).all())
    if not (bounded and largest < 1e6 and np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0) < 1e6):
        return False
    eigenvalues = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    return bool(eigenvalues[0] > -1e-12 * max(eigenvalues[-1], 1e-300))


def _kernel(matrix: Any) -> Any:
    """Return the kernel whose values a matrix has; None for a precomputed one."""
    while matrix is not None and not hasattr(matrix, "kernel"):
        matrix = getattr(matrix, "origin", None) or getattr(matrix, "base", None)
    return getattr(matrix, "kernel", None)


def _may_be_indefinite(kernel: Any) -> bool:
    """Whether exact values of a kernel may have negative eigenvalues, however small: then nothing is proved."""
    if isinstance(kernel, Sum | Product):
        return _may_be_indefinite(kernel.first) or _may_be_indefinite(kernel.second)
    if isinstance(kernel, Scaled):
        return _may_be_indefinite(kernel.kernel)
    return isinstance(kernel, Sigmoid) or (isinstance(kernel, Polynomial) and kernel.coef0 < 0)
