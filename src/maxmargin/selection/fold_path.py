"""The problems of a fold along a path of parameters, each started from the solution before, in native code.

From one value of C to the next all bounds grow by the same factor, and so does the start: its gradient is known
without a row of the matrix, and bounded support vectors, most of the variables that change, are right at once. What is
left, the free variables, are mostly solved by their linear equations (`native/fold_path.hpp`).
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.problems import DualProblem, feasible_start
from maxmargin.selection.fold_problems import Subproblem
from maxmargin.training.problem_scale import ProblemScale

#: Values that a row or an array may be longer than its samples, for vectors.
PADDING = 15

#: Memory of a thread for copies of rows in single precision: those of 2,000 variables fit.
MAX_COPIED_VALUES = 2**22

#: The most free variables whose linear equations are solved, which takes three times their square in float64.
MAX_FREE = 2048

#: Pair steps after which a problem is left to an independent fit.
MAX_STEPS = 20_000_000

#: The relative rounding errors of decision values, a few units in the last place.
ROUNDING = 16 * float(np.finfo(np.float64).eps)

#: The relative difference of totals that is due to rounding.
TOTAL_TOLERANCE = 1e-12


class PathValues(NamedTuple):
    """The solution of a problem of a path.

    Attributes
    ----------
    values : float array
        The decision values of the held-out samples.
    error : float
        The approximate rounding error of these values.
    solved : bool
    dual : float array
    """

    values: Floats
    error: float
    solved: bool
    dual: Floats


def can_solve(problem: DualProblem) -> bool:
    """Whether the native solver takes a problem: rows of one array in memory, a finite maximum, ordinary numbers."""
    return problem.matrix.stored() is not None and problem.coercive and ProblemScale.of(problem) is None


class PathMemory(threading.local):
    """The memory of each thread for problems that it solves: new memory takes as long as a small problem."""

    def __init__(self) -> None:
        self._variables = 0
        self._memory: _native.FoldMemory | None = None

    def of(self, variables: int) -> _native.FoldMemory:
        """Return memory for a problem of so many variables."""
        if self._memory is None or variables > self._variables:
            values = max(min(variables * (variables + PADDING), MAX_COPIED_VALUES), 3 * (variables + PADDING)) + PADDING
            free = min(MAX_FREE, variables)
            equations = np.empty(_native.doubles_of_free_equations(free))
            self._memory = _native.FoldMemory(values=np.empty(values, dtype=np.float32), free=equations, max_free=free)
            self._variables = variables
        return self._memory


class FoldPath:
    """Problems that differ in their bounds, ridges and kinks, solved in order.

    Parameters
    ----------
    held_out : int array
        Rows of the matrix of the samples whose decision values are wanted.
    tolerance : float
    memory : PathMemory
    cancelled : int array of one number
        Another thread may set it to 1; the values are then undefined.
    """

    def __init__(self, held_out: Indices, tolerance: float, memory: PathMemory, cancelled: np.ndarray) -> None:
        self._held_out = np.ascontiguousarray(held_out, dtype=np.int64)
        self._products = np.zeros(len(self._held_out))
        self._memory = memory
        self._limits = _native.StepLimits(tolerance=tolerance, max_steps=MAX_STEPS, max_seconds=np.inf)
        self._cancelled = cancelled
        self._before: DualProblem | None = None
        self._dual = self._gradient = np.empty(0)

    def solve(self, subproblem: Subproblem) -> PathValues:
        """Solve the next problem."""
        problem = subproblem.problem
        stored = problem.matrix.stored()
        assert stored is not None
        matrix, rows = stored
        size = problem.size
        arguments = _native.FoldProblem(
            columns=np.arange(size) if rows is None else np.ascontiguousarray(rows, dtype=np.int64),
            linear=problem.linear,
            group=problem.group,
            groups=problem.groups,
            lower=problem.lower,
            upper=problem.upper,
            ridge=problem.ridge,
            kink=problem.kink if problem.kinked else np.empty(0),
            outside=self._held_out,
        )
        offsets, outcome = np.zeros(problem.groups), np.full(4, -1, dtype=np.int64)
        results = _native.FoldResults(offsets=offsets, outside=self._products, outcome=outcome)
        memory = self._memory.of(size)
        _native.solve_fold_problem(
            matrix, arguments, self._start(problem), results, self._limits, memory, self._cancelled
        )
        self._before = problem
        values, scale = _values(subproblem, self._products, offsets)
        # Without an offset, values of far samples are sums of tiny terms, and their errors as tiny.
        largest = float(np.abs(problem.matrix.diagonal()).max()) * float(np.abs(self._dual).sum())
        error = ROUNDING * abs(scale) * (1.0 + largest) if problem.groups else 0.0
        return PathValues(values, error, bool(outcome[0] == int(StopReason.OPTIMAL)), self._dual)

    def _start(self, problem: DualProblem) -> _native.FoldStart:
        """Return the start: the solution of the problem before, or a feasible point."""
        before, self._before = self._before, None
        factor = 0.0 if before is None else _factor(before, problem)
        known = np.empty((0, problem.size))
        if before is not None and factor != 0.0:
            known = np.array([before.lower, before.upper, before.ridge])
        else:
            self._dual = np.zeros(problem.size) if problem.zero_is_feasible else feasible_start(problem)
            self._gradient = np.empty(problem.size)
        must_scale = before is not None and not np.array_equal(before.total, problem.total)
        return _native.FoldStart(
            dual=self._dual, gradient=self._gradient, before=known, factor=factor, must_scale=must_scale
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
