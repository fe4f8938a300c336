"""Training of rankings whose pairs are not listed: the certificate is computed with the model, at no cost."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import order_ranking
from maxmargin.formulations.formulation import KernelExpansion
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Solution
from maxmargin.problems.order_ranking import OrderRanking
from maxmargin.solvers.ranking.order_newton import OrderNewtonSolver
from maxmargin.solvers.recorder import Recorder
from maxmargin.solvers.stopping import StoppingRule
from maxmargin.training.checkpoint import ProblemRecorder
from maxmargin.training.pipeline import Session
from maxmargin.training.trained_model import StoredModel, TrainedModel


def train_by_order(
    problem: OrderRanking, samples: Indices, rule: StoppingRule, start: Floats | None, session: Session
) -> TrainedModel:
    """Solve a ranking with the linear kernel, from the coefficients `start`, and return its certified model."""
    recorder = _recorder(problem, session)
    recorded = recorder.start if recorder.finished is None else recorder.finished.dual
    if recorded is not None and _improves_on_zero(problem, recorded):
        start = recorded
    limited = replace(rule, max_seconds=session.deadline.seconds_left())
    solution = OrderNewtonSolver(limited).solve(problem, start, recorder.observe(session.callback))
    window, certificate = solution.window, solution.certificate
    coefficients = window.coefficients
    recorder.close(Solution(coefficients, None, solution.status, solution.counters), coefficients)
    geometry = order_ranking.read(window, certificate, samples)
    counters = recorder.earlier + solution.counters
    expansion = KernelExpansion(coefficients, 0.0)
    return TrainedModel.from_stored(
        StoredModel(coefficients, samples, solution.status, counters, expansion, (certificate, geometry))
    )


def _improves_on_zero(problem: OrderRanking, coefficients: Floats) -> bool:
    """Return whether the objective value of coefficients from a checkpoint is at most that of 0."""
    if coefficients.shape != (problem.size,):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        scores = problem.matrix.matvec(coefficients)
        value = 0.5 * inner(coefficients, scores) + float(problem.loss(scores).sum())
    return value <= float(problem.loss(np.zeros(problem.size)).sum())


def _recorder(problem: OrderRanking, session: Session) -> Recorder:
    """Return the recorder of a ranking, by a checksum of its arrays."""
    if session.checkpoint is None:
        return Recorder()
    digest = hashlib.sha256(repr(problem.cost).encode())
    for array in (problem.targets, problem.queries, problem.weights):
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return ProblemRecorder(session.checkpoint, digest.hexdigest())
