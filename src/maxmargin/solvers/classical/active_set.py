"""An active-set method: the free variables solve their equations exactly, and one variable enters or leaves at a time.

    while the free variables F are not at the optimum of their face
        solve H_FF d + ρ of each group = g_F, Σ d = 0 in each group      by an updated factor, `reduced_cholesky`
        step along d, to the optimum or to the first bound;  variables at a bound leave F
    the variable that violates the optimality criterion (1.11) most enters F

SimpleSVM (Vishwanathan, Smola & Murty 2003) and Scheinberg (2006) train support vector machines like that; in
quadratic programming it is an old method. It ends after finitely many steps at the exact optimum. A step costs the
square of the number of free variables, and a product with their rows.

*No cycling.* Variables at a bound have left F when a variable k enters, so all others can move both ways. The solution
of the equations moves k by its slope times a positive number, (ZᵀHZ)⁻¹_kk, in the direction that its bounds allow. So
the first step after k has entered has a positive length and D rises: no face is visited twice. (In a group without free
variables the most violating pair enters, and its other variable can move as needed.) Should rounding spoil that, an
ordinary pair step is taken, which always rises.

*Singular kernels.* If k depends on F (a duplicate, more variables than features), the equations with k have no unique
solution, but there is a direction without curvature along which D rises as steeply as k violates: the step follows it
to the first bound. Then k enters, or it stays between its bounds without being in F, where it is checked like any other
variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers.classical.dual_ascent import DualAscentRun
from maxmargin.solvers.classical.reduced_cholesky import ReducedCholesky
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Steps, and steps per variable, within which the violation must halve.
STALL_STEPS, STALL_STEPS_PER_VARIABLE = 1000, 20

#: The free variables are at the optimum of their face when their violation is at most this fraction of that of all
#: variables, or after so many solutions of the same equations: more would not get below rounding.
FACE_TOLERANCE, MAX_SOLUTIONS = 1e-3, 2


@dataclass(frozen=True)
class ActiveSetSolver:
    """An active-set method with an updated Cholesky factor.

    Parameters
    ----------
    cache_bytes : int
        Memory for rows of the matrix; they are kept if all fit, and recomputed in every step if not. Besides, the
        factor takes 8 bytes for each pair of free variables.
    stopping : StoppingRule
        When to stop; its iterations are steps.
    """

    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        rows = LazyRowCache(problem.matrix, self.cache_bytes)
        return _ActiveSetRun(problem, start, Monitor(self.stopping, callback), rows).solve()


class _ActiveSetRun(DualAscentRun):
    """One run; the free variables F are those of `factor`."""

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor, rows: LazyRowCache) -> None:
        super().__init__(problem, start, monitor, STALL_STEPS + STALL_STEPS_PER_VARIABLE * problem.size)
        self._rows = rows
        self.factor = ReducedCholesky(problem, rows)
        self._solutions = 0  # of the equations of the present F
        self._largest = float(np.abs(problem.curvature).max(initial=0.0))

    def iterate(self) -> Status:
        violation = self.violation()
        if (status := self.final_status(violation)) is not None:
            return status
        self.check_limits()
        dual = self.dual
        self.factor.build(np.flatnonzero((dual > self.problem.lower) & (dual < self.problem.upper)))
        while True:
            if (status := self._advance(violation)) is not None:
                return status
            self.check_limits()
            violation = self.violation()
            if (status := self.final_status(violation)) is not None:
                return status

    def counters(self) -> Counters:
        evaluations = self.evaluations + self._rows.evaluations
        return Counters(self.iterations, evaluations, seconds=self.monitor.seconds)

    def _advance(self, violation: float) -> Status | None:
        """Step towards the optimum of the face, or let a variable enter; return a status if neither is possible."""
        slope = self.factor.reduce(self.point[1])
        if self._solutions < MAX_SOLUTIONS and np.abs(slope).max(initial=0.0) > FACE_TOLERANCE * violation:
            self._solutions += 1
            direction = self.factor.expand(self.factor.solve(slope))
        else:
            self._solutions = 0
            direction = self._entering_direction()
        if self._step(direction):
            return None
        self._solutions = 0
        return None if self._step(self._pair_direction()) else self.status_of_failed_step()

    def _entering_direction(self) -> Floats:
        """Let the most violating variable enter, and return the direction that follows."""
        variable = self._most_violating()
        if variable is None:
            return np.zeros(self.problem.size)
        against = int(self.factor.eliminated_of(np.array([variable]))[0])
        gradient = self.point[1]
        slope = float(gradient[variable]) - (float(gradient[against]) if against >= 0 else 0.0)
        flat = self.factor.append(variable)
        if flat is None:
            return self.factor.expand(self.factor.solve(self.factor.reduce(gradient)))
        return self.factor.expand(flat if slope > 0 else -flat, last=variable)

    def _most_violating(self) -> int | None:
        """Return the variable that violates optimality most against the free variables of its group, None if none does.

        In a group without free variables it is one of the worst pair, and the other is the eliminated variable.
        """
        problem, (dual, gradient), eliminated = self.problem, self.point, self.factor.eliminated
        known = eliminated >= 0
        low, high = (np.where(known, gradient[eliminated], end) for end in offset_bounds(problem, dual, gradient))
        up = np.where(dual < problem.upper, gradient - problem.expand_groups(high), -np.inf)
        down = np.where(dual > problem.lower, problem.expand_groups(low) - gradient, -np.inf)
        free = self.factor.free
        up[free] = down[free] = -np.inf
        first_up, first_down = int(up.argmax()), int(down.argmax())
        increases = bool(up[first_up] >= down[first_down])
        variable = first_up if increases else first_down
        if not max(up[first_up], down[first_down]) > 0:
            return None
        group = int(problem.group[variable])
        if group >= 0 and not known[group]:
            eliminated[group] = self._extreme_variable(group, not increases)
        return variable

    def _extreme_variable(self, group: int, increases: bool) -> int:
        """Return the variable of a group with the largest gradient that can increase, or the smallest that can fall."""
        problem, (dual, gradient) = self.problem, self.point
        members = problem.group == group
        if increases:
            return int(np.where(members & (dual < problem.upper), gradient, -np.inf).argmax())
        return int(np.where(members & (dual > problem.lower), gradient, np.inf).argmin())

    def _pair_direction(self) -> Floats:
        """Return the direction of the most violating pair, or of a variable in no group (1.25)."""
        problem, (dual, gradient) = self.problem, self.point
        direction = np.zeros(problem.size)
        low, high = offset_bounds(problem, dual, gradient)
        movable = np.where(gradient > 0, dual < problem.upper, dual > problem.lower) & (problem.group < 0)
        single = int(np.where(movable, np.abs(gradient), 0.0).argmax())
        worst = int((low - high).argmax()) if problem.groups else -1
        if worst < 0 or (movable[single] and np.abs(gradient[single]) > low[worst] - high[worst]):
            direction[single] = gradient[single]
        else:
            direction[self._extreme_variable(worst, True)] += 1.0
            direction[self._extreme_variable(worst, False)] -= 1.0
        return direction

    def _step(self, direction: Floats) -> bool:
        """Search along a direction (1.18), remove variables that reach a bound, and return whether any has moved."""
        problem, (dual, gradient), eliminated = self.problem, self.point, self.factor.eliminated
        moving = np.flatnonzero(direction)
        if not len(moving):
            return False
        image = self._rows.product(direction) + problem.ridge * direction
        along = direction[moving]
        # The sum of a direction is zero but for rounding, which must not count: gradients relative to the eliminated.
        offset = problem.expand_groups(np.where(eliminated >= 0, gradient[eliminated], 0.0))
        slope, curvature = float(along @ (gradient - offset)[moving]), float(along @ image[moving])
        max_steps = self.box.max_steps(dual, moving, along)
        longest = float(max_steps.min())
        if longest == np.inf and curvature <= ZERO_CURVATURE * self._largest * float(np.abs(along).sum()) ** 2:
            raise SolverStoppedError(Status.UNBOUNDED)
        step = max(0.0, min(slope / curvature if curvature > 0 else np.inf, longest))
        new = self.box.moved(dual, moving, along, step, max_steps)
        moves = bool((new != dual).any())
        if moves:
            self.step_to(new, gradient - step * image)
        self._remove_bounded()
        return moves

    def _remove_bounded(self) -> None:
        """Remove variables at a bound from F, the independent ones first: an eliminated one needs a free successor."""
        free = self.factor.free[::-1]
        at_bound = (self.dual[free] <= self.problem.lower[free]) | (self.dual[free] >= self.problem.upper[free])
        for variable in free[at_bound]:
            self.factor.remove(int(variable))
            self._solutions = 0
        self.active = len(free) - int(at_bound.sum())
