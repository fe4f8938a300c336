"""The solution of a problem to a small tolerance, from which variations of the problem are solved."""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.problems.losses import conjugate, residuals
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.selection.free_equations import MAX_FREE, FreeInverse
from maxmargin.selection.kernel_rows import KernelRows
from maxmargin.selection.restricted_problems import KernelTable, Variations

#: The violation of the common point relative to the tolerance of values.
POINT_TOLERANCE = 1e-3

#: Variables of the table: at least so many, and so many times the free variables.
MIN_VARIABLES, VARIABLES_PER_FREE = 500, 1.5

#: Rounding errors of a dual variable, relative to the distance of its bounds.
ROUNDING = 1e-12

#: Solutions of the equations of the free variables, the second of which removes rounding errors of the first.
NEWTON_STEPS = 2

#: The violation of an exact solution, relative to the scale of the gradient.
EXACT_TOLERANCE = 1e-9

#: Rounds in which variables that violate optimality are added.
MAX_ROUNDS = 12


class CommonPoint:
    """A solution, in a problem without kinks: with one, a sample has two variables (`SplitProblem`).

    Parameters
    ----------
    whole : DualProblem
    count : int
        Of samples. If there are twice as many variables, the second half has another one for each sample.
    dual : float array
        A solution within the tolerance of a fit; the sums of groups may differ from the totals.
    tolerance : float
        Of values, relative to the scale of the gradient.
    cache_bytes, threads : int

    Attributes
    ----------
    problem : DualProblem
        The problem without kinks and with finite bounds.
    second : int array
        The second variable of each sample, −1 for none; the first ones have the numbers of the samples.
    dual, gradient, offset : float arrays
    ends : float array of shape (2, groups)
        Of the interval of the offset of each group.
    primal_value, dual_value : float
        The objective values.
    loss : float array
        Of each variable in the primal.
    scale : float
        Of the gradient.
    rows : KernelRows
    variables : int array
        Those that are free or close to leaving their bounds, in ascending order.
    table : KernelTable
        Of these variables.
    """

    def __init__(
        self, whole: DualProblem, count: int, dual: Floats, tolerance: float, cache_bytes: int, threads: int
    ) -> None:
        split = SplitProblem.of(whole)
        self.whole, self.count, self.tolerance = whole, count, tolerance
        self.second = np.full(count, -1, dtype=np.int64)
        with_two = split.kinked if whole.size == count else np.arange(count)
        self.second[with_two] = count + np.arange(len(with_two))
        self.threads = threads
        self.problem = bounded(split.problem, dual)
        self.rows = KernelRows(self.problem, cache_bytes // 2, threads)
        self.dual = np.clip(split.dual(dual), self.problem.lower, self.problem.upper)
        self.gradient = self._gradient_at(self.dual)
        self.scale = float(np.abs(whole.linear).max()) or float(np.abs(self.gradient).max()) or 1.0
        self.offset = interval_midpoint(*offset_bounds(self.problem, self.dual, self.gradient))
        self.variables = self._nearest()
        self.table = KernelTable(self.rows, self.variables)
        self.inverse = self._invert()
        if not self._solve_equations():
            self._polish()
            self.inverse = self._invert()
            self._solve_equations()
        self.ends = self._interval(self.dual, self.gradient, np.empty(0, dtype=np.int64))
        if self.problem.groups and (self.ends[0] <= self.ends[1]).all():
            self.offset = interval_midpoint(*self.ends)
        slack = self.gradient + self.problem.ridge * self.dual - self.problem.expand_groups(self.offset)
        self.loss = conjugate(self.problem, slack)
        self.dual_value = self.problem.value(self.dual, self.gradient)
        self.primal_value = self.dual_value + float(residuals(self.problem, self.dual, slack).sum())

    def _gradient_at(self, dual: Floats) -> Floats:
        """Return the gradient, from rows that will be needed anyway, if there is memory for them."""
        free = (dual > self.problem.lower) & (dual < self.problem.upper)
        # The rows of the free variables are next to each other: they are read together most often.
        used = np.concatenate([np.flatnonzero(free), np.flatnonzero(~free & (dual != 0))])
        if not self.rows.add(used):
            return self.problem.gradient(dual)
        return np.asarray(self.problem.linear - self.rows.decrease(used, dual[used]))

    def _nearest(self) -> Indices:
        problem, dual = self.problem, self.dual
        at_bound = (dual == problem.lower) | (dual == problem.upper)
        count = max(MIN_VARIABLES, int(VARIABLES_PER_FREE * np.sum(~at_bound)))
        if count >= problem.size:
            return np.arange(problem.size)
        distance = np.where(at_bound, np.abs(problem.minus_groups(self.gradient, self.offset)), 0.0)
        return np.sort(np.argpartition(distance, count)[:count])

    def _invert(self) -> FreeInverse | None:
        problem, dual = self.problem, self.dual
        free = np.flatnonzero((dual > problem.lower) & (dual < problem.upper))
        if len(free) > MAX_FREE:
            return None
        try:
            inverse = FreeInverse(problem, free, self.rows.block(free, free), self.threads)
        except np.linalg.LinAlgError:  # the equations are singular
            return None
        inverse.places = np.searchsorted(self.variables, free)
        return inverse

    def _solve_equations(self) -> bool:
        """Solve the equations of the free variables; return whether all others then satisfy optimality."""
        if self.inverse is None or not len(self.inverse.variables):
            return False
        problem, free = self.problem, self.inverse.variables
        for _ in range(NEWTON_STEPS):
            slack = problem.minus_groups(self.gradient, self.offset)[free]
            rhs = np.concatenate([slack, problem.total - problem.group_sums(self.dual)])
            step = self.inverse.solve(rhs[:, None])[:, 0]
            dual = self.dual[free] + step[: len(free)]
            if not ((dual > problem.lower[free]) & (dual < problem.upper[free])).all():
                return False
            gradient = self.gradient - self.rows.decrease(free, dual - self.dual[free])
            self.dual[free], self.gradient = dual, gradient
            self.offset = self.offset + step[len(free) :]
        return not self.violators(self.dual, self.gradient, self.offset, EXACT_TOLERANCE).any()

    def add(self, others: np.ndarray) -> bool:
        """Add variables to the table; return whether there were any that it did not have."""
        missing = np.setdiff1d(np.flatnonzero(others), self.variables)
        if len(missing):
            self.variables = np.sort(np.concatenate([self.variables, missing]))
            self.table = KernelTable(self.rows, self.variables)
            if self.inverse is not None:
                self.inverse.places = np.searchsorted(self.variables, self.inverse.variables)
        return bool(len(missing))

    def _polish(self) -> None:
        problem = self.problem
        for _ in range(MAX_ROUNDS):
            at = self.variables
            one = Variations(
                self.table.extended(np.empty(0, dtype=np.int64)),
                self.gradient[None, at],
                (problem.lower - self.dual)[None, at],
                (problem.upper - self.dual)[None, at],
                problem.ridge[None, at],
                (problem.total - problem.group_sums(self.dual))[None],
            )
            solved = one.solve(POINT_TOLERANCE * self.tolerance * self.scale, True, self.threads)
            if not solved.feasible[0]:
                if not self.add(np.ones(problem.size, dtype=bool)):
                    break
                continue
            self.dual[at] = moved(self.dual[at], solved.changes[0], problem.lower[at], problem.upper[at])
            self.gradient = self._gradient_at(self.dual)
            self.offset = solved.offsets[0]
            late = self.violators(self.dual, self.gradient, self.offset, 10 * POINT_TOLERANCE * self.tolerance)
            late[at] = False
            if not self.add(late):
                break

    def violators(self, dual: Floats, gradient: Floats, offset: Floats, tolerance: float) -> np.ndarray:
        """Return which variables violate the optimality conditions by more than a relative tolerance."""
        slack = self.problem.minus_groups(gradient, offset)
        late: np.ndarray = (slack > tolerance * self.scale) & (dual < self.problem.upper)
        late |= (slack < -tolerance * self.scale) & (dual > self.problem.lower)
        return late

    def variables_of(self, sample: int) -> Indices:
        """Return the variables of a sample: one, or two where there is a kink."""
        second = int(self.second[sample])
        return np.array([sample, second] if second >= 0 else [sample], dtype=np.int64)

    def used_variables(self, samples: Indices) -> Indices:
        """Return the variable of each sample that is not 0; of those that have none, the first."""
        second = self.second[samples]
        uses_second = (second >= 0) & (self.dual[samples] == 0) & (self.dual[second] != 0)
        return np.where(uses_second, second, samples)

    def combined_dual(self) -> Floats:
        """Return the dual vector with one variable for each sample."""
        dual, two = self.dual[: self.count].copy(), self.second >= 0
        dual[two] += self.dual[self.second[two]]
        return dual

    def offset_at(self, dual: Floats, gradient: Floats, closed: Indices) -> Floats:
        """Return the offsets at a point in whose problem some variables are closed."""
        return interval_midpoint(*self._interval(dual, gradient, closed))

    def _interval(self, dual: Floats, gradient: Floats, closed: Indices) -> Floats:
        """Return the ends of the intervals of the offsets, a column for each group."""
        problem = self.problem
        slopes_up, slopes_down = (
            np.where(open_, gradient, worst)
            for open_, worst in ((dual < problem.upper, -np.inf), (dual > problem.lower, np.inf))
        )
        slopes_up[closed], slopes_down[closed] = -np.inf, np.inf
        ends = np.array([np.full(problem.groups, -np.inf), np.full(problem.groups, np.inf)])
        for g in range(problem.groups):
            members = problem.members(g)
            ends[:, g] = slopes_up[members].max(initial=-np.inf), slopes_down[members].min(initial=np.inf)
        return ends

    def value_of(self, formulation: Formulation, sample: int, gradient: Floats, offset: Floats) -> float:
        """Return the decision value of a sample at a point where its variables are 0."""
        return self._value(formulation, sample, float(self.problem.linear[sample] - gradient[sample]), offset)

    def value_from(self, formulation: Formulation, sample: int, variable: int, value: float, offset: Floats) -> float:
        """Return the decision value of a sample, given linear − ridge b − slack of one of its variables."""
        group = self.problem.group[variable]
        product = value - (float(offset[group]) if group >= 0 else 0.0)
        return self._value(formulation, variable if variable < self.whole.size else sample, product, offset)

    def _value(self, formulation: Formulation, variable: int, product: float, offset: Floats) -> float:
        products = np.zeros(self.whole.size)
        products[variable] = product  # is scaled like the dual vector
        expansion = formulation.expand(self.whole, products, offset)
        return float(expansion.coefficients[variable % self.count] + expansion.offset)

    def unit(self, formulation: Formulation) -> float:
        """Return how much of a slack a decision value of 1 is, times the scale of the targets.

        Without a linear term decision values are relative to a margin, which may be much smaller than the gradient.
        """
        if self.whole.linear.any():
            return self.scale
        factor = np.abs(formulation.expand(self.whole, np.ones(self.whole.size), self.offset).coefficients).max()
        return float(min(self.scale, 1.0 / factor)) if factor > 0 else self.scale

    def values(self, formulation: Formulation) -> Floats:
        """Return the decision values of all samples at the common point."""
        size = self.whole.size
        product = (self.problem.linear - self.gradient - self.problem.ridge * self.dual)[:size]
        product[self.count :] = 0.0
        expansion = formulation.expand(self.whole, product, self.offset)
        return np.asarray(expansion.coefficients + expansion.offset)


def bounded(problem: DualProblem, dual: Floats) -> DualProblem:
    """Return the problem with finite bounds, which no solution of fewer samples reaches."""
    if problem.bounded:
        return problem
    # With fewer samples a hard margin does not shrink, so the sum of its dual variables does not grow.
    largest = 10.0 * float(np.abs(dual).sum()) + 1.0
    lower, upper = np.maximum(problem.lower, -largest), np.minimum(problem.upper, largest)
    return DualProblem(problem.matrix, problem.linear, lower, upper, problem.ridge, problem.group, problem.total)


def moved(dual: Floats, change: Floats, lower: Floats, upper: Floats) -> Floats:
    """Return the changed dual variables, exactly at the bounds that they have reached up to rounding errors."""
    at = dual + change
    close = ROUNDING * (upper - lower)
    at = np.where(upper - at <= close, upper, at)
    return np.asarray(np.where(at - lower <= close, lower, at))
