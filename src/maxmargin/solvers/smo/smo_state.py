"""The arrays of the pairwise solver in working order, the calls of the native loop on them, and shrinking.

The first `active` positions take part in the steps; shrinking moves the others behind them. All arrays are permuted
together with the cached rows, so that the native loop runs over contiguous memory.

Shrinking (Bottou & Lin 1.7.3) leaves out variables that are expected to stay at their bounds: a variable at its upper
bound whose gradient exceeds every gradient that can increase, or at its lower bound with one below every gradient that
can decrease, cannot be selected; nor can one at a kink, by both of its slopes. Their gradients are not updated; nothing
is called optimal before the gradient of all variables has been reconstructed and checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import can_be_selected
from maxmargin.matrices import CachedMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem, Progress
from maxmargin.problems.kinks import is_free, slopes
from maxmargin.solvers.monitor import Monitor

#: Codes of the working-set selection rules in native/working_set.hpp. Each rule selects the next pair and returns the
#: violation of the optimality criterion (Bottou & Lin 1.7.1, 1.7.2):
#: most_violating_pair   both ends of the violation (1.25); needs no kernel row, but the steps are often short
#: second_order          one end, and the partner of the largest gain without the box (1.27); the default
#: maximum_gain          a variable of the previous pair, whose rows are cached, and the partner of the largest gain
#:                       within the box; second order if the previous pair is at its bounds (Glasmachers & Igel 2006)
SELECTION_RULES: dict[str, int] = {"most_violating_pair": 0, "second_order": 1, "maximum_gain": 2}

#: Values of the matrix that are gathered at a time for a product with a few columns.
PANEL_VALUES = 2**16


def selection_code(name: str) -> int:
    """Return the native code of a selection rule; an unknown name is an error that lists the rules."""
    if not isinstance(name, str) or name not in SELECTION_RULES:
        names = ", ".join(repr(rule) for rule in SELECTION_RULES)
        raise ValueError(f"unknown selection {name!r}; the rules are {names}")
    return SELECTION_RULES[name]


class LoopResult(NamedTuple):
    """The result of one call of the native loop."""

    reason: StopReason
    steps: int
    violation: float


class SmoState:
    """Dual, gradient, box and cached rows in working order.

    Parameters
    ----------
    problem : DualProblem
    dual : float array
        A feasible starting point.
    cache_bytes : int
        Memory for rows of the matrix.
    keep_bounded_part : bool
        Whether to maintain M b of the variables at bounds, which makes the reconstruction of the gradient after
        shrinking cheap.
    """

    accuracy = 1e-11  # relative, of the matrix: duplicate samples make the equations of the free variables singular

    def __init__(self, problem: DualProblem, dual: Floats, cache_bytes: int, keep_bounded_part: bool) -> None:
        n = problem.size
        self.size = n
        self.active = n
        self.rows = CachedMatrix(problem.matrix, cache_bytes)
        self.groups = problem.groups
        self.bounded = problem.bounded
        self.linear = problem.linear.copy()
        self.lower = problem.lower.copy()
        self.upper = problem.upper.copy()
        self.ridge = problem.ridge.copy()
        self.kink = problem.kinks.copy()
        self.group = problem.group.copy()
        self.curvature = problem.curvature
        self.dual = dual.copy()
        self.bounded_part = np.zeros(n if keep_bounded_part else 0)
        self.gradient = self._initial_gradient(problem)
        self.dual_value = self._value()
        self.iterations = 0
        self.violation = np.inf
        self._before_reorder: tuple[Floats, Floats] | None = None
        self._memory = np.full(4, -1)  # the previous and the pending pair of the selection rule

    @property
    def order(self) -> Indices:
        """The original index of the variable at each position."""
        return self.rows.order

    # ---- steps ----------------------------------------------------------------------------------------------------

    def run_until(
        self,
        iterations: int,
        rule: int,
        tolerance: float,
        monitor: Monitor,
        progress: Callable[[], Progress] | None = None,
    ) -> StopReason:
        """Take pair steps up to a total number of iterations; return PAUSED there, or why the steps ended before.

        The native loop returns for missing rows, after a time slice and for entries of a trace. None of these affect
        the steps: the state at the given number of iterations is the same however often the loop returned on the way.
        With `progress`, limits and callback are checked in between, which may raise `SolverStoppedError`.
        """
        while True:
            left = iterations - self.iterations
            steps = left if progress is None else monitor.next_steps(self.iterations, left)
            result = self.steps(rule, tolerance, steps, monitor.time_slice())
            if result.reason not in (StopReason.PAUSED, StopReason.NEEDS_ROW):
                return result.reason
            if left == 0:  # this call took no step: it selected a pair, so that the violation is up to date
                return StopReason.PAUSED
            if progress is not None:
                monitor.check(progress, self.iterations)

    def steps(self, rule: int, tolerance: float, max_steps: int, max_seconds: float) -> LoopResult:
        """Call the native loop once; a row that it misses is computed here."""
        rows = self.rows
        result = _native.pairwise_steps(
            _native.BoxProblem(
                lower=self.lower,
                upper=self.upper,
                ridge=self.ridge,
                kink=self.kink,
                group=self.group,
                groups=self.groups,
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
            prefetch = rows.slot[result.row] < 0 and min(rows.spare, rows.rows_per_request) > 1
            rows.fetch(result.row, result.row_length, self._likely_next() if prefetch else None)
        return LoopResult(StopReason(result.reason), result.steps, result.violation)

    def free(self) -> Indices:
        """Return the positions of the variables strictly between their bounds, not at a kink."""
        return np.flatnonzero(is_free(self.dual, self.lower, self.upper, self.kink))

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at these positions as a new array, from the cache where possible."""
        if self.rows.cached_in_full(positions).all():
            return self.rows.storage[self.rows.slot[positions][:, None], positions]
        return self.rows.block(positions, positions).copy()  # a kernel function may return an array that it keeps

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and update the gradient of all."""
        product = self._product(positions, change, 0)
        product[positions] += self.ridge[positions] * change
        before = self.at_bounds()[positions]
        self.dual[positions], self.gradient = values, self.gradient - product
        if len(self.bounded_part):
            reached = self.at_bounds()[positions] - before
            changed = reached != 0
            self.bounded_part += self._product(positions[changed], reached[changed], 0)
        self._memory[:] = -1
        self.dual_value = self._value()

    # ---- shrinking ------------------------------------------------------------------------------------------------

    def shrink(self) -> None:
        """Remove the active variables that cannot be selected."""
        keep = can_be_selected(self)
        if keep.all():
            return
        kept = int(keep.sum())
        # Swap the ones to remove with the ones to keep: only what must move is moved.
        permutation = np.arange(len(keep))
        removed = np.flatnonzero(~keep[:kept])
        fillers = kept + np.flatnonzero(keep[kept:])
        permutation[removed], permutation[fillers] = fillers, removed
        self.reorder(permutation, kept)

    def unshrink(self) -> None:
        """Make every variable active again, with its gradient up to date."""
        if self.active < self.size:
            self.gradient[self.active :] = self._shrunk_gradient()
        self.active = self.size

    def reshrink(self) -> None:
        """Reconstruct the gradient of all variables and decide for all of them which can be selected."""
        self.unshrink()
        keep = can_be_selected(self)
        # Keep the order of what was active: rows that were computed for it stay valid.
        permutation: Indices = np.concatenate([np.flatnonzero(keep), np.flatnonzero(~keep)])
        self.reorder(permutation, int(keep.sum()))

    def reorder(self, permutation: Indices, active: int) -> None:
        """Permute the leading positions and set how many are active."""
        count = len(permutation)
        # Ctrl-C may interrupt between any two of these lines; until all are done, `point` answers from this copy.
        self._before_reorder = self.point()
        for array in (self.dual, self.gradient, self.linear, self.lower, self.upper, self.ridge, self.group):
            array[:count] = array[permutation]
        self.curvature[:count] = self.curvature[permutation]
        if len(self.kink):
            self.kink[:count] = self.kink[permutation]
        if len(self.bounded_part):
            self.bounded_part[:count] = self.bounded_part[permutation]
        self.rows.reorder(permutation)
        self.active = active
        self._memory[:] = -1
        self._before_reorder = None

    # ---- copies of the point --------------------------------------------------------------------------------------

    def point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient in the order of the problem.

        The gradient of a shrunk variable is unknown: infinite, on the side where it does not affect the criterion.
        """
        if self._before_reorder is not None:
            return self._before_reorder
        dual, gradient = np.empty_like(self.dual), np.empty_like(self.gradient)
        dual[self.order], gradient[self.order] = self.dual, self.gradient
        shrunk = self.order[self.active :]
        gradient[shrunk] = np.where(self.dual[self.active :] == self.upper[self.active :], np.inf, -np.inf)
        return dual, gradient

    def whole_point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient in the order of the problem, with the gradient of shrunk variables."""
        dual, gradient = self.point()
        if self.active < self.size:
            gradient[self.order[self.active :]] = self._shrunk_gradient()
        return dual, gradient

    def at_bounds(self) -> Floats:
        """Return the dual of the variables at a bound, else 0: `bounded_part` is M times this vector."""
        return np.where((self.dual == self.lower) | (self.dual == self.upper), self.dual, 0.0)

    def _shrunk_gradient(self) -> Floats:
        """Return the gradient of shrunk variables.

        Variables at bounds are in `bounded_part` already, so only the rows of free variables are needed; shrinking
        never removes those, and most of them are cached.
        """
        start = self.active
        free = np.flatnonzero(self.dual - self.at_bounds())
        product = self.bounded_part[start:] + self._product(free, self.dual[free], start)
        return np.asarray(self.linear[start:] - product - self.ridge[start:] * self.dual[start:])

    def _product(self, columns: Indices, weights: Floats, start: int) -> Floats:
        """Return M[start:, columns] @ weights.

        Rows are read from the cache where they are complete and computed otherwise. The sums are added up in the same
        order either way, so that the result does not depend on the size of the cache.
        """
        product = np.zeros(self.size - start)
        step = max(1, PANEL_VALUES // self.size)
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
        """Return the active variables that violate optimality most: their rows will be needed soon."""
        if self.rows.rows_per_request >= self.active:
            return np.arange(self.active)
        part = slice(0, self.active)
        dual = self.dual[part]
        growing, falling = slopes(dual, self.gradient[part], self.kink[part])
        half = min(self.active, self.rows.rows_per_request // 2 + 1)
        up = np.where(dual < self.upper[part], -growing, np.inf)
        down = np.where(dual > self.lower[part], falling, np.inf)
        ends = [np.argpartition(score, half - 1)[:half] for score in (up, down)]
        return np.unique(np.concatenate(ends))

    def _value(self) -> float:
        """Return the dual objective."""
        value = 0.5 * inner(self.dual, self.linear + self.gradient)
        return value - inner(self.kink, np.abs(self.dual)) if len(self.kink) else value

    def _initial_gradient(self, problem: DualProblem) -> Floats:
        gradient = self.linear - self.ridge * self.dual
        if not self.dual.any():
            return gradient
        self.rows.evaluations += self.size * int(np.count_nonzero(self.dual))
        with np.errstate(invalid="ignore", over="ignore"):  # a product that overflows is reported by the verification
            if not len(self.bounded_part):
                return gradient - problem.matrix.matvec(self.dual)
            at_bounds = self.at_bounds()
            self.bounded_part[:] = problem.matrix.matvec(at_bounds)
            return gradient - self.bounded_part - problem.matrix.matvec(self.dual - at_bounds)
