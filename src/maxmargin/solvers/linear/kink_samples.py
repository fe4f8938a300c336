"""Newton's step with the samples next to the edge of their loss on the side where the step itself puts them.

A Newton step takes every sample to stay on its side of the edge: between its bounds, or on one of them. A few do not,
and what they spoil shows in the dual more than in the primal: with a large C, weights that are right to five digits
may have responses whose weights are far off. These few are near the edge. So the equations are solved again with them
where the step puts them, and again, until they stay. That takes products with their rows alone, and sums that are
corrected for the few that changed: several of Newton's steps for one pass over the data.

It pays where a pass costs more than the equations, and near the end, when whole steps have begun to succeed. Of losses
with kinks, which have to be rounded off and whose rounded form changes anyhow, it has not been seen to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem

#: A sample is next to the edge if it is nearer than this part of what its slack changed by in the last step.
REACH = 0.5

#: At most this part of all samples are taken to be.
PART = 0.1

#: Shorter passes take no longer than to find out.
LONG_PASS = 10**5

#: So many rounds at most; and every one must leave at most this part of the changes of the one before.
ROUNDS, FEWER = 8, 0.5

Step = tuple[Floats, Floats]


class EdgeSamples:
    """The samples that may cross the edge of their loss in the next step.

    Parameters
    ----------
    problem : DualProblem
        With a ridge everywhere, and one group for all samples or none.
    rows : Features
    slack : float array
        Of which the response is clip(slack / ridge, lower, upper).
    moved : float array
        By how much slacks changed in the last step.
    """

    def __init__(self, problem: DualProblem, rows: Features, slack: Floats, moved: Floats) -> None:
        chosen = self.chosen = near_edge(problem, slack, moved)
        self.rows = rows.take(chosen)
        self.slack, self.ridge = slack[chosen], problem.ridge[chosen]
        self.lower, self.upper = problem.lower[chosen], problem.upper[chosen]

    @staticmethod
    def pay(rows: Features) -> bool:
        """Whether a pass over the rows costs more than to solve equations with a row for each feature."""
        return rows.stored >= max(LONG_PASS, rows.dimension**3)

    def settle(
        self,
        step: Step,
        between: NDArray[np.bool_],
        solve: Callable[[NDArray[np.bool_], Floats, float], Step],
    ) -> Step:
        """Return the step after which the samples are where it takes them to be; `step` itself if they do not settle.

        `solve` gets those between their bounds, and by how much the weights Fᵀβ and the sum of β change if the
        samples answer as they do on the sides where they are now taken to be.
        """
        first, last = step, len(self.chosen)
        wish = self.slack / self.ridge
        response = np.clip(wish, self.lower, self.upper)
        side = self._sides(wish)
        for _ in range(ROUNDS):
            along, shift = step
            after = self._sides((self.slack - self.rows.decisions(along) - shift.sum()) / self.ridge)
            changes = int(np.count_nonzero(after != side))
            if not changes:
                return step
            between = between.copy()
            between[self.chosen] = after == 0
            if changes > FEWER * last or not between.any():
                return first
            side, last = after, changes
            change = np.where(side == 0, wish, np.where(side < 0, self.lower, self.upper)) - response
            step = solve(between, self.rows.weights(change), change.sum())
        return first

    def _sides(self, wish: Floats) -> NDArray[np.int8]:
        """Return −1 for samples on their lower bound, 1 on the upper one, 0 between."""
        return np.subtract(wish >= self.upper, wish <= self.lower, dtype=np.int8)


def near_edge(problem: DualProblem, slack: Floats, moved: Floats) -> Indices:
    """Return the samples that are near the edge of their loss, measured by how much slacks move."""
    ridge = problem.ridge
    distance = np.minimum(np.abs(slack - ridge * problem.lower), np.abs(slack - ridge * problem.upper))
    reach, most = REACH, PART * problem.size
    for _ in range(3):
        close = distance <= reach * moved
        count = int(np.count_nonzero(close))
        if count <= most:
            return np.flatnonzero(close)
        reach *= 0.9 * most / count
    return np.zeros(0, dtype=np.intp)
