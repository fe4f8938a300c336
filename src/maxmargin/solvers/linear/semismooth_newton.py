"""Newton's method on the primal of a linear machine: for few features or few support vectors, and for large C.

The primal P(w, ρ) = ½‖w‖² + Σ conjugate(linear − F w − ρ) + Σ ρ total has kinks where a loss lacks a ridge, as the
hinge does. A proximal term in the dual, −½ σ‖b − c‖², rounds them off: it is one more ridge and another linear term,

    response(z) = clip((z + σ c) / (ridge + σ), lower, upper),

and what is left is piecewise quadratic. Newton's step solves (I + F_fᵀ F_f / (ridge + σ)) d = −gradient, where f are
the samples that lie strictly between their bounds; an exact search along d makes sure of progress. When the rounded
problem is nearly solved, its responses become the new centre c and σ is made smaller (Rockafellar 1976; Yan & Li 2020).
The number of steps hardly depends on C, and each costs a few passes over the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.precision import OBJECTIVE_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.linear.kink_samples import EdgeSamples
from maxmargin.solvers.linear.linear_point import (
    LinearPoint,
    dual_value,
    features_of,
    mended,
    primal_value,
)
from maxmargin.solvers.linear.newton_equations import EXACT, NewtonEquations, by_features, step_by_features
from maxmargin.solvers.linear.newton_start import SHARPEST, Beginning, squared_length
from maxmargin.solvers.linear.running_moments import RunningMoments
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import Callback, StoppingRule

#: The rounded problem counts as solved when its own gap is this part of the whole gap.
SOLVED = 0.05

#: By how much σ shrinks from one rounded problem to the next.
SHARPER = 0.2

#: The first σ where there are no bounds to go by, relative to the squared length of a row.
FIRST = 0.02

#: And relative to the first one: with less, problems become harder and not fewer.
SHARP_ENOUGH = 1e-5

#: A problem that takes so many steps is given up for one with a larger σ.
HARD = 40

#: So is one without any rounding in which so many steps had to be cut to less than this part.
MANY_SHORT, SHORT = 6, 0.35

#: Up to so many features for each sample between its bounds, sums over features that are corrected are quicker than
#: products of samples; unless they are so much larger than 1.
NEARLY, SWAMPED = 2, 1e9

#: So many steps without a better point are the sign that rounding is all that is left.
PATIENCE = 100

#: How exact the search along a step is: what it leaves of the slope. And what a whole step may leave without a search.
SLOPE_LEFT, FULL_STEP = 1e-2, 0.25


@dataclass(frozen=True)
class SemismoothNewtonSolver:
    """Newton's method on the primal of a linear machine.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a Newton step.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of a problem whose matrix is a product of features."""
        rows = features_of(problem, "semismooth_newton")
        monitor = Monitor(self.stopping, callback)
        point = LinearPoint.start(problem, rows, start, self.stopping)
        run = NewtonRun(problem, rows, Beginning(point), monitor)
        status = run.solve()
        return run.point.solution(status, run.counters(), monitor)


class NewtonRun:
    """One run of the method.

    Attributes
    ----------
    point : LinearPoint
        The best point so far.
    iterations, rounds : int
        Newton steps, rounded problems.
    """

    def __init__(
        self,
        problem: DualProblem,
        rows: Features,
        begin: Beginning,
        monitor: Monitor,
    ) -> None:
        point = begin.point
        self.problem, self.rows, self.point, self.monitor, self.rule = problem, rows, point, monitor, monitor.rule
        self.iterations = self.rounds = 0
        self.weights, self.offset, self.centre = point.weights, point.offset, point.dual
        self._image: Any = begin.image  # F w, None as long as nobody knows it
        self._settles = EdgeSamples.pay(rows)
        self._moved: Floats | None = None  # by how much the last step changed slacks, if it was a whole one
        self._lengths = squared_length(rows)
        self.sigma = self._first_sigma() if begin.sigma is None else begin.sigma
        enough = 0.0 if float(problem.ridge.min(initial=1.0)) > 0 else SHARP_ENOUGH * self.sigma
        self._sharpest = max(SHARPEST * self._lengths, enough)
        self._lowest, self._highest = np.inf, -np.inf  # primal and dual values seen, feasible or nearly so
        self._best_gap = self._best_violation = np.inf
        self._best_at = 0
        self._one_sum = problem.groups == 0 or (problem.groups == 1 and problem.singles == 0)
        self._running = RunningMoments(rows, problem.ridge, centred=problem.groups == 1)

    def counters(self) -> Counters:
        """Return what the run cost."""
        return Counters(iterations=self.iterations, rounds=self.rounds, seconds=self.monitor.seconds)

    def solve(self) -> Status:
        """Work until the point is good enough, a limit is reached or rounding is all that is left."""
        try:
            with blas_thread_limit(1):  # its matrices are small, and threads that wait for the next would be in our way
                return self._solve()
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def _solve(self) -> Status:
        self.monitor.report_start(self._progress)
        if self.point.accepted(self.rule):
            return Status.CONVERGED
        while True:
            self.rounds += 1
            before = self.iterations
            status = self._solve_rounded()
            if status is not None:
                return status
            if self.sigma > 0:
                self.centre = self._response
                self._sharpen(self.iterations - before)
            else:  # a ridge so faint that rounding errors of slacks are large responses
                self.centre, self.sigma = self.point.dual, FIRST * self._lengths

    def _sharpen(self, steps: int) -> None:
        """Make σ smaller, by more if the last problem was easy; where a ridge rounds enough by itself it goes.

        A problem that takes many steps has too many kinks still: then σ becomes larger again.
        """
        sigma = self.sigma * SHARPER ** (2 if steps <= 1 else -1 if steps >= HARD else 1)
        least = float(self.problem.ridge.min())
        self.sigma = 0.0 if sigma <= least else max(sigma, self._sharpest)

    def _first_sigma(self) -> float:
        """Return a σ with which most samples lie between their bounds, or 0 if a ridge does the same already."""
        problem = self.problem
        room = problem.upper - problem.lower
        bounded = np.isfinite(room) & (room > 0)
        least = float(problem.ridge.min(initial=1.0))
        if not bounded.any():  # all that a ridge leaves is one kink for each sample, which Newton's steps can take
            return 0.0 if least > 0 else FIRST * self._lengths
        self._image = self.rows.decisions(self.weights)
        slack = np.abs(problem.linear - self._image - of_samples(problem, self.offset))
        sigma = 2.0 * float(slack[bounded].mean()) / float(room[bounded].mean())
        return 0.0 if FIRST * sigma <= 2 * least else max(sigma, SHARPEST * self._lengths)

    def _solve_rounded(self) -> Status | None:
        """Solve the problem with the present σ and centre; return how the whole run ends, if it does."""
        steps = self._short = 0
        self._respond(self._image)
        while True:
            if self._judge():
                return Status.CONVERGED
            self._note()
            if (stop := self.monitor.limit_reached(self.iterations)) is not None:
                return stop
            if self.monitor.report(self._progress):
                return Status.STOPPED
            tired = self.iterations - self._best_at > PATIENCE
            if tired and self.sigma <= self._sharpest:
                return self.point.no_better_possible(self.problem, self.rows, self.rule)
            done = steps > 0 and (tired or self._solved()) if self.sigma > 0 else self._short >= MANY_SHORT
            if steps >= HARD or done:
                return None
            self._step()
            steps += 1

    def _respond(self, image: Floats | None = None) -> None:
        """Compute the responses of all samples, the gradient of the rounded primal, and both values.

        `image` is F w of the present weights if it is known.
        """
        problem, rows, n = self.problem, self.rows, self.problem.size
        slack, response, sums = np.empty(n), np.empty(n), np.empty(problem.groups)
        rounded: tuple[Any, ...] = (
            problem.linear, problem.lower, problem.upper, problem.ridge, self.centre, problem.group, self.offset,
            self.sigma, slack, response, sums,
        )  # fmt: skip
        if image is None:
            image, own = np.empty(n), np.empty(rows.dimension)
            loss, linear, ridge, self._size = _native.respond_rows(  # type: ignore[call-arg]  # of unknown length
                *rows.arrays, rows.picks, not len(rows.picks), *rounded, self.weights, rows.constant, image, own,
                rows.threads_for(rows.stored),
            )  # fmt: skip
        else:
            threads = rows.threads_for(n)
            loss, linear, ridge, self._size = _native.respond(*rounded, image, threads)  # type: ignore[call-arg]
            own = rows.weights(response)
        if not np.isfinite(own).all():
            raise ValueError(NON_FINITE_MESSAGE)
        self._image, self._slack, self._response, self._own = image, slack, response, own
        self._lacking = problem.total - sums
        self._primal = 0.5 * inner(self.weights, self.weights) + loss + float(self.offset @ problem.total)
        self._uphill = self.weights - own
        self._apart = 0.5 * inner(self._uphill, self._uphill)
        # Mending the sums costs about as much as the offset says.
        self._mending = float(np.abs(self._lacking) @ np.abs(self.offset))
        self._value = linear - 0.5 * ridge - 0.5 * inner(own, own) - self._mending

    def _solved(self) -> bool:
        """Whether the rounded problem is solved well enough for the next one."""
        away = self._response - self.centre
        whole = min(self._primal - self._value - self._mending, self.sigma * inner(away, away))
        within = self._apart <= SOLVED * max(whole, 0.0) + OBJECTIVE_TOLERANCE * abs(self._value)
        return within and float(np.abs(self._lacking).sum()) <= 1e-2 * self._size

    def _judge(self) -> bool:
        """Whether the run may end here; keep the best point."""
        if self.rule.relative_gap is None:
            return self._judge_dual()
        self._keep_weights()
        if self._value > self.point.value and (self._promising() or self._solved()):
            self._keep_dual()
        return self.point.accepted(self.rule)

    def _keep_weights(self) -> None:
        """Keep the weights if they are the best so far, with the offset that they have."""
        if self._primal < self.point.primal:
            point = self.point
            self.point = LinearPoint(point.dual, self.weights, self.offset, self._primal, point.value)

    def _keep_dual(self) -> None:
        """Keep the responses as a dual vector, after their sums have been mended, and look for the best offset."""
        problem, dual, own = self.problem, self._response, self._own
        if problem.groups:
            without = problem.linear - self._image
            threads = self.rows.threads_for(problem.size)
            offset = offsets_of_least_loss(problem, without, self.offset, threads)
            primal = primal_value(problem, self.weights, offset, without - of_samples(problem, offset), threads)
            if primal < self.point.primal:
                self.point = LinearPoint(self.point.dual, self.weights, offset, primal, self.point.value)
            feasible = mended(problem, dual)
            dual, own = feasible, own + self.rows.weights(feasible - dual)
        value = dual_value(problem, dual, own)
        if value > self.point.value:
            self.point = LinearPoint(dual, self.point.weights, self.point.offset, self.point.primal, value)

    def _judge_dual(self) -> bool:
        """Judge the responses with their own weights: only worth a look when these are nearly the primal ones."""
        far = 0.5 * max(self._primal - self._value, 0.0) + OBJECTIVE_TOLERANCE * abs(self._value)
        if self.sigma > 0 and self._apart > far:
            return False
        found = LinearPoint.start(self.problem, self.rows, self._response, self.rule)
        if found.value > self.point.value or found.violation < self.point.violation:
            self.point = found
        return found.accepted(self.rule)

    def _promising(self) -> bool:
        """Whether it is worth the time to look for the best offset and to mend the sums of the responses."""
        gap = self.point.primal - self._value
        return self.rule.accepts_gap(self._value + 0.5 * gap, self._value)

    def _note(self) -> None:
        """Remember when it got better for the last time: the gap, or the violation where that is known."""
        self._lowest, self._highest = min(self._lowest, self._primal), max(self._highest, self._value)
        gap, violation = self._lowest - self._highest, self.point.violation
        # Of dual vectors that are not quite feasible the gap may be negative, which is no progress.
        closer = self._best_gap > 0 and gap < 0.9 * self._best_gap
        if closer or violation < 0.9 * self._best_violation:
            self._best_gap, self._best_violation = min(gap, self._best_gap), min(violation, self._best_violation)
            self._best_at = self.iterations

    def _step(self) -> None:
        """Take Newton's step, or as much of it as makes the rounded primal fall most."""
        along, shift = self._direction()
        self.iterations += 1
        before = self._slope_along(along, shift)
        if not before < 0:  # rounding
            return
        weights, offset, image, slack = self.weights, self.offset, self._image, self._slack
        self.weights, self.offset = weights + along, offset + shift
        self._respond()
        self._moved = None
        whole = abs(self._slope_along(along, shift)) <= FULL_STEP * -before
        if whole and not self._settles:
            return
        change = self._image - image
        fall = change + of_samples(self.problem, shift) if len(shift) else change
        if whole:
            self._moved = np.abs(fall)
            return
        length = self._search(weights, along, shift, slack, fall)
        self._short += length < SHORT
        self.weights, self.offset = weights + length * along, offset + length * shift
        self._respond(image + length * change)

    def _slope_along(self, along: Floats, shift: Floats) -> float:
        """Return how the rounded primal changes along a direction from the present weights."""
        return inner(self._uphill, along) + float(self._lacking @ shift)

    def _direction(self) -> tuple[Floats, Floats]:
        """Return Newton's step of the weights and of the offsets."""
        problem = self.problem
        between = (self._response > problem.lower) & (self._response < problem.upper)
        count = int(np.count_nonzero(between))
        if self._one_sum and (by_features(self.rows, count) or self._nearly_by_features(count)):
            step = self._step_by_features(between)
            if self.sigma > 0 or self._moved is None:
                return step
            edge = EdgeSamples(problem, self.rows, self._slack, self._moved)
            return edge.settle(step, between, self._step_by_features)
        free = np.flatnonzero(between)
        factors = 1.0 / (problem.ridge + self.sigma)
        equations = NewtonEquations(
            self.rows.take(free),
            factors[free],
            problem.group[free],
            problem.group_sums(factors),
            lambda: problem.matrix.block(free, free),
        )
        return equations.solve(-self._uphill, -self._lacking)

    def _nearly_by_features(self, between: int) -> bool:
        """Whether sums that are corrected pay although there are more features than samples between their bounds.

        Then the identity is all that some features have, and what is large beside it must not swamp it.
        """
        rows, least = self.rows, float(self.problem.ridge.min()) + self.sigma
        few = 0 < rows.dimension <= min(EXACT, NEARLY * between)
        return few and self._lengths * between <= SWAMPED * least

    def _step_by_features(
        self, between: NDArray[np.bool_], own: Floats | float = 0.0, total: float = 0.0
    ) -> tuple[Floats, Floats]:
        """Solve the equations by features, with Fᵀβ and Σβ changed by so much."""
        moments = self._running.of(between, self.sigma)
        uphill, lacking = self._uphill - own, self._lacking - total
        return step_by_features(moments, self._running.origin, self.rows.constant, -uphill, -lacking)

    def _search(self, weights: Floats, along: Floats, shift: Floats, slack: Floats, fall: Floats) -> float:
        """Return the step length at which the slope of the rounded primal is nearly zero."""
        problem, threads = self.problem, self.rows.threads_for(self.problem.size)
        first = inner(weights, along) + float(problem.total @ shift)
        bend = inner(along, along)
        box = (slack, problem.lower, problem.upper, problem.ridge + self.sigma, fall)

        def slope(length: float) -> tuple[float, float]:
            answered, curved = _native.loss_slope(*box, length, threads)
            return first + length * bend - answered, bend + curved

        steepest = -slope(0.0)[0]
        if not steepest > 0:  # rounding
            return 0.0
        low, high, length = 0.0, np.inf, 1.0
        for k in range(60):
            rise, curved = slope(length)
            if abs(rise) <= SLOPE_LEFT * steepest:
                break
            low, high = (length, high) if rise < 0 else (low, length)
            newton = length - rise / curved if curved > 0 else np.inf
            if low < newton < min(high, 16 * max(length, 1e-3)) and k % 4 != 3:
                length = newton
            else:
                length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * length
        return length

    def _progress(self) -> Progress:
        return self.point.progress(self.iterations, self.monitor)
