"""Readable twin of native/small_linear.hpp: the semismooth Newton method for small problems with the linear kernel.

The steps are those of `maxmargin.solvers.linear.semismooth_newton`; what differs is that everything is dense, the rows
are centred where there is an offset, and here moments are never updated.
"""

import numpy as np

from maxmargin.problems.losses import conjugate
from maxmargin.problems.offsets import _root, best_offsets

SOLVED_FRACTION, SIGMA_REDUCTION, MIN_SIGMA_RATIO, MIN_RELATIVE_SIGMA = 0.05, 0.2, 1e-5, 1e-13
DEFAULT_RELATIVE_SIGMA = 0.02
FULL_STEP_SLOPE, SHORT_STEP, SLOPE_TOLERANCE, OBJECTIVE_TOLERANCE = 0.25, 0.35, 1e-2, 1e-14
MAX_STEPS_PER_PROBLEM, MAX_SHORT_STEPS, MAX_LINE_SEARCH_STEPS = 40, 6, 60


class SmallLinearSolver:
    """Solve a problem with a ridge everywhere, or with finite bounds and no ridge, and at most one group of total 0."""

    def __init__(self, problem, relative_gap, max_steps=200):
        self.p, self.relative_gap, self.max_steps = problem, relative_gap, max_steps
        features = problem.matrix.features()
        identity = np.eye(features.dimension)
        rows = np.array([features.decisions(unit) for unit in identity]).T  # with the constant feature last
        self.grouped = problem.groups == 1
        self.rows = rows - rows.mean(axis=0) * self.grouped
        self.width = features.dimension
        self.steps = self.rounds = 0
        self.short_steps = 0
        self.ended = self.converged = False

    def solve(self):
        """Return the best dual vector and the best weights."""
        p = self.p
        self.weights, self.decisions = np.zeros(self.width), np.zeros(p.size)
        self.best_weights, self.best_dual, self.dual = self.weights, np.zeros(p.size), 0.0
        self.primal, self.offset = self.primal_with_best_offset(0.0)
        self.row_norm = np.mean(np.sum(self.rows**2, axis=1)) or 1.0
        self.sigma, ridged = 0.0, p.ridge[0] > 0
        if not ridged:
            self.sigma = 2 * np.abs(p.linear - self.offset).sum() / (p.upper - p.lower).sum()
        self.min_sigma = max(MIN_RELATIVE_SIGMA * self.row_norm, MIN_SIGMA_RATIO * self.sigma)
        self.sigma = 0.0 if ridged else max(self.sigma, self.min_sigma)
        self.centre = np.zeros(p.size)
        while True:
            self.rounds += 1
            before = self.steps
            self.solve_smoothed()
            if self.ended:
                return self.best_dual, self.best_weights
            if self.sigma > 0:
                self.centre = self.response
                self.reduce_sigma(self.steps - before)
            else:  # many short steps: a small ridge needs smoothing
                self.centre, self.sigma = self.best_dual, DEFAULT_RELATIVE_SIGMA * self.row_norm

    def reduce_sigma(self, steps):
        power = 2 if steps <= 1 else -1 if steps >= MAX_STEPS_PER_PROBLEM else 1
        sigma = self.sigma * SIGMA_REDUCTION**power
        self.sigma = 0.0 if sigma <= self.p.ridge.min() else max(sigma, self.min_sigma)

    def solve_smoothed(self):
        """Solve the problem with the current σ and centre."""
        self.short_steps = steps = 0
        self.evaluate(self.decisions)
        while True:
            if self.has_converged() or self.steps >= self.max_steps:
                self.ended = True
                return
            done = steps > 0 and self.solved() if self.sigma > 0 else self.short_steps >= MAX_SHORT_STEPS
            if steps >= MAX_STEPS_PER_PROBLEM or done:
                return
            if not self.step():
                self.ended = True
                return
            steps += 1

    def evaluate(self, decisions=None):
        """Compute slacks, responses, gradient and objective values at the current weights and offset."""
        p = self.p
        self.decisions = self.rows @ self.weights if decisions is None else decisions
        slack = p.linear - self.decisions - self.offset
        self.slack = slack + self.sigma * self.centre
        self.curvature = p.ridge + self.sigma
        self.response = np.clip(self.slack / self.curvature, p.lower, p.upper)
        self.free = (self.response > p.lower) & (self.response < p.upper)
        own = self.rows.T @ self.response
        self.gradient = self.weights - own
        self.sum = self.response.sum() * self.grouped
        self.smoothed_primal = 0.5 * self.weights @ self.weights + conjugate(p, slack).sum()
        self.repair_cost = abs(self.sum * self.offset)
        self.dual_estimate = self.value(self.response, own) - self.repair_cost

    def value(self, dual, own):
        return dual @ (self.p.linear - 0.5 * self.p.ridge * dual) - 0.5 * own @ own

    def solved(self):
        """Whether the smoothed problem is solved to a fraction of the duality gap."""
        moved = self.response - self.centre
        gap = min(self.smoothed_primal - self.dual_estimate - self.repair_cost, self.sigma * moved @ moved)
        balanced = abs(self.sum) <= 1e-2 * np.abs(self.response).sum()
        bound = max(SOLVED_FRACTION * gap, 0.0) + OBJECTIVE_TOLERANCE * abs(self.dual_estimate)
        return balanced and 0.5 * self.gradient @ self.gradient <= bound

    def accepts(self, primal, dual):
        return primal - dual <= self.relative_gap * max(abs(primal), abs(dual))

    def has_converged(self):
        """Keep the best weights and the best dual vector; return whether their gap is within the tolerance."""
        self.keep_weights(self.smoothed_primal)
        halfway = self.dual_estimate + 0.5 * (self.primal - self.dual_estimate)
        may_be_accepted = self.accepts(halfway, self.dual_estimate)
        if self.dual_estimate > self.dual and (may_be_accepted or (self.sigma > 0 and self.solved())):
            if self.grouped:
                self.keep_weights(self.primal_with_best_offset(self.offset)[0])
            dual = self.repaired(self.response) if self.grouped else self.response
            value = self.value(dual, self.rows.T @ dual)
            if value > self.dual:
                self.best_dual, self.dual = dual, value
        self.converged = self.accepts(self.primal, self.dual)
        return self.converged

    def keep_weights(self, primal):
        if primal < self.primal:
            self.best_weights, self.primal = self.weights, primal

    def primal_with_best_offset(self, guess):
        slack = self.p.linear - self.decisions
        offset = best_offsets(self.p, slack, np.array([guess]))[0] if self.grouped else 0.0
        return 0.5 * self.weights @ self.weights + conjugate(self.p, slack - offset).sum(), offset

    def repaired(self, dual):
        """Make the sum 0: by free variables or, if they have not room enough, by all."""
        p, total = self.p, dual.sum()
        for movable, factor in ((self.free, 2.0), (np.full(p.size, True), 1.0)):
            room = np.where(movable, p.upper - dual if total < 0 else dual - p.lower, 0.0)
            unlimited = np.isinf(room)
            shares = unlimited.astype(float) if unlimited.any() else room
            if unlimited.any() or shares.sum() > factor * abs(total):
                return np.clip(dual - total * shares / shares.sum(), p.lower, p.upper)
        return dual

    def step(self):
        """Take a Newton step with a line search; return False if rounding errors prevent it."""
        self.steps += 1
        direction, offset_step = self.direction()
        if self.grouped and offset_step == 0.0 and self.sum != 0.0:  # no variable is free: the offset alone
            p = self.p
            slack = self.slack + self.offset
            self.offset = _root(slack, p.lower, p.upper, self.curvature, 0.0, self.offset, 1)
            self.evaluate(self.decisions)
            return True
        initial = self.slope_along(direction, offset_step)
        if not initial < 0:
            return False
        weights, offset, decisions, slack = self.weights, self.offset, self.decisions, self.slack
        self.weights, self.offset = weights + direction, offset + offset_step
        self.evaluate()
        if abs(self.slope_along(direction, offset_step)) <= FULL_STEP_SLOPE * -initial:
            return True
        change = self.decisions - decisions
        length = self.line_search(weights, direction, slack, change + offset_step)
        self.short_steps += length < SHORT_STEP
        self.weights, self.offset = weights + length * direction, offset + length * offset_step
        self.evaluate(decisions + length * change)
        return True

    def direction(self):
        """Return the Newton step of weights and offset, the latter eliminated from the system."""
        factors = np.where(self.free, 1.0 / self.curvature, 0.0)
        square = np.eye(self.width) + (self.rows.T * factors) @ self.rows
        first, total = self.rows.T @ factors, factors.sum()
        if not (self.grouped and total > 0):
            return np.linalg.solve(square, -self.gradient), 0.0
        square -= np.outer(first, first) / total
        step = np.linalg.solve(square, -self.gradient - first * self.sum / total)
        return step, (self.sum - first @ step) / total

    def slope_along(self, direction, offset_step):
        return self.gradient @ direction - self.sum * offset_step

    def line_search(self, weights, direction, slack, change):
        """Return the step length at which the directional derivative is nearly 0."""
        p = self.p

        def derivatives(length):
            unclipped = (slack - length * change) / self.curvature
            response = np.clip(unclipped, p.lower, p.upper)
            slope = (weights + length * direction) @ direction - response @ change
            inside = response == unclipped
            return slope, direction @ direction + (change[inside] ** 2 / self.curvature[inside]).sum()

        steepest, low, high, length = -derivatives(0.0)[0], 0.0, np.inf, 1.0
        if not steepest > 0:
            return 0.0
        for k in range(MAX_LINE_SEARCH_STEPS):
            slope, curvature = derivatives(length)
            if abs(slope) <= SLOPE_TOLERANCE * steepest:
                break
            low, high = (length, high) if slope < 0 else (low, length)
            newton = length - slope / curvature if curvature > 0 else np.inf
            if low < newton < min(high, 16 * max(length, 1e-3)) and k % 4 != 3:
                length = newton
            else:
                length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * length
        return length
