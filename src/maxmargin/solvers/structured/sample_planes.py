"""The known constraints of one sample, their dual variables, and pair steps on these.

The dual variables of a sample, that of its right output included, sum up to its cost. A step moves weight from the
output of the least slack among those with a positive coefficient to that of the largest: a pairwise Frank–Wolfe step
(Lacoste-Julien & Jaggi 2015), which is the pair step of sequential minimal optimisation on this sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import inner
from maxmargin.problems.structured_problem import Plane

#: Pair steps on the constraints of a sample before the next sample.
MAX_PAIR_STEPS = 50

#: Visits after which a constraint without weight is dropped.
MAX_IDLE_VISITS = 30


class SamplePlanes:
    """The constraints of a sample; the first is that of the right output, whose loss and difference are 0."""

    def __init__(self, cost: float, width: int) -> None:
        self.outputs: list[Any] = [None]
        self.losses = np.zeros(1)
        self.differences = sparse.csr_array((1, width))
        self.products = np.zeros((1, 1))  # of the differences
        self.coefficients = np.array([cost])
        self._idle = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.losses)

    def slacks(self, weights: Floats) -> Floats:
        """Return the slack that each constraint needs."""
        return np.asarray(self.losses - self.differences @ weights)

    def worst(self, weights: Floats) -> Plane:
        """Return the constraint that needs the largest slack."""
        k = int(self.slacks(weights).argmax())
        return Plane(self.outputs[k], float(self.losses[k]), self.differences[[k]].toarray()[0])

    def add(self, plane: Plane) -> None:
        """Add a constraint unless it is known."""
        row = sparse.csr_array(plane.difference[None, :])
        cross = self.differences @ plane.difference
        square = inner(plane.difference, plane.difference)
        same = (self.losses == plane.loss) & (cross == square) & (np.diagonal(self.products) == square)
        if any(not (self.differences[[k]] - row).count_nonzero() for k in np.flatnonzero(same)):
            return
        self.outputs.append(plane.output)
        self.losses = np.append(self.losses, plane.loss)
        self.differences = sparse.csr_array(sparse.vstack([self.differences, row], format="csr"))
        self.products = np.block([[self.products, cross[:, None]], [cross[None, :], np.array([[square]])]])
        self.coefficients = np.append(self.coefficients, 0.0)
        self._idle = np.append(self._idle, 0)

    def optimise(self, weights: Floats, tolerance: float) -> tuple[Floats, float, float]:
        """Take pair steps; return the change of the weights, the increase of the dual value, and the gap before it.

        The gap is that of this sample on its known constraints.
        """
        slacks = self.slacks(weights)
        gap = float(self.coefficients.sum() * slacks.max()) - inner(self.coefficients, slacks)
        before, gain = self.coefficients.copy(), 0.0
        for _ in range(MAX_PAIR_STEPS):
            up = int(slacks.argmax())
            down = int(np.where(self.coefficients > 0, slacks, np.inf).argmin())
            slope = slacks[up] - slacks[down]
            if slope <= tolerance:
                break
            curvature = self.products[up, up] + self.products[down, down] - 2.0 * self.products[up, down]
            step = self.coefficients[down] if curvature <= 0 else min(self.coefficients[down], slope / curvature)
            if self.coefficients[up] + step == self.coefficients[up]:
                break
            whole = step == self.coefficients[down]
            self.coefficients[up] += step
            self.coefficients[down] = 0.0 if whole else self.coefficients[down] - step
            slacks = slacks - step * (self.products[up] - self.products[down])
            gain += step * (slope - 0.5 * step * curvature)
        change = self.coefficients - before
        moved = self.differences.T @ change if change.any() else np.zeros(len(weights))
        self._drop_idle()
        return np.asarray(moved), gain, max(0.0, gap)

    def _drop_idle(self) -> None:
        """Drop constraints that have had no weight for long."""
        self._idle = np.where(self.coefficients > 0, 0, self._idle + 1)
        self._idle[0] = 0
        kept = np.flatnonzero(self._idle <= MAX_IDLE_VISITS)
        if len(kept) == len(self):
            return
        self.outputs = [self.outputs[k] for k in kept]
        self.losses, self.coefficients, self._idle = self.losses[kept], self.coefficients[kept], self._idle[kept]
        self.differences, self.products = self.differences[kept], self.products[np.ix_(kept, kept)]

    def support(self) -> tuple[list[Any], Floats]:
        """Return the other outputs with a positive coefficient, and these."""
        used = 1 + np.flatnonzero(self.coefficients[1:] > 0)
        return [self.outputs[k] for k in used], self.coefficients[used]
