"""Small problems on parts of one matrix that is there in full: each is solved from start to end in one native call.

    pair steps (second order) until the violation is within the tolerance; where they creep, the equations of the free
    variables in between
    those equations once more, to the exact optimum, as in `exact_finish`
    the gradient computed afresh; if that does not confirm the tolerance, again

On problems of a hundred samples, Python between two stretches of steps takes longer than the steps. Here there is one
call for all problems. Those that take many steps come back unfinished, for a solver that shrinks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import StopReason
from maxmargin.problems import Counters

#: Steps of one problem after which it is left to a solver that can do more than that.
STEPS = 10_000
#: Up to so many free variables have their equations solved.
MOST_FREE = 256
#: Seconds after which Python is asked whether Ctrl-C was pressed.
SLICE = 0.05


@dataclass(frozen=True)
class SmallProblems:
    """Problems of one group each or of none, laid out one after the other.

    Attributes
    ----------
    values : float array
        The matrix.
    edges : int array
        Variables ``edges[p]`` up to ``edges[p + 1]`` belong to problem p.
    picks : int array
        The row of the matrix that each variable means; empty if every problem is about all of them, in order.
    linear, lower, upper, ridge : float arrays
        Of all variables.
    grouped : bool
        Whether each problem's variables keep the sum that they have at the start.
    """

    values: Floats
    edges: Indices
    picks: Indices
    linear: Floats
    lower: Floats
    upper: Floats
    ridge: Floats
    grouped: bool

    def solve(
        self, tolerance: float, threads: int, start: Floats | None = None, most_free: int = MOST_FREE
    ) -> SmallSolutions:
        """Return the solutions, starting from a feasible point, by default 0; 0 for `most_free` is no exact end."""
        dual = np.zeros(len(self.linear)) if start is None else start.copy()
        gradient = np.empty(len(self.linear))
        outcomes = np.full((len(self.edges) - 1, 3), -1, dtype=np.int64)
        batch = _native.ProblemBatch(
            matrix=self.values,
            indices=self.picks,
            edges=self.edges,
            linear=self.linear,
            lower=self.lower,
            upper=self.upper,
            ridge=self.ridge,
            grouped=self.grouped,
        )
        limits = _native.StepLimits(tolerance=tolerance, max_steps=STEPS, max_seconds=SLICE)
        interrupted = False
        while (outcomes[:, 0] == -1).any() and not interrupted:
            try:
                _native.solve_small_problems(batch, dual, gradient, outcomes, limits, most_free, threads)
            except KeyboardInterrupt:  # heard between two calls: the arrays are those of complete steps
                interrupted = True
        return SmallSolutions(self, dual, gradient, outcomes, interrupted)


@dataclass(frozen=True)
class SmallSolutions:
    """What became of the problems: dual and gradient of all, how each ended, and whether Ctrl-C was pressed."""

    problems: SmallProblems
    dual: Floats
    gradient: Floats
    outcomes: Indices
    interrupted: bool = False

    def offsets(self) -> tuple[Floats, Floats]:
        """Return, for each problem, the largest gradient that may grow and the smallest that may fall (1.11)."""
        starts, of = self.problems.edges[:-1], self.problems
        growing = np.where(self.dual < of.upper, self.gradient, -np.inf)
        falling = np.where(self.dual > of.lower, self.gradient, np.inf)
        return np.maximum.reduceat(growing, starts), np.minimum.reduceat(falling, starts)

    def finished(self, problem: int) -> bool:
        """Whether a fresh gradient confirmed the tolerance."""
        return bool(self.outcomes[problem, 0] == StopReason.OPTIMAL)

    def counters(self, problem: int) -> Counters:
        """Return what a problem cost, the whole of its matrix included."""
        _, steps, requests = (max(0, int(count)) for count in self.outcomes[problem])
        size = int(self.problems.edges[problem + 1] - self.problems.edges[problem])
        return Counters(steps, size**2, requests, 0)
