"""Detection of an unbounded dual: a hard margin that does not exist would let the variables grow for ever."""

from __future__ import annotations

from math import sqrt

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem

#: The weight vector of a hard margin is at least margin · Σ|b| long. A margin below this fraction of the radius of the
#: data cannot be distinguished from 0: then the dual is unbounded.
SMALLEST_RELATIVE_MARGIN = 1e-7


class UnboundedDualTest:
    """Decides for the points of one problem whether its dual is unbounded."""

    def __init__(self, problem: DualProblem) -> None:
        self._problem = problem
        self._radius: float | None = None

    def __call__(self, dual: Floats, gradient: Floats) -> bool:
        """Return whether the weight vector is too short for the dual variables it is made of.

        The gradient of variables that are 0 is not used.
        """
        if self._problem.coercive:
            return False
        used = np.flatnonzero(dual)
        total = float(np.abs(dual[used]).sum())
        squared_norm = inner(dual[used], (self._problem.linear - gradient)[used])
        return total > 0 and sqrt(max(squared_norm, 0.0)) <= SMALLEST_RELATIVE_MARGIN * total * self.radius

    @property
    def radius(self) -> float:
        """The radius of the data in feature space, from the first sample or, without a group, the origin."""
        if self._radius is None:
            problem = self._problem
            distances = problem.curvature
            if problem.groups == 1 and problem.ungrouped == 0:
                distances = distances - 2.0 * problem.matrix.block(np.arange(1), np.arange(problem.size))[0]
                distances = distances - distances[0]
            self._radius = sqrt(max(0.0, float(distances.max())))
        return self._radius
