"""Decision values and signs of samples that are left out of a dual problem, one at a time.

Leaving sample i out closes the bounds of its variable at 0. The solution of the whole problem remains optimal if the
variable is 0 already. For the others two properties of the optimum save work (derived in docs/mathematics.md):

* A loss that does not increase with y f can only lose: y_i f(x_i) of the model without sample i is at most that of the
  model with it. A sample on the wrong side of the boundary therefore stays there.
* Let F(v) be the least objective without sample i among all functions with f(x_i) = v. F is convex, so a function of
  an objective below F(0) has the sign of the optimum at x_i. F(0) is the optimum of a dual problem as well: the
  variable of the sample becomes unbounded and its linear term 0. Every feasible point of that bounds F(0) from below,
  so rough solutions prove signs: the model itself, whose objective without sample i is known, or a rough solution of
  the problem without the sample.

Tolerances decrease until every sign is proved. Where a value is within rounding errors of 0, it decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems.losses import residuals
from maxmargin.selection.common_point import MAX_ROUNDS, CommonPoint, moved
from maxmargin.selection.free_equations import FreeSteps
from maxmargin.selection.left_out_paths import LeftOutPaths
from maxmargin.selection.left_out_result import LeftOut, Report, chunks
from maxmargin.selection.restricted_problems import ExtendedTable, SolvedVariations, Variations

#: Tolerances on the violation, relative to the scale of the gradient, of the rounds in which signs are proved.
SIGN_TOLERANCES = (0.1, 0.03, 3e-3, 1e-4, 1e-6)

#: Solutions of the equations of the free variables in each of these rounds, and the pair steps in between.
NEWTON_STEPS, STEPS_BETWEEN = (0, 4, 6, 8, 16), 32

#: From this tolerance on the equations of the free variables are solved by the native solver as well.
EXACT_BELOW = 1e-4

#: The tolerance of pair steps between solutions of the equations.
FINE = 1e-6

#: The share of the gap above which a variable is added to the table.
MIN_SHARE = 0.01

#: Rounding errors of sums in float64, relative to the objective values.
ROUNDING = 1e-11

#: Rounding errors of the objective after a change, relative to the terms of its sum.
CHANGE_ROUNDING = 64 * DOUBLE_EPSILON

#: Changes of variables, for each of some samples.
Places = dict[int, tuple[Indices, Floats]]


class LeftOutSamples:
    """The samples of a problem, left out one at a time.

    Parameters
    ----------
    point : CommonPoint
    formulation : Formulation
    found : LeftOut
        Becomes the result.
    report : callable
    """

    def __init__(self, point: CommonPoint, formulation: Formulation, found: LeftOut, report: Report) -> None:
        self.point, self.formulation, self.found, self.report = point, formulation, found, report
        self.values = point.values(formulation)
        self.paths = LeftOutPaths(point, formulation, found, self.values, report)
        # Where the problems of undecided samples were left, by sample: variables and their changes.
        self._with_zero: Places = {}
        self._without: Places = {}

    def unchanged(self, samples: Indices) -> Indices:
        """Set the values of the samples whose variables are 0: they need nothing. Return the others."""
        point, found = self.point, self.found
        used = point.dual[point.used_variables(samples)] != 0
        same = samples[~used]
        found.values[same] = self.values[same]
        for sample in same[self._bound_offsets(same)].tolist():
            found.values[sample] = self._value_without_unused(sample)
        found.signs[same], found.proved[same] = np.where(found.values[same] >= 0, 1.0, -1.0), True
        self.report(len(same))
        others: Indices = samples[used]
        return others

    def _bound_offsets(self, samples: Indices) -> np.ndarray:
        """Return which samples are at an end of the interval of an offset."""
        point, at_end = self.point, np.zeros(len(samples), dtype=bool)
        second = point.second[samples]
        for own, there in ((samples, np.ones(len(samples), dtype=bool)), (second, second >= 0)):
            group = point.problem.group[own]
            for g in range(point.problem.groups):
                at_end |= there & (group == g) & np.isin(point.gradient[own], point.ends[:, g])
        return at_end

    def _value_without_unused(self, sample: int) -> float:
        """Return the value of a sample whose variables are 0, one of which bounds the offset.

        Where no other variable is free, all offsets of an interval are optimal without it.
        """
        point = self.point
        offset = point.offset_at(point.dual, point.gradient, point.variables_of(sample))
        return point.value_of(self.formulation, sample, point.gradient, offset)

    # Signs, of problems with at most one group, one variable a sample, and a loss that does not increase with y f.

    def find_signs(self, samples: Indices) -> None:
        """Prove the signs of the values of samples."""
        point, found = self.point, self.found
        label = np.sign(point.dual[samples])
        wrong = label * self.values[samples] <= 0
        found.signs[samples[wrong]], found.proved[samples[wrong]] = -label[wrong], True
        self.report(int(wrong.sum()))
        left = self.paths.prove_signs(samples[~wrong])
        for tolerance, newton in zip(SIGN_TOLERANCES, NEWTON_STEPS, strict=True):
            late = np.zeros(point.problem.size, dtype=bool)
            undecided = [self._prove(chunk, tolerance, newton, late) for chunk in chunks(left)]
            remaining = np.concatenate([np.empty(0, dtype=np.int64), *undecided])
            self.report(len(left) - len(remaining))
            left = remaining
            if not len(left):
                return
            point.add(late)
        self.report(len(left))  # values within rounding errors of 0

    def _prove(self, samples: Indices, tolerance: float, newton: int, late: np.ndarray) -> Indices:
        """Prove the signs of some samples; return the others, and set which variables violate optimality."""
        point, found = self.point, self.found
        table, place = self._table(samples)
        least, changes = self._least_with_zero(samples, table, place, tolerance)
        _keep(self._with_zero, samples, table, changes)
        size = abs(point.primal_value) + abs(point.dual_value)
        with_model = point.primal_value - point.loss[samples]
        proved = least > with_model + ROUNDING * size
        found.signs[samples[proved]] = np.sign(self.values[samples[proved]])
        found.proved[samples[proved]] = True
        if proved.all():
            return samples[:0]
        samples, least = samples[~proved], least[~proved]
        near = _kept(self._without, samples, table, changes[~proved])
        solved = self._solve_without(samples, table, tolerance, newton, near=near)
        _keep(self._without, samples, table, solved.changes)
        undecided = []
        gradients = table.gradients(point.gradient, solved.changes)
        for row, sample in enumerate(samples.tolist()):
            gradient, offset = gradients[row], solved.offsets[row]
            if not solved.feasible[row]:
                self._set_only_one_of_its_class(sample)
                continue
            dual = self._dual_after(sample, table, solved.changes[row])
            most, share = self._objective(sample, dual, gradient, offset)
            value = point.value_of(self.formulation, sample, gradient, offset)
            if least[row] > most + ROUNDING * size:
                found.signs[sample], found.proved[sample] = np.sign(value), True
                continue
            undecided.append(sample)
            late |= share > MIN_SHARE * share.sum()
            if tolerance == SIGN_TOLERANCES[-1]:
                middle = point.offset_at(dual, gradient, point.variables_of(sample))
                found.set_value(sample, point.value_of(self.formulation, sample, gradient, middle))
        return np.array(undecided, dtype=np.int64)

    def _least_with_zero(
        self, samples: Indices, table: ExtendedTable, place: Indices, tolerance: float
    ) -> tuple[Floats, Floats]:
        """Return a lower bound of F(0) for each sample, and the changes of the variables."""
        point, at, rows = self.point, table.variables, np.arange(len(samples))
        problem, dual = point.problem, point.dual
        gradient = np.tile(point.gradient[at], (len(samples), 1))
        ridge = np.tile(problem.ridge[at], (len(samples), 1))
        own, linear, of_ridge = dual[samples], problem.linear[samples], problem.ridge[samples]
        gradient[rows, place] += of_ridge * own - linear
        ridge[rows, place] = 0.0
        lower = np.tile((problem.lower - dual)[at], (len(samples), 1))
        upper = np.tile((problem.upper - dual)[at], (len(samples), 1))
        most = np.abs(dual).sum() + np.abs(own)
        lower[rows, place], upper[rows, place] = -most, most
        missing = np.zeros((len(samples), problem.groups))
        near = _kept(self._with_zero, samples, table, np.zeros(gradient.shape))
        solved = Variations(table, gradient, lower, upper, ridge, missing, near).solve(
            tolerance * point.scale, tolerance <= EXACT_BELOW, point.threads
        )
        self.found.solves += len(samples)
        gain = 0.5 * np.einsum("ij,ij->i", solved.changes, gradient + solved.gradients)
        sizes = np.abs(solved.changes).sum(axis=1)
        largest = float(problem.curvature.max()) * sizes + np.abs(gradient).max(axis=1)
        gain -= CHANGE_ROUNDING * sizes * largest
        return point.dual_value - linear * own + 0.5 * of_ridge * own * own + gain, solved.changes

    def _objective(self, sample: int, dual: Floats, gradient: Floats, offset: Floats) -> tuple[float, Floats]:
        """Return the objective without a sample, an upper bound of its optimum, and the shares of the gap."""
        problem = self.point.problem
        slack = problem.minus_groups(gradient + problem.ridge * dual, offset)
        share = residuals(problem, dual, slack)
        share[sample] = 0.0
        change_of_value = 0.5 * float((dual - self.point.dual) @ (self.point.gradient + gradient))
        return float(self.point.dual_value + change_of_value + share.sum()), share

    # Values.

    def find_values(self, samples: Indices, totals: Floats) -> None:
        """Solve the problem without each of the samples to the tolerance; `totals` are the sums without each."""
        left, point = self.paths.find_values(samples, totals), self.point
        for attempt in range(MAX_ROUNDS):
            late = np.zeros(point.problem.size, dtype=bool)
            undecided = [self._solve_to_tolerance(chunk, totals, late) for chunk in chunks(left)]
            remaining = np.concatenate([np.empty(0, dtype=np.int64), *undecided])
            last = attempt == MAX_ROUNDS - 1 or not point.add(late)
            self.report(len(left) if last else len(left) - len(remaining))
            left = remaining
            if last:
                return

    def _solve_to_tolerance(self, samples: Indices, totals: Floats, late: np.ndarray) -> Indices:
        """Set the values of some samples; return those in which other variables violate optimality."""
        point, unsolved = self.point, []
        table, _ = self._table(samples)
        solved = self._solve_without(samples, table, 0.1 * point.tolerance, 0, totals)
        gradients = table.gradients(point.gradient, solved.changes)
        for row, sample in enumerate(samples.tolist()):
            if not solved.feasible[row]:
                self._set_only_one_of_its_class(sample)
                continue
            gradient, dual = gradients[row], self._dual_after(sample, table, solved.changes[row])
            own = point.variables_of(sample)
            offset = point.offset_at(dual, gradient, own)
            out = point.violators(dual, gradient, offset, point.tolerance)
            out[own] = out[table.variables] = False
            self.found.set_value(sample, point.value_of(self.formulation, sample, gradient, offset))
            if out.any():
                unsolved.append(sample)
                late |= out
        return np.array(unsolved, dtype=np.int64)

    # Both.

    def _table(self, samples: Indices) -> tuple[ExtendedTable, Indices]:
        """Return the table of the common variables and those of some samples, and the places of the latter."""
        point = self.point
        own = np.concatenate([point.variables_of(sample) for sample in samples.tolist()])
        table = point.table.extended(np.setdiff1d(own, point.variables))
        order = np.argsort(table.variables)
        return table, order[np.searchsorted(table.variables, samples, sorter=order)]

    def _solve_without(
        self,
        samples: Indices,
        table: ExtendedTable,
        tolerance: float,
        newton: int,
        totals: Floats | None = None,
        near: Floats | None = None,
    ) -> SolvedVariations:
        """Solve the problem without each of some samples over the variables of a table."""
        point, at = self.point, table.variables
        problem, dual = point.problem, point.dual
        lower = np.tile((problem.lower - dual)[at], (len(samples), 1))
        upper = np.tile((problem.upper - dual)[at], (len(samples), 1))
        order = np.argsort(at)
        for row, sample in enumerate(samples.tolist()):
            own = point.variables_of(sample)
            places = order[np.searchsorted(at, own, sorter=order)]
            lower[row, places] = upper[row, places] = -dual[own]
        total = np.tile(problem.total, (len(samples), 1)) if totals is None else totals[samples]
        missing = total - problem.group_sums(dual)
        gradient = np.tile(point.gradient[at], (len(samples), 1))
        ridge = np.tile(problem.ridge[at], (len(samples), 1))
        self.found.solves += len(samples)
        posed = Variations(table, gradient, lower, upper, ridge, missing, near)
        solved = posed.solve(tolerance * point.scale, tolerance <= EXACT_BELOW, point.threads)
        if not newton or point.inverse is None:
            return solved
        equations = FreeSteps(point.inverse, at, table.square)
        for _ in range(newton):
            posed = replace(posed, near=equations.stepped(solved.changes, solved.gradients, lower, upper))
            solved = posed.solve(FINE * point.scale, False, point.threads, STEPS_BETWEEN)
        return solved

    def _dual_after(self, sample: int, table: ExtendedTable, change: Floats) -> Floats:
        """Return the dual vector after a change, without the sample."""
        point, at = self.point, table.variables
        dual = point.dual.copy()
        dual[at] = moved(dual[at], change, point.problem.lower[at], point.problem.upper[at])
        dual[point.variables_of(sample)] = 0.0
        return dual

    def _set_only_one_of_its_class(self, sample: int) -> None:
        """Without the sample its class has none: the model is f = ∓1, the other class."""
        value = -np.sign(self.point.dual[sample]) or 1.0
        self.found.set_value(sample, value)
        self.found.proved[sample] = True


def _keep(places: Places, samples: Indices, table: ExtendedTable, changes: Floats) -> None:
    """Remember the changes of the variables of a table, for each sample."""
    for sample, change in zip(samples.tolist(), changes, strict=True):
        moving = np.flatnonzero(change)
        places[sample] = table.variables[moving], change[moving]


def _kept(places: Places, samples: Indices, table: ExtendedTable, otherwise: Floats) -> Floats:
    """Return the changes that were remembered, for the variables of another table; others are those given."""
    order = np.argsort(table.variables)
    for row, sample in enumerate(samples.tolist()):
        if sample in places:
            variables, change = places[sample]
            at = np.minimum(np.searchsorted(table.variables, variables, sorter=order), len(order) - 1)
            found = table.variables[order[at]] == variables
            otherwise[row] = 0.0
            otherwise[row, order[at[found]]] = change[found]
    return otherwise
