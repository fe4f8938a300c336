"""Descent along single weights, for the penalty Σ |w_j|: the machine whose weights are mostly 0.

    minimise  P(w, ρ) = Σ |w_j| + Σ conjugate(linear − F w − ρ)

Along one weight the loss has the slope g = −(Fᵀ response)_j and the curvature h = Σ F_ij² / ridge_i over the samples
between their bounds; |w + d| + g d + ½ h d² is least at a step that is known, and is shortened until P falls (Yuan et
al. 2010, of LIBLINEAR). Weights that rest at 0 are left out: a round works on those that are not 0, and on those that
violate optimality most, about as many again.

Steps along single weights get nowhere if columns resemble each other or C is large. So after a few passes Newton's
method takes over on the same weights: the loss is piecewise quadratic, and its model around the present samples between
their bounds (`sparse_model`) is minimised with the same penalty (newGLMNET, Yuan et al. 2012). What is left is a search
along a line. The free offset is the best one for the weights whenever a round begins, and eliminated from the model.

If C is so large that hardly a sample is between its bounds, the model says little about the others, and steps are
short. Then the loss is rounded off as in `semismooth_newton`, by a term −½ σ‖b − c‖² in the dual around the best dual
vector c so far: one more ridge, and another linear term. σ begins where few weights are not 0 and falls from problem to
problem; the solutions come to the true optimum for any σ (Rockafellar 1976; Li, Sun & Toh 2018 for the lasso).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.feature_columns import FeatureColumns
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.certificate import conjugate, of_samples, response
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.problems.sparse_certificate import feasible_within, features_of_sparse, violations
from maxmargin.resources import blas_thread_limit
from maxmargin.solvers.linear.linear_point import LinearPoint
from maxmargin.solvers.linear.sparse_model import minimise_model
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Weights in the first round at least, and how many times those that are not 0 in each.
FEWEST, TIMES = 100, 2

#: Newton's method has at most so many weights.
EXACT = 2500

#: Passes of a round at least and at most; in between, a third of what a Newton step costs.
LEAST_PASSES, MOST_PASSES = 2, 20

#: Multiplications that a matrix product does in the time of one of a pass.
BLAS_GAIN = 8.0

#: A round's passes end when the largest violation met is this part of that before, Newton's model at this part.
ENOUGH, SOLVED = 0.1, 1e-2

#: Multiplications between two looks at the clock.
STRETCH = 2 * 10**7

#: A problem is hard if so many Newton steps were shorter than this, or if it takes so many rounds.
HARD, SHORT, LONG = 2, 0.1, 10

#: The cost in the first rounded problem, in those at which the first weight would leave 0.
FIRST = 16.0

#: By how much σ shrinks from one rounded problem to the next.
SHARPER = 0.25

#: A rounded problem counts as solved when its violation is this part of the relative gap.
NEARLY = 0.05

#: If so many rounds have not made the gap smaller by this part, rounding is all that is left.
PATIENCE, SMALLER = 30, 0.01


@dataclass(frozen=True)
class CoordinateDescentSolver:
    """Steps along one weight of a linear machine after another, for the penalty Σ |w_j|.

    Parameters
    ----------
    stopping : StoppingRule
        An iteration is a pass over the weights in play, or a Newton step.
    seed : int
        For the order of the weights.
    """

    penalty: ClassVar[str] = "l1"

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution with the penalty Σ |w_j|; `start` are weights, the last that of the constant feature."""
        monitor = Monitor(self.stopping, callback)
        run = DescentRun(problem, features_of_sparse(problem), start, monitor, self.seed)
        status = run.solve()
        return run.point.solution(status, run.counters(), monitor)


class DescentRun:
    """One run of the method.

    Attributes
    ----------
    point : LinearPoint
        The best weights and the best dual vector so far.
    iterations, rounds : int
        Passes and Newton steps, looks at all columns.
    """

    def __init__(self, problem: DualProblem, rows: Features, start: Floats | None, monitor: Monitor, seed: int) -> None:
        self.problem, self.rows, self.monitor, self.rule = problem, rows, monitor, monitor.rule
        self.columns = FeatureColumns.of(rows)
        self.iterations = self.rounds = 0
        self.weights = np.zeros(self.columns.count)
        if start is not None:
            self.weights[:] = start[: self.columns.count]
        self.offset = np.zeros(problem.groups)
        nothing = np.zeros(problem.size), np.zeros(rows.dimension)
        self.point = LinearPoint(*nothing, self.offset, np.inf, -np.inf)
        self._random = np.random.default_rng(seed)
        self._round_off(0.0)

    def counters(self) -> Counters:
        """Return what the run cost."""
        return Counters(iterations=self.iterations, rounds=self.rounds, seconds=self.monitor.seconds)

    def solve(self) -> Status:
        """Work until the point is good enough, a limit is reached or rounding is all that is left."""
        self.look()
        try:
            self.monitor.report_start(self._progress)
            with blas_thread_limit(1):  # its matrices are small, and threads that wait for the next would be in our way
                return self._solve()
        except KeyboardInterrupt:
            return Status.INTERRUPTED

    def _solve(self) -> Status:
        best, least, better_at = np.inf, np.inf, 0
        while not self.point.accepted(self.rule):
            if self.point.gap < (1.0 - SMALLER) * best or 0 < self.sigma < least:
                best, least, better_at = min(best, self.point.gap), min(least, self.sigma or least), self.rounds
            elif self.rounds - better_at > PATIENCE:
                return Status.PRECISION
            stop = self._work(self._in_play())
            self.look()
            if stop is not None:
                return Status.CONVERGED if self.point.accepted(self.rule) else stop
            self._change_problem()
        return Status.CONVERGED

    def _round_off(self, sigma: float) -> None:
        """Take the problem that is rounded off by σ around the best dual vector."""
        problem = self.problem
        self.sigma, self.rounded = sigma, problem
        self._short = self._stay = 0
        if sigma > 0:
            linear = problem.linear + sigma * self.point.dual
            self.rounded = replace(problem, linear=linear, ridge=problem.ridge + sigma)
        self._inverse = 1.0 / self.rounded.ridge
        self._curvature = self.columns.curvatures(self._inverse)
        if not np.isfinite(self._curvature).all():
            raise ValueError(NON_FINITE_MESSAGE)

    def _change_problem(self) -> None:
        """Go over to another rounded problem if this one is solved or too hard."""
        self._stay += 1
        if self.sigma == 0.0:
            if self._short < HARD:
                return
            sigma = self._first_sigma()
        else:
            relative = self.point.gap / self.point.primal
            solved = float(self._violations.max(initial=0.0)) <= NEARLY * min(1.0, relative)
            if not solved and self._stay < LONG:
                return
            sigma = self.sigma / SHARPER if not solved else self.sigma * (SHARPER if self._short < HARD else 1.0)
        self._round_off(sigma)
        self.look()

    def _first_sigma(self) -> float:
        """Return a σ with which few weights are not 0: the problem of a cost not far above that where all are 0."""
        problem = self.problem
        without = problem.linear - of_samples(problem, offsets_of_least_loss(problem, problem.linear))
        longest = float(np.abs(self.columns.products(response(problem, without))).max())
        return float(problem.ridge.max()) * longest / FIRST

    def look(self) -> None:
        """Compute slacks, responses and violations afresh, and keep the best weights and the best dual vector."""
        problem, vector = self.problem, np.zeros(self.rows.dimension)
        vector[: self.columns.count] = self.weights
        self.rounds += 1
        image = self.rows.decisions(vector)
        self._settle(self.rounded.linear - image)
        offset, slack = self.offset, self.slack
        if self.sigma > 0:
            offset = offsets_of_least_loss(problem, problem.linear - image, offset)
            slack = problem.linear - image - of_samples(problem, offset)
        primal = float(np.abs(vector).sum() + conjugate(problem, slack).sum())
        dual, products = feasible_within(problem, self.rows, self.response)
        if not (np.isfinite(primal) and np.isfinite(products).all()):
            raise ValueError(NON_FINITE_MESSAGE)
        value = inner(problem.linear, dual) - 0.5 * inner(problem.ridge * dual, dual)
        self._violations = violations(self.weights, self.columns.products(self.response))
        found = LinearPoint(dual, vector, offset, primal, value)
        worst = float(self._violations.max(initial=0.0)) if self.sigma == 0.0 else np.inf
        if worst <= self.rule.violation:
            self.point = replace(found, violation=worst)
        else:
            self.point = self.point.or_better(found)

    def _settle(self, without: Floats) -> None:
        """Take the best offset for slacks without one, and responses that sum up to 0.

        What rounding leaves of the offset, multiplied by C, would be seen in them.
        """
        problem, threads = self.rounded, self.rows.threads_for(self.problem.size)
        self.offset = offsets_of_least_loss(problem, without, self.offset, threads)
        self.slack = without - of_samples(problem, self.offset)
        self.response = response(problem, self.slack)
        self._factors = np.where(self.response != 0, self._inverse, 0.0)
        if problem.groups and self._factors.any():
            self.response -= self._factors * (self.response.sum() / self._factors.sum())

    def _in_play(self) -> Indices:
        """Return the weights of a round: those that are not 0, and those that violate optimality most."""
        used = self.weights != 0
        most = max(FEWEST, TIMES * int(np.count_nonzero(used)))
        resting = np.where(used, 0.0, self._violations)
        wanted = np.flatnonzero(resting > 0)
        if len(wanted) > most:
            wanted = wanted[np.argpartition(-resting[wanted], most)[:most]]
        return np.union1d(np.flatnonzero(used), wanted)

    def _work(self, picks: Indices) -> Status | None:
        """Take passes and a Newton step on some weights; return a status if the run has to end."""
        per_column = self.columns.stored / max(1, self.columns.count)
        worst, used = float(self._violations[picks].max(initial=0.0)), np.count_nonzero(self.weights)
        price = used / BLAS_GAIN * self.problem.size / max(1.0, per_column)
        passes = int(min(max(LEAST_PASSES, price / 3), MOST_PASSES))
        for _ in range(passes):
            met, stop = self._take_pass(picks, per_column)
            if stop is not None:
                return stop
            self._settle(self.slack + of_samples(self.problem, self.offset))
            if met <= ENOUGH * worst:
                break
        if (stop := self._limit()) is not None:
            return stop
        products = self.columns.products(self.response, picks)
        moving = (self.weights[picks] != 0) | (np.abs(products) > 1.0)
        if np.count_nonzero(moving) > EXACT:
            return None
        self._newton(picks[moving], -products[moving])
        return self._limit()

    def _take_pass(self, picks: Indices, per_column: float) -> tuple[float, Status | None]:
        """Take a step along each of some weights, in random order; return the largest violation met."""
        order, step = self._random.permutation(picks), max(1, int(STRETCH / max(1.0, per_column)))
        problem, worst = self.problem, 0.0
        if (stop := self._limit()) is not None:
            return worst, stop
        for begin in range(0, len(order), step):
            met = _native.descend_columns(
                *self.columns.arrays, self.weights, self.slack, self._inverse, problem.lower, problem.upper,
                self._curvature, order, begin, min(len(order), begin + step),
            )  # fmt: skip
            worst = max(worst, met)
            if self.monitor.seconds_left() == 0.0:
                return worst, Status.MAX_SECONDS
        self.iterations += 1
        return worst, None

    def _newton(self, picks: Indices, slope: Floats) -> None:
        """Minimise the model of the loss around the present weights, and go there as long as the objective falls."""
        problem, factors = self.rounded, self._factors
        mean = self.columns.products(factors, picks) / factors.sum() if problem.groups and factors.any() else None
        before = self.weights[picks]
        tolerance = SOLVED * float(violations(before, -slope).max(initial=0.0))
        after = minimise_model(self.columns.squares(picks, factors, mean), before, slope, tolerance)
        along = after - before
        fall = self.columns.image(picks, along)
        if mean is not None:
            fall -= float(mean @ along)
        length = self._search(before, along, fall)
        self._short += length < SHORT
        self.weights[picks] = after if length == 1.0 else before + length * along
        self.slack = self.slack - length * fall
        self.iterations += 1

    def _search(self, weights: Floats, along: Floats, fall: Floats) -> float:
        """Return the part of a step, at most all of it, at which the slope of the objective changes its sign."""
        problem, threads = self.rounded, self.rows.threads_for(self.problem.size)
        box = self.slack, problem.lower, problem.upper, problem.ridge, fall

        def slope(length: float) -> float:
            signs = np.sign(weights + length * along)
            # Where a weight is 0 the slope has a jump; what counts is the side that one comes from.
            signs = np.where(signs == 0, -np.sign(along) if length > 0 else np.sign(along), signs)
            return float(signs @ along) - float(_native.loss_slope(*box, length, threads)[0])

        low, high = 0.0, 1.0
        if slope(high) <= 0:
            return high
        for _ in range(50):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) <= 0 else (low, middle)
        return low

    def _limit(self) -> Status | None:
        stop = self.monitor.limit_reached(self.iterations)
        stopped = self.monitor.report(self._progress, iterations=self.iterations)
        return stop or (Status.STOPPED if stopped else None)

    def _progress(self) -> Progress:
        worst = float(self._violations.max(initial=0.0))
        progress = self.point.progress(self.iterations, self.monitor, int(np.count_nonzero(self.weights)))
        return replace(progress, violation=worst)
