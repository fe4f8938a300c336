"""Newton's method for rankings with the linear kernel and too many pairs to list them.

The primal with a smoothed hinge loss, whose slope rises from 0 to C_p over slacks of 0 to the width δ, is minimised
over the weights w by Newton steps with a line search. Its solution implies a dual vector of the pairs that violates the
optimality criterion of the original problem by at most δ, so δ is reduced until the tolerance is met. Derivatives and
products with the second derivative are sums by the order of the scores (`maxmargin.problems.order_ranking`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg, sparse

from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, Counters, Progress, Status
from maxmargin.problems.order_ranking import OrderRanking, PairWindow
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.ranking.line_search import step_length
from maxmargin.solvers.ranking.multiplier_newton import (
    EASY_STEPS,
    EQUATION_FRACTION,
    INITIAL_RIDGE,
    INITIAL_WIDTH,
)
from maxmargin.solvers.stopping import Callback, StoppingRule

#: Up to this number of features the second derivative is formed; above it, conjugate gradients take products with it.
MAX_FORMED_FEATURES = 200

#: The factor on the width after few Newton steps, and after many.
WIDTH_FACTOR, SLOW_WIDTH_FACTOR = 0.2, 0.5

#: The initial width from the solution of another fit.
START_WIDTH = 0.05

#: Limit on the Newton steps of a width; the next width starts from there.
MAX_STEPS = 100

#: The width is reduced until the relative gap is this small, too.
FINAL_GAP = 1e-6

#: After so many widths in a row without a smaller gap, rounding errors are larger than what a smaller width gains.
MAX_FAILURES = 2

#: The residual of conjugate gradients relative to the gradient, and the limit on their steps.
GRADIENT_FRACTION, MAX_PRODUCTS = 0.05, 400


@dataclass(frozen=True)
class OrderSolution:
    """The pairs at the final scores, whose dual vector is the solution; its certificate; how the solve ended."""

    window: PairWindow
    certificate: Certificate
    status: Status
    counters: Counters


@dataclass(frozen=True)
class OrderNewtonSolver:
    """Newton steps on the smoothed primal of a ranking with the linear kernel.

    Parameters
    ----------
    stopping : StoppingRule
        When to stop; its iterations are Newton steps.
    """

    stopping: StoppingRule = field(default_factory=StoppingRule)

    def solve(
        self, problem: OrderRanking, start: Floats | None = None, callback: Callback | None = None
    ) -> OrderSolution:
        """Return a solution, from the coefficients `start` or from 0."""
        rows = problem.matrix.features()
        if rows is None:
            raise ValueError("this solver is for the linear kernel")
        monitor = Monitor(self.stopping, callback)
        run = _OrderRun(problem, rows, start, monitor)
        try:
            status = run.solve()
            monitor.report(run.progress, now=True)
        except SolverStoppedError as stopped:
            status = stopped.status
        except Interruption as interruption:
            status = status_of(interruption)
        counters = Counters(run.steps, rounds=run.rounds, seconds=monitor.seconds)
        return OrderSolution(run.window, run.certificate, status, counters)


class _OrderRun:
    """One run of the solver.

    Attributes
    ----------
    window, certificate : PairWindow, Certificate
        The dual vector of the largest value so far.
    steps, rounds : int
        Newton steps, and widths.
    """

    def __init__(self, problem: OrderRanking, rows: Features, start: Floats | None, monitor: Monitor) -> None:
        self.problem, self.rows, self.monitor = problem, rows, monitor
        self.steps = self.rounds = 0
        self.weights = rows.weights(np.zeros(rows.size) if start is None else start)
        self.scores = rows.decisions(self.weights)
        diagonal = float(np.mean(rows.squared_norms()))
        if not (np.isfinite(diagonal) and np.isfinite(self.scores).all()):
            raise ValueError(NON_FINITE_MESSAGE)
        cost = problem.cost * float(problem.weights.max()) ** 2
        self.width = max(INITIAL_WIDTH, INITIAL_RIDGE * diagonal * cost)
        if start is not None:
            self.width = min(self.width, START_WIDTH)
        self.window = problem.at(self.scores, self.width)
        self.certificate = self.window.certify()
        self._formed = self._dense_rows() if rows.width <= MAX_FORMED_FEATURES else None

    def _dense_rows(self) -> Floats:
        data = self.rows.points.data[self.rows.points.index]
        return np.ascontiguousarray(data.toarray() if sparse.issparse(data) else data, dtype=np.float64)

    def progress(self) -> Progress:
        """Return the progress report of the best point."""
        found = self.certificate
        coefficients = self.window.coefficients
        return Progress(
            iteration=self.steps,
            violation=found.violation,
            primal=found.primal,
            dual=found.dual,
            active=self.problem.size,
            seconds=self.monitor.seconds,
            support_vectors=int(np.count_nonzero(coefficients)),
            point=self.monitor.copy_point(coefficients),
        )

    def solve(self) -> Status:
        """Reduce the width until the certificate meets the tolerance."""
        self.monitor.report_start(self.progress)
        rule, failures = self.monitor.rule, 0
        while True:
            window, steps = self._minimise()
            self.rounds += 1
            certificate = window.certify()
            if not np.isfinite(certificate.gap):
                raise ValueError(NON_FINITE_MESSAGE)
            better = certificate.gap < self.certificate.gap or self.rounds == 1
            failures = 0 if better or self.width > INITIAL_WIDTH else failures + 1
            if better:
                self.window, self.certificate = window, certificate
            best = self.certificate
            within = best.violation <= rule.violation
            if within and (best.relative_gap <= FINAL_GAP or not better):
                return Status.CONVERGED
            if rule.gap is not None and best.gap <= rule.gap:
                return Status.CONVERGED
            self.width *= WIDTH_FACTOR if steps <= 2 * EASY_STEPS else SLOW_WIDTH_FACTOR
            if failures > MAX_FAILURES:
                return Status.PRECISION

    def _minimise(self) -> tuple[PairWindow, int]:
        """Minimise the primal with the present width; return the pairs at the minimum, and the steps."""
        tolerance = EQUATION_FRACTION * min(self.width, 1.0)
        before = self.steps
        while True:
            window = self.problem.at(self.scores, self.width)
            answer = self.rows.weights(window.coefficients)
            gradient = self.weights - answer
            error = float(np.abs(self.rows.decisions(gradient)).max())
            if not np.isfinite(error):
                raise ValueError(NON_FINITE_MESSAGE)
            if error <= tolerance or self.steps - before >= MAX_STEPS:
                break
            self._check_limits(window)
            change = self._direction(window, gradient)
            direction = self.rows.decisions(change)
            own, square = inner(self.weights, change), inner(change, change)
            slope = inner(gradient, change)
            if not slope < 0.0:
                break

            def slope_at(t: float, along: Floats = direction, own: float = own, square: float = square) -> float:
                self.monitor.check(self.progress, self.steps)
                there = self.problem.at(self.scores + t * along, self.width)
                return own + t * square - inner(there.coefficients, along)

            t = step_length(slope_at, slope)
            self.weights = self.weights + t * change
            self.scores = self.rows.decisions(self.weights)
            self.steps += 1
        return window, self.steps - before

    def _direction(self, window: PairWindow, gradient: Floats) -> Floats:
        """Return the Newton direction −(I + Fᵀ Λ F)⁻¹ gradient."""
        if self._formed is None:
            return self._conjugate_gradients(window, -gradient)
        system = self._formed.T @ window.laplacian_product(self._formed)
        system[np.diag_indices_from(system)] += 1.0
        change = np.zeros_like(gradient)
        change[:-1] = linalg.solve(0.5 * (system + system.T), -gradient[:-1], check_finite=False)
        return change

    def _conjugate_gradients(self, window: PairWindow, target: Floats) -> Floats:
        """Solve the equations of the step approximately."""
        solution, residual = np.zeros_like(target), target
        step, square = residual, inner(residual, residual)
        goal = GRADIENT_FRACTION**2 * square
        for _ in range(MAX_PRODUCTS):
            image = step + self.rows.weights(window.laplacian_product(self.rows.decisions(step)[:, None])[:, 0])
            length = square / inner(step, image)
            solution, residual = solution + length * step, residual - length * image
            last, square = square, inner(residual, residual)
            if square <= goal:
                break
            self._check_limits(window)
            step = residual + square / last * step
        return solution

    def _check_limits(self, window: PairWindow) -> None:
        """Report progress; at a limit, keep the present point if it is better than the best one."""
        try:
            self.monitor.check(self.progress, self.steps)
        except SolverStoppedError:
            present = window.certify()
            if present.gap < self.certificate.gap:
                self.window, self.certificate = window, present
            raise
