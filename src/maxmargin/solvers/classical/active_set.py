"""An active set method: the free variables solve their equations exactly, one variable comes or goes at a time.

    while the free variables F are not at the optimum of their face
        solve H_FF d + ρ of each group = g_F, Σ d = 0 in each group      by an updated factor, `free_factor`
        go along d, to the optimum or to the first bound;  who meets a bound leaves F
    the variable that violates the optimality criterion (1.11) most joins F

SimpleSVM (Vishwanathan, Smola & Murty 2003) and Scheinberg (2006) train support vector machines like that; in
quadratic programming it is an old method. It ends after finitely many steps at the exact optimum. A step costs the
square of the number of free variables, and a product with their rows.

*No cycling.* Whoever is on a bound has left F when a variable k joins, so all others have room on both sides. The
solution of the equations moves k by its slope times a positive number, (ZᵀHZ)⁻¹_kk, which is the way it may go. So the
first step after k has joined has a positive length and D rises: no face is met twice. (In a group without free
variables the most violating pair joins; its other half has room where it is needed.) Should rounding spoil that, an
ordinary pair step is taken, which always rises.

*Singular kernels.* If k depends on F (a duplicate, more variables than features), the equations with k have no unique
solution, but there is a direction without curvature along which D rises as steeply as k violates: the step goes along
it to the first bound. Then k joins, or it stays between its bounds without being in F, which does no harm: it is
looked at like any other variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.precision import ZERO_CURVATURE
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers.classical.ascent import Ascent
from maxmargin.solvers.classical.free_factor import FreeFactor
from maxmargin.solvers.monitor import Monitor, SolverStoppedError
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Steps, and steps per variable, that must halve the violation.
PATIENCE, PATIENCE_PER_VARIABLE = 1000, 20

#: The free variables are at the optimum of their face when their violation is so small a part of the whole, or after so
#: many solutions of the same equations: more would not get below rounding.
OPTIMUM, SOLUTIONS = 1e-3, 2


@dataclass(frozen=True)
class ActiveSetSolver:
    """An active set method with an updated Cholesky factor.

    Parameters
    ----------
    cache_bytes : int
        Memory for rows of the matrix; they are kept if all fit, and computed anew in every step if not. Besides, the
        factor takes 8 bytes for each pair of free variables.
    stopping : StoppingRule
        When to stop; steps are its iterations.
    """

    cache_bytes: int = 200 * 2**20
    stopping: StoppingRule = field(default_factory=StoppingRule)
    audited: ClassVar[bool] = False

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem, from `start` (made feasible) or from the simplest feasible point."""
        rows = LazyRowCache(problem.matrix, self.cache_bytes)
        return _Run(problem, start, Monitor(self.stopping, callback), rows).solve()


class _Run(Ascent):
    """One run; F is what `factor` holds."""

    def __init__(self, problem: DualProblem, start: Floats | None, monitor: Monitor, rows: LazyRowCache) -> None:
        super().__init__(problem, start, monitor, PATIENCE + PATIENCE_PER_VARIABLE * problem.size)
        self._rows = rows
        self.factor = FreeFactor(problem, rows)
        self._solved = 0  # how often the equations of the present F were solved
        self._largest = float(np.abs(problem.curvature).max(initial=0.0))

    def climb(self) -> Status:
        violation = self.violation()
        if (status := self.verdict(violation)) is not None:
            return status
        self.look()
        dual = self.dual
        self.factor.build(np.flatnonzero((dual > self.problem.lower) & (dual < self.problem.upper)))
        while True:
            if (status := self._advance(violation)) is not None:
                return status
            self.look()
            violation = self.violation()
            if (status := self.verdict(violation)) is not None:
                return status

    def counters(self) -> Counters:
        evaluations = self.evaluations + self._rows.evaluations
        return Counters(self.iterations, evaluations, seconds=self.monitor.seconds)

    def _advance(self, violation: float) -> Status | None:
        """Go towards the optimum of the face, or let a variable join; return a status if neither helps any more."""
        slope = self.factor.reduce(self.point[1])
        if self._solved < SOLUTIONS and np.abs(slope).max(initial=0.0) > OPTIMUM * violation:
            self._solved += 1
            direction = self.factor.expand(self.factor.solve(slope))
        else:
            self._solved = 0
            direction = self._entering()
        if self._step(direction):
            return None
        self._solved = 0
        return None if self._step(self._pair()) else self.stuck()

    def _entering(self) -> Floats:
        """Let the most violating variable join, and return the direction that follows."""
        variable = self._most_violating()
        if variable is None:
            return np.zeros(self.problem.size)
        against = int(self.factor.anchors_of(np.array([variable]))[0])
        gradient = self.point[1]
        slope = float(gradient[variable]) - (float(gradient[against]) if against >= 0 else 0.0)
        flat = self.factor.append(variable)
        if flat is None:
            return self.factor.expand(self.factor.solve(self.factor.reduce(gradient)))
        return self.factor.expand(flat if slope > 0 else -flat, last=variable)

    def _most_violating(self) -> int | None:
        """Return who violates optimality most against the free variables of its group, None if nobody does.

        In a group without free variables it is one of the worst pair, and the other becomes the anchor.
        """
        problem, (dual, gradient), anchor = self.problem, self.point, self.factor.anchor
        known = anchor >= 0
        low, high = (np.where(known, gradient[anchor], end) for end in offset_bounds(problem, dual, gradient))
        up = np.where(dual < problem.upper, gradient - of_samples(problem, high), -np.inf)
        down = np.where(dual > problem.lower, of_samples(problem, low) - gradient, -np.inf)
        members = self.factor.members
        up[members] = down[members] = -np.inf
        rising, falling = int(up.argmax()), int(down.argmax())
        rises = bool(up[rising] >= down[falling])
        variable = rising if rises else falling
        if not max(up[rising], down[falling]) > 0:
            return None
        group = int(problem.group[variable])
        if group >= 0 and not known[group]:
            anchor[group] = self._end_of(group, not rises)
        return variable

    def _end_of(self, group: int, rises: bool) -> int:
        """Return the variable of a group with the largest gradient that may rise, or the smallest that may fall."""
        problem, (dual, gradient) = self.problem, self.point
        mine = problem.group == group
        if rises:
            return int(np.where(mine & (dual < problem.upper), gradient, -np.inf).argmax())
        return int(np.where(mine & (dual > problem.lower), gradient, np.inf).argmin())

    def _pair(self) -> Floats:
        """Return the direction of the most violating pair, or of a variable in no group (1.25)."""
        problem, (dual, gradient) = self.problem, self.point
        direction = np.zeros(problem.size)
        low, high = offset_bounds(problem, dual, gradient)
        alone = np.where(gradient > 0, dual < problem.upper, dual > problem.lower) & (problem.group < 0)
        single = int(np.where(alone, np.abs(gradient), 0.0).argmax())
        worst = int((low - high).argmax()) if problem.groups else -1
        if worst < 0 or (alone[single] and np.abs(gradient[single]) > low[worst] - high[worst]):
            direction[single] = gradient[single]
        else:
            direction[self._end_of(worst, True)] += 1.0
            direction[self._end_of(worst, False)] -= 1.0
        return direction

    def _step(self, direction: Floats) -> bool:
        """Search along a direction (1.18), let go who meets a bound, and return whether anything has moved."""
        problem, (dual, gradient), anchor = self.problem, self.point, self.factor.anchor
        moving = np.flatnonzero(direction)
        if not len(moving):
            return False
        image = self._rows.product(direction) + problem.ridge * direction
        along = direction[moving]
        # The sum of a direction is zero but for rounding, which must not count: gradients are taken from the anchor's.
        offset = of_samples(problem, np.where(anchor >= 0, gradient[anchor], 0.0))
        slope, bend = float(along @ (gradient - offset)[moving]), float(along @ image[moving])
        room = self.box.room(dual, moving, along)
        longest = float(room.min())
        if longest == np.inf and bend <= ZERO_CURVATURE * self._largest * float(np.abs(along).sum()) ** 2:
            raise SolverStoppedError(Status.UNBOUNDED)
        step = max(0.0, min(slope / bend if bend > 0 else np.inf, longest))
        new = self.box.moved(dual, moving, along, step, room)
        moves = bool((new != dual).any())
        if moves:
            self.step_to(new, gradient - step * image)
        self._let_go()
        return moves

    def _let_go(self) -> None:
        """Take out of F who rests on a bound: movers first, so that an anchor is succeeded by somebody free."""
        members = self.factor.members[::-1]
        resting = (self.dual[members] <= self.problem.lower[members]) | (
            self.dual[members] >= self.problem.upper[members]
        )
        for variable in members[resting]:
            self.factor.remove(int(variable))
            self._solved = 0
        self.active = len(members) - int(resting.sum())
