"""The primal problem with the linear kernel as sums over blocks of samples, for data that do not fit into memory.

At weights w and an offset ρ, the slacks z = linear − F w − ρ of a block determine responses β (`problems.losses`). All
that Newton's method and the certificate need are sums over samples: the losses, Fᵀβ, the moments of the free rows, and
the terms of the dual value. Sums of blocks are added, so a pass over a file, over the partitions of a cluster, and over
an array in memory are the same computation.

A proximal term −½ σ‖β − c‖² in the dual smooths a loss with kinks, as the hinge loss (`smoothed_primal`). Responses to
smoothed losses lie within the bounds of the problem without smoothing, too, so their dual value is a bound on its
optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features, Moments
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems import DualProblem

#: Roundings of a term beside those of its sum, for the bounds on rounding errors.
EXTRA_ROUNDINGS = 8


class PassPoint(NamedTuple):
    """Where a pass evaluates a problem.

    Attributes
    ----------
    weights : float array
        One for each feature, and the last for the constant one.
    offset : float array
        One for each group: one or none.
    sigma : float
        The smoothing parameter σ, 0 for none.
    recentre : bool
        Whether the responses of the pass before become the proximal centre first.
    curvature : bool
        Whether the second moments of the free rows are computed.
    direction : float array, optional
        Weights and offsets along which the product with the Hessian is computed instead of second moments.
    """

    weights: Floats
    offset: Floats
    sigma: float = 0.0
    recentre: bool = False
    curvature: bool = True
    direction: Floats | None = None


@dataclass(frozen=True)
class PassSums:
    """Sums over samples. Pairs of numbers are of positive and of negative responses, which may be scaled apart.

    Attributes
    ----------
    loss : float
        An upper bound on Σ conjugate(z), rounding errors included.
    linear, ridge, total : float arrays of shape (2,)
        Σ (linear β − kink |β|), Σ ridge β², Σ β.
    weights : float array of shape (2, dimension)
        Fᵀβ.
    term_error, weights_error : float
        Bounds on the rounding errors of the sums: of each of the first three, and of the norm of Fᵀβ.
    free : int
        The number of free rows, whose responses are off their bounds and kinks.
    moments : Moments or None
        Of the free rows, weighted by the inverse ridge.
    product : float array or None
        Of the Hessian of the loss with the direction of the point, for weights and offsets.
    """

    loss: float
    linear: Floats
    ridge: Floats
    total: Floats
    weights: Floats
    term_error: float
    weights_error: float
    free: int
    moments: Moments | None
    product: Floats | None

    def __add__(self, other: PassSums) -> PassSums:
        """Return the sums over both parts of the samples; each addition is rounded once."""
        moments = self.moments
        if moments is not None and other.moments is not None:
            moments = Moments(
                moments.total + other.moments.total,
                moments.sums + other.moments.sums,
                moments.squares + other.moments.squares,
            )
        product = None if self.product is None or other.product is None else self.product + other.product
        terms = self.linear, other.linear, self.ridge, other.ridge, self.total, other.total
        rounding, weights = 2 * UNIT_ROUNDOFF, self.weights + other.weights
        return PassSums(
            (self.loss + other.loss) * (1.0 + rounding),
            self.linear + other.linear,
            self.ridge + other.ridge,
            self.total + other.total,
            weights,
            self.term_error + other.term_error + rounding * float(max(np.abs(part).sum() for part in terms)),
            self.weights_error + other.weights_error + rounding * float(np.linalg.norm(weights)),
            self.free + other.free,
            moments,
            product,
        )


def evaluate_block(
    problem: DualProblem,
    rows: Features,
    point: PassPoint,
    largest_norm: float,
    origin: Floats | None,
    centre: NDArray[np.float32] | None = None,
    kinds: NDArray[np.int32] | None = None,
) -> tuple[PassSums, Floats]:
    """Return the sums over the samples of a block, of whose rows none has a larger norm than `largest_norm`.

    Moments are about `origin`, None for CSR rows. `centre` is the proximal centre c, 0 by default. With `kinds`, the
    problem is that of one sample of each kind. The responses of the samples are returned as well.
    """
    size, weights = rows.size, np.ascontiguousarray(point.weights, dtype=np.float64)
    response, free, dual_weights = np.empty(size), np.empty(size, dtype=bool), np.empty((2, rows.dimension))
    arrays = _native.PassArrays(
        linear=problem.linear,
        lower=problem.lower,
        upper=problem.upper,
        ridge=problem.ridge,
        kink=problem.kinks,
        kinds=kinds,
        centre=centre,
        response=response,
        free=free,
    )
    norm = sqrt(inner(weights, weights))
    slack_error = UNIT_ROUNDOFF * (rows.most_stored + EXTRA_ROUNDINGS) * largest_norm * norm
    offset, threads = float(point.offset.sum()), rows.threads_for(2 * rows.stored)
    check_deadline()
    totals = _native.pass_sums(
        rows.native, arrays, weights, rows.constant, offset, point.sigma, slack_error, dual_weights, threads
    )
    if not isfinite(totals.slack_square):
        raise ValueError(NON_FINITE_MESSAGE)
    linear, ridge, total = (np.array(pair) for pair in (totals.linear, totals.ridge, totals.total))
    roundings, absolute = size + EXTRA_ROUNDINGS, float(np.abs(total).sum())
    moments, product = None, None
    if point.direction is not None or point.curvature:
        chosen = np.flatnonzero(free)
        ridges = problem.ridge[chosen if kinds is None else kinds[chosen]]
        moments, product = _second_order(rows.take(chosen), 1.0 / (ridges + point.sigma), point, origin)
    sums = PassSums(
        loss=totals.loss * (1.0 + roundings * UNIT_ROUNDOFF),
        linear=linear,
        ridge=ridge,
        total=total,
        weights=dual_weights,
        term_error=roundings * UNIT_ROUNDOFF * (totals.size + float(ridge.sum())),
        weights_error=(roundings + rows.threads) * UNIT_ROUNDOFF * largest_norm * absolute,
        free=totals.free,
        moments=moments,
        product=product,
    )
    return sums, response


def _second_order(
    free_rows: Features, factors: Floats, point: PassPoint, origin: Floats | None
) -> tuple[Moments | None, Floats | None]:
    """Return the moments of the free rows, or the product of the Hessian with the direction of the point."""
    if point.direction is None:
        return free_rows.moments(factors, origin), None
    dimension = free_rows.dimension
    along, offset_step = point.direction[:dimension], point.direction[dimension:]
    change = factors * (free_rows.decisions(along) + offset_step.sum())
    return None, np.append(free_rows.weights(change), np.full(len(offset_step), change.sum()))
