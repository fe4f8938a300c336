"""Modified gradient projection (Bottou & Lin 1.5.3, Algorithm 1.1): all violating variables move together.

    B gains the variables that violate the optimality criterion                                  lines 3, 4
    repeat
        repeat  u_k = g_k − mean of g over B and the group of k,  B loses every k that u drives   lines 7 to 12
                out of its box                                          until B stops changing
        λ = min( gᵀu / uᵀHu,  the largest step inside the box ),  b += λ u,  g −= λ H u           lines 14, 15
    until u is small                                                                             line 13

with H = M + diag(ridge). A step is one product of the matrix with a dense vector. This is how the first support vector
machines were trained (Bottou et al. 1994, Cortes & Vapnik 1995). Directions may be made conjugate, uᵀHu' = 0 with u'
the last one, as long as B stays the same: then the method is that of conjugate gradients on a face of the box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers.classical.dual_ascent import DualAscentRun
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The choices of the search directions.
DIRECTIONS = ("conjugate", "gradient")

#: Steps, and steps per variable, within which the violation must halve.
STALL_STEPS, STALL_STEPS_PER_VARIABLE = 20_000, 20

#: The working set is extended when its violation is at most this fraction of the violation of all variables.
WORKING_SET_TOLERANCE = 0.3

#: Steps on a working set, and steps per variable of it, after which it is extended in any case: conjugate directions
#: would have converged but for rounding.
MIN_STEPS, STEPS_PER_VARIABLE = 50, 10


@dataclass(frozen=True)
class GradientProjectionSolver:
    """Gradient projection with eviction from the working set.

    Parameters
    ----------
    directions : {"conjugate", "gradient"}
        Whether a direction is made conjugate to the last one while the working set stays the same, or always is the
        projected gradient, as in Algorithm 1.1. The latter is slow if the kernel matrix is ill-conditioned.
    cache_bytes : int
        Memory for rows of the matrix; they are kept if all fit, and recomputed in every step if not.
    stopping : StoppingRule
        When to stop; its iterations are line searches.
    """

    directions: str = "conjugate"
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        if self.directions not in DIRECTIONS:
            choices = ", ".join(map(repr, DIRECTIONS))
            raise ValueError(f"unknown directions {self.directions!r}; choose one of {choices}")
        rows = LazyRowCache(problem.matrix, self.cache_bytes)
        conjugate = self.directions == "conjugate"
        return _GradientProjectionRun(problem, start, Monitor(self.stopping, callback), rows, conjugate).solve()


class _GradientProjectionRun(DualAscentRun):
    """One run; `working` is the working set."""

    def __init__(
        self, problem: DualProblem, start: Floats | None, monitor: Monitor, rows: LazyRowCache, conjugate: bool
    ) -> None:
        super().__init__(problem, start, monitor, STALL_STEPS + STALL_STEPS_PER_VARIABLE * problem.size)
        self._rows, self._conjugate = rows, conjugate
        self._whole_group = problem.groups == 1 and problem.ungrouped == 0
        self._largest = float(np.abs(problem.curvature).max(initial=0.0))
        self.working: Indices = np.empty(0, dtype=np.int64)
        self._last: _LineSearch | None = None

    def iterate(self) -> Status:
        while True:
            violation = self.violation()
            self.check_limits()
            if (status := self.final_status(violation)) is not None:
                return status
            self.working = np.union1d(self.working, self._violating())
            if (status := self._search(max(WORKING_SET_TOLERANCE * violation, 0.5 * self.rule.violation))) is not None:
                return status

    def counters(self) -> Counters:
        evaluations = self.evaluations + self._rows.evaluations
        return Counters(self.iterations, evaluations, seconds=self.monitor.seconds)

    def _violating(self) -> Indices:
        """Return the variables that form an ascending pair with another of their group, or ascend alone."""
        problem, (dual, gradient) = self.problem, self.point
        low, high = (problem.expand_groups(end) for end in offset_bounds(problem, dual, gradient))
        up = (dual < problem.upper) & (gradient > high)
        down = (dual > problem.lower) & (gradient < low)
        return np.flatnonzero(up | down)

    def _search(self, goal: float) -> Status | None:
        """Take steps until the violation of the working set is within a goal; return a status if the run ends."""
        until = self.iterations + max(STEPS_PER_VARIABLE * len(self.working), MIN_STEPS)
        while self.iterations < until:
            ascent = self._project()
            if 2.0 * np.abs(ascent).max(initial=0.0) <= goal:
                return None
            direction = self._conjugate_direction(ascent) if self._conjugate else ascent
            if (status := self._step(ascent, direction)) is not None:
                return status
            self.check_limits()
        self._last = None
        return None

    def _project(self) -> Floats:
        """Return the gradient of the working set minus its group means; remove what it drives out of the box (7–12)."""
        problem, (dual, gradient), working = self.problem, self.point, self.working
        at_upper, at_lower = dual[working] >= problem.upper[working], dual[working] <= problem.lower[working]
        while True:
            ascent = self._without_mean(gradient[working], working)
            keep = ~((at_upper & (ascent > 0)) | (at_lower & (ascent < 0)))
            if keep.all():
                self.working, self.active = working, len(working)
                return ascent
            working, at_upper, at_lower = working[keep], at_upper[keep], at_lower[keep]

    def _without_mean(self, values: Floats, working: Indices) -> Floats:
        result: Floats
        if self._whole_group:
            result = values - values.sum() / max(1, len(values))
            return result
        group = self.problem.group[working] + 1  # 0: in no group
        counts = np.maximum(np.bincount(group, minlength=self.problem.groups + 1), 1)
        means = np.bincount(group, values, minlength=self.problem.groups + 1) / counts
        means[0] = 0.0
        result = values - means[group]
        return result

    def _conjugate_direction(self, ascent: Floats) -> Floats:
        """Return the projected gradient made conjugate to the last direction, or as it is if that is not possible.

        It is not if the working set has changed or reached a bound since, or if the direction would leave the box or
        descend.
        """
        problem, dual, working = self.problem, self.dual, self.working
        if self._last is None or not np.array_equal(self._last.working, working):
            return ascent
        last = self._last
        conjugate = ascent - min(0.0, float(ascent @ last.image) / last.curvature) * last.direction
        conjugate = self._without_mean(conjugate, working)  # otherwise rounding errors of the sums grow with every step
        rises = float(ascent @ conjugate) > 0
        at_upper, at_lower = dual[working] >= problem.upper[working], dual[working] <= problem.lower[working]
        blocked = np.where(conjugate > 0, at_upper, at_lower) & (conjugate != 0)
        return ascent if not rises or blocked.any() else conjugate

    def _step(self, ascent: Floats, direction: Floats) -> Status | None:
        """Search along a direction (1.18); return a status if the run ends."""
        problem, (dual, gradient), working = self.problem, self.point, self.working
        everywhere = np.zeros(problem.size)
        everywhere[working] = direction
        image = self._rows.product(everywhere) + problem.ridge * everywhere
        curvature, slope = float(direction @ image[working]), float(direction @ ascent)
        max_steps = self.box.max_steps(dual, working, direction)
        longest = float(max_steps.min())
        step = min(slope / curvature if curvature > 0 else np.inf, longest)
        if longest == np.inf and curvature <= ZERO_CURVATURE * self._largest * float(np.abs(direction).sum()) ** 2:
            return Status.UNBOUNDED
        new = self.box.moved(dual, working, direction, step, max_steps)
        if (new == dual).all():
            was_conjugate, self._last = self._last is not None, None
            return None if was_conjugate else self.status_of_failed_step()
        self.step_to(new, gradient - step * image)
        self._last = _LineSearch(working, direction, image[working], curvature) if step < longest else None
        return None


class _LineSearch(NamedTuple):
    """A step that reached no bound: the working set, and there the direction u, its image H u, and uᵀHu."""

    working: Indices
    direction: Floats
    image: Floats
    curvature: float
