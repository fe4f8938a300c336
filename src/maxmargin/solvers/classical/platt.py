"""Platt's sequential minimal optimisation (1998): two loops, an error cache, and clipping to [L, H].

    repeat  examine all samples, then repeatedly those between their bounds, until nothing changes;
            if an examination of all changes nothing, stop
    examine i:  if its error E_i = f(x_i) − y_i violates the KKT conditions by more than a tolerance, step with
            1. the j between its bounds with the largest |E_i − E_j|, or if that does not move,
            2. any j between its bounds, starting at random, or if none moves,
            3. any j at all, starting at random
    step    α_i += y_i (E_j − E_i) / η, clipped to [L, H], and α_j so that the sum stays;   η = K_ii + K_jj − 2 K_ij

In the signed dual b = yα, errors are gradients relative to the offset, E = −(g − ρ), and the step is

    b_i += t,  b_j −= t,  t = (g_i − g_j) / η, at least max(lower_i − b_i, b_j − upper_j)
                                               at most  min(upper_i − b_i, b_j − lower_j)

That is L and H for equal and for opposite labels in one line (docs/mathematics.md §16), so it holds for every problem
with groups: pairs come from one group, each group has its offset, and a variable in no group moves alone. The error
cache holds all samples, where Platt kept those between their bounds to save memory. And any change counts as progress,
where Platt requires a thousandth of α: with that a small tolerance cannot be reached.

Keerthi et al. (2001) showed that a single offset, taken from the last step, misleads: Platt's tolerance holds for some
offset if the violation (1.11) is at most twice as large, but the current one may be another. So the tolerance here is
half of the requested violation, and the run ends when the violation is reached, as with every other solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices import CachedMatrix
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.solvers.classical.dual_ascent import DualAscentRun
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Steps, and steps per variable, within which the violation must halve.
STALL_STEPS, STALL_STEPS_PER_VARIABLE = 200_000, 100


@dataclass(frozen=True)
class PlattSolver:
    """Sequential minimal optimisation as Platt wrote it.

    Parameters
    ----------
    random_state : int
        Seed of the starting places of the loops over partners.
    cache_bytes : int
        Memory for rows of the matrix. The result does not depend on it.
    stopping : StoppingRule
        When to stop; half of its violation is Platt's tolerance.
    """

    random_state: int = 0
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        rows = CachedMatrix(problem.matrix, self.cache_bytes)
        random = np.random.default_rng(self.random_state)
        return _PlattRun(problem, start, Monitor(self.stopping, callback), rows, random).solve()


class Variable(NamedTuple):
    """A variable and its bounds."""

    value: float
    lower: float
    upper: float

    def moved(self, step: float, up: float, down: float) -> float:
        """Return the value after a step; at the steps `up` and `down` it is exactly at a bound (1.7.4.1)."""
        value = self.value + step
        if step >= up or (np.isfinite(self.upper) and self.upper - value <= BOUND_TOLERANCE * abs(self.upper)):
            return self.upper
        if step <= down or (np.isfinite(self.lower) and value - self.lower <= BOUND_TOLERANCE * abs(self.lower)):
            return self.lower
        return value


def clipped_step(slope: float, curvature: float, low: float, high: float) -> float:
    """Return the t in [low, high] of the largest gain slope·t − ½ curvature t²: Newton's, clipped, or an end."""
    if curvature > 0:
        return min(max(slope / curvature, low), high)

    def gain(step: float) -> float:
        if np.isinf(step):
            return np.inf if curvature < 0 or slope * step > 0 else -np.inf
        return slope * step - 0.5 * curvature * step**2

    return high if gain(high) >= gain(low) else low


def clipped_pair(first: Variable, second: Variable, slope: float, curvature: float) -> tuple[float, float, float]:
    """Return the step t of a pair and its new values: `first` moves by t, `second` by −t.

    `low` and `high` are L and H of the first variable, relative to its value.
    """
    up_first, down_first = first.upper - first.value, first.lower - first.value
    up_second, down_second = second.upper - second.value, second.lower - second.value
    low, high = max(down_first, -up_second), min(up_first, -down_second)
    step = clipped_step(slope, curvature, low, high)
    if not np.isfinite(step):
        return step, first.value, second.value
    return step, first.moved(step, up_first, down_first), second.moved(-step, up_second, down_second)


class _PlattRun(DualAscentRun):
    """One run; `offset` is Platt's threshold, one for each group."""

    def __init__(
        self,
        problem: DualProblem,
        start: Floats | None,
        monitor: Monitor,
        rows: CachedMatrix,
        random: np.random.Generator,
    ) -> None:
        super().__init__(problem, start, monitor, STALL_STEPS + STALL_STEPS_PER_VARIABLE * problem.size)
        self._rows, self._random = rows, random
        self._curvature = problem.curvature
        self._tolerance = 0.5 * self.rule.violation
        self.offset = np.zeros(problem.groups)

    def iterate(self) -> Status:
        examine_all = True
        while True:
            self.check_limits()
            if (status := self.final_status(self.violation())) is not None:
                return status
            changed = self._examine_samples(examine_all)
            if examine_all and not changed:
                # Nothing moves although the violation is too large: rounding, in the gradient or in the steps.
                if (status := self.status_of_failed_step()) is not None:
                    return status
                self.offset = interval_midpoint(*offset_bounds(self.problem, *self.point))
            examine_all = not changed and not examine_all

    def counters(self) -> Counters:
        rows = self._rows
        return Counters(
            self.iterations,
            self.evaluations + rows.evaluations,
            rows.hits,
            rows.misses,
            seconds=self.monitor.seconds,
        )

    def _between_bounds(self) -> np.ndarray:
        between: np.ndarray = (self.dual > self.problem.lower) & (self.dual < self.problem.upper)
        return between

    def _examine_samples(self, examine_all: bool) -> int:
        """Examine all samples in order, or those between their bounds; return how many moved."""
        changed, start = 0, 0
        while True:
            violating = self._violating() if examine_all else self._violating() & self._between_bounds()
            ahead = violating[start:]
            index = start + int(ahead.argmax()) if len(ahead) else 0
            if not len(ahead) or not violating[index]:
                return changed
            changed += self._examine(index)
            start = index + 1

    def _violating(self) -> np.ndarray:
        """Return which variables violate the KKT conditions by more than the tolerance, with the current offset."""
        problem, (dual, gradient) = self.problem, self.point
        error = problem.expand_groups(self.offset) - gradient
        violating: np.ndarray = ((error < -self._tolerance) & (dual < problem.upper)) | (
            (error > self._tolerance) & (dual > problem.lower)
        )
        return violating

    def _examine(self, index: int) -> bool:
        """Step with the first partner that lets the variable move; return whether one did."""
        if self.problem.group[index] < 0:
            return self._step_of_one(index)
        return any(self._step(index, partner) for partner in self._partners(index))

    def _partners(self, index: int) -> Iterator[int]:
        """Yield partners in the order of Platt's hierarchy; only those with which the dual can rise."""
        problem, (dual, gradient) = self.problem, self.point
        slope = gradient[index] - gradient
        up, down = dual < problem.upper, dual > problem.lower
        rises = (slope > 0) & down if up[index] else np.zeros(len(dual), dtype=bool)
        if down[index]:
            rises |= (slope < 0) & up
        rises &= problem.group == problem.group[index]
        between = np.flatnonzero(rises & up & down)
        if len(between) > 1:
            yield int(between[np.abs(slope[between]).argmax()])
        for candidates in (between, np.flatnonzero(rises)):
            yield from self._from_random_start(candidates)

    def _from_random_start(self, candidates: Indices) -> Iterator[int]:
        if len(candidates):
            first = int(self._random.integers(len(candidates)))
            yield from (int(k) for k in np.roll(candidates, -first))

    def _step(self, i: int, j: int) -> bool:
        """Move a pair to the maximum of D along it, clipped to the box; return whether it moved."""
        problem, gradient = self.problem, self.point[1]
        rows = self._rows.rows(np.array([i, j]))
        curvature = float(self._curvature[i] + self._curvature[j] - 2.0 * rows[0, j])
        step, *values = clipped_pair(self._variable(i), self._variable(j), float(gradient[i] - gradient[j]), curvature)
        if not np.isfinite(step):
            raise SolverStoppedError(Status.UNBOUNDED)
        if not self._set([i, j], values, gradient - step * (rows[0] - rows[1]), np.array([step, -step])):
            return False
        # The offset that makes the error of a sample between its bounds 0; the mean of two if neither is.
        between = [k for k in (j, i) if problem.lower[k] < self.dual[k] < problem.upper[k]]
        updated = self.point[1]
        self.offset[problem.group[i]] = updated[between[0]] if between else 0.5 * (updated[i] + updated[j])
        return True

    def _step_of_one(self, i: int) -> bool:
        """Move a variable in no group."""
        gradient, variable = self.point[1], self._variable(i)
        up, down = variable.upper - variable.value, variable.lower - variable.value
        step = clipped_step(float(gradient[i]), float(self._curvature[i]), down, up)
        if not np.isfinite(step):
            raise SolverStoppedError(Status.UNBOUNDED)
        row = self._rows.rows(np.array([i]))[0]
        return self._set([i], [variable.moved(step, up, down)], gradient - step * row, np.array([step]))

    def _set(self, moving: list[int], values: list[float], gradient: Floats, steps: Floats) -> bool:
        """Set new values and the gradient, given without the ridge; return whether any value is new."""
        dual = self.dual.copy()
        dual[moving] = values
        if (dual[moving] == self.dual[moving]).all():
            return False
        gradient[moving] -= self.problem.ridge[moving] * steps
        self.step_to(dual, gradient)
        self.check_limits()
        return True

    def _variable(self, k: int) -> Variable:
        return Variable(float(self.dual[k]), float(self.problem.lower[k]), float(self.problem.upper[k]))
