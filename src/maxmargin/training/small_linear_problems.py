"""Training of small problems with the linear kernel, each in one native call.

With few samples and features, Python between two Newton steps takes longer than the steps. `native/small_linear.hpp`
solves a problem from start to end, and `native/linear_certificate.hpp` computes its certificate with bounds on all
rounding errors. Problems that take many steps, are of another kind, or need a certificate in double-double arithmetic
go through the pipeline.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import numpy as np

from maxmargin import _native
from maxmargin._typing import Indices
from maxmargin.formulations.formulation import bias_of
from maxmargin.matrices.features import Features
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Solution, Status
from maxmargin.problems.certificate import NEGLIGIBLE_ROUNDING, inconclusive
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.monitor import Monitor
from maxmargin.training.pipeline import Session, Solver
from maxmargin.training.trained_model import TrainedLinearModel
from maxmargin.training.verification import MAX_ROUNDING_FRACTION, meets

#: The most multiplications of a Newton step, with all rows free: up to 64 features of 2,000 rows. Faster than the
#: pipeline on one thread up to twice as many, on Gaussian data of 8 to 120 features; beyond, threads pay off.
MAX_STEP_MULTIPLICATIONS = 2**23

#: Newton steps after which a problem goes through the pipeline; most take fewer than 40.
MAX_STEPS = 200


def train_small(problem: DualProblem, solver: Solver, samples: Indices, session: Session) -> TrainedLinearModel | None:
    """Return the trained model of a small problem, None if it is left to the pipeline.

    Only the problems of a `LinearSolver` whose tolerance is a relative gap are trained here. Observers receive a report
    of the start and one of the end.
    """
    rule = solver.stopping
    if not isinstance(solver, LinearSolver) or rule.relative_gap is None or not problem.zero_is_feasible:
        return None
    rows = problem.matrix.features()
    if rows is None or not is_small(rows) or session.deadline.reached or session.callback.stopped.is_set():
        return None
    recorder = session.recorder(problem, samples)
    if recorder.start is not None or recorder.finished is not None:
        return None
    started, monitor = perf_counter(), None
    if session.callback.callback is not None:
        monitor = Monitor(rule, session.callback)
        start = _Fit(problem, rows, rule, 0)
        if start.certificate is None:
            return None
        if monitor.report(partial(start.progress, monitor), now=True):
            return start.model(samples, Status.STOPPED, 0.0)
    fit = _Fit(problem, rows, rule, MAX_STEPS if rule.max_iterations is None else min(MAX_STEPS, rule.max_iterations))
    if fit.certificate is None:
        return None
    if fit.converged:
        status = Status.CONVERGED
    elif rule.max_iterations is not None and fit.steps >= rule.max_iterations:
        status = Status.MAX_ITERATIONS
    else:
        return None
    if monitor is not None:
        monitor.report(partial(fit.progress, monitor), now=True)
    model = fit.model(samples, status, perf_counter() - started)
    recorder.close(Solution(model.dual, None, status, model.counters, fit.weights), model.dual)
    return model


def is_small(rows: Features) -> bool:
    """Whether a Newton step on the rows takes few multiplications."""
    return max(rows.size, rows.dimension) * rows.dimension**2 <= MAX_STEP_MULTIPLICATIONS


class _Fit:
    """The result of one native call.

    Attributes
    ----------
    certificate : Certificate or None
        None if the problem is of another kind, or the bounds are not conclusive in float64.
    converged : bool
        Whether the certificate meets the stopping rule.
    """

    def __init__(self, problem: DualProblem, rows: Features, rule: StoppingRule, max_steps: int) -> None:
        n, self.problem, self.rows = problem.size, problem, rows
        self.dual, self.weights, slack, residual = np.empty(n), np.empty(rows.dimension), np.empty(n), np.empty(n)
        assert rule.relative_gap is not None
        result = _native.solve_small_linear(
            rows.native,
            problem.native,
            _native.SmallLinearArrays(dual=self.dual, weights=self.weights, slack=slack, residual=residual),
            _native.SmallLinearOptions(
                constant=rows.constant, relative_gap=rule.relative_gap, gap=rule.gap or 0.0, max_steps=max_steps
            ),
        )
        self.steps, self.rounds = result.steps, result.rounds
        self.certificate, self.converged = None, False
        if not result.conclusive:
            return
        offset, low, high = result.offsets
        some = slice(problem.groups)
        certificate = Certificate(
            *result.bounds, np.array([offset])[some], np.array([[low, high]])[some], slack, residual
        )
        if max_steps and inconclusive(certificate, max(NEGLIGIBLE_ROUNDING, MAX_ROUNDING_FRACTION * rule.relative_gap)):
            return
        self.certificate, self.converged = certificate, result.converged and meets(rule, certificate)

    def model(self, samples: Indices, status: Status, seconds: float) -> TrainedLinearModel:
        """Return the trained model; the last feature is the constant one of a regularised intercept."""
        assert self.certificate is not None
        offset = bias_of(self.problem, self.certificate.offset) + self.rows.constant * float(self.weights[-1])
        counters = Counters(iterations=self.steps, rounds=self.rounds, seconds=seconds)
        return TrainedLinearModel(self.weights[:-1], offset, self.dual, samples, self.certificate, status, counters)

    def progress(self, monitor: Monitor) -> Progress:
        """Return the point as a progress report."""
        assert self.certificate is not None
        return Progress(
            iteration=self.steps,
            violation=self.certificate.violation,
            primal=self.certificate.primal,
            dual=self.certificate.dual,
            active=len(self.dual),
            seconds=monitor.seconds,
            support_vectors=int(np.count_nonzero(self.dual)),
            point=monitor.copy_point(self.dual),
        )
