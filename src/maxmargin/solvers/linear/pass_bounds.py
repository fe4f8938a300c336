"""A lower bound on the optimum from the sums of one pass over the data, rounding errors included.

The responses of a pass (`pass_sums`) are within the bounds of the dual problem, but their sum is not what an intercept
demands. They are moved to the right sum as a whole, by factors that follow from the sums alone, so that no response has
to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.solvers.linear.pass_sums import PassSums


class Repaired(NamedTuple):
    """The terms of the dual value of variables with the right sum.

    Attributes
    ----------
    linear, ridge : float
    weights : float array
        Fᵀβ, with an additional error of the norm `weights_error`.
    scale_error : float
        The error of the factor by which a part was scaled or moved, a quotient of rounded sums.
    part : tuple of float
        The derivatives with respect to that factor: of the linear term, of the ridge term, and the norm of that of Fᵀβ.
    """

    linear: float
    ridge: float
    weights: Floats
    weights_error: float = 0.0
    scale_error: float = 0.0
    part: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DualConstraints:
    """What dual vectors must satisfy beside the bounds that responses are within.

    Attributes
    ----------
    total : float array
        The sum of all variables, empty if there is no such constraint; 0, or positive if all variables are.
    scalable : bool
        Whether multiples of feasible dual vectors above 1 are feasible: no variable has a finite bound but 0.
    upper_weights, upper_total : float array, float
        Fᵀ upper and Σ upper, where the total is positive.
    upper_error, upper_total_error : float
        Bounds on the norm of the error of `upper_weights`, and on the error of `upper_total`.
    """

    total: Floats
    scalable: bool = False
    upper_weights: Floats | None = None
    upper_total: float = 0.0
    upper_error: float = 0.0
    upper_total_error: float = 0.0

    def factor(self, linear: float, square: float) -> float:
        """Return the best factor on a dual vector with these terms of its dual value."""
        if len(self.total) and self.total[0] != 0:
            return 1.0
        if not linear > 0:
            return 0.0
        if not square > 0:  # no feature differs from 0
            return 1.0
        return linear / square if self.scalable else min(1.0, linear / square)

    def repaired(self, sums: PassSums) -> Repaired | None:
        """Return the terms of responses that are moved to the right sum, None if they cannot.

        For a sum of 0, positive and negative responses are scaled apart: the larger part is scaled down. A positive sum
        is reached by scaling down, or by moving all variables towards their upper bounds.
        """
        if len(self.total) and self.total[0] != 0:
            return self._with_total(sums, float(self.total[0]))
        sizes = np.abs(sums.total)
        if not len(self.total) or not sizes.max() > 0:
            return Repaired(float(sums.linear.sum()), float(sums.ridge.sum()), sums.weights.sum(axis=0))
        large = int(np.argmax(sizes))
        scale = np.ones(2)
        scale[large] = sizes[1 - large] / sizes[large]
        return Repaired(
            float(scale @ sums.linear),
            float(scale**2 @ sums.ridge),
            scale @ sums.weights,
            0.0,
            4 * sums.term_error / float(sizes[large]) + 4 * UNIT_ROUNDOFF,
            (abs(float(sums.linear[large])), float(sums.ridge[large]), _norm(sums.weights[large])),
        )

    def _with_total(self, sums: PassSums, total: float) -> Repaired | None:
        """Return the terms of nonnegative responses with a positive sum; the linear term and the ridge are 0."""
        found, weights = float(sums.total[0]), sums.weights[0]
        if self.upper_weights is None:
            return None
        if not found > 0:  # the same fraction of all upper bounds
            share = total / self.upper_total
            scale_error = 4 * self.upper_total_error / self.upper_total + 4 * UNIT_ROUNDOFF
            size = _norm(self.upper_weights)
            return Repaired(0.0, 0.0, share * self.upper_weights, share * self.upper_error, scale_error, (0, 0, size))
        if found >= total:
            scale_error = 4 * sums.term_error / found + 4 * UNIT_ROUNDOFF
            return Repaired(0.0, 0.0, (total / found) * weights, 0.0, scale_error, (0.0, 0.0, _norm(weights)))
        room = self.upper_total - found
        if not room > total - found:
            return None
        share, direction = (total - found) / room, self.upper_weights - weights
        scale_error = 4 * (sums.term_error + self.upper_total_error) / room + 4 * UNIT_ROUNDOFF
        moved = weights + share * direction
        return Repaired(0.0, 0.0, moved, share * self.upper_error, scale_error, (0.0, 0.0, _norm(direction)))


def _norm(vector: Floats) -> float:
    return sqrt(inner(vector, vector))


def dual_bound(sums: PassSums, constraints: DualConstraints) -> tuple[float, float]:
    """Return a lower bound on the optimum by the responses of a pass, and the share of it that is due to rounding.

    Where the sum of all variables is given, the responses are moved to that sum first (`DualConstraints`). Then all are
    multiplied by the best factor that the constraints allow.
    """
    moved = constraints.repaired(sums)
    if moved is None:
        return -inf, 0.0
    linear, ridge, weights = moved.linear, moved.ridge, moved.weights
    norm = _norm(weights)
    square = norm * norm + ridge
    factor = constraints.factor(linear, square)
    factor_square = factor * factor  # powers of numbers that overflow raise, products do not
    value = factor * linear - 0.5 * factor_square * square
    of_weights = sums.weights_error + moved.weights_error + (len(weights) + 8) * UNIT_ROUNDOFF * norm
    of_weights += moved.scale_error * moved.part[2]
    of_square = 2 * norm * of_weights + of_weights * of_weights + sums.term_error
    error = factor * 2 * sums.term_error + 0.5 * factor_square * of_square
    part_linear, part_ridge, part_norm = moved.part
    error += 2 * factor * moved.scale_error * (part_linear + factor * (part_ridge + norm * part_norm))
    error += 8 * UNIT_ROUNDOFF * (factor * abs(linear) + factor_square * square)
    return value - error, error
