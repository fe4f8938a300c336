"""A problem with kinks as one without: two variables in place of one with a kink, b = b⁺ + b⁻.

    b⁺ ≥ 0   linear − kink,  bounds [0, upper]
    b⁻ ≤ 0   linear + kink,  bounds [lower, 0]

Both have the row of b in the matrix, its ridge and its group. At the optimum at most one of them is not 0, and then
both objectives are equal; at other points that of the combined variable is at least as large. Algorithms that are
written for quadratic objectives solve the split problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.problems.dual_problem import DualProblem


@dataclass(frozen=True)
class SplitProblem:
    """The split form of a problem.

    Attributes
    ----------
    whole : DualProblem
        The problem with kinks.
    problem : DualProblem
        The equivalent one without: a variable for each one of `whole`, and then the b⁻ of those with a kink.
    kinked : int array
        The variables of `whole` that have a kink.
    """

    whole: DualProblem
    problem: DualProblem
    kinked: Indices

    @classmethod
    def of(cls, whole: DualProblem) -> SplitProblem:
        """Return the split form of a problem, which is the problem itself if it has no kinks."""
        if not whole.kinked:
            return cls(whole, whole, np.empty(0, dtype=np.int64))
        kinked = np.flatnonzero(whole.kink)
        variable = np.concatenate([np.arange(whole.size), kinked])
        sign = np.concatenate([np.where(whole.kink > 0, 1.0, 0.0), np.full(len(kinked), -1.0)])
        problem = DualProblem(
            matrix=RepeatedMatrix(whole.matrix, variable),
            linear=whole.linear[variable] - sign * whole.kink[variable],
            lower=np.where(sign > 0, 0.0, whole.lower[variable]),
            upper=np.where(sign < 0, 0.0, whole.upper[variable]),
            ridge=whole.ridge[variable],
            group=whole.group[variable],
            total=whole.total,
            linear_error=None if whole.linear_error is None else whole.linear_error[variable],
        )
        return cls(whole, problem, kinked)

    def slack(self, slack: Floats) -> Floats:
        """Return the slacks of the split variables, or the gradients of those without a ridge."""
        return np.concatenate([slack - self.whole.kink, slack[self.kinked] + self.whole.kink[self.kinked]])

    def dual(self, dual: Floats) -> Floats:
        """Return the values of the split variables."""
        kink = self.whole.kink
        return np.concatenate([np.where(kink > 0, np.maximum(dual, 0.0), dual), np.minimum(dual[self.kinked], 0.0)])

    def gradient(self, dual: Floats, gradient: Floats) -> Floats:
        """Return the gradient of the split variables at a point of the whole problem."""
        if not len(self.kinked):
            return gradient
        ridge, split = self.whole.ridge, self.dual(dual)
        slack = self.slack(gradient + ridge * dual)
        return slack - np.concatenate([ridge, ridge[self.kinked]]) * split

    def combined_dual(self, dual: Floats) -> Floats:
        """Return the values of the variables of the whole problem."""
        combined = dual[: self.whole.size].copy()
        combined[self.kinked] += dual[self.whole.size :]
        return combined

    def combined_gradient(self, dual: Floats, gradient: Floats) -> Floats:
        """Return the gradient of the whole problem at a point of the split one; infinite where it is not known."""
        n, kink, ridge = self.whole.size, self.whole.kink, self.whole.ridge
        above, below = gradient[:n], gradient[n:]
        combined: Floats = above + kink + ridge * (dual[:n] - self.combined_dual(dual))
        unknown = ~np.isfinite(above[self.kinked])
        at = self.kinked[unknown]
        combined[at] = below[unknown] - kink[at] + ridge[at] * (dual[n:][unknown] - self.combined_dual(dual)[at])
        return combined
