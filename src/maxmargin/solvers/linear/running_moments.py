"""Σ D f fᵀ over the samples between their bounds, kept up to date from one Newton step to the next.

Late steps move few samples across the edge of their loss. Then the sums of those that came are added and of those that
left taken away, which costs a fraction of a pass over all. Every so often everything is summed up afresh, since
rounding errors stay in such sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features, Moments

#: So many times the sums are corrected before they are computed afresh.
CORRECTIONS = 8

#: Corrections pay as long as they concern less than this part of the samples that are in the sums.
WORTH_IT = 0.5


class _Sums(NamedTuple):
    """Moments, whose they are, and for which σ (0 where all samples have one ridge: then they are plain sums)."""

    members: NDArray[np.bool_]
    sigma: float
    moments: Moments


class RunningMoments:
    """The moments of changing sets of rows, with the factors 1 / (ridge + σ).

    Parameters
    ----------
    rows : Features
        All rows.
    ridge : float array
        Of each row.
    centred : bool
        Whether dense rows are counted from about their mean.

    Attributes
    ----------
    origin : float array
        From where the rows are counted.
    """

    def __init__(self, rows: Features, ridge: Floats, centred: bool) -> None:
        self.rows, self.ridge = rows, ridge
        self.origin = np.zeros(rows.width)
        self._one_ridge = bool(len(ridge)) and float(ridge.min()) == float(ridge.max())
        self._shifted = centred and not sparse.issparse(rows.points.data)
        self._last: _Sums | None = None
        self._corrections = 0

    def of(self, members: NDArray[np.bool_], sigma: float) -> Moments:
        """Return the moments of the members, counted from `origin`."""
        kept = 0.0 if self._one_ridge else sigma
        moments = None if self._last is None else self._corrected(self._last, members, kept)
        if moments is None:
            moments, self._corrections = self._afresh(np.flatnonzero(members), kept), 0
        self._last = _Sums(members, kept, moments)
        return moments.times(1.0 / (float(self.ridge[0]) + sigma)) if self._one_ridge else moments

    def _corrected(self, last: _Sums, members: NDArray[np.bool_], sigma: float) -> Moments | None:
        """Return the last moments with what has changed since, None if that is much."""
        changed = np.flatnonzero(members != last.members)
        few = len(changed) <= WORTH_IT * np.count_nonzero(members)
        if not few or self._corrections >= CORRECTIONS or sigma != last.sigma:
            return None
        self._corrections += 1
        came = members[changed]
        moments = last.moments
        for some, sign in ((changed[came], 1.0), (changed[~came], -1.0)):
            if len(some):
                moments = moments.plus(self._of_rows(self.rows.take(some), self._factors(some, sigma)), sign)
        return moments

    def _afresh(self, chosen: Indices, sigma: float) -> Moments:
        rows, factors = self.rows.take(chosen), self._factors(chosen, sigma)
        if self._shifted:
            self.origin = rows.weights(factors)[:-1] / factors.sum()
        return self._of_rows(rows, factors)

    def _of_rows(self, rows: Features, factors: Floats) -> Moments:
        return rows.moments(factors, self.origin if self._shifted else None)

    def _factors(self, chosen: Indices, sigma: float) -> Floats:
        return np.ones(len(chosen)) if self._one_ridge else 1.0 / (self.ridge[chosen] + sigma)
