"""Cutting planes of the one-slack formulation of structured outputs (Joachims, Finley & Yu 2009).

All samples share one slack ξ = Σ_i C_i H_i(w), the maximum over choices of an output for every sample. With the sums of
losses L_t and differences φ_t of the choices known so far, weighted by C_i, the dual has one variable for each of them:

    maximise  Σ_t a_t L_t − ½‖Σ_t a_t φ_t‖²,     a ≥ 0,  Σ_t a_t ≤ 1

    repeat: solve it; w = Σ a φ; add the choice of the most violated output of every sample
    stop when the least primal value so far is within the tolerance of the dual value

The dual variables of the samples are α_iŷ = C_i Σ a_t over the choices t that have ŷ for sample i.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Status
from maxmargin.problems.structured_problem import StructuredDual, StructuredProblem, check_maximiser
from maxmargin.solvers.monitor import Interruption, Monitor, SolverStoppedError, status_of
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.structured.structured_solution import StructuredSolution

#: The gap of the problem of the known planes, as a fraction of the gap of the whole.
INNER_FRACTION = 0.05

#: Rounds after which a plane without weight is dropped.
MAX_IDLE_ROUNDS = 50

#: Rounds in a row whose plane is known already: the tolerance is finer than rounding.
MAX_IDLE = 3


@dataclass(frozen=True)
class CuttingPlanes:
    """One-slack cutting planes.

    Parameters
    ----------
    stopping : StoppingRule
        When to stop, by `relative_gap` or `gap`; its iterations are planes.
    """

    stopping: StoppingRule = field(default_factory=lambda: StoppingRule(relative_gap=1e-3))

    def solve(self, problem: StructuredProblem, callback: Callback | None = None) -> StructuredSolution:
        """Return a solution of the problem."""
        monitor = Monitor(self.stopping, callback)
        run = _Run(problem, monitor)
        try:
            monitor.report_start(run.progress)
            try:
                status = run.iterate()
            except SolverStoppedError as stopped:
                status = stopped.status
            monitor.report(run.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        counters = Counters(run.rounds, seconds=monitor.seconds)
        return StructuredSolution(run.dual(), run.best_weights, run.certificate, status, counters, monitor.trace)


class _Run:
    """One run of the solver. The first plane, whose loss and differences are 0, takes what the others leave of ξ."""

    def __init__(self, problem: StructuredProblem, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.choices: list[list[Any]] = [[]]
        self.losses, self.planes, self.products = np.zeros(1), np.zeros((1, problem.width)), np.zeros((1, 1))
        self.shares = np.ones(1)
        self._idle = np.zeros(1, dtype=np.int64)
        self.weights = self.best_weights = np.zeros(problem.width)
        self.value, self.primal = 0.0, np.inf
        self.rounds = 0
        self.certificate: Certificate | None = None

    def progress(self) -> Progress:
        """Return the progress report."""
        return Progress(
            iteration=self.rounds,
            violation=np.nan,
            primal=self.primal,
            dual=self.value,
            active=self.problem.size,
            seconds=self.monitor.seconds,
            support_vectors=int(np.count_nonzero(self.shares[1:])),
        )

    def iterate(self) -> Status:
        """Add planes until the certificate meets the tolerance."""
        rule, idle = self.monitor.rule, 0
        while True:
            choice, loss, plane = self._worst_choice()
            self.rounds += 1
            primal = 0.5 * inner(self.weights, self.weights) + loss - inner(plane, self.weights)
            if primal <= self.primal:
                self.primal, self.best_weights = primal, self.weights
            if rule.accepts_gap(self.primal, self.value) or idle:
                certificate = self.problem.certify(self.dual(), self.best_weights)
                if rule.accepts_gap(certificate.primal, certificate.dual):
                    self.certificate = certificate
                    return Status.CONVERGED
            idle = 0 if self._add(choice, loss, plane) else idle + 1
            if idle >= MAX_IDLE:
                return Status.PRECISION
            self._solve()

    def _worst_choice(self) -> tuple[list[Any], float, Floats]:
        """Return the most violated output of every sample, and the sums of losses and differences."""
        problem, total, plane = self.problem, 0.0, np.zeros(self.problem.width)
        choice = []
        for i, cost in enumerate(problem.costs):
            self.monitor.check(self.progress, self.rounds)
            check_deadline()
            worst = problem.worst_plane(i, self.weights)
            worst = check_maximiser(worst, problem.plane(i, problem.outputs[i]), self.weights)
            choice.append(worst.output)
            total += cost * worst.loss
            plane += cost * worst.difference
        return choice, total, plane

    def _add(self, choice: list[Any], loss: float, plane: Floats) -> bool:
        """Add a plane; return whether it is new."""
        known = (self.losses == loss) & (self.planes == plane).all(axis=1)
        if known.any():
            return False
        cross, square = self.planes @ plane, inner(plane, plane)
        self.choices.append(choice)
        self.losses = np.append(self.losses, loss)
        self.planes = np.vstack([self.planes, plane])
        self.products = np.block([[self.products, cross[:, None]], [cross[None, :], np.array([[square]])]])
        self.shares = np.append(self.shares, 0.0)
        self._idle = np.append(self._idle, 0)
        return True

    def _solve(self) -> None:
        """Solve the problem of the known planes, from its last solution; drop planes that have long had no weight."""
        count = len(self.losses)
        posed = DualProblem(
            PrecomputedMatrix(self.products), self.losses, np.zeros(count), np.ones(count), total=np.ones(1)
        )
        gap = max(INNER_FRACTION * (self.primal - self.value), 1e-14 * abs(self.primal))
        rule = StoppingRule(violation=gap, max_seconds=self.monitor.seconds_left())
        self.shares = PairwiseSolver(stopping=rule).solve(posed, self.shares).dual
        self.weights = self.shares @ self.planes
        self.value = inner(self.losses, self.shares) - 0.5 * inner(self.weights, self.weights)
        self._idle = np.where(self.shares > 0, 0, self._idle + 1)
        self._idle[0] = 0
        kept = np.flatnonzero(self._idle <= MAX_IDLE_ROUNDS)
        if len(kept) < count:
            self.choices = [self.choices[k] for k in kept]
            self.losses, self.planes, self.shares = self.losses[kept], self.planes[kept], self.shares[kept]
            self.products, self._idle = np.ascontiguousarray(self.products[np.ix_(kept, kept)]), self._idle[kept]

    def dual(self) -> StructuredDual:
        """Return the positive dual variables of the samples; equal outputs are listed once for each plane."""
        used = 1 + np.flatnonzero(self.shares[1:] > 0)
        # Rounding of the shares must not exceed the cost of a sample.
        shares = self.shares[used] / max(1.0, float(np.sum(self.shares[used])))
        outputs = [[self.choices[t][i] for t in used] for i in range(self.problem.size)]
        return StructuredDual(outputs, [cost * shares for cost in self.problem.costs])
