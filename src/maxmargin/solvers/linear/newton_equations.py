"""The equations of Newton's step on the primal of a linear machine.

    (I + Fᵀ D F) d + Fᵀ D 1_g e_g = right       in the weights
    1_gᵀ D F d + (Σ_g D) e_g      = bottom_g    in the offset of each group

where the rows F are those of the samples between their bounds and D is diagonal. Few features: Cholesky's factor of a
square with as many rows; few samples: one of theirs, by Woodbury's identity; else conjugate gradients. With one group
for all, e = bottom / Σ D − m·d with the mean m = Fᵀ D 1 / Σ D of the rows, and the rows may be counted from there:
columns far from zero then do no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy.linalg import lapack

from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features, Moments

#: Up to so many features or samples the equations are solved exactly.
EXACT = 1500

#: A sum of D over a group counts at least this part of the sum over all samples: none may be between its bounds.
LEAST_PART = 1e-12

#: What conjugate gradients leave of the right-hand side, and how many steps they take at most.
REMAINDER, MOST_STEPS = 0.03, 250


def _factor(square: Floats) -> Floats:
    """Return Cholesky's factor of a lower triangle, with a larger diagonal where rounding made it indefinite.

    LAPACK is called by itself: for a hundred features SciPy's checks take as long.
    """
    more = np.finfo(float).eps * len(square)
    while True:
        factor, failed = lapack.dpotrf(square.T, lower=0, clean=0)  # in Fortran's order it is an upper triangle
        if not failed:
            return cast(Floats, factor)
        if not (np.isfinite(square).all() and more < 1.0):
            raise ValueError(NON_FINITE_MESSAGE)
        square.flat[:: len(square) + 1] *= 1.0 + more
        more *= 10.0


def _solve(factor: Floats, right: Floats) -> Floats:
    return cast(Floats, lapack.dpotrs(factor, right, lower=0)[0])


def by_features(rows: Features, between: int) -> bool:
    """Whether the equations are solved by features, given how many samples are between their bounds."""
    return between > 0 and rows.dimension <= EXACT and (rows.dimension <= between or between > EXACT)


def step_by_features(
    moments: Moments, origin: Floats, constant: float, right: Floats, bottom: Floats
) -> tuple[Floats, Floats]:
    """Return the steps of the weights and of the offset, with one group for all samples or none.

    `moments` are those of the rows between their bounds, with the factors D, counted from the `origin`.
    """
    width = len(moments.sums)
    if not len(bottom):
        return _solve(_factor(_square(moments, constant)), right), bottom
    drift = moments.sums / moments.total
    lower = _square(moments, 0.0)
    lower[:width, :width] -= np.outer(moments.sums, drift)
    mean = np.append(origin + drift, constant)
    step = _solve(_factor(lower), right - mean * bottom[0])
    return step, bottom / moments.total - float(mean @ step)


def _square(moments: Moments, constant: float) -> Floats:
    """Return I + Fᵀ D F, the lower triangle, with a row for the constant feature."""
    width = len(moments.sums)
    lower = np.zeros((width + 1, width + 1))
    lower[:width, :width] = moments.squares
    if constant:
        lower[width, :width] = constant * moments.sums
        lower[width, width] = constant**2 * moments.total
    lower.flat[:: width + 2] += 1.0
    return lower


class NewtonEquations:
    """Equations of one step; `rows` are those between their bounds, with the factors D.

    Parameters
    ----------
    rows : Features
    factors : float array
        D of each row.
    group : int array
        The group of each row, −1 for none.
    largest : float array
        Σ D over all samples of each group, between their bounds or not.
    square : function
        Returns the products of the rows with each other.
    """

    def __init__(
        self, rows: Features, factors: Floats, group: np.ndarray, largest: Floats, square: Callable[[], Floats]
    ) -> None:
        self.rows, self.factors, self.group, self.largest = rows, factors, group, largest
        if rows.size == 0:
            self._inverse: Callable[[Floats], Floats] = lambda right: right
        elif by_features(rows, rows.size):
            factor = _factor(_square(rows.moments(factors), rows.constant))
            self._inverse = lambda right: _solve(factor, right)
        elif rows.size <= EXACT:
            inner = square()
            inner.flat[:: rows.size + 1] += 1.0 / factors
            factor = _factor(inner)
            self._inverse = lambda right: right - rows.weights(_solve(factor, rows.decisions(right)))
        else:
            self._inverse = self._conjugate_gradients

    def solve(self, right: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """Return the steps of the weights and of the offsets."""
        step = self._inverse(right)
        groups = len(bottom)
        if not groups:
            return step, np.zeros(0)
        members = [np.where(self.group == g, self.factors, 0.0) for g in range(groups)]
        columns = [self.rows.weights(member) for member in members]
        images = [self._inverse(column) for column in columns]
        schur = np.array([[-float(a @ b) for b in images] for a in columns])
        schur.flat[:: groups + 1] += [member.sum() for member in members]
        schur.flat[:: groups + 1] = np.maximum(schur.flat[:: groups + 1], LEAST_PART * self.largest)
        lacking = bottom - np.array([float(column @ step) for column in columns])
        shift = np.linalg.lstsq(schur, lacking, rcond=None)[0]
        for image, part in zip(images, shift, strict=True):
            step = step - part * image
        return step, shift

    def _product(self, vector: Floats) -> Floats:
        return vector + self.rows.weights(self.factors * self.rows.decisions(vector))

    def _conjugate_gradients(self, right: Floats) -> Floats:
        """Solve the equations of the weights roughly: a Newton step need not be exact."""
        solution = np.zeros_like(right)
        remainder, step = right.copy(), right.copy()
        square = float(remainder @ remainder)
        target = REMAINDER**2 * square
        for _ in range(MOST_STEPS):
            if square <= target or square == 0:
                break
            image = self._product(step)
            length = square / float(step @ image)
            solution += length * step
            remainder -= length * image
            before, square = square, float(remainder @ remainder)
            step = remainder + (square / before) * step
        return solution
