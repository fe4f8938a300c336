"""Dual vector and gradient of all variables in NumPy arrays: what the native and the NumPy backend have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.host_subproblem import HostSubproblem
from maxmargin.backends.interface import BlockTuning, KnownProduct, RunningTotals
from maxmargin.backends.optimality import known_gap
from maxmargin.backends.selection import MAX_GROUPS_BY_VARIABLE, largest, select_working_set
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.problems import Counters, DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes
from maxmargin.problems.kinks import is_free, slopes

#: How many gradients an audit recomputes: at each end of the violation, and spread over all variables.
AUDITED_AT_EACH_END, AUDITED_SPREAD = 32, 192

#: Safety factor of the audit. A variable at a bound counts if an error so many times as large as the one found would
#: let it move; without the factor, a variable that only single precision keeps at its bound would never be noticed.
ERROR_SAFETY_FACTOR = 20.0

#: Shrinking continues with a smaller subproblem only if at most this fraction of the variables is left: building it
#: costs as many operations as it has values.
MAX_FRACTION_AFTER_SHRINKING = 0.6

#: The largest subproblem that shrinking builds: its memory must be written first, and is not in the budget for rows.
MAX_SIZE_AFTER_SHRINKING = 4096

#: After a failed audit, working sets of up to so many variables are solved in double precision, with their updates.
MAX_PRECISE_SIZE = 512


class HostState(ABC):
    """Dual vector and gradient of a problem in float64, and its open subproblems.

    Attributes
    ----------
    active : int
        The number of variables: all take part.
    open_subproblems : list of HostSubproblem
        The subproblem of the working set, and smaller ones inside it.
    violation : float
        As of the last call of `find_violation`.
    refreshed : bool
        Whether gradients were recomputed, because single precision did not suffice.
    evaluations : int
        Kernel values in double precision, or computed elsewhere.
    """

    def __init__(self, problem: DualProblem, threads: int) -> None:
        self.problem, self.threads, self.active = problem, threads, problem.size
        self.bounded = problem.bounded
        self.groups, self.group = problem.groups, problem.group
        self.linear, self.lower, self.upper = problem.linear, problem.lower, problem.upper
        self.curvature, self.ridge, self.kink = problem.curvature, problem.ridge, problem.kinks
        self.totals = RunningTotals()
        self.violation = np.inf
        self.refreshed = False
        self.evaluations = 0
        self.open_subproblems: list[HostSubproblem] = []
        self._everything = np.arange(self.active)
        self._up, self._down = np.empty(0), np.empty(0)
        self._largest_error = 0.0
        self._free: tuple[Floats | None, Indices] = None, np.empty(0, dtype=np.int64)  # and the dual vector it is of
        self._current = np.zeros(self.active), problem.linear.copy()

    # ---- operations that a backend implements ----------------------------------------------------------------------

    @property
    @abstractmethod
    def tuning(self) -> BlockTuning:
        """Sizes that suit the backend and the problem."""

    @property
    @abstractmethod
    def kernel_evaluations(self) -> int:
        """The number of kernel values computed so far."""

    @abstractmethod
    def kkt_violations(self) -> tuple[Floats, Floats]:
        """Return the KKT violation of each variable when it grows, and when it falls; −∞ if it cannot."""

    @abstractmethod
    def product(self, columns: Indices, weights: Floats) -> Floats:
        """Return Σ weights · column for all variables, with kernel values that will not be used again."""

    @abstractmethod
    def update_product(self, columns: Indices, weights: Floats) -> Floats:
        """Return Σ weights · column for all variables, with kernel values that are worth storing."""

    @abstractmethod
    def square(self, variables: Indices) -> HostSubproblem:
        """Return the subproblem of some variables, in any order, on single-precision values."""

    @abstractmethod
    def precise_square(self, variables: Indices, values: Floats) -> HostSubproblem:
        """Return the subproblem of some variables on double-precision values."""

    @abstractmethod
    def rows_subproblem(self) -> HostSubproblem:
        """Return the subproblem of all variables on stored rows."""

    # ---- start -----------------------------------------------------------------------------------------------------

    def counters(self, seconds: float) -> Counters:
        """Return the counters of a solution."""
        totals, (hits, misses) = self.totals, self.cache_counts()
        return Counters(totals.iterations, self.kernel_evaluations, hits, misses, totals.rounds, seconds)

    def cache_counts(self) -> tuple[int, int]:
        """Return the hits and misses of the row cache."""
        return 0, 0

    def add(self, spent: Counters) -> None:
        """Add what was spent on other problems."""
        self.totals.iterations += spent.iterations
        self.totals.rounds += spent.rounds
        self.evaluations += spent.kernel_evaluations

    def set_dual(self, dual: Floats, with_gradient: bool = True, known: KnownProduct | None = None) -> None:
        """Set all variables without storing any rows: most of them will not move again.

        Until the gradient is computed, and without `with_gradient`, it is unknown. The product with the matrix is that
        of `known`, and what differs from its point, if that are fewer variables.
        """
        self._current = dual, np.where(dual == self.upper, np.inf, -np.inf)
        self.totals.dual_value = np.nan
        if not with_gradient:
            return
        change, used, product = dual, np.flatnonzero(dual), np.zeros(self.active)
        if known is not None and np.count_nonzero(dual != known.point) < len(used):
            change, used, product = dual - known.point, np.flatnonzero(dual != known.point), known.product
        if len(used):
            product = product + self.product(used, change[used])
        self._set(dual, self.linear - product - self.ridge * dual)

    # ---- rounds ----------------------------------------------------------------------------------------------------

    def find_violation(self) -> float:
        """Compute and return the largest KKT violation."""
        if not np.isfinite(self.gradient.sum()):
            raise ValueError(NON_FINITE_MESSAGE)
        self._up, self._down = self.kkt_violations()
        self.violation = max(float(self._up.max(initial=0.0)), float(self._down.max(initial=0.0)))
        return self.violation

    def select(self, size: int) -> Indices:
        """Return a working set of at most `size` variables."""
        return select_working_set(self, self._up, self._down, size)

    def open_subproblem(self, working_set: Indices) -> HostSubproblem:
        """Open the subproblem of a working set."""
        if self.refreshed and len(working_set) <= MAX_PRECISE_SIZE:
            self.evaluations += len(working_set) ** 2
            values = np.ascontiguousarray(self.problem.matrix.block(working_set, working_set))
            return self._open(self.precise_square(working_set, values))
        working_set = np.sort(working_set)  # memory is read in order
        if 1 < self.groups <= MAX_GROUPS_BY_VARIABLE:  # pair steps are faster where groups are contiguous
            working_set = working_set[np.argsort(self.group[working_set], kind="stable")]
        return self._open(self.square(working_set))

    def open_whole(self) -> HostSubproblem:
        """Open the subproblem of all variables on the whole matrix."""
        return self.open_subproblem(self._everything)

    def open_stored_rows(self) -> HostSubproblem:
        """Open the subproblem of all variables on stored rows."""
        return self._open(self.rows_subproblem())

    def open_shrunk(self, subproblem: HostSubproblem) -> HostSubproblem | None:
        """Open the part of a subproblem that can still be selected; None if leaving out the rest does not pay."""
        keep = subproblem.selectable()
        if 2 <= len(keep) <= min(MAX_FRACTION_AFTER_SHRINKING * subproblem.active, MAX_SIZE_AFTER_SHRINKING):
            part = subproblem.restricted(keep)
            self.open_subproblems.append(part)
            return part
        return None

    def _open(self, subproblem: HostSubproblem) -> HostSubproblem:
        self.totals.rounds += 1
        self.open_subproblems.append(subproblem)
        return subproblem

    def close(self, subproblem: HostSubproblem) -> None:
        """Update what is around the innermost subproblem by its changes, and remove it."""
        if len(self.open_subproblems) > 1:
            self.open_subproblems[-2].absorb(subproblem)
        else:
            self._absorb(subproblem)
        self.open_subproblems.pop()

    def _absorb(self, subproblem: HostSubproblem) -> None:
        """Update dual vector and gradient of all variables by the changes of a subproblem."""
        moved = subproblem.changed()
        at = subproblem.variables[moved]
        change = subproblem.dual[moved] - self.dual[at]
        dual = self.dual.copy()
        dual[at] = subproblem.dual[moved]
        if subproblem.active == self.active:
            gradient = np.empty_like(dual)
            gradient[subproblem.variables] = subproblem.gradient
        else:
            if subproblem.precise:
                self.evaluations += self.active * len(at)
                product = self.problem.matrix.partial_product(self._everything, at, change)
            else:
                product = self.update_product(at, change)
            gradient = self.gradient - product
            gradient[at] -= self.ridge[at] * change
        self._current = dual, gradient  # both at once: Ctrl-C cannot separate them

    # ---- convergence checks ----------------------------------------------------------------------------------------

    def gap(self) -> float:
        """Return the duality gap of the current point."""
        return known_gap(self.problem, *self.point())

    def audit(self) -> float:
        """Return an upper estimate of the error of the violation: twice the largest error in a sample.

        The sample are the variables that may grow or fall at both ends of the violation and others evenly spread; their
        gradients are recomputed in double precision. An error too small to let a variable leave its bound does not
        count.
        """
        support = np.flatnonzero(self.dual)
        if not len(support):
            return 0.0
        growing, falling = slopes(self.dual, self.gradient, self.kink)
        up = np.where(self.dual < self.upper, growing, -np.inf)
        down = np.where(self.dual > self.lower, falling, np.inf)
        ends = [largest(values, AUDITED_AT_EACH_END, -np.inf) for values in (up, -down)]
        spread = np.arange(0, self.active, max(16, self.active // AUDITED_SPREAD))
        sample = np.unique(np.concatenate([*ends, spread]))
        errors = np.abs(self._precise_gradient(sample, support) - self.gradient[sample])
        self._largest_error = float(errors.max())
        return 2.0 * float(errors[self._could_move(sample, ERROR_SAFETY_FACTOR * errors)].max(initial=0.0))

    def refresh(self) -> None:
        """Recompute the gradients in double precision that could let a variable move, after an audit."""
        error = np.full(self.active, ERROR_SAFETY_FACTOR * self._largest_error)
        near = self._everything[self._could_move(self._everything, error)]
        gradient = self.gradient.copy()
        gradient[near] = self._precise_gradient(near, np.flatnonzero(self.dual))
        self._set(self.dual, gradient)
        self.refreshed = True

    def refresh_all(self) -> None:
        """Recompute all gradients and the dual objective in double precision."""
        self._set(self.dual, self._precise_gradient(self._everything, np.flatnonzero(self.dual)))

    def _precise_gradient(self, variables: Indices, support: Indices) -> Floats:
        """Return gradients in double precision."""
        self.evaluations += len(variables) * len(support)
        product = self.problem.matrix.partial_product(variables, support, self.dual[support])
        return self.linear[variables] - product - self.ridge[variables] * self.dual[variables]

    def _could_move(self, variables: Indices, error: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which variables could move if their gradients were off by `error`."""
        extremes = gradient_extremes(self.problem, self.dual, self.gradient)
        group, dual = self.group[variables], self.dual[variables]
        up, down = (slope[variables] for slope in slopes(self.dual, self.gradient, self.kink))
        growing = (dual < self.upper[variables]) & (up + error >= extremes.smallest[group])
        falling = (dual > self.lower[variables]) & (down - error <= extremes.largest[group])
        return np.asarray(growing | falling)

    # ---- the current point -----------------------------------------------------------------------------------------

    @property
    def dual(self) -> Floats:
        """The dual variables, without the changes in open subproblems."""
        return self._current[0]

    @property
    def gradient(self) -> Floats:
        """The gradient at `dual`."""
        return self._current[1]

    @property
    def innermost_size(self) -> int:
        """The number of variables of the innermost open subproblem, or of all if none is open."""
        return self.open_subproblems[-1].active if self.open_subproblems else self.active

    @property
    def dual_value(self) -> float:
        """The dual objective."""
        return self.totals.dual_value

    def free(self) -> Indices:
        """Return the variables off their bounds and kinks."""
        if self._free[0] is not self.dual:
            self._free = self.dual, np.flatnonzero(is_free(self.dual, self.lower, self.upper, self.kink))
        return self._free[1]

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        return len(self.free())

    def point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient with the changes in open subproblems; unknown gradients are infinite."""
        dual, gradient = self._current
        places, moved = self._everything, False
        if self.open_subproblems:
            dual = dual.copy()
        for subproblem in self.open_subproblems:
            places = places[subproblem.variables]
            moved |= bool(len(subproblem.changed()))
            dual[places] = subproblem.dual
        if moved:
            gradient = np.where(dual == self.upper, np.inf, -np.inf)
            gradient[places] = self.open_subproblems[-1].gradient
        return dual, gradient

    @property
    def has_full_gradient(self) -> bool:
        """Whether the gradient of all variables is known, or follows from values in memory."""
        if not self.open_subproblems:
            return True
        outer = self.open_subproblems[0]
        return outer.active == self.active and (len(self.open_subproblems) == 1 or outer.has_all_values)

    def full_point(self) -> tuple[Floats, Floats]:
        """Return dual vector and gradient like `point`, with the gradient of all variables."""
        dual, gradient = self.point()
        if self.open_subproblems:
            outer = self.open_subproblems[0]
            gradient = np.empty_like(dual)
            gradient[outer.variables] = outer.gradient_at(dual[outer.variables])
        return dual, gradient

    def _set(self, dual: Floats, gradient: Floats) -> None:
        self._current = dual, gradient
        self.totals.dual_value = self.problem.value(dual, gradient)
