"""The arrays of a pairwise solver in working order, and the native loop that moves them.

The first `active` positions take part; shrinking moves the others behind them. All arrays are permuted together
with the cached rows, so that the loop runs over contiguous memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import squared_radius
from maxmargin.matrices import CachedMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem


class Outcome(NamedTuple):
    """What a stretch of the native loop did."""

    reason: StopReason
    steps: int
    violation: float


class WorkingState:
    """Dual, gradient, box and cached rows in working order."""

    accuracy = 1e-11  # of the matrix: duplicates make its equations singular

    def __init__(self, problem: DualProblem, dual: Floats, cache_bytes: int, keep_bounded_part: bool) -> None:
        n = problem.size
        self._problem = problem
        self.size = n
        self.active = n
        self.rows = CachedMatrix(problem.matrix, cache_bytes)
        self.groups = problem.groups
        self.singles = problem.singles
        self.bounded, self.has_limit = problem.bounded, problem.has_limit
        self.linear = problem.linear.copy()
        self.lower = problem.lower.copy()
        self.upper = problem.upper.copy()
        self.ridge = problem.ridge.copy()
        self.group = problem.group.copy()
        self.curvature = problem.curvature
        self.dual = dual.copy()
        self.bounded_part = np.zeros(n if keep_bounded_part else 0)
        self.gradient = self._first_gradient(problem)
        self.dual_value = 0.5 * inner(self.dual, self.linear + self.gradient)
        self.iterations = 0
        self.violation = np.inf
        self._radius: float | None = None
        self._before_reorder: tuple[Floats, Floats] | None = None
        self._memory = np.full(4, -1)  # the previous and the pending pair of the selection rule

    @property
    def order(self) -> Indices:
        """The original index of the variable at each position."""
        return self.rows.order

    def steps(self, rule: int, tolerance: float, max_steps: int, max_seconds: float) -> Outcome:
        """Run the native loop until it is done, paused, or lacks a row; a missing row is fetched here."""
        rows = self.rows
        result = _native.pairwise_steps(
            _native.BoxProblem(
                lower=self.lower, upper=self.upper, ridge=self.ridge, group=self.group, groups=self.groups
            ),
            _native.PairwiseState(
                dual=self.dual,
                gradient=self.gradient,
                diagonal=self.curvature,
                active=self.active,
                bounded_product=self.bounded_part,
            ),
            _native.CachedRows(
                storage=rows.storage, slot=rows.slot, valid=rows.length, last_use=rows.last_use, clock=rows.clock
            ),
            _native.PairSelection(rule=rule, memory=self._memory, violation=self.violation),
            _native.StepLimits(tolerance=tolerance, max_steps=max_steps, max_seconds=max_seconds),
        )
        rows.clock = result.clock
        rows.requests += result.requests
        self.iterations += result.steps
        self.dual_value += result.gain
        self.violation = result.violation
        if result.reason == StopReason.NEEDS_ROW:
            row = result.row
            company = rows.slot[row] < 0 and min(rows.spare, rows.rows_per_request) > 1
            rows.fetch(row, result.row_length, self._likely_next() if company else None)
        return Outcome(StopReason(result.reason), result.steps, result.violation)

    def reorder(self, permutation: Indices, active: int) -> None:
        """Rearrange the leading positions and set how many take part."""
        count = len(permutation)
        # Ctrl-C may strike between any two of these lines; until all are done, `point` answers from this.
        self._before_reorder = self.point()
        for array in (self.dual, self.gradient, self.linear, self.lower, self.upper, self.ridge, self.group):
            array[:count] = array[permutation]
        self.curvature[:count] = self.curvature[permutation]
        if len(self.bounded_part):
            self.bounded_part[:count] = self.bounded_part[permutation]
        self.rows.reorder(permutation)
        self.active = active
        self._memory[:] = -1
        self._before_reorder = None

    def point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient in the order of the problem.

        The gradient of shrunk variables is not known; it is infinite, on the side where it does not count.
        """
        if self._before_reorder is not None:
            return self._before_reorder
        dual, gradient = np.empty_like(self.dual), np.empty_like(self.gradient)
        dual[self.order], gradient[self.order] = self.dual, self.gradient
        shrunk = self.order[self.active :]
        gradient[shrunk] = np.where(self.dual[self.active :] == self.upper[self.active :], np.inf, -np.inf)
        return dual, gradient

    def whole_point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient with that of shrunk variables, for those who watch: it does not count as work."""
        dual, gradient = self.point()
        if self.active < self.size:
            evaluations = self.rows.evaluations
            gradient[self.order[self.active :]] = self._shrunk_gradient()
            self.rows.evaluations = evaluations
        return dual, gradient

    def radius(self) -> float:
        """Return the squared size of the data in feature space."""
        if self._radius is None:
            self._radius = squared_radius(self._problem)
        return self._radius

    def resting(self) -> Floats:
        """Return the dual where a variable rests on a bound, else 0: what `bounded_part` sums up."""
        return np.where((self.dual == self.lower) | (self.dual == self.upper), self.dual, 0.0)

    def reconstruct_gradient(self) -> None:
        """Bring the gradient of shrunk variables up to date (1.7.3)."""
        if self.active < self.size:
            self.gradient[self.active :] = self._shrunk_gradient()

    def _shrunk_gradient(self) -> Floats:
        """Return the gradient of shrunk variables.

        Bounded variables are in `bounded_part` already, so only the rows of free variables are needed; shrinking
        never removes those, and most are in the cache.
        """
        start = self.active
        free = np.flatnonzero(self.dual - self.resting())
        product = self.bounded_part[start:] + self._product(free, self.dual[free], start)
        return np.asarray(self.linear[start:] - product - self.ridge[start:] * self.dual[start:])

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at these positions, from the cache where it can."""
        if self.rows.cached_in_full(positions).all():
            return self.rows.storage[self.rows.slot[positions][:, None], positions]
        return self.rows.block(positions, positions).copy()  # a function's own array is not ours to change

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and bring the whole gradient up to date."""
        product = self._product(positions, change, 0)
        product[positions] += self.ridge[positions] * change
        rested = self.resting()[positions]
        self.dual[positions], self.gradient = values, self.gradient - product
        if len(self.bounded_part):
            came_to_rest = self.resting()[positions] - rested
            moved = came_to_rest != 0
            self.bounded_part += self._product(positions[moved], came_to_rest[moved], 0)
        self._memory[:] = -1
        self.dual_value = 0.5 * inner(self.dual, self.linear + self.gradient)

    def _product(self, columns: Indices, weights: Floats, start: int) -> Floats:
        """Return M[start:, columns] @ weights.

        Rows come from the cache where they are whole and are computed where not; either way the sums are added up in
        the same order, so that the result does not depend on the size of the cache.
        """
        product = np.zeros(self.size - start)
        step = max(1, 2**16 // self.size)
        tail = np.arange(start, self.size)
        for first in range(0, len(columns), step):
            part = columns[first : first + step]
            whole = self.rows.cached_in_full(part)
            panel = self.rows.storage[np.where(whole, self.rows.slot[part], 0), start:]
            if not whole.all():
                panel[~whole] = self.rows.block(part[~whole], tail)
            product += weights[first : first + step] @ panel
        return product

    def _likely_next(self) -> Indices:
        """Return the active variables that violate optimality most: their rows will be asked for soon."""
        if self.rows.rows_per_request >= self.active:
            return np.arange(self.active)
        part = slice(0, self.active)
        gradient, dual = self.gradient[part], self.dual[part]
        half = min(self.active, self.rows.rows_per_request // 2 + 1)
        up = np.where(dual < self.upper[part], -gradient, np.inf)
        down = np.where(dual > self.lower[part], gradient, np.inf)
        ends = [np.argpartition(score, half - 1)[:half] for score in (up, down)]
        return np.unique(np.concatenate(ends))

    def _first_gradient(self, problem: DualProblem) -> Floats:
        gradient = self.linear - self.ridge * self.dual
        if not self.dual.any():
            return gradient
        if not len(self.bounded_part):
            self.rows.evaluations += self.size * int(np.count_nonzero(self.dual))
            return gradient - problem.matrix.matvec(self.dual)
        resting = self.resting()
        self.rows.evaluations += self.size * int(np.count_nonzero(self.dual))
        self.bounded_part[:] = problem.matrix.matvec(resting)
        return gradient - self.bounded_part - problem.matrix.matvec(self.dual - resting)
