"""The problems of a fold along a path of parameters, each started from the solution before, in one native call.

From one value of C to the next all bounds grow by the same factor, and so does the start: its gradient is known
without a row of the matrix, and bounded support vectors, most of the variables that change, are right at once. What is
left, the free variables, are mostly solved by their linear equations (`native/fold_path.hpp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.problems import DualProblem, feasible_start
from maxmargin.selection.fold_problems import Subproblem
from maxmargin.training.problem_scale import ProblemScale

#: Memory of a thread for copies of rows in single precision: those of 2,000 variables fit.
MAX_COPIED_VALUES = 2**22

#: The most free variables whose linear equations are solved, which takes twice their square in float64.
MAX_FREE = 2048

#: Pair steps after which a problem is left to an independent fit.
MAX_STEPS = 20_000_000

#: The relative rounding errors of decision values, a few units in the last place.
ROUNDING = 16 * float(np.finfo(np.float64).eps)

#: The relative difference of totals that is due to rounding.
TOTAL_TOLERANCE = 1e-12


class PathValues(NamedTuple):
    """The solutions of the problems of a path.

    Attributes
    ----------
    values : float array
        The decision values of the held-out samples, a row for each problem.
    errors : float array
        The approximate rounding errors of the values of each problem.
    solved : bool array
    dual : float array
        A row for each problem.
    """

    values: Floats
    errors: Floats
    solved: np.ndarray
    dual: Floats


def can_solve(problem: DualProblem) -> bool:
    """Whether the native solver takes a problem: rows of one array in memory, a finite maximum, ordinary numbers."""
    return problem.matrix.stored() is not None and problem.coercive and ProblemScale.of(problem) is None


def solve_path(path: Sequence[Subproblem], held_out: Indices, tolerance: float, cancelled: np.ndarray) -> PathValues:
    """Solve problems that differ in their bounds, ridges and kinks, in order.

    `held_out` are rows of the matrix. Another thread may set ``cancelled[0]`` to 1; the values are then undefined.
    """
    problems = [subproblem.problem for subproblem in path]
    first, count, size = problems[0], len(path), problems[0].size
    stored = first.matrix.stored()
    assert stored is not None
    matrix, rows = stored
    factors = np.array([0.0, *map(_factor, problems, problems[1:])])
    starts = np.zeros((count, size))
    for position in np.flatnonzero(factors == 0.0):
        if not problems[position].zero_is_feasible:
            starts[position] = feasible_start(problems[position])
    kinks = [problem.kink for problem in problems] if first.kinked else np.empty((0, size))
    arguments = _native.FoldPathProblems(
        columns=np.arange(size) if rows is None else np.ascontiguousarray(rows, dtype=np.int64),
        linear=first.linear,
        group=first.group,
        groups=first.groups,
        lower=np.array([problem.lower for problem in problems]),
        upper=np.array([problem.upper for problem in problems]),
        ridge=np.array([problem.ridge for problem in problems]),
        kink=np.array(kinks),
        factor=factors,
        start=starts,
        outside=np.ascontiguousarray(held_out, dtype=np.int64),
    )
    offsets, outcomes = np.zeros((count, first.groups)), np.full((count, 4), -1, dtype=np.int64)
    products = np.zeros((count, len(held_out)))
    dual = np.zeros((count, size))
    results = _native.FoldPathResults(dual=dual, offsets=offsets, outside=products, outcomes=outcomes)
    limits = _native.StepLimits(tolerance=tolerance, max_steps=MAX_STEPS, max_seconds=np.inf)
    copied = max(min(size**2, MAX_COPIED_VALUES), 3 * size)
    _native.solve_fold_path(matrix, arguments, results, limits, copied, min(MAX_FREE, size), cancelled)
    largest = np.abs(first.matrix.diagonal()).max()
    found = [_values(*each) for each in zip(path, products, offsets, strict=True)]
    scales = np.array([abs(scale) for _, scale in found])
    # Without an offset, values of far samples are sums of tiny terms, and their errors as tiny.
    errors = ROUNDING * scales * (1.0 + largest * np.abs(dual).sum(axis=1)) if first.groups else np.zeros(count)
    return PathValues(
        np.array([values for values, _ in found]), errors, outcomes[:, 0] == int(StopReason.OPTIMAL), dual
    )


def _factor(before: DualProblem, after: DualProblem) -> float:
    """Return the number by which a solution is multiplied to start the next problem; 0: there is none."""
    if not before.bounded:
        return 1.0 if np.array_equal(before.total, after.total) else 0.0
    largest = np.abs(before.lower).max(), before.upper.max()
    side = int(largest[1] > largest[0])
    wider = (np.abs(after.lower).max(), after.upper.max())[side]
    factor = float(wider / largest[side]) if largest[side] > 0 else 0.0
    scaled = factor * before.total
    same = np.abs(scaled - after.total) <= TOTAL_TOLERANCE * np.abs(after.total)
    return factor if same.all() and np.isfinite(factor) else 0.0


def _values(subproblem: Subproblem, products: Floats, offset: Floats) -> tuple[Floats, float]:
    """Return the values of the decision function, given Σ b_i k(x_i, x), and its scale."""
    problem, formulation = subproblem
    unit = np.zeros(problem.size)
    unit[0] = 1.0
    expansion = formulation.expand(problem, unit, offset)  # in proportion to the dual vector
    scale = float(expansion.coefficients[0])
    return np.asarray(scale * products + expansion.offset), scale
