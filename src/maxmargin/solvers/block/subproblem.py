"""A few variables, all others fixed, and the square of the matrix between them, mostly in single precision.

Pair steps need nothing else. Variables that cannot matter are left out by going on with a smaller tile; when that is
solved, the larger one is brought up to date from its own rows and looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.backends.optimality import kkt_violations
from maxmargin.matrices import NON_FINITE_MESSAGE, RowStore
from maxmargin.matrices.numerics import inner
from maxmargin.solvers.smo.working_set import SELECTION_RULES
from maxmargin.solvers.smo.working_state import WorkingState

#: How many rows are computed together, of variables whose violation is this part of the largest.
COMPANY, NEAR_END = 64, 0.5


@dataclass
class Tally:
    """What was done so far, by all tiles."""

    iterations: int = 0
    rounds: int = 0
    gain: float = 0.0


class Tile:
    """Dual, gradient, box and matrix of some variables.

    Attributes
    ----------
    variables : int array
        Which they are, by their position in the larger tile or the whole problem.
    values : float array
        The matrix between them.
    violation : float
        Among them, as of the last step.
    """

    accuracy = 1e-7  # of the matrix, whose flat directions may even bend the other way

    def __init__(
        self,
        variables: Indices,
        values: NDArray[Any],
        arrays: tuple[Floats, ...],
        group: np.ndarray,
        groups: int,
        bounded: bool,
        tally: Tally,
        threads: int,
    ) -> None:
        self.variables, self.values = variables, values
        self.dual, self.gradient, self.lower, self.upper, self.curvature, self.ridge = arrays
        self.group, self.groups = (group, groups) if groups <= 1 else renumbered(group)
        self.bounded = bounded
        self.tally, self.threads = tally, threads
        self.violation = np.inf
        self._start = self.dual.copy()
        self._singles = int((group < 0).sum())
        self._memory = np.full(4, -1)  # of the selection rule
        self._each = np.arange(len(variables))

    @property
    def active(self) -> int:
        """The number of variables."""
        return len(self.variables)

    def steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps."""
        return self._steps(self._each, tolerance, max_steps, max_seconds)[0]

    def _steps(self, slot: Indices, tolerance: float, max_steps: int, max_seconds: float) -> tuple[StopReason, int]:
        """Take pair steps on the rows that `slot` names; return why they ended, and the row that was missing if any."""
        slots = len(self.values)
        reason, steps, row, _, self.violation, gain, _, _ = _native.pairwise_steps(
            self.dual, self.gradient, self.lower, self.upper, self.curvature, self.ridge, self.group, np.empty(0),
            self.active, self.groups, self._singles, self.values, slot, np.full(slots, self.active),
            np.zeros(slots, dtype=np.int64), 0,
            SELECTION_RULES["second_order"], self._memory, self.violation, tolerance, max_steps, max_seconds,
        )  # fmt: skip
        self.tally.iterations += steps
        self.tally.gain += gain
        if reason != StopReason.NEEDS_ROW and (np.isnan(self.violation) or self.violation == np.inf):
            raise ValueError(NON_FINITE_MESSAGE)
        return StopReason(reason), row

    def free(self) -> Indices:
        """Return the positions of the variables off their bounds."""
        return np.flatnonzero((self.lower < self.dual) & (self.dual < self.upper))

    def changed(self) -> Indices:
        """Return the positions of the variables that have moved."""
        return np.flatnonzero(self.dual != self._start)

    def part(self, positions: Indices) -> Tile:
        """Return a tile of some of the variables."""
        values = np.empty((len(positions), len(positions)), dtype=self.values.dtype)
        positions = self._square(positions, values)
        arrays = (self.dual, self.gradient, self.lower, self.upper, self.curvature, self.ridge)
        own = tuple(array[positions] for array in arrays)
        kind = PreciseTile if isinstance(self, PreciseTile) else Tile
        return kind(positions, values, own, self.group[positions], self.groups, self.bounded, self.tally, self.threads)

    def take(self, part: Tile) -> None:
        """Take over what a part has become."""
        moved = part.changed()
        at, change = part.variables[moved], part.dual[moved] - self.dual[part.variables[moved]]
        gradient = self.gradient - self._combine(at, change)
        gradient[part.variables] = part.gradient  # with their ridge, and as exact as the steps were
        self.gradient, self.dual[at] = gradient, part.dual[moved]
        self._memory[:] = -1

    def gradient_at(self, dual: Floats) -> Floats:
        """Return the gradient at other values of the variables."""
        change = dual - self.dual
        moved = np.flatnonzero(change)
        if not len(moved):
            return self.gradient
        return self.gradient - self._combine(moved, change[moved]) - self.ridge * change

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at some positions: the values that the pair steps see, no better ones.

        Two kinds of steps that disagreed about the matrix in the last digits could undo each other for ever.
        """
        values = np.empty((len(positions), len(positions)), dtype=self.values.dtype)
        self._square(positions, values)
        return values.astype(np.float64)

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and bring everything up to date."""
        slope = inner(change, self.gradient[positions])
        self.gradient -= self._combine(positions, change)
        self.gradient[positions] -= self.ridge[positions] * change
        self.dual[positions] = values
        self._memory[:] = -1
        self.tally.gain += 0.5 * (slope + inner(change, self.gradient[positions]))  # the gradient falls linearly

    def _square(self, positions: Indices, out: NDArray[Any]) -> Indices:
        """Write the values between some positions to `out`; return in which order."""
        _native.gather(self.values, positions, positions, out, self.threads)
        return positions

    def _combine(self, positions: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row."""
        total = np.zeros(self.active)
        _native.subtract_rows(total, self.values, positions, -weights, self.active, self.threads)
        return total


class PreciseTile(Tile):
    """A few variables on values in double precision: for the last digits, where single precision sees noise."""

    accuracy = WorkingState.accuracy

    def _square(self, positions: Indices, out: NDArray[Any]) -> Indices:
        out[:] = self.values[positions[:, None], positions]
        return positions

    def _combine(self, positions: Indices, weights: Floats) -> Floats:
        return np.asarray(weights @ self.values[positions])


class WideTile(Tile):
    """All variables, on the rows of a store: for more free variables than a square has room for."""

    def __init__(self, rows: RowStore, *rest: Any) -> None:
        super().__init__(np.arange(rows.matrix.size), rows.storage, *rest)
        self._rows = rows

    def steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps; a row that is missing is computed, and with it others that will be missing soon."""
        reason, row = self._steps(self._rows.slot, tolerance, max_steps, max_seconds)
        if reason is StopReason.NEEDS_ROW:
            self._rows.hold(self._company(row))
            reason = StopReason.PAUSED if self._rows.slot[row] >= 0 else StopReason.NEEDS_ROW
        return reason

    def block(self, positions: Indices) -> Floats:
        values = np.empty((len(positions), len(positions)), dtype=np.float32)
        order = np.argsort(self._rows.slot[positions] >= 0, kind="stable")  # stored ones last
        self._rows.square(positions[order], values)
        back = np.argsort(order, kind="stable")
        return values.astype(np.float64)[back[:, None], back]

    def _square(self, positions: Indices, out: NDArray[Any]) -> Indices:
        positions = self._rows.stored_last(positions)
        self._rows.square(positions, out)
        return positions

    def _combine(self, positions: Indices, weights: Floats) -> Floats:
        return self._rows.combine(positions, weights)

    def _company(self, row: int) -> Indices:
        """Return a missing row and others of variables that violate nearly as much."""
        up, down = kkt_violations(self)
        score = np.where(self._rows.slot < 0, np.maximum(up, down), -np.inf)
        score[row] = np.inf
        most = np.argpartition(-score, COMPANY)[:COMPANY] if self.active > COMPANY else np.arange(self.active)
        return most[score[most] > NEAR_END * self.violation]


def renumbered(group: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the groups of some variables by new numbers, and how many there are: selection looks at every group."""
    single = group < 0
    names, number = np.unique(group[~single], return_inverse=True)
    new = np.full(len(group), -1, dtype=group.dtype)
    new[~single] = number
    return new, len(names)
