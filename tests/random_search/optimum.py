"""The optimum by a generic interior-point solver, and what it proves about a certificate.

The point that clarabel returns is only approximately optimal and feasible. What it proves does not depend on that: its
dual value, made feasible and evaluated exactly, is a lower bound of the optimum, so a claimed upper bound below it is
wrong. And where clarabel says that it solved a problem of ordinary scale, the claimed lower bound must not exceed its
value by more than its own tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from reference.quadratic_program import solve_quadratic_program

from .arithmetic import MULTIPLE
from .recorder import CertifiedPoint
from .referee import claimed_bounds, evaluate

#: The largest problem that is solved a second time.
MAX_VARIABLES = 80

#: How precise the value of clarabel is taken to be, relative to the size of the terms of the objective.
REFERENCE_TOLERANCE = 1e-5


def check_optimum(point: CertifiedPoint) -> Iterator[str]:
    """Yield a sentence if the optimum lies outside the interval of the certificate."""
    problem = point.problem
    if problem.size > MAX_VARIABLES or point.l1_penalty or not _ordinary(point):
        return
    value, dual = solve_quadratic_program(problem)
    if not (np.isfinite(value) and np.isfinite(dual).all()):
        return
    lower, upper = claimed_bounds(point.certificate)
    scale = abs(float(problem.linear @ dual)) + abs(value) + 1e-300
    if value - upper > REFERENCE_TOLERANCE * scale:
        # Confirmed by the exact value at clarabel's point before anything is said.
        try:
            exact = float(evaluate(replace(point, dual=dual, weights=None), MULTIPLE).dual)
        except ValueError:
            return
        if exact > upper:
            yield f"the optimum is at least {exact!r} (a feasible point of clarabel), above the claimed {upper!r}"
    if lower - value > REFERENCE_TOLERANCE * scale and _feasible(point, dual):
        yield f"clarabel finds the optimum {value!r}, below the claimed lower bound {lower!r}"


def _ordinary(point: CertifiedPoint) -> bool:
    """Whether a problem is within what the generic solver handles: moderate numbers, a semi-definite matrix."""
    problem = point.problem
    everything = np.arange(problem.size)
    matrix = problem.matrix.block(everything, everything)
    numbers = np.abs(np.concatenate([matrix.ravel(), problem.linear, problem.ridge]))
    finite = np.concatenate([problem.lower, problem.upper])
    finite = np.abs(finite[np.isfinite(finite)])
    within = (
        numbers.max(initial=0.0) < 1e4
        and finite.max(initial=0.0) < 1e5
        and numbers[numbers > 0].min(initial=1.0) > 1e-12
    )
    bounded = bool(np.isfinite(problem.lower).all() and np.isfinite(problem.upper).all()) or bool(
        (problem.ridge > 0).all()
    )
    if not (within and bounded and np.isfinite(matrix).all()):
        return False
    eigenvalues = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    return bool(eigenvalues[0] > -1e-12 * max(eigenvalues[-1], 1e-300))


def _feasible(point: CertifiedPoint, dual: np.ndarray) -> bool:
    """Whether the generic solver ended at a feasible point."""
    problem = point.problem
    width = 1.0 + float(np.abs(dual).max(initial=0.0))
    inside = (dual >= problem.lower - 1e-7 * width).all() and (dual <= problem.upper + 1e-7 * width).all()
    return bool(inside and (np.abs(problem.group_sums(dual) - problem.total) <= 1e-7 * width * problem.size).all())
