"""Where Newton's method on the primal of a linear machine begins.

From weights that are nearly right already, of a smaller problem or of another solver, most samples are known to be on
one side of the edge of their loss. What has to be found out is the side of those next to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.solvers.linear.linear_point import LinearPoint, dual_value, finite_norms, mended, primal_value
from maxmargin.solvers.stopping import StoppingRule

#: The smallest σ, relative to the squared length of a row: below it rounding errors spoil the equations.
SHARPEST = 1e-13

#: So many samples for each feature, and one in so many, are next to the edge of their loss if weights are nearly right.
NEAR, NEAR_PART = 3, 20

#: About how many rows tell how long rows are.
LENGTHS = 1000


class Beginning(NamedTuple):
    """Where a run begins: a point, σ, and F w of its weights; what is None is worked out."""

    point: LinearPoint
    sigma: float | None = None
    image: Floats | None = None


def near(problem: DualProblem, rows: Features, weights: Floats, offset: Floats, rule: StoppingRule) -> Beginning:
    """Return where to begin if the weights and offsets are nearly right already.

    The samples next to the edge of their loss, a few for each feature, are those that have to be told apart; all others
    are put on the bound that their slack points to. Where a ridge is all that holds variables back there is no such
    edge, and nothing is known about the weights but themselves.
    """
    room = problem.upper - problem.lower
    bounded = np.isfinite(room)
    least = float(problem.ridge.min())
    if least > 0 and rule.relative_gap is not None and not bounded.any():
        return Beginning(LinearPoint(np.zeros(problem.size), weights, offset, np.inf, -np.inf), 0.0)
    image = rows.decisions(weights)
    without = problem.linear - image
    threads = rows.threads_for(problem.size)
    offset = offsets_of_least_loss(problem, without, offset, threads)
    slack = without - of_samples(problem, offset)
    primal = primal_value(problem, weights, offset, slack, threads)
    sigma = 0.0
    if bounded.any() and room[bounded].max() > 0:
        edge = np.abs(slack[bounded])
        count = min(len(edge) - 1, NEAR * rows.dimension + len(edge) // NEAR_PART)
        sigma = 2.0 * float(np.partition(edge, count)[count]) / float(room[bounded].mean())
        sigma = max(sigma, SHARPEST * squared_length(rows))
    if sigma <= 0.1 * least:
        sigma = 0.0
    if sigma + least == 0.0:  # a hard margin, or every sample on the edge
        sigma = squared_length(rows)
    with np.errstate(invalid="ignore"):
        middle = np.where(bounded, 0.5 * (problem.lower + problem.upper), 0.0)
    dual = np.clip((slack + sigma * middle) / (problem.ridge + sigma), problem.lower, problem.upper)
    dual = mended(problem, dual)
    value = dual_value(problem, dual, rows.weights(dual))
    if rule.relative_gap is None:
        return Beginning(LinearPoint.of_dual(problem, rows, dual, rule), sigma)
    return Beginning(LinearPoint(dual, weights, offset, primal, value), sigma, image)


def squared_length(rows: Features) -> float:
    """Return about the mean of the squared lengths of rows, 1 if they are 0."""
    some = rows.take(np.arange(0, rows.size, max(1, rows.size // LENGTHS)))
    mean = float(finite_norms(some).mean()) + rows.constant**2 if rows.size else 1.0
    return mean if mean > 0 else 1.0
