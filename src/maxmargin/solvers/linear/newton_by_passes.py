"""Newton's method on the primal problem with the linear kernel, one pass over the data for each step.

Each pass evaluates the problem at one point (`pass_sums`): objective bounds, gradient and second moments of the free
rows, with which the next step is computed. A full step that is too long is shortened by the secant rule, at the cost of
one more pass. Where the loss has kinks, a proximal term in the dual smooths it, as in `semismooth_newton`: as soon as
what is left of the gap is due to the smoothing, the responses become its centre and σ is reduced.

Second moments take most of the time of a pass. Where a sample of the rows is in memory, its moments can take the place
of those of all rows, as long as each step reduces the gradient enough (sub-sampled Newton; Roosta & Mahoney 2019).

With many features the Newton equations are solved by conjugate gradients, of which each step is a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices.features import Moments
from maxmargin.matrices.numerics import inner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems import Status
from maxmargin.solvers.linear.newton_equations import step_by_features
from maxmargin.solvers.linear.pass_bounds import DualConstraints, dual_bound
from maxmargin.solvers.linear.pass_sums import PassPoint, PassSums
from maxmargin.solvers.stopping import StoppingRule

OVERFLOW_MESSAGE = (
    "the objective overflows float64; scale the data (for example with StandardScaler) and the targets, or use a "
    "smaller C or smaller sample weights"
)

#: A trial step is accepted if the slope at its end is at most this fraction of the initial one.
ACCEPTED_SLOPE = 0.5

#: A shortened step lies at least this fraction of the interval from both of its ends; so many times it is shortened.
SECANT_MARGIN, MAX_SHORTENINGS = 0.1, 4

#: σ is reduced by this factor when half the squared gradient is at most this fraction of the gap, and the sum of the
#: responses is off by at most this fraction of their magnitudes.
SIGMA_REDUCTION, SMOOTHED_FRACTION, SMOOTHED_IMBALANCE = 0.25, 0.05, 1e-3

#: σ is kept after a smoothed problem that took more evaluations than the first number, or has fewer free samples than
#: weights, and increased if it is not solved after the second: it has too many kinks for long steps.
EASY_EVALUATIONS, HARD_EVALUATIONS = 4, 10

#: The run has stalled if the gap has not fallen below this fraction within so many evaluations.
MAX_STALLED_EVALUATIONS, PROGRESS_RATIO = 60, 0.9

#: Moments of a sample are used as long as each step reduces the squared gradient to this fraction.
SAMPLED_PROGRESS = 0.1

#: Relative residual at which conjugate gradients stop, and the most steps of them for a Newton step.
CG_TOLERANCE, MAX_CG_STEPS = 0.1, 12


class NewtonByPasses:
    """The run of one problem: `point` is what the next pass evaluates, `receive` takes its sums.

    Parameters
    ----------
    start : PassPoint
    rule : StoppingRule
        An iteration is a pass.
    constraints : DualConstraints
    constant : float
        The value of the constant feature, 0 for none.
    origin : float array
        What moments are relative to.
    by_products : bool
        Whether the Newton equations are solved by products with the Hessian instead of second moments.
    sample_moments : callable, optional
        From a point to the second moments of a sample, on the scale of all rows.

    Attributes
    ----------
    status : Status or None
        How the run ended, None before.
    weights, offset : float arrays
        Of the smallest primal value so far.
    primal, dual : float
        Proven bounds on the optimum.
    rounding : float
        The share of primal − dual that is due to rounding errors.
    passes : int
        The number of evaluations.
    """

    def __init__(
        self,
        start: PassPoint,
        rule: StoppingRule,
        constraints: DualConstraints,
        constant: float,
        origin: Floats,
        by_products: bool = False,
        sample_moments: Callable[[PassPoint], Moments] | None = None,
    ) -> None:
        self.point, self.rule, self.constraints = start._replace(curvature=sample_moments is None), rule, constraints
        self.sample_moments, self._last_square = sample_moments, inf
        self.constant, self.origin, self.by_products = constant, origin, by_products
        self.weights, self.offset = start.weights, start.offset
        # The dual vector 0 is feasible, and has the value 0, unless the sum of all variables is positive.
        self.primal, self.dual, self.rounding = (inf, -inf, inf) if constraints.total.any() else (inf, 0.0, 0.0)
        self.status: Status | None = None
        self.passes = 0
        self._search: _LineSearch | None = None
        self._equations: _HessianEquations | None = None
        self._evaluations = self._changed_at = 0
        self._least_gap, self._least_gap_at = inf, 0

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual

    def receive(self, sums: PassSums) -> None:
        """Continue with the sums of the pass over `point`."""
        self.passes += 1
        if self._equations is not None:
            self._continue_equations(sums)
            return
        self._bound_objectives(sums)
        if self.rule.accepts_gap(self.primal, self.dual):
            self.status = Status.CONVERGED
            return
        if self._stalled():
            self.status = Status.PRECISION
            return
        gradient = self.point.weights - sums.weights.sum(axis=0)
        deficit = self.constraints.total - np.full(len(self.point.offset), sums.total.sum())
        shorter = None if self._search is None else self._search.shorter(gradient, deficit)
        if self.point.sigma > 0 and self._update_smoothing(gradient, deficit, sums, accepted=shorter is None):
            return
        if shorter is not None:
            self.point = shorter
            return
        if self.by_products:
            self._equations = _HessianEquations(self.point, gradient, deficit)
            self.point = self._equations.next_point()
            return
        moments = sums.moments
        if moments is None:
            square = inner(gradient, gradient) + inner(deficit, deficit)
            if self.sample_moments is None or not square < SAMPLED_PROGRESS * self._last_square:
                self.sample_moments, self._search = None, None  # the same weights again, with the moments of all rows
                self.point = self.point._replace(curvature=True)
                return
            self._last_square, moments = square, self.sample_moments(self.point)
        try:
            step, offset_step = step_by_features(moments, self.origin, self.constant, -gradient, -deficit)
        except ValueError:  # moments overflow: no step can be computed, and the bounds so far stand
            self.status = Status.PRECISION
            return
        self._try_step(step, offset_step, gradient, deficit)

    def _continue_equations(self, sums: PassSums) -> None:
        """Take a step of conjugate gradients; when they are solved, try the Newton step."""
        equations = self._equations
        assert equations is not None
        assert sums.product is not None
        if not equations.advance(sums.product):
            self.point = equations.next_point()
            return
        self._equations = None
        self.point = equations.base
        step = equations.solution
        dimension = len(self.point.weights)
        self._try_step(step[:dimension], step[dimension:], equations.gradient, equations.deficit)

    def _try_step(self, step: Floats, offset_step: Floats, gradient: Floats, deficit: Floats) -> None:
        slope = inner(gradient, step) + float(deficit @ offset_step)
        if not slope < 0:  # due to rounding errors
            self.status = Status.PRECISION
            return
        self._search = _LineSearch(self.point, step, offset_step, slope)
        self.point = self._search.point(1.0)

    def _update_smoothing(self, gradient: Floats, deficit: Floats, sums: PassSums, accepted: bool) -> bool:
        """Smooth less if the smoothed problem is solved, more if it is too hard; return whether that was done.

        `accepted` says whether the last step is not to be shortened.
        """
        spent = self._evaluations - self._changed_at
        solved = self._smoothed_solved(gradient, deficit, sums)
        failed = self._search is not None and self._search.exhausted
        if not solved and (sums.free == 0 or spent >= HARD_EVALUATIONS or failed):
            self._change_smoothing(1.0 / SIGMA_REDUCTION, recentre=False)
            return True
        if solved and accepted:
            easy = spent <= EASY_EVALUATIONS and sums.free > len(self.point.weights)
            self._change_smoothing(SIGMA_REDUCTION if easy else 1.0, recentre=True)
            return True
        return False

    def _change_smoothing(self, factor: float, recentre: bool) -> None:
        """Change σ and perhaps the centre: the next pass evaluates the same weights, whose gradient is another then.

        If σ is increased, since steps were too long, these are the weights before the last step.
        """
        last = self._search.base if self._search is not None and not recentre else self.point
        self._changed_at, self._search = self._evaluations, None
        self.point = last._replace(sigma=factor * self.point.sigma, recentre=recentre)

    def _smoothed_solved(self, gradient: Floats, deficit: Floats, sums: PassSums) -> bool:
        """Whether the smoothed problem is solved to a fraction of the gap, with nearly the right sum of responses."""
        balanced = float(np.abs(deficit).sum()) <= SMOOTHED_IMBALANCE * float(np.abs(sums.total).sum())
        return balanced and 0.5 * inner(gradient, gradient) <= SMOOTHED_FRACTION * self.gap < inf

    def _stalled(self) -> bool:
        """Whether the gap has not decreased for too many evaluations; passes of conjugate gradients do not count."""
        self._evaluations += 1
        if self.gap < PROGRESS_RATIO * self._least_gap:
            self._least_gap, self._least_gap_at = self.gap, self._evaluations
        return self._evaluations - self._least_gap_at > MAX_STALLED_EVALUATIONS

    def _bound_objectives(self, sums: PassSums) -> None:
        """Keep the best primal and dual bounds, with rounding errors included."""
        weights, rounding = self.point.weights, len(self.point.weights) * UNIT_ROUNDOFF
        of_offset = float(self.constraints.total @ self.point.offset)
        primal = 0.5 * inner(weights, weights) * (1.0 + 2 * rounding) + sums.loss
        primal += of_offset + 4 * UNIT_ROUNDOFF * abs(of_offset)
        dual, dual_error = dual_bound(sums, self.constraints)
        if primal < self.primal:
            self.primal, self.weights, self.offset = primal, weights, self.point.offset
        elif self.primal == inf:
            raise ValueError(OVERFLOW_MESSAGE)
        if dual > self.dual:
            self.dual, self.rounding = dual, dual_error + rounding * abs(primal)


class _LineSearch:
    """A step from a base point, which is shortened until its slope is small."""

    def __init__(self, base: PassPoint, step: Floats, offset_step: Floats, slope: float) -> None:
        self.base, self.step, self.offset_step = base, step, offset_step
        self.initial = slope
        self._length, self._shortenings, self.exhausted = 1.0, 0, False

    def point(self, length: float) -> PassPoint:
        """Return the point at a step length."""
        self._length = length
        weights, offset = self.base.weights + length * self.step, self.base.offset + length * self.offset_step
        return PassPoint(weights, offset, self.base.sigma, curvature=self.base.curvature)

    def shorter(self, gradient: Floats, deficit: Floats) -> PassPoint | None:
        """Return a shorter step if the slope at the end of this one is too large, None if the step is accepted."""
        slope = inner(gradient, self.step) + float(deficit @ self.offset_step)
        if slope <= ACCEPTED_SLOPE * -self.initial:
            return None
        self._shortenings += 1
        self.exhausted = self._shortenings > MAX_SHORTENINGS
        if self.exhausted:
            return None
        share = -self.initial / (slope - self.initial)
        return self.point(self._length * min(max(share, SECANT_MARGIN), 1.0 - SECANT_MARGIN))


class _HessianEquations:
    """Conjugate gradients for the Newton step of weights and offset, H d = −gradient with H = I + the loss's part."""

    def __init__(self, base: PassPoint, gradient: Floats, deficit: Floats) -> None:
        self.base, self.gradient, self.deficit = base._replace(recentre=False), gradient, deficit
        right = -np.append(gradient, deficit)
        self.solution = np.zeros_like(right)
        self._residual, self._direction = right, right.copy()
        self._square = inner(right, right)
        self._target = CG_TOLERANCE**2 * self._square
        self._steps = 0

    def next_point(self) -> PassPoint:
        """Return the base with the direction whose product is needed."""
        return self.base._replace(direction=self._direction)

    def advance(self, product: Floats) -> bool:
        """Take a step with the product of the Hessian of the loss and the direction; return whether that suffices."""
        dimension, direction = len(self.base.weights), self._direction
        product = product.copy()
        product[:dimension] += direction[:dimension]
        curvature = inner(direction, product)
        self._steps += 1
        if not curvature > 0:
            return True
        length = self._square / curvature
        self.solution = self.solution + length * direction
        self._residual = self._residual - length * product
        before, self._square = self._square, inner(self._residual, self._residual)
        self._direction = self._residual + (self._square / before) * direction
        return self._square <= self._target or self._steps >= MAX_CG_STEPS
