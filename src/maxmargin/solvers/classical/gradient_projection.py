"""Modified gradient projection (Bottou & Lin 1.5.3, Algorithm 1.1): all violating variables move together.

    B gains the variables that violate the optimality criterion                                  lines 3, 4
    repeat
        repeat  u_k = g_k − mean of g over B and the group of k,  B loses every k that u drives   lines 7 to 12
                out of its box                                          until B stops changing
        λ = min( gᵀu / uᵀHu,  the largest step inside the box ),  b += λ u,  g −= λ H u           lines 14, 15
    until u is small                                                                             line 13

with H = M + diag(ridge). Its steps are sparse in nothing: each is one product of the matrix with a vector. That was
how the first support vector machines were trained (Bottou et al. 1994, Cortes & Vapnik 1995). Directions may be made
conjugate, uᵀHu' = 0 with u' the last one, as long as B stays as it is: then the method is that of conjugate gradients
on a face of the box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers.classical.ascent import Ascent
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import Callback, StoppingRule

#: How search directions follow one another.
DIRECTIONS = ("conjugate", "gradient")

#: Steps, and steps per variable, that must halve the violation.
PATIENCE, PATIENCE_PER_VARIABLE = 20_000, 20

#: When this part of the whole violation is left among the working set, others are let in.
ENOUGH = 0.3

#: Steps that may be taken in any case before the working set is reconsidered.
AT_LEAST = 50


@dataclass(frozen=True)
class GradientProjectionSolver:
    """Gradient projection with eviction from the working set.

    Parameters
    ----------
    directions : {"conjugate", "gradient"}
        Whether a direction is made conjugate to the last one while the working set stays the same, or always is the
        projected gradient, as Algorithm 1.1 is printed. The latter is slow where the kernel is badly conditioned.
    cache_bytes : int
        Memory for rows of the matrix; they are kept if all fit, and computed anew in every step if not.
    stopping : StoppingRule
        When to stop; direction searches are its iterations.
    """

    directions: str = "conjugate"
    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        if self.directions not in DIRECTIONS:
            choices = ", ".join(map(repr, DIRECTIONS))
            raise ValueError(f"unknown directions {self.directions!r}; choose one of {choices}")
        rows = LazyRowCache(problem.matrix, self.cache_bytes)
        return _Run(problem, start, Monitor(self.stopping, callback), rows, self.directions == "conjugate").solve()


class _Run(Ascent):
    """One run; `working` are the variables of the working set."""

    def __init__(
        self, problem: DualProblem, start: Floats | None, monitor: Monitor, rows: LazyRowCache, conjugate: bool
    ) -> None:
        super().__init__(problem, start, monitor, PATIENCE + PATIENCE_PER_VARIABLE * problem.size)
        self._rows, self._conjugate = rows, conjugate
        self._whole_group = problem.groups == 1 and problem.ungrouped == 0
        self._largest = float(np.abs(problem.curvature).max(initial=0.0))
        self.working: Indices = np.empty(0, dtype=np.int64)
        self._last: _Step | None = None

    def climb(self) -> Status:
        while True:
            violation = self.violation()
            self.look()
            if (status := self.verdict(violation)) is not None:
                return status
            self.working = np.union1d(self.working, self._violating())
            if (status := self._search(max(ENOUGH * violation, 0.5 * self.rule.violation))) is not None:
                return status

    def counters(self) -> Counters:
        evaluations = self.evaluations + self._rows.evaluations
        return Counters(self.iterations, evaluations, seconds=self.monitor.seconds)

    def _violating(self) -> Indices:
        """Return the variables for which another of their group makes an ascending pair, or that rise alone."""
        problem, (dual, gradient) = self.problem, self.point
        low, high = (of_samples(problem, end) for end in offset_bounds(problem, dual, gradient))
        up = (dual < problem.upper) & (gradient > high)
        down = (dual > problem.lower) & (gradient < low)
        return np.flatnonzero(up | down)

    def _search(self, goal: float) -> Status | None:
        """Take steps until the working set violates optimality by no more than a goal; return a status that ends all.

        After ten times as many steps as there are variables in the set, conjugate directions would have arrived but for
        rounding: they begin anew, and all other variables are worth a look.
        """
        until = self.iterations + max(10 * len(self.working), AT_LEAST)
        while self.iterations < until:
            ascent = self._project()
            if 2.0 * np.abs(ascent).max(initial=0.0) <= goal:
                return None
            if (status := self._step(ascent, self._turned(ascent) if self._conjugate else ascent)) is not None:
                return status
            self.look()
        self._last = None
        return None

    def _project(self) -> Floats:
        """Return the gradient within the working set, less its mean in each group; evict what it drives out (7–12)."""
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
        rest: Floats
        if self._whole_group:
            rest = values - values.sum() / max(1, len(values))
            return rest
        group = self.problem.group[working] + 1  # 0: in no group
        counts = np.maximum(np.bincount(group, minlength=self.problem.groups + 1), 1)
        means = np.bincount(group, values, minlength=self.problem.groups + 1) / counts
        means[0] = 0.0
        rest = values - means[group]
        return rest

    def _turned(self, ascent: Floats) -> Floats:
        """Return the ascent made conjugate to the last direction, or as it is if it cannot be.

        It cannot if the working set has changed or met a bound since, or if it would lead out of the box or down.
        """
        problem, dual, working = self.problem, self.dual, self.working
        if self._last is None or not np.array_equal(self._last.working, working):
            return ascent
        last = self._last
        turned = ascent - min(0.0, float(ascent @ last.image) / last.bend) * last.direction
        turned = self._without_mean(turned, working)  # rounding errors in the sums would grow with every turn
        rises = float(ascent @ turned) > 0
        blocked = np.where(turned > 0, dual[working] >= problem.upper[working], dual[working] <= problem.lower[working])
        return ascent if not rises or (blocked & (turned != 0)).any() else turned

    def _step(self, ascent: Floats, direction: Floats) -> Status | None:
        """Search along a direction (1.18); return a status if the run ends there."""
        problem, (dual, gradient), working = self.problem, self.point, self.working
        everywhere = np.zeros(problem.size)
        everywhere[working] = direction
        image = self._rows.product(everywhere) + problem.ridge * everywhere
        bend, slope = float(direction @ image[working]), float(direction @ ascent)
        room = self.box.room(dual, working, direction)
        longest = float(room.min())
        step = min(slope / bend if bend > 0 else np.inf, longest)
        if longest == np.inf and bend <= ZERO_CURVATURE * self._largest * float(np.abs(direction).sum()) ** 2:
            return Status.UNBOUNDED
        new = self.box.moved(dual, working, direction, step, room)
        if (new == dual).all():
            turned, self._last = self._last is not None, None
            return None if turned else self.stuck()
        self.step_to(new, gradient - step * image)
        self._last = _Step(working, direction, image[working], bend) if step < longest else None
        return None


class _Step(NamedTuple):
    """A step inside the box: the working set, and there the direction u, its image H u, and uᵀHu."""

    working: Indices
    direction: Floats
    image: Floats
    bend: float
