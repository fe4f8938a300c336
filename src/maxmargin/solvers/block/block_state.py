"""Where a block solver stands: dual and gradient of all variables in double precision, rows in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices import row_store
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import partial_product
from maxmargin.problems import Counters, DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes
from maxmargin.solvers.block.subproblem import PreciseTile, Tally, Tile, WideTile
from maxmargin.solvers.smo.hard_margin import squared_radius

#: How many gradients an audit looks at: at each end, and spread over all variables.
AUDIT_ENDS, AUDIT_SPREAD = 32, 192

#: A variable that rests on a bound matters if an error so many times as large as its own would let it move.
ERROR_MARGIN = 20.0


#: After an audit that was not passed, a tile of up to so many variables is in double precision, and so is its update.
MOST_PRECISE = 512


class BlockState:
    """Dual, gradient and single-precision rows of a problem.

    Attributes
    ----------
    open_tiles : list of Tile
        The tile that is being worked on, and smaller ones inside it.
    violation : float
        As of the last selection.
    refreshed : bool
        Whether gradients were computed afresh, because single precision was not enough.
    """

    def __init__(self, problem: DualProblem, cache_bytes: int, threads: int) -> None:
        self.problem = problem
        self.threads = threads
        self.rows = row_store(problem.matrix, cache_bytes, threads)
        self.bounded, self.has_limit = problem.bounded, problem.has_limit
        self.groups, self.group = problem.groups, problem.group
        self.linear, self.lower, self.upper = problem.linear, problem.lower, problem.upper
        self.tally = Tally()
        self.violation = np.inf
        self.open_tiles: list[Tile] = []
        self._curvature = problem.curvature
        self._radius: float | None = None
        self._room = np.empty(0, dtype=np.float32)  # for tiles
        self._current = np.zeros(problem.size), problem.linear.copy()
        self.refreshed = False

    @property
    def dual(self) -> Floats:
        """The dual variables, without what open tiles have changed."""
        return self._current[0]

    @property
    def gradient(self) -> Floats:
        """The gradient at `dual`."""
        return self._current[1]

    @property
    def active(self) -> int:
        """The number of variables: all take part."""
        return self.problem.size

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        return self.tally.gain

    def radius(self) -> float:
        """Return the squared size of the data in feature space."""
        if self._radius is None:
            self._radius = squared_radius(self.problem, self.problem.matrix)
        return self._radius

    def count(self, other: Counters) -> None:
        """Add what was spent elsewhere."""
        self.tally.iterations += other.iterations
        self.tally.rounds += other.rounds
        self.rows.evaluations += other.kernel_evaluations

    def free(self) -> Indices:
        """Return the variables off their bounds."""
        return np.flatnonzero((self.lower < self.dual) & (self.dual < self.upper))

    def place(self, dual: Floats) -> None:
        """Set all variables without keeping any rows: most of them will not move again."""
        used = np.flatnonzero(dual)
        self._set(dual, self.linear - self.product(used, dual[used]) - self.problem.ridge * dual)

    def product(self, columns: Indices, weights: Floats) -> Floats:
        """Return Σ weights · column for all variables, without keeping any values."""
        if not len(columns):
            return np.zeros(self.active)
        product, computed = self.problem.matrix.float32_columns(columns).combine(np.arange(self.active), weights)
        self.rows.evaluations += computed
        return product

    def tile(self, variables: Indices) -> Tile:
        """Return the problem of a few variables with all others fixed."""
        if self.refreshed and len(variables) <= MOST_PRECISE:
            self.rows.evaluations += len(variables) ** 2
            precise = np.ascontiguousarray(self.problem.matrix.block(variables, variables))
            return PreciseTile(variables, precise, *self._of(variables))
        variables, count = self.rows.stored_last(np.sort(variables)), len(variables)  # memory is read in order
        if len(self._room) < count**2:
            self._room = np.empty(count**2, dtype=np.float32)
        values = self._room[: count**2].reshape(count, count)
        self.rows.square(variables, values)
        return Tile(variables, values, *self._of(variables))

    def wide_tile(self) -> Tile:
        """Return the problem of all variables, on the stored rows."""
        self.rows.hold(self.free())
        return WideTile(self.rows, *self._of(np.arange(self.active)))

    def _of(self, variables: Indices) -> tuple[Any, ...]:
        self.tally.rounds += 1
        arrays = (self.dual, self.gradient, self.lower, self.upper, self._curvature, self.problem.ridge)
        own = tuple(array[variables] for array in arrays)
        return own, self.group[variables], self.groups, self.bounded, self.tally, self.threads

    def take(self, tile: Tile) -> None:
        """Take over what a tile has become."""
        moved = tile.changed()
        at = tile.variables[moved]
        change = tile.dual[moved] - self.dual[at]
        dual, gradient = self.dual.copy(), self.gradient.copy()
        dual[at] = tile.dual[moved]
        if len(tile.variables) < self.active:
            gradient -= self._column_sum(at, change, tile)
            gradient[at] -= self.problem.ridge[at] * change
        else:
            gradient[tile.variables] = tile.gradient
        self._current = dual, gradient  # at once, so that Ctrl-C cannot come in between

    def _column_sum(self, columns: Indices, weights: Floats, tile: Tile) -> Floats:
        """Return Σ weights · column for all variables, as precisely as a tile has it."""
        if not isinstance(tile, PreciseTile):
            return self.rows.combine(columns, weights)
        self.rows.evaluations += self.active * len(columns)
        return partial_product(self.problem.matrix, np.arange(self.active), columns, weights)

    def audit(self) -> float:
        """Return an estimate from above of the error of the violation: twice the largest error in a sample.

        The sample are the variables that may grow or fall at both ends of the violation and others evenly spread; their
        gradients are computed afresh in double precision. An error too small to let a variable leave its bound does not
        count.
        """
        support = np.flatnonzero(self.dual)
        if not len(support):
            return 0.0
        up = np.where(self.dual < self.upper, self.gradient, -np.inf)
        down = np.where(self.dual > self.lower, self.gradient, np.inf)
        count = min(AUDIT_ENDS, self.active)
        ends = np.concatenate([np.argpartition(-up, count - 1)[:count], np.argpartition(down, count - 1)[:count]])
        sample = np.unique(np.concatenate([ends, np.arange(0, self.active, max(16, self.active // AUDIT_SPREAD))]))
        errors = np.abs(self._fresh(sample, support) - self.gradient[sample])
        self._largest_error = float(errors.max())
        return 2.0 * float(errors[self._within_reach(sample, ERROR_MARGIN * errors)].max(initial=0.0))

    def refresh(self) -> None:
        """Compute the gradients that matter afresh in double precision."""
        everything = np.arange(self.active)
        near = everything[self._within_reach(everything, np.full(self.active, ERROR_MARGIN * self._largest_error))]
        gradient = self.gradient.copy()
        gradient[near] = self._fresh(near, np.flatnonzero(self.dual))
        self._set(self.dual, gradient)
        self.refreshed = True

    def refresh_all(self) -> None:
        """Compute all gradients and the dual objective afresh in double precision."""
        self._set(self.dual, self._fresh(np.arange(self.active), np.flatnonzero(self.dual)))

    def point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient of all variables, with what open tiles have changed.

        Where the gradient is not known, it is infinite, on the side where it does not count.
        """
        dual, gradient = self._current
        places, moved = np.arange(self.active), False
        if self.open_tiles:
            dual = dual.copy()
        for tile in self.open_tiles:
            places = places[tile.variables]
            moved |= bool(len(tile.changed()))
            dual[places] = tile.dual
        if moved:
            gradient = np.where(dual == self.upper, np.inf, -np.inf)
            gradient[places] = self.open_tiles[-1].gradient
        return dual, gradient

    @property
    def has_whole_point(self) -> bool:
        """Whether the gradient of all variables is at hand, or follows from values that are."""
        if not self.open_tiles:
            return True
        outer = self.open_tiles[0]
        return outer.active == self.active and (len(self.open_tiles) == 1 or not isinstance(outer, WideTile))

    def whole_point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient of all variables, those included that smaller tiles leave out."""
        dual, gradient = self.point()
        if self.open_tiles:
            tile = self.open_tiles[0]
            gradient = np.empty_like(dual)
            gradient[tile.variables] = tile.gradient_at(dual[tile.variables])
        return dual, gradient

    def _fresh(self, variables: Indices, support: Indices) -> Floats:
        """Return gradients in double precision."""
        problem, dual = self.problem, self.dual
        self.rows.evaluations += len(variables) * len(support)
        product = partial_product(problem.matrix, variables, support, dual[support])
        return problem.linear[variables] - product - problem.ridge[variables] * dual[variables]

    def _within_reach(self, variables: Indices, error: Floats) -> np.ndarray:
        """Return which variables could move if their gradients were off by `error`."""
        extremes = gradient_extremes(self.problem, self.dual, self.gradient)
        group, gradient, dual = self.group[variables], self.gradient[variables], self.dual[variables]
        growing = (dual < self.upper[variables]) & (gradient + error >= extremes.smallest[group])
        falling = (dual > self.lower[variables]) & (gradient - error <= extremes.largest[group])
        reach: np.ndarray = growing | falling
        return reach

    def _set(self, dual: Floats, gradient: Floats) -> None:
        self._current = dual, gradient
        self.tally.gain = 0.5 * inner(dual, self.linear + gradient)
