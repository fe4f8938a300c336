"""Newton steps that are consistent for the samples near the kinks of their loss.

A Newton step assumes that every response stays free or at its bound. A few samples change side, and with a large C
their error is larger in the dual than in the primal: weights that are right to five digits may have responses whose
weights are far off. These samples are near a kink of their loss, where the response reaches a bound. The system is
solved again with them on the side where the step puts them, until no side changes. Each repetition needs products with
their rows only, and an update of the moments: several Newton steps for one pass over the data.

This pays off if a pass over the data costs more than the factorisation, and close to convergence, when full steps are
accepted. For smoothed losses (σ > 0) no benefit has been observed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem

#: A sample is near a kink if its distance is at most this fraction of the change of its slack in the last step.
NEAR_FRACTION = 0.5

#: The largest fraction of the samples that is treated as near.
MAX_FRACTION = 0.1

#: The fewest stored values for which the method is used: shorter passes cost no more than the selection of samples.
MIN_STORED_VALUES = 10**5

#: The most repetitions; each must reduce the number of changed sides by at least this factor.
MAX_REPETITIONS, MAX_CHANGE_RATIO = 8, 0.5

Step = tuple[Floats, Floats]


class KinkSamples:
    """The samples that may cross a kink of their loss in the next step.

    Parameters
    ----------
    problem : DualProblem
        With a positive ridge everywhere, and one group for all samples or none.
    rows : Features
    slack : float array
        The response is clip(slack / ridge, lower, upper).
    moved : float array
        Absolute changes of the slacks in the last step.
    """

    def __init__(self, problem: DualProblem, rows: Features, slack: Floats, moved: Floats) -> None:
        chosen = self.chosen = samples_near_kinks(problem, slack, moved)
        self.rows = rows.take(chosen)
        self.slack, self.ridge = slack[chosen], problem.ridge[chosen]
        self.lower, self.upper = problem.lower[chosen], problem.upper[chosen]

    @staticmethod
    def pay_off(rows: Features) -> bool:
        """Whether a pass over the rows costs more than the factorisation of the matrix of the features."""
        return rows.stored >= max(MIN_STORED_VALUES, rows.dimension**3)

    def consistent_step(
        self,
        step: Step,
        free: NDArray[np.bool_],
        solve: Callable[[NDArray[np.bool_], Floats, float], Step],
    ) -> Step:
        """Return a step that leaves the samples on the sides it assumes, or `step` itself if none is found.

        `solve` takes the free samples, and the changes of Fᵀβ and Σβ caused by the assumed sides.
        """
        first, last = step, len(self.chosen)
        unclipped = self.slack / self.ridge
        response = np.clip(unclipped, self.lower, self.upper)
        side = self._sides(unclipped)
        for _ in range(MAX_REPETITIONS):
            direction, offset_step = step
            after = self._sides((self.slack - self.rows.decisions(direction) - offset_step.sum()) / self.ridge)
            changes = int(np.count_nonzero(after != side))
            if not changes:
                return step
            free = free.copy()
            free[self.chosen] = after == 0
            if changes > MAX_CHANGE_RATIO * last or not free.any():
                return first
            side, last = after, changes
            change = np.where(side == 0, unclipped, np.where(side < 0, self.lower, self.upper)) - response
            step = solve(free, self.rows.weights(change), change.sum())
        return first

    def _sides(self, unclipped: Floats) -> NDArray[np.int8]:
        """Return −1 for responses at the lower bound, 1 at the upper bound, 0 for free ones."""
        return np.subtract(unclipped >= self.upper, unclipped <= self.lower, dtype=np.int8)


def samples_near_kinks(problem: DualProblem, slack: Floats, moved: Floats) -> Indices:
    """Return the samples whose distance to a kink is small compared with the change of their slack."""
    ridge = problem.ridge
    distance = np.minimum(np.abs(slack - ridge * problem.lower), np.abs(slack - ridge * problem.upper))
    fraction, most = NEAR_FRACTION, MAX_FRACTION * problem.size
    for _ in range(3):
        near = distance <= fraction * moved
        count = int(np.count_nonzero(near))
        if count <= most:
            return np.flatnonzero(near)
        fraction *= 0.9 * most / count
    return np.zeros(0, dtype=np.intp)
