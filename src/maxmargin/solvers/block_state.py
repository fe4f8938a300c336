"""The arrays of a block solver, over the variables that take part, and how they move.

Shrinking leaves variables out altogether: all arrays and the stored rows become shorter. What is left out is remembered
together with the dual at that time, so that looking at it again costs only the columns that have changed since.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin.matrices import NOT_FINITE, RowStore
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import Counters, DualProblem
from maxmargin.solvers.hard_margin import squared_radius
from maxmargin.solvers.shrinking import can_matter, extremes, not_settled
from maxmargin.solvers.working_set import SELECTION_RULES
from maxmargin.solvers.working_state import Reason

#: Rows that a store always has room for.
LEAST_ROWS = 64

#: How many gradients an audit looks at: at each end, and spread over all variables.
AUDIT_ENDS, AUDIT_SPREAD = 32, 192

#: A focus has so many times as many variables as are in use, and some more.
FOCUS_ROOM, FOCUS_LEAST = 3, 500

#: Rows that are computed together with one that a pair step lacks, of variables so near the ends of the violation.
COMPANY, NEAR_END = 11, 0.3


class LeftOut(NamedTuple):
    """Variables that were left out together, and the dual at that time."""

    variables: Indices
    dual: Floats


class BlockState:
    """Dual, gradient, box and single-precision rows of the variables that take part.

    Attributes
    ----------
    variables : int array
        The variables that take part; all arrays without ``_of_all`` are in this order.
    violation : float
        Among the variables that take part, as of the last selection.
    """

    accuracy = 1e-7  # of the matrix, whose flat directions may even bend the other way

    def __init__(self, problem: DualProblem, cache_bytes: int, threads: int) -> None:
        self.problem = problem
        self.threads = threads
        self.rows = RowStore(problem.matrix, cache_bytes, LEAST_ROWS, threads)
        self.bounded = problem.bounded
        self.groups = problem.groups
        self.iterations = self.rounds = 0
        self.violation = np.inf
        self._radius: float | None = None
        self.left_out: list[LeftOut] = []
        self._left_out_known = True  # whether gradient_of_all holds for those left out
        self.dual_of_all = np.zeros(problem.size)
        self.gradient_of_all = problem.linear.copy()
        self._curvature_of_all = problem.curvature
        self._take_part(np.arange(problem.size))
        self.dual_value = 0.0  # of the point 0, which need not be feasible

    @property
    def size(self) -> int:
        """The number of all variables."""
        return self.problem.size

    @property
    def active(self) -> int:
        """The number of variables that take part."""
        return len(self.variables)

    def radius(self) -> float:
        """Return the squared size of the data in feature space."""
        if self._radius is None:
            self._radius = squared_radius(self.problem, self.problem.matrix)
        return self._radius

    def count(self, other: Counters) -> None:
        """Add what was spent elsewhere."""
        self.iterations += other.iterations
        self.rounds += other.rounds
        self.rows.evaluations += other.kernel_evaluations

    def free(self) -> Indices:
        """Return the positions of the variables off their bounds."""
        return np.flatnonzero((self.lower < self.dual) & (self.dual < self.upper))

    def place(self, dual: Floats) -> None:
        """Set all variables without keeping any rows: most of them will not move again."""
        used = np.flatnonzero(dual)
        self.gradient[:] = self.linear - self.product(used, dual[used]) - self.ridge * dual
        self.dual[:] = dual
        self.dual_value = 0.5 * float(dual @ (self.linear + self.gradient))

    def product(self, columns: Indices, weights: Floats) -> Floats:
        """Return Σ weights · column for all variables, without keeping any values."""
        if not len(columns):
            return np.zeros(self.size)
        product, computed = self.problem.matrix.single(columns).combine(np.arange(self.size), weights)
        self.rows.evaluations += computed
        return product

    def solve_block(self, working_set: Indices, tolerance: float, max_steps: int) -> Reason:
        """Solve the problem of a few variables with all others fixed, then bring the gradient up to date."""
        at, count = self.rows.stored_first(working_set), len(working_set)
        tile = self.rows.square(at)
        if not np.isfinite(tile.sum()):
            raise ValueError(NOT_FINITE)
        before, dual = self.dual[at], self.dual[at]
        group = self.group[at]
        reason, steps, _, _, _, gain, _, _ = _native.pairwise_steps(
            dual, self.gradient[at], self.lower[at], self.upper[at], self.curvature[at], self.ridge[at], group,
            np.empty(0), count, self.groups, int((group < 0).sum()),
            tile, np.arange(count), np.full(count, count), np.zeros(count, dtype=np.int64), 0,
            SELECTION_RULES["second_order"], np.full(4, -1), np.inf, tolerance, max_steps, np.inf,
        )  # fmt: skip
        self.iterations += steps
        self.dual_value += gain
        self.rounds += 1
        moved = np.flatnonzero(dual != before)
        self._update(at[moved], (dual - before)[moved], dual[moved])
        return Reason(reason)

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> Reason:
        """Take pair steps among all variables that take part, on the stored rows; fetch a row that is missing."""
        rows = self.rows
        full = np.full(rows.capacity, self.active)
        reason, steps, row, _, violation, gain, rows.clock, requests = _native.pairwise_steps(
            self.dual, self.gradient, self.lower, self.upper, self.curvature, self.ridge, self.group, np.empty(0),
            self.active, self.groups, int((self.group < 0).sum()),
            rows.storage, rows.slot, full, rows.last_use, rows.clock,
            SELECTION_RULES["second_order"], self._memory, self.violation, tolerance, max_steps, max_seconds,
        )  # fmt: skip
        rows.hits += requests
        self.iterations += steps
        self.dual_value += gain
        self.violation = violation
        self._left_out_known &= not steps
        if reason == Reason.NEEDS_ROW:
            self._fetch(row)
        elif np.isnan(violation) or violation == np.inf:
            raise ValueError(NOT_FINITE)
        return Reason(reason)

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values and bring everything up to date."""
        slope = float(change @ self.gradient[positions])
        self._update(positions, change, values)
        self.dual_value += 0.5 * (slope + float(change @ self.gradient[positions]))  # the gradient falls linearly

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at some positions: the values that the pair steps see, no better ones.

        Two kinds of steps that disagreed about the matrix in the last digits could undo each other for ever.
        """
        order = np.argsort(self.rows.slot[positions] < 0, kind="stable")  # stored rows first
        back = np.argsort(order, kind="stable")
        return self.rows.square(positions[order]).astype(np.float64)[back[:, None], back]

    def audit(self) -> float:
        """Return an estimate from above of the error of the violation: twice the largest error in a sample.

        The sample are the variables that may grow or fall at both ends of the violation and others evenly spread; their
        gradients are computed afresh in double precision.
        """
        dual, gradient = self.point()
        support = np.flatnonzero(dual)
        if not len(support):
            return 0.0
        up = np.where(self.dual < self.upper, self.gradient, -np.inf)
        down = np.where(self.dual > self.lower, self.gradient, np.inf)
        ends = self.variables[np.concatenate([np.argsort(-up)[:AUDIT_ENDS], np.argsort(down)[:AUDIT_ENDS]])]
        sample = np.unique(np.concatenate([ends, np.arange(0, self.size, max(16, self.size // AUDIT_SPREAD))]))
        problem = self.problem
        product = problem.matrix.block(sample, support) @ dual[support]
        self.rows.evaluations += len(sample) * len(support)
        fresh = problem.linear[sample] - product - problem.ridge[sample] * dual[sample]
        return 2.0 * float(np.abs(fresh - gradient[sample]).max())

    def refresh(self) -> None:
        """Compute the gradient of all variables afresh in double precision."""
        self._write_back()
        self.gradient_of_all = self.problem.gradient(self.dual_of_all)
        self.rows.evaluations += self.size * int(np.count_nonzero(self.dual_of_all))
        self.left_out = [LeftOut(batch.variables, self.dual_of_all.copy()) for batch in self.left_out]
        self._left_out_known = True
        self.gradient[:] = self.gradient_of_all[self.variables]
        self.dual_value = 0.5 * float(self.dual_of_all @ (self.problem.linear + self.gradient_of_all))

    def shrink(self, worth_it: float) -> bool:
        """Leave out what cannot matter, if the rest is at most `worth_it` of what takes part now."""
        return self._keep(can_matter(self), worth_it)

    def focus(self, worth_it: float) -> bool:
        """Leave out, for now, all but the variables in use and some that come next, if that is `worth_it`.

        A bolder bet than shrinking, for the time when the violation is still large but few variables are in use: rows
        are several times shorter, and what was left out is soon looked at again.
        """
        used = self.dual != 0
        room = FOCUS_ROOM * int(used.sum()) + FOCUS_LEAST
        if room >= worth_it * self.active:
            return False
        ends = extremes(self)
        up = np.where(self.dual < self.upper, self.gradient - ends.lowest[self.group], -np.inf)
        down = np.where(self.dual > self.lower, ends.highest[self.group] - self.gradient, -np.inf)
        score = np.where(used, np.inf, np.maximum(up, down))
        keep = np.zeros(self.active, dtype=bool)
        keep[np.argpartition(score, -room)[-room:]] = True
        return self._keep(keep, worth_it)

    def _keep(self, keep: np.ndarray, worth_it: float) -> bool:
        if keep.sum() > worth_it * self.active or not keep.any():
            return False
        self._write_back()
        self.left_out.append(LeftOut(self.variables[~keep], self.dual_of_all.copy()))
        self.rows.narrow(np.flatnonzero(keep))
        self._take_part(self.variables[keep])
        return True

    def reconsider(self) -> bool:
        """Look at everything that was left out; what matters takes part again. Return whether anything does."""
        if not self.left_out:
            return False
        self._write_back()
        for batch in self.left_out:
            change = self.dual_of_all - batch.dual
            changed = np.flatnonzero(change)
            product, computed = self.problem.matrix.single(changed).combine(batch.variables, change[changed])
            self.rows.evaluations += computed
            self.gradient_of_all[batch.variables] -= product  # their own values have not changed: no ridge
        out = np.concatenate([batch.variables for batch in self.left_out])
        problem = self.problem
        matters = not_settled(
            extremes(self), self.dual_of_all[out], self.gradient_of_all[out], problem.lower[out], problem.upper[out],
            problem.group[out],
        )  # fmt: skip
        back = out[matters]
        self.left_out = [LeftOut(out[~matters], self.dual_of_all.copy())] if not matters.all() else []
        self._left_out_known = True
        if not len(back):
            return False
        self.rows.widen(back)
        self._take_part(np.concatenate([self.variables, back]))
        return True

    def point(self) -> tuple[Floats, Floats]:
        """Return dual and gradient of all variables.

        Where the gradient of what is left out is not known, it is infinite, on the side where it does not count.
        """
        variables, own_dual, own_gradient = self._current
        dual, gradient = self.dual_of_all.copy(), self.gradient_of_all.copy()
        if not self._left_out_known:
            gradient = np.where(dual == self.problem.upper, np.inf, -np.inf)
        dual[variables], gradient[variables] = own_dual, own_gradient
        return dual, gradient

    def _update(self, positions: Indices, change: Floats, values: Floats) -> None:
        for start in range(0, len(positions), self.rows.capacity):
            part = slice(start, start + self.rows.capacity)
            slots = self.rows.hold(positions[part])
            _native.subtract_rows(self.gradient, self.rows.storage, slots, change[part], self.active, self.threads)
        self.gradient[positions] -= self.ridge[positions] * change
        self.dual[positions] = values
        self._left_out_known = False
        self._memory[:] = -1

    def _fetch(self, row: int) -> None:
        """Compute a missing row, and with it a few of variables near the ends of the violation, if there is room."""
        company = min(self.rows.spare - 1, COMPANY)
        wanted = np.array([row])
        if company > 1:
            absent = self.rows.slot < 0
            absent[row] = False
            ends = extremes(self)
            near = NEAR_END * self.violation
            growing = absent & (self.dual < self.upper) & (self.gradient > ends.highest[self.group] - near)
            falling = absent & (self.dual > self.lower) & (self.gradient < ends.lowest[self.group] + near)
            likely = np.concatenate([np.flatnonzero(side)[: company // 2] for side in (growing, falling & ~growing)])
            wanted = np.concatenate([wanted, likely])
        self.rows.hold(wanted)

    def _write_back(self) -> None:
        self.dual_of_all[self.variables], self.gradient_of_all[self.variables] = self.dual, self.gradient

    def _take_part(self, variables: Indices) -> None:
        problem = self.problem
        # One assignment that Ctrl-C cannot divide: `point` answers from it.
        self._current = variables, self.dual_of_all[variables], self.gradient_of_all[variables]
        self.variables, self.dual, self.gradient = self._current
        self.linear, self.ridge, self.group = (
            problem.linear[variables],
            problem.ridge[variables],
            problem.group[variables],
        )
        self.lower, self.upper = problem.lower[variables], problem.upper[variables]
        self.curvature = self._curvature_of_all[variables]
        self._memory = np.full(4, -1)  # of the selection rule
