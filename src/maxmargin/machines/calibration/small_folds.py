"""Decision values of held-out samples for small problems of two classes: all folds in one native call.

With many classes there are hundreds of problems of a few hundred samples, and posing each fold on its own takes longer
than solving it. Here the folds of a problem are rows of arrays. They share one table of kernel values: those of the
support vectors and of the variables most likely to change, with all samples. From it follow the gradients after
samples are held out, the matrix of the variables that change, and the decision values at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices, Singles
from maxmargin.formulations.formulation import Formulation
from maxmargin.problems import DualProblem
from maxmargin.solvers.smo.small_problem_batch import NO_GROUPS, NO_INDICES, NO_KINKS, SmallProblemBatch
from maxmargin.training import Session
from maxmargin.training.problem_scale import ProblemScale

#: Problems of more variables have enough work for one fold after the other.
MAX_SIZE = 2048

#: Up to this many variables the table has all rows: a part of them takes as long. Tuned on 26 generated classes in 16
#: dimensions and on mnist.
MAX_WHOLE_SIZE = 512

#: Rounds of solving; those after the first are for variables that violate the optimality conditions only then.
MAX_ROUNDS = 3


def applicable(problem: DualProblem, cache_bytes: int) -> bool:
    """Whether the folds of a problem are solved at once: two classes, finite bounds, no kinks, ordinary magnitudes."""
    one_sum = problem.groups == (0 if problem.ungrouped else 1) and not problem.total.any()
    small = problem.size <= MAX_SIZE and 16 * problem.size**2 <= cache_bytes
    return small and one_sum and problem.bounded and not problem.kinked and ProblemScale.of(problem) is None


class SmallFolds:
    """The folds of one problem; arrays have a row for each fold.

    Attributes
    ----------
    held : bool array
        Which variables are held out: their bounds are 0.
    dual, gradient : float arrays
        At first the solution of the whole problem without the held-out variables.
    offset : float array
        Of each fold.
    """

    def __init__(self, problem: DualProblem, dual: Floats, gradient: Floats, folds: Indices, threads: int) -> None:
        self.problem, self.threads = problem, threads
        self._start = dual, gradient
        self.held = folds == np.unique(folds)[:, None]
        self.lower, self.upper = (np.where(self.held, 0.0, bound) for bound in (problem.lower, problem.upper))
        self.dual = np.where(self.held, 0.0, dual)
        self.gradient = np.empty(self.dual.shape)
        self.offset = np.zeros(len(self.held))

    def solve(self, variables: Indices, tolerance: float, session: Session) -> bool:
        """Solve all folds over some variables and those that violate the optimality conditions then.

        Returns False if a fold is not solved: by infeasibility, too many steps, or the deadline.
        """
        chosen = np.zeros(self.problem.size, dtype=bool)
        chosen[variables] = True
        whole = self.problem.size <= MAX_WHOLE_SIZE
        rows = chosen | (self._start[0] != 0) | whole
        table = _KernelRows.of(self.problem, np.flatnonzero(rows))
        unfinished = np.arange(len(self.held))
        self._update_gradient(unfinished, table)
        for _ in range(MAX_ROUNDS):
            if not self._solve(unfinished, variables, table, tolerance, session):
                return False
            self._update_gradient(unfinished, table)
            late = self._violators(variables, tolerance)
            unfinished = np.flatnonzero(late.any(axis=1))
            if not len(unfinished):
                break
            chosen |= late.any(axis=0)
            variables = np.flatnonzero(chosen)
            table = table.extended(self.problem, chosen)
        return True

    def _solve(
        self, folds: Indices, variables: Indices, table: _KernelRows, tolerance: float, session: Session
    ) -> bool:
        """Solve some folds over some variables for the change of their dual vectors."""
        at, grouped = np.ix_(folds, variables), self.problem.groups == 1
        dual, linear = self.dual[at], self.gradient[at]
        lower, upper = self.lower[at] - dual, self.upper[at] - dual
        start: Floats | None = np.zeros(dual.shape)
        if grouped:
            start = restored_sums(-self.dual[folds].sum(axis=1), linear, lower, upper)
        if start is None:
            return False
        batch = SmallProblemBatch(
            values=table.square(variables, self.problem.curvature - self.problem.ridge),
            edges=len(variables) * np.arange(len(folds) + 1),
            rows=NO_INDICES,
            linear=linear.ravel(),
            lower=lower.ravel(),
            upper=upper.ravel(),
            ridge=np.tile(self.problem.ridge[variables], len(folds)),
            start=start.ravel(),
            groups=self.problem.groups,
            group=NO_GROUPS,
            kink=NO_KINKS,
        )
        # Without the equations of the free variables: the folds need no more digits.
        found = batch.solve(tolerance, self.threads, max_free=0, deadline=session.deadline.at)
        if found.interrupted or session.callback.stopped.is_set():
            raise KeyboardInterrupt
        if not found.all_finished().all():
            return False
        step = found.dual.reshape(dual.shape)
        moved = np.where(step == upper, self.upper[at], dual + step)
        self.dual[at] = np.where(step == lower, self.lower[at], moved)
        if grouped:
            self.offset[folds] = found.offsets[:, 0]
        return True

    def _update_gradient(self, folds: Indices, table: _KernelRows) -> None:
        """Compute the gradients of some folds from those of the whole problem and the changes since."""
        dual, gradient = self._start
        for fold in folds.tolist():
            change = self.dual[fold] - dual
            moved = np.flatnonzero(change[table.variables])
            updated = gradient - self.problem.ridge * change
            weights = change[table.variables[moved]]
            _native.subtract_rows(updated, table.values, moved, weights, len(updated), self.threads)
            self.gradient[fold] = updated

    def _violators(self, variables: Indices, tolerance: float) -> np.ndarray:
        """Return for each fold which variables other than these violate the optimality conditions."""
        slack = self.gradient - self.offset[:, None]
        late: np.ndarray = (slack > tolerance) & (self.dual < self.upper)
        late |= (slack < -tolerance) & (self.dual > self.lower)
        late[:, variables] = False
        return late

    def values(self, formulation: Formulation) -> Floats:
        """Return the decision value of each sample by the model without its fold."""
        values = np.empty(self.problem.size)
        for held, gradient, offset in zip(self.held, self.gradient, self.offset, strict=True):
            product = self.problem.linear - gradient
            expansion = formulation.expand(self.problem, product, np.full(self.problem.groups, offset))
            values[held] = expansion.coefficients[held] + expansion.offset
        return values


@dataclass(frozen=True)
class _KernelRows:
    """Float32 rows of the matrix for some variables, in ascending order."""

    variables: Indices
    values: Singles

    @classmethod
    def of(cls, problem: DualProblem, variables: Indices) -> _KernelRows:
        """Compute the rows of some variables."""
        values = np.empty((len(variables), problem.size), np.float32)
        columns = problem.matrix.float32_columns(np.arange(problem.size))
        columns.fill(variables, values, np.arange(len(variables)))
        return cls(variables, values)

    def extended(self, problem: DualProblem, chosen: np.ndarray) -> _KernelRows:
        """Return these rows and those of the chosen variables; only the ones that are missing are computed."""
        missing = chosen.copy()
        missing[self.variables] = False
        if not missing.any():
            return self
        more = self.of(problem, np.flatnonzero(missing))
        both = np.concatenate([self.variables, more.variables])
        order = np.argsort(both)
        return _KernelRows(both[order], np.concatenate([self.values, more.values])[order])

    def square(self, variables: Indices, diagonal: Floats) -> Floats:
        """Return the matrix of some of the variables."""
        rows = np.searchsorted(self.variables, variables)
        values = self.values[np.ix_(rows, variables)].astype(np.float64)
        np.fill_diagonal(values, diagonal[variables])
        return values


def restored_sums(missing: Floats, gradient: Floats, lower: Floats, upper: Floats) -> Floats | None:
    """Return steps within bounds that sum to `missing` in each row; None if the bounds do not allow it.

    The variables of the steepest ascent are moved to their bounds one after the other, so that few of them change.
    """
    sign = np.sign(missing)[:, None]
    room = np.where(sign > 0, upper, -lower)
    order = np.argsort(-sign * gradient, axis=1, kind="stable")
    room = np.take_along_axis(room, order, axis=1)
    reached = np.cumsum(room, axis=1)
    needed = np.abs(missing)[:, None]
    if (reached[:, -1:] < needed).any():
        return None
    steps = np.empty_like(room)
    np.put_along_axis(steps, order, sign * np.clip(needed - (reached - room), 0.0, room), axis=1)
    return steps
