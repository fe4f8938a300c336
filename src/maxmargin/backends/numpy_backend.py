"""The operations of the block solver in plain NumPy: the readable twin of the native backend, for tests.

The whole matrix is in memory, float32 as in the native backend; dual vector, gradient and sums over samples are
float64. It takes n² values and interpreted pair steps, so it suits problems of some hundred variables.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.backends.host_state import HostState
from maxmargin.backends.host_subproblem import HostSubproblem
from maxmargin.backends.interface import BlockTuning, BoundStart, StopReason
from maxmargin.backends.native_backend import MAX_WHOLE_SIZE, STEPS_PER_CHECK, first_sizes
from maxmargin.backends.selection import MAX_GROUPS_BY_VARIABLE, place_at_bounds
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import DualProblem
from maxmargin.problems.kinks import nearest_bounds, slopes

#: Stands in for zero or negative curvature when gains are compared, as in `native/working_set.hpp`.
MIN_CURVATURE = 1e-12


class NumpyBackend:
    """Operations of the block solver in NumPy."""

    def scope(self) -> AbstractContextManager[Any]:
        """Return an empty context."""
        return nullcontext()

    def open(self, problem: DualProblem, cache_bytes: int, threads: int) -> NumpyState:
        """Return the state of a problem; all rows are in memory, but only so many as fit in `cache_bytes` are used."""
        return NumpyState(problem, cache_bytes)

    def start_at_bounds(self, problem: DualProblem, columns: Indices, weights: Floats) -> BoundStart:
        """Return the feasible point with each variable at the bound that its slack indicates."""
        values = _single_precision(problem, np.arange(problem.size), columns)
        product = values @ weights
        return BoundStart(place_at_bounds(problem, problem.linear - product), product, values.size)


class NumpyState(HostState):
    """Dual vector, gradient and the whole matrix of a problem."""

    def __init__(self, problem: DualProblem, cache_bytes: int) -> None:
        super().__init__(problem, threads=1)
        self._stored_rows = min(cache_bytes // (4 * max(1, problem.size)), problem.size)
        self.values = _single_precision(problem, self._everything, self._everything)
        self.evaluations += self.values.size

    @property
    def tuning(self) -> BlockTuning:
        sizes = first_sizes(self.active, self.problem.matrix.cost)
        return BlockTuning(*sizes, self.active <= MAX_WHOLE_SIZE, self._stored_rows, STEPS_PER_CHECK)

    @property
    def kernel_evaluations(self) -> int:
        return self.evaluations

    def kkt_violations(self) -> tuple[Floats, Floats]:
        return _kkt_violations(self)

    def product(self, columns: Indices, weights: Floats) -> Floats:
        return self.values[:, columns] @ weights

    update_product = product

    def square(self, variables: Indices) -> HostSubproblem:
        return NumpySubproblem(self, variables, self.values[np.ix_(variables, variables)])

    def precise_square(self, variables: Indices, values: Floats) -> HostSubproblem:
        return PreciseNumpySubproblem(self, variables, values)

    def rows_subproblem(self) -> HostSubproblem:
        return NumpySubproblem(self, self._everything, self.values)


class NumpySubproblem(HostSubproblem):
    """A working set with the square block of single-precision values between its variables."""

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        first = self.totals.iterations
        deadline, last = time.perf_counter() + max_seconds, first + max_steps
        while True:
            up, down = _kkt_violations(self)
            self.violation = max(float(up.max()), float(down.max()))
            if not np.isfinite(self.violation) and self.violation != -np.inf:
                raise ValueError(NON_FINITE_MESSAGE)
            if not self.violation > tolerance:
                return StopReason.OPTIMAL
            if self.totals.iterations >= last or (self.totals.iterations > first and time.perf_counter() > deadline):
                return StopReason.PAUSED
            i, j = self._second_order_pair(up, down)
            if i is None and j is None:
                return StopReason.PRECISION
            if (reason := self._step(i, j)) is not None:
                return reason

    def _second_order_pair(self, up: Floats, down: Floats) -> tuple[int | None, int | None]:
        """Return the most violating growing variable and its partner of the largest gain without bounds (1.27).

        A variable in no group moves alone: the other one is None.
        """
        worst = np.maximum(up, down)
        worst_of_singles = worst[self.group < 0].max(initial=-np.inf)
        if worst_of_singles > worst[self.group >= 0].max(initial=-np.inf):
            gains = np.where((self.group < 0) & (worst > 0), worst**2 / np.maximum(self.curvature, MIN_CURVATURE), 0.0)
            k = int(np.argmax(gains))
            return (k, None) if up[k] > down[k] else (None, k)
        worst_group = self.group[int(np.argmax(np.where(self.group >= 0, up, -np.inf)))]
        # By the gradient, as in the native loop: in differences from the other end, different gradients may be equal.
        growing, falling = slopes(self.dual, self.gradient, self.kink)
        i = int(np.argmax(np.where((self.group == worst_group) & (up > -np.inf), growing, -np.inf)))
        fused = self.groups <= MAX_GROUPS_BY_VARIABLE and not self.singles and not self.precise
        real: Any = np.float32 if fused else np.float64  # as the native loop compares gains
        falls = (self.dual > self.lower) & (self.group == self.group[i])
        slope = np.maximum(np.where(falls, growing[i] - falling, 0.0), 0.0).astype(real)
        diagonal = self.curvature.astype(real)
        curvature = diagonal[i] + diagonal - real(2) * self.values[i].astype(real)
        gains = slope * slope / np.maximum(curvature, real(MIN_CURVATURE))
        j = int(np.argmax(gains))
        return (i, j) if gains[j] > 0 else (None, None)

    def _step(self, i: int | None, j: int | None) -> StopReason | None:
        """Increase variable i and decrease variable j by the same amount; return why that is impossible."""
        growing, falling = slopes(self.dual, self.gradient, self.kink)
        lower, upper = nearest_bounds(self.dual, self.lower, self.upper, self.kink)
        slope = (0.0 if i is None else growing[i]) - (0.0 if j is None else falling[j])
        moving = [k for k in (i, j) if k is not None]
        curvature = float(self.curvature[moving].sum())
        if i is not None and j is not None:
            curvature -= 2.0 * float(self.values[i, j])
        room_up = np.inf if i is None else upper[i] - self.dual[i]
        room_down = np.inf if j is None else self.dual[j] - lower[j]
        step = min(slope / curvature if curvature > 0 else np.inf, room_up, room_down)
        if np.isinf(step):
            return StopReason.UNBOUNDED
        before = self.dual[moving]
        for k, room, sign in ((i, room_up, 1.0), (j, room_down, -1.0)):
            if k is not None:
                bound = upper[k] if sign > 0 else lower[k]
                self.dual[k] = bound if step >= room else self._snapped(k, self.dual[k] + sign * step)
                self.gradient[k] -= self.ridge[k] * sign * step
        if (self.dual[moving] == before).all():
            return StopReason.PRECISION
        row_up = 0.0 if i is None else self.values[i].astype(np.float64)
        row_down = 0.0 if j is None else self.values[j].astype(np.float64)
        self.gradient -= step * (row_up - row_down)
        self.totals.dual_value += step * (slope - 0.5 * step * curvature)
        self.totals.iterations += 1
        return None

    def _snapped(self, k: int, value: float) -> float:
        for bound in (self.upper[k], self.lower[k]):
            if np.isfinite(bound) and abs(value - bound) <= BOUND_TOLERANCE * abs(bound):
                return float(bound)
        return value

    def solve_free(self, max_work: float) -> float:
        """Solve ZᵀHZ c = Zᵀg, where the columns of Z keep the sums of the groups; stop at bounds and solve again."""
        free, work = self.free(), 0.0
        H = self.block(free) + np.diag(self.ridge[free])
        slope = slopes(self.dual, self.gradient, self.kink)[0][free]
        lower, upper = (bound[free] for bound in nearest_bounds(self.dual, self.lower, self.upper, self.kink))
        dual, gradient = self.dual[free].copy(), slope.copy()
        open_ = np.ones(len(free), dtype=bool)
        while open_.any() and work + len(free) * (count := int(open_.sum())) ** 2 <= max_work:
            work += len(free) * count**2
            Z = _sum_keeping_directions(self.group[free], open_)
            if not Z.shape[1]:
                break
            inverse = np.linalg.pinv(Z.T @ H @ Z, rcond=self.accuracy, hermitian=True)
            direction = Z @ (inverse @ (Z.T @ gradient))
            bound = np.where(direction > 0, upper, lower)
            room = np.divide(bound - dual, direction, out=np.full(len(free), np.inf), where=direction != 0)
            step = min(1.0, float(room.min()))
            blocked = room <= step
            dual = np.where(blocked, bound, dual + step * direction)
            gradient -= step * (H @ direction)
            if not blocked.any():
                break
            open_ &= ~blocked
        change = dual - self.dual[free]
        if change @ (slope + gradient) > 0:  # twice the gain
            self.move(free, change, dual)
        return work

    def selectable(self) -> Indices:
        highest, lowest = _extremes(self)
        growing, falling = slopes(self.dual, self.gradient, self.kink)
        may_grow = (self.dual < self.upper) & ~(growing < lowest[self.group])
        may_fall = (self.dual > self.lower) & ~(falling > highest[self.group])
        return np.flatnonzero(may_grow | may_fall)

    def fill_block(self, positions: Indices, out: NDArray[np.floating]) -> Indices:
        out[:] = self.values[np.ix_(positions, positions)]
        return positions

    def combine(self, positions: Indices, weights: Floats) -> Floats:
        return np.asarray(weights @ self.values[positions])


class PreciseNumpySubproblem(NumpySubproblem):
    """A working set on double-precision values."""

    accuracy = 1e-11
    precise = True


def _single_precision(problem: DualProblem, rows: Indices, columns: Indices) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # values too large are reported where they are used
        return problem.matrix.block(rows, columns).astype(np.float32)


def _extremes(state: HostState | HostSubproblem) -> tuple[Floats, Floats]:
    """Return, per group, the largest gradient that may grow and the least that may fall; last for those in no group."""
    highest, lowest = np.full(state.groups + 1, -np.inf), np.full(state.groups + 1, np.inf)
    grows, falls = state.dual < state.upper, state.dual > state.lower
    growing, falling = slopes(state.dual, state.gradient, state.kink)
    np.maximum.at(highest, state.group[grows], growing[grows])
    np.minimum.at(lowest, state.group[falls], falling[falls])
    highest[-1], lowest[-1] = max(highest[-1], 0.0), min(lowest[-1], 0.0)
    return highest, lowest


def _kkt_violations(state: HostState | HostSubproblem) -> tuple[Floats, Floats]:
    """Return the KKT violation of each variable when it grows, and when it falls; −∞ if it cannot."""
    highest, lowest = _extremes(state)
    highest[-1] = lowest[-1] = 0.0  # a variable in no group moves alone
    growing, falling = slopes(state.dual, state.gradient, state.kink)
    up = np.where(state.dual < state.upper, growing - lowest[state.group], -np.inf)
    down = np.where(state.dual > state.lower, highest[state.group] - falling, -np.inf)
    return up, down


def _sum_keeping_directions(group: np.ndarray, open_: np.ndarray) -> Floats:
    """Return the directions e_k − e_anchor of the open variables, with one anchor per group; e_k in no group."""
    columns = []
    for g in np.unique(group[open_]):
        members = np.flatnonzero(open_ & (group == g))
        unit = np.eye(len(group))[:, members]
        columns.append(unit if g < 0 else unit[:, 1:] - unit[:, :1])
    return np.hstack(columns)
