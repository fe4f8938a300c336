"""The subproblems that share the weights of several kernels, and the sample of the rows that is solved first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maxmargin._typing import Indices
from maxmargin.matrices import PrecomputedMatrix, SymmetricMatrix
from maxmargin.problems import DualProblem

#: A sample of this many rows is solved first if there are at least twice as many, and this many kernels.
SAMPLE_ROWS, MIN_KERNELS_FOR_SAMPLE = 500, 4


@dataclass(frozen=True)
class KernelSubproblem:
    """One of the subproblems that share the weights of the kernels.

    Attributes
    ----------
    rows : int array
        Its training samples, by their place among all that take part.
    pose : callable
        From a matrix and the places of its samples among `rows` to the dual problem.
    factor : float
        On the costs, for a sample of the rows: bounds and sums of the dual variables are as much larger.
    """

    rows: Indices
    pose: Callable[[SymmetricMatrix, Indices], DualProblem]
    factor: float = 1.0

    def posed(self, matrix: SymmetricMatrix) -> DualProblem:
        """Return the dual problem on a matrix of these rows."""
        problem = self.pose(matrix, np.arange(len(self.rows)))
        if self.factor == 1.0:
            return problem
        scaled = {name: self.factor * getattr(problem, name) for name in ("lower", "upper", "total")}
        return replace(problem, **scaled)

    def taken(self, place: Indices) -> KernelSubproblem:
        """Return the problem on those of its rows that have a `place` of at least 0 in a sample."""
        kept = np.flatnonzero(place[self.rows] >= 0)
        larger = len(self.rows) / max(1, len(kept))
        return KernelSubproblem(place[self.rows[kept]], lambda matrix, at: self.pose(matrix, kept[at]), larger)


def samples_first(sources: Sequence[SymmetricMatrix]) -> bool:
    """Return whether a sample of the rows is solved first: where the matrices of many kernels have to be computed."""
    computed = [source for source in sources if not isinstance(source, PrecomputedMatrix)]
    return len(computed) >= MIN_KERNELS_FOR_SAMPLE and sources[0].size >= 2 * SAMPLE_ROWS


def sample_of(strata: Indices) -> Indices:
    """Return about `SAMPLE_ROWS` rows, of each stratum in proportion, always the same."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(strata)), strata))
    return np.sort(order[:: max(1, len(strata) // SAMPLE_ROWS)])
