"""Second-order pair steps with shrinking as in the pseudo-code: the reference of `native/shrunk_problem.hpp`."""

from __future__ import annotations

import numpy as np

STEPS_PER_SHRINK, MAX_SHRUNK_PART, MIN_CURVATURE = 64, 0.5, 1e-12


class Steps:
    """Pair steps on some variables of one group: those of the whole problem, or those that are left of it."""

    def __init__(self, matrix, linear, lower, upper):
        self.matrix, self.lower, self.upper = matrix, lower, upper
        self.dual, self.gradient = np.zeros(len(linear)), linear.copy()
        self.taken, self.sizes = 0, [len(linear)]

    def extremes(self, members):
        """Return the gradients of the variables that can increase and of those that can decrease."""
        dual, gradient = self.dual[members], self.gradient[members]
        rising = np.where(dual < self.upper[members], gradient, -np.inf)
        return rising, np.where(dual > self.lower[members], gradient, np.inf)

    def run(self, members, tolerance, limit):
        """Take steps among some variables, whose gradients alone are updated; return whether they are optimal."""
        diagonal = self.matrix.diagonal()
        last = self.taken + limit
        while True:
            rising, falling = self.extremes(members)
            up = members[np.argmax(rising)]
            if rising.max() - falling.min() <= tolerance:
                return True
            if self.taken == last:
                return False
            slope = np.maximum(rising.max() - falling, 0.0)
            curvatures = diagonal[up] + diagonal[members] - 2.0 * self.matrix[up, members]
            down = members[np.argmax(slope * slope / np.maximum(curvatures, MIN_CURVATURE))]
            curvature = diagonal[up] + diagonal[down] - 2.0 * self.matrix[up, down]
            step = min(
                (self.gradient[up] - self.gradient[down]) / curvature,
                self.upper[up] - self.dual[up],
                self.dual[down] - self.lower[down],
            )
            self.dual[up] += step
            self.dual[down] -= step
            self.gradient[members] -= step * (self.matrix[up, members] - self.matrix[down, members])
            self.taken += 1

    def selectable(self, members):
        """Return the variables that can still be selected; all if they are more than a part."""
        rising, falling = self.extremes(members)
        left = members[(rising >= falling.min()) & np.isfinite(rising) | (falling <= rising.max())]
        return left if len(left) <= MAX_SHRUNK_PART * len(members) else members

    def solve(self, tolerance):
        """Solve to the tolerance, with shrinking every `STEPS_PER_SHRINK` steps."""
        everything = np.arange(len(self.dual))
        while not self.run(everything, tolerance, STEPS_PER_SHRINK):
            members = self.selectable(everything)
            if members is everything:
                continue
            before, gradient = self.dual.copy(), self.gradient.copy()
            self.sizes.append(len(members))
            while not self.run(members, tolerance, STEPS_PER_SHRINK):
                members = self.selectable(members)
                self.sizes.append(len(members))
            self.gradient = gradient - self.matrix @ (self.dual - before)
