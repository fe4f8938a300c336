"""Values and proved signs of left-out samples, from the paths along which they are removed.

Let V(a) be the largest dual value of points at which the variable of sample i is a, less its linear term and ridge, and
φ(a) the value of that function at x_i. V is concave with the derivative −φ (docs/mathematics.md):

* φ is monotone, so a path can stop as soon as φ has another sign than the label.
* V at any a beyond 0 is a lower bound of F(0) (`left_out`). Paths on which only the free variables move give one that
  costs next to nothing, and prove most of the signs that do not change.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.selection.common_point import MAX_ROUNDS, CommonPoint
from maxmargin.selection.left_out_result import LeftOut, Report, chunks
from maxmargin.selection.removal_checks import CheckedEnds, OptimalityCheck
from maxmargin.selection.removal_errors import SlackErrors
from maxmargin.selection.removal_paths import End, Goal, RemovalPaths, can_remove
from maxmargin.selection.removal_proofs import feasible, proved_gains, proved_signs

#: Samples whose paths are followed in one native call.
CHUNK = 1024

#: Rounding errors of sums in float64, relative to the objective values.
ROUNDING = 1e-11


class LeftOutPaths:
    """The samples of a problem, left out along paths.

    Parameters
    ----------
    point : CommonPoint
    formulation : Formulation
    found : LeftOut
        Becomes the result.
    values : float array
        Of all samples at the common point.
    report : callable
    """

    def __init__(
        self, point: CommonPoint, formulation: Formulation, found: LeftOut, values: Floats, report: Report
    ) -> None:
        self.point, self.formulation, self.found, self.values, self.report = point, formulation, found, values, report
        self.unit = point.unit(formulation)

    def prove_signs(self, samples: Indices) -> Indices:
        """Prove the signs of samples whose sign at the common point is that of their label; return the others."""
        if not can_remove(self.point):
            return samples
        left = self._prove_by_gain(samples)
        return self._follow(left, Goal.SIGN, None)

    def find_values(self, samples: Indices, totals: Floats) -> Indices:
        """Find the values of samples, given the totals without each; return the others."""
        point = self.point
        if not can_remove(point):
            return samples
        both = np.zeros(point.count, dtype=bool)
        second = point.second >= 0
        both[second] = (point.dual[: point.count][second] != 0) & (point.dual[point.second[second]] != 0)
        left = self._follow(samples[~both[samples]], Goal.VALUE, totals - point.problem.total)
        return np.concatenate([samples[both[samples]], left])

    def _prove_by_gain(self, samples: Indices) -> Indices:
        """Prove the signs that do not change, from the free variables alone; return the other samples."""
        point, found = self.point, self.found
        linear, ridge, dual = (a[samples] for a in (point.problem.linear, point.problem.ridge, point.dual))
        without = point.dual_value - linear * dual + 0.5 * ridge * dual * dual
        size = abs(point.primal_value) + abs(point.dual_value)
        gains = point.primal_value - point.loss[samples] - without + ROUNDING * size
        paths = RemovalPaths(point, np.empty(0, dtype=np.int64))
        errors, proved = SlackErrors(paths), np.zeros(len(samples), dtype=bool)
        for places in chunks(np.arange(len(samples)), CHUNK):
            removed = paths.remove(samples[places], Goal.BOUND, gains=gains[places])
            places, removed = places[removed.end == End.PROVED], removed.at(np.flatnonzero(removed.end == End.PROVED))
            removed = feasible(errors, removed, samples[places])[0]
            proved[places] = proved_gains(errors, removed, samples[places]) > gains[places]
        self._set_signs(samples[proved], self.values[samples[proved]])
        found.solves += len(samples)
        self.report(int(proved.sum()))
        left: Indices = samples[~proved]
        return left

    def _follow(self, samples: Indices, goal: Goal, missing: Floats | None) -> Indices:
        """Follow the paths of samples to a goal; return those that are not known then."""
        point, left = self.point, samples
        assert point.inverse is not None
        point.rows.add(point.variables)
        point.rows.add(point.used_variables(left))
        paths = RemovalPaths(point, np.setdiff1d(point.variables, point.inverse.variables))
        for _ in range(MAX_ROUNDS):
            late = np.zeros(point.problem.size, dtype=bool)
            undecided, check = [], OptimalityCheck(paths, self.unit)
            for chunk in chunks(left, CHUNK):
                variables = point.used_variables(chunk)
                removed = paths.remove(variables, goal, missing=None if missing is None else missing[chunk])
                partner = np.zeros(len(chunk), dtype=np.int64)
                if goal is Goal.SIGN:
                    removed, partner = feasible(check.errors, removed, variables)
                ends = check.check(removed, variables)
                late |= ends.late.any(axis=0)
                if goal is Goal.VALUE:
                    known = self._use_values(chunk, ends)
                else:
                    known = self._use_signs(chunk, ends, check.errors, partner)
                undecided.append(chunk[~known])
                self.found.solves += len(chunk)
            remaining = np.concatenate([np.empty(0, dtype=np.int64), *undecided])
            self.report(len(left) - len(remaining))
            left = remaining
            more = np.setdiff1d(np.flatnonzero(late), paths.variables)
            if not len(left) or not len(more):
                break
            paths.add(more)
        return left

    def _use_signs(self, samples: Indices, ends: CheckedEnds, errors: SlackErrors, partner: Indices) -> np.ndarray:
        """Set the signs of samples that the ends of their paths prove; return which."""
        rows = np.flatnonzero(ends.optimal)
        removed, proved = proved_signs(errors, ends.removed.at(rows), samples[rows], partner[rows], ends.shares[rows])
        self._set_signs(samples[rows[proved]], removed.values[proved])
        known = np.zeros(len(samples), dtype=bool)
        known[rows[proved]] = True
        return known

    def _use_values(self, samples: Indices, ends: CheckedEnds) -> np.ndarray:
        """Set the values of samples whose paths have ended; return which are known."""
        removed, point = ends.removed, self.point
        known = ends.optimal & removed.unique
        variables = point.used_variables(samples)
        for row in np.flatnonzero(known).tolist():
            sample, variable = int(samples[row]), int(variables[row])
            found = point.value_from(
                self.formulation, sample, variable, float(removed.values[row]), removed.offsets[row]
            )
            self.found.set_value(sample, found)
        return np.asarray(known)

    def _set_signs(self, samples: Indices, values: Floats) -> None:
        self.found.signs[samples], self.found.proved[samples] = np.sign(values), True
