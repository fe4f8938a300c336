"""The linear system of a Newton step on the primal problem with the linear kernel.

    (I + Fᵀ D F) d + Fᵀ D 1_g e_g = right       for the weights
    1_gᵀ D F d + (Σ_g D) e_g      = bottom_g    for the offset of each group

F holds the rows of the free samples (responses strictly between their bounds) and D is diagonal. With few features the
system is solved by a Cholesky factorisation of the matrix of the features, with few samples by one of the samples
(Woodbury identity), otherwise by conjugate gradients. With one group for all samples e = bottom / Σ D − m·d with the
mean m = Fᵀ D 1 / Σ D of the rows; rows are then centred at their mean, which avoids cancellation.

`RunningMoments` keeps Σ D f fᵀ up to date between Newton steps. Late steps change few of the free samples; their
contributions are added and subtracted, which costs a fraction of a pass over the data. The sums are recomputed
periodically because rounding errors accumulate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.matrices.features import Features, Moments
from maxmargin.solvers.linear.cholesky import factorise, solve

#: The largest number of features or samples for which the system is factorised.
MAX_FACTORISED = 1500

#: Lower bound of a group's diagonal entry, relative to Σ D over all samples of the group: it may have no free sample.
MIN_RELATIVE_DIAGONAL = 1e-12

#: Relative residual at which conjugate gradients stop, and their largest number of steps.
CG_TOLERANCE, MAX_CG_STEPS = 0.03, 250

#: Updates of the moments between two recomputations.
MAX_UPDATES = 8

#: Moments are updated if at most this fraction of the free samples has changed, otherwise recomputed.
MAX_CHANGED_FRACTION = 0.5


def uses_features(rows: Features, free: int) -> bool:
    """Whether the matrix of the features is factorised, given the number of free samples."""
    return free > 0 and rows.dimension <= MAX_FACTORISED and (rows.dimension <= free or free > MAX_FACTORISED)


def step_by_features(
    moments: Moments, origin: Floats, constant: float, right: Floats, bottom: Floats
) -> tuple[Floats, Floats]:
    """Return the steps of the weights and of the offset, with one group for all samples or none.

    `moments` are those of the free rows, weighted by D and relative to the `origin`.
    """
    width = len(moments.sums)
    if not len(bottom) or not moments.total > 0:  # no offset, or its curvature was lost in rounding errors
        return solve(factorise(_feature_matrix(moments, constant)), right), np.zeros(len(bottom))
    mean_from_origin = moments.sums / moments.total
    lower = _feature_matrix(moments, 0.0)
    lower[:width, :width] -= np.outer(moments.sums, mean_from_origin)
    mean = np.append(origin + mean_from_origin, constant)
    step = solve(factorise(lower), right - mean * bottom[0])
    return step, bottom / moments.total - float(mean @ step)


def _feature_matrix(moments: Moments, constant: float) -> Floats:
    """Return the lower triangle of I + Fᵀ D F, including the row of the constant feature."""
    width = len(moments.sums)
    lower = np.zeros((width + 1, width + 1))
    lower[:width, :width] = moments.squares
    if constant:
        lower[width, :width] = constant * moments.sums
        lower[width, width] = constant**2 * moments.total
    lower.flat[:: width + 2] += 1.0
    return lower


class NewtonEquations:
    """The system of one Newton step, for any groups.

    With e_g = bottom_g / Σ_g D − m_g·d and the mean m_g of the rows of each group it is one system for the weights,

        (I + F_cᵀ D F_c) d = right − Σ m_g bottom_g,

    in the rows F_c, each relative to the mean of its group. A Schur complement of the offsets instead would be lost in
    rounding errors where rows are far from the origin.

    Parameters
    ----------
    rows : Features
        The rows of the free samples.
    factors : float array
        The diagonal D.
    group : int array
        The group of each row, −1 for none.
    largest : float array
        Σ D over all samples of each group, free or not.
    square : callable
        Returns the matrix of inner products of the rows.
    """

    def __init__(
        self, rows: Features, factors: Floats, group: np.ndarray, largest: Floats, square: Callable[[], Floats]
    ) -> None:
        self.rows, self.factors = rows, factors
        self._shares = [np.where(group == g, factors, 0.0) for g in range(len(largest))]
        totals = np.array([share.sum() for share in self._shares])
        self._totals = np.where(totals > 0, totals, MIN_RELATIVE_DIAGONAL * largest)
        self._shares = [share / total for share, total in zip(self._shares, self._totals, strict=True)]
        self._means = [rows.weights(share) for share in self._shares]
        self._members = [group == g for g in range(len(largest))]
        if rows.size == 0:
            self._inverse: Callable[[Floats], Floats] = lambda right: right
        elif uses_features(rows, rows.size):
            factor = factorise(self._centred_features())
            self._inverse = lambda right: solve(factor, right)
        elif rows.size <= MAX_FACTORISED:
            factor = factorise(self._centred_square(square()))
            self._inverse = lambda right: right - self._weights(solve(factor, self._decisions(right)))
        else:
            self._inverse = self._conjugate_gradients

    def solve(self, right: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """Return the steps of the weights and of the offsets."""
        for mean, value in zip(self._means, bottom, strict=True):
            right = right - value * mean
        step = self._inverse(right)
        return step, bottom / self._totals - np.array([float(mean @ step) for mean in self._means])

    def _centred_features(self) -> Floats:
        """Return the lower triangle of I + F_cᵀ D F_c."""
        lower = _feature_matrix(self.rows.moments(self.factors), self.rows.constant)
        for mean, total in zip(self._means, self._totals, strict=True):
            lower -= np.outer(total * mean, mean)
        return lower

    def _centred_square(self, square: Floats) -> Floats:
        """Return F_c F_cᵀ + 1 / D."""
        for share, members in zip(self._shares, self._members, strict=True):
            square = square - np.outer(members, share @ square)
            square -= np.outer(square @ share, members)
        square.flat[:: len(square) + 1] += 1.0 / self.factors
        return square

    def _decisions(self, vector: Floats) -> Floats:
        """Return F_c v."""
        decisions = self.rows.decisions(vector)
        for mean, members in zip(self._means, self._members, strict=True):
            decisions[members] -= float(mean @ vector)
        return decisions

    def _weights(self, dual: Floats) -> Floats:
        """Return F_cᵀ b."""
        weights = self.rows.weights(dual)
        for mean, members in zip(self._means, self._members, strict=True):
            weights -= float(dual[members].sum()) * mean
        return weights

    def _conjugate_gradients(self, right: Floats) -> Floats:
        """Return an approximate solution for the weights: an inexact Newton step is sufficient."""
        solution = np.zeros_like(right)
        residual, direction = right.copy(), right.copy()
        square = float(residual @ residual)
        target = CG_TOLERANCE**2 * square
        for _ in range(MAX_CG_STEPS):
            if square <= target or square == 0:
                break
            check_deadline()
            product = direction + self._weights(self.factors * self._decisions(direction))
            length = square / float(direction @ product)
            solution += length * direction
            residual -= length * product
            before, square = square, float(residual @ residual)
            direction = residual + (square / before) * direction
        return solution


class _Sums(NamedTuple):
    """Moments with their members and σ; σ is 0 for unweighted sums, which serve every σ if all ridges are equal."""

    members: NDArray[np.bool_]
    sigma: float
    moments: Moments


class RunningMoments:
    """The moments of changing sets of rows, weighted by 1 / (ridge + σ).

    Parameters
    ----------
    rows : Features
        All rows.
    ridge : float array
        The ridge of each row.
    centred : bool
        Whether moments of dense rows are relative to their approximate mean.

    Attributes
    ----------
    origin : float array
        The point that the moments are relative to.
    """

    def __init__(self, rows: Features, ridge: Floats, centred: bool) -> None:
        self.rows, self.ridge = rows, ridge
        self.origin = np.zeros(rows.width)
        self._equal_ridges = bool(len(ridge)) and float(ridge.min()) == float(ridge.max())
        self._shifted = centred and not sparse.issparse(rows.points.table)
        self._last: _Sums | None = None
        self._updates = 0

    def of(self, members: NDArray[np.bool_], sigma: float) -> Moments:
        """Return the moments of the members, relative to `origin`."""
        kept = 0.0 if self._equal_ridges else sigma
        moments = None if self._last is None else self._updated(self._last, members, kept)
        if moments is None:
            moments, self._updates = self._recomputed(np.flatnonzero(members), kept), 0
        self._last = _Sums(members, kept, moments)
        return moments.times(1.0 / (float(self.ridge[0]) + sigma)) if self._equal_ridges else moments

    def _updated(self, last: _Sums, members: NDArray[np.bool_], sigma: float) -> Moments | None:
        """Return the last moments updated for the rows that entered and left, None if recomputing is better."""
        changed = np.flatnonzero(members != last.members)
        few = len(changed) <= MAX_CHANGED_FRACTION * np.count_nonzero(members)
        if not few or self._updates >= MAX_UPDATES or sigma != last.sigma:
            return None
        self._updates += 1
        entered = members[changed]
        moments = last.moments
        for some, sign in ((changed[entered], 1.0), (changed[~entered], -1.0)):
            if len(some):
                moments = moments.plus(self._of_rows(self.rows.take(some), self._factors(some, sigma)), sign)
        return moments

    def _recomputed(self, chosen: Indices, sigma: float) -> Moments:
        rows, factors = self.rows.take(chosen), self._factors(chosen, sigma)
        if self._shifted:
            self.origin = rows.weights(factors)[:-1] / factors.sum()
        return self._of_rows(rows, factors)

    def _of_rows(self, rows: Features, factors: Floats) -> Moments:
        return rows.moments(factors, self.origin if self._shifted else None)

    def _factors(self, chosen: Indices, sigma: float) -> Floats:
        return np.ones(len(chosen)) if self._equal_ridges else 1.0 / (self.ridge[chosen] + sigma)
