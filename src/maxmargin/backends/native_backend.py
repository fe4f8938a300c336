"""The native CPU backend: fused kernel values in float32, rows stored within a budget, compiled pair steps."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends import free_equations
from maxmargin.backends.host_state import HostState
from maxmargin.backends.host_subproblem import HostSubproblem
from maxmargin.backends.interface import BlockTuning, BoundStart, StopReason
from maxmargin.backends.optimality import can_be_selected, kkt_violations
from maxmargin.backends.selection import place_at_bounds
from maxmargin.matrices import NON_FINITE_MESSAGE, Float32RowCache, make_row_cache
from maxmargin.matrices.float32_row_cache import MAX_COST_OF_RECOMPUTING
from maxmargin.problems import DualProblem

#: A problem of up to so many variables is solved as one subproblem.
MAX_WHOLE_SIZE = 3000

#: The size of the first working set, beside free variables; the smaller one where kernel values are expensive.
FIRST_SIZE, FIRST_SIZE_EXPENSIVE = 1024, 512

#: The same for cheap kernel values where support vectors are few, and where they are many. Of up to so many variables,
#: all are the first working set.
MIN_FIRST_SIZE, MAX_FIRST_SIZE, MAX_FIRST_WHOLE_SIZE = 256, 4096, 2000

#: Pair steps between two checks of limits, shrinking and the equations of the free variables.
STEPS_PER_CHECK = 500

#: A missing row is computed together with up to so many others, of variables whose violation is at least this fraction
#: of the largest: they will be needed soon, and a request for many rows is cheaper by row.
ROWS_PER_REQUEST, MIN_VIOLATION_FRACTION = 64, 0.5

#: Code of second-order selection in `native/working_set.hpp`.
SECOND_ORDER = 1


def first_sizes(size: int, cost: int) -> tuple[int, int, int]:
    """Return the size of the first working set, its minimum and its maximum, for kernel values of this cost."""
    if cost > MAX_COST_OF_RECOMPUTING:
        return FIRST_SIZE_EXPENSIVE, size if size <= MAX_FIRST_SIZE else FIRST_SIZE_EXPENSIVE, FIRST_SIZE_EXPENSIVE
    return FIRST_SIZE, size if size <= MAX_FIRST_WHOLE_SIZE else MIN_FIRST_SIZE, MAX_FIRST_SIZE


class NativeBackend:
    """Operations of the block solver on the CPU."""

    def scope(self) -> AbstractContextManager[Any]:
        """Return an empty context."""
        return nullcontext()

    def open(self, problem: DualProblem, cache_bytes: int, threads: int) -> NativeState:
        """Return the state of a problem."""
        return NativeState(problem, cache_bytes, threads)

    def start_at_bounds(self, problem: DualProblem, columns: Indices, weights: Floats) -> BoundStart:
        """Return the feasible point with each variable at the bound that its slack indicates."""
        product, computed = problem.matrix.float32_columns(columns).combine(np.arange(problem.size), weights)
        return BoundStart(place_at_bounds(problem, problem.linear - product), product, computed)


class NativeState(HostState):
    """Dual vector, gradient and float32 rows of a problem."""

    def __init__(self, problem: DualProblem, cache_bytes: int, threads: int) -> None:
        super().__init__(problem, threads)
        self.rows = make_row_cache(problem.matrix, cache_bytes, threads)
        self._workspace = np.empty(0, dtype=np.float32)  # for the square of a working set

    @property
    def tuning(self) -> BlockTuning:
        first_size, min_first_size, max_first_size = first_sizes(self.active, self.rows.cost)
        return BlockTuning(
            first_size=first_size,
            min_first_size=min_first_size,
            max_first_size=max_first_size,
            solve_whole=self.active <= MAX_WHOLE_SIZE,
            stored_rows=self.rows.capacity,
            steps_per_check=STEPS_PER_CHECK,
        )

    @property
    def kernel_evaluations(self) -> int:
        return self.evaluations + self.rows.evaluations

    def cache_counts(self) -> tuple[int, int]:
        return self.rows.hits, self.rows.misses

    def kkt_violations(self) -> tuple[Floats, Floats]:
        return kkt_violations(self)

    def product(self, columns: Indices, weights: Floats) -> Floats:
        rows = self.problem.matrix.features()
        if rows is not None:  # two passes over the data, the sums of the first in one order on any number of threads
            return rows.decisions(replace(rows.take(columns), threads=1).weights(weights))
        product, computed = self.problem.matrix.float32_columns(columns).combine(self._everything, weights)
        self.evaluations += computed
        return product

    def update_product(self, columns: Indices, weights: Floats) -> Floats:
        return self.rows.combine(columns, weights)

    def square(self, variables: Indices) -> HostSubproblem:
        variables, count = self.rows.cached_last(variables), len(variables)
        if len(self._workspace) < count**2:
            self._workspace = np.empty(count**2, dtype=np.float32)
        values = self._workspace[: count**2].reshape(count, count)
        self.rows.square(variables, values)
        return NativeSubproblem(self, variables, values)

    def precise_square(self, variables: Indices, values: Floats) -> HostSubproblem:
        return PreciseSubproblem(self, variables, values)

    def rows_subproblem(self) -> HostSubproblem:
        self.rows.hold(self.free())
        return StoredRowsSubproblem(self, self.rows)


class NativeSubproblem(HostSubproblem):
    """A subproblem on the square block of single-precision values between its variables."""

    def __init__(self, parent: Any, variables: Indices, values: NDArray[Any]) -> None:
        super().__init__(parent, variables, values)
        self._memory = np.full(4, -1)  # the previous and the pending pair of the selection rule
        self._slots = np.arange(len(variables))

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        return self._steps(self._slots, tolerance, max_steps, max_seconds)[0]

    def _steps(self, slots: Indices, tolerance: float, max_steps: int, max_seconds: float) -> tuple[StopReason, int]:
        """Take pair steps on the rows in these slots; return why they ended, and the row that was missing if any."""
        count = len(self.values)
        valid, last_use = np.full(count, self.active), np.zeros(count, dtype=np.int64)
        result = _native.pairwise_steps(
            _native.BoxProblem(
                lower=self.lower,
                upper=self.upper,
                ridge=self.ridge,
                kink=self.kink,
                group=self.group,
                groups=self.groups,
            ),
            _native.PairwiseState(dual=self.dual, gradient=self.gradient, diagonal=self.curvature, active=self.active),
            _native.CachedRows(storage=self.values, slot=slots, valid=valid, last_use=last_use, clock=0),
            _native.PairSelection(rule=SECOND_ORDER, memory=self._memory, violation=self.violation),
            _native.StepLimits(tolerance=tolerance, max_steps=max_steps, max_seconds=max_seconds, threads=self.threads),
        )
        self.violation = result.violation
        self.totals.iterations += result.steps
        self.totals.dual_value += result.gain
        if result.reason != StopReason.NEEDS_ROW and (np.isnan(self.violation) or self.violation == np.inf):
            raise ValueError(NON_FINITE_MESSAGE)
        return StopReason(result.reason), result.row

    def solve_free(self, max_work: float) -> float:
        return free_equations.solve_free(self, self.free(), max_work)

    def selectable(self) -> Indices:
        return np.flatnonzero(can_be_selected(self))

    def absorb(self, part: HostSubproblem) -> None:
        super().absorb(part)
        self._memory[:] = -1

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        super().move(positions, change, values)
        self._memory[:] = -1

    def fill_block(self, positions: Indices, out: NDArray[Any]) -> Indices:
        _native.gather(self.values, positions, positions, out, self.threads)
        return positions

    def combine(self, positions: Indices, weights: Floats) -> Floats:
        total = np.zeros(self.active)
        _native.subtract_rows(total, self.values, positions, -weights, self.active, self.threads)
        return total


class PreciseSubproblem(NativeSubproblem):
    """A subproblem on double-precision values: for the last digits, where single precision is noise."""

    accuracy = 1e-11
    precise = True

    def fill_block(self, positions: Indices, out: NDArray[Any]) -> Indices:
        out[:] = self.values[positions[:, None], positions]
        return positions

    def combine(self, positions: Indices, weights: Floats) -> Floats:
        return np.asarray(weights @ self.values[positions])


class StoredRowsSubproblem(NativeSubproblem):
    """The subproblem of all variables on stored rows: for more free variables than a square has room for."""

    has_all_values = False

    def __init__(self, parent: NativeState, rows: Float32RowCache) -> None:
        super().__init__(parent, np.arange(parent.active), rows.storage)
        self._rows = rows

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps; a missing row is computed together with others that will be needed soon."""
        reason, row = self._steps(self._rows.slot, tolerance, max_steps, max_seconds)
        if reason is StopReason.NEEDS_ROW:
            self._rows.hold(self._rows_with(row))
            reason = StopReason.PAUSED if self._rows.slot[row] >= 0 else StopReason.NEEDS_ROW
        return reason

    def block(self, positions: Indices) -> Floats:
        values = np.empty((len(positions), len(positions)), dtype=np.float32)
        order = np.argsort(self._rows.slot[positions] >= 0, kind="stable")  # stored ones last
        self._rows.square(positions[order], values)
        back = np.argsort(order, kind="stable")
        return values.astype(np.float64)[back[:, None], back]

    def fill_block(self, positions: Indices, out: NDArray[Any]) -> Indices:
        positions = self._rows.cached_last(positions)
        self._rows.square(positions, out)
        return positions

    def combine(self, positions: Indices, weights: Floats) -> Floats:
        return self._rows.combine(positions, weights)

    def _part(self, positions: Indices, values: NDArray[Any]) -> HostSubproblem:
        return NativeSubproblem(self, positions, values)

    def _rows_with(self, row: int) -> Indices:
        """Return a missing row and others of variables that violate optimality nearly as much."""
        up, down = kkt_violations(self)
        score = np.where(self._rows.slot < 0, np.maximum(up, down), -np.inf)
        score[row] = np.inf
        count = ROWS_PER_REQUEST
        worst = np.argpartition(-score, count)[:count] if self.active > count else np.arange(self.active)
        return worst[score[worst] > MIN_VIOLATION_FRACTION * self.violation]
