"""The end that a pass over the data does not reach: the batch problem, solved from where the stream has led."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.validation.callbacks import reporting
from maxmargin.formulations import c_classification
from maxmargin.online.slots import Slots
from maxmargin.problems import DualProblem
from maxmargin.solvers import SharedCallback
from maxmargin.training import Session, Subproblem, TrainedModel, train_problems
from maxmargin.training.fit_context import FitContext

if TYPE_CHECKING:
    from maxmargin.estimators.online.online_svc import OnlineSVC


def finish(
    model: OnlineSVC, X: Any, rows: Indices, numbers: Indices, costs: Floats, deadline: float | None
) -> list[TrainedModel]:
    """Train all machines on some rows from their dual variables in memory, and load their support vectors there."""
    learner, kernel = model._learner_, model._kernel_
    machines, size = model._classes_.machines(learner), X.shape[0]
    parts = [learner.roles[m].part(numbers, costs) for m, _ in machines]
    taking_part = [rows[(part.lower < part.upper)[rows]] for part in parts]
    with reporting(model) as callback:
        session = Session(SharedCallback(callback), deadline)
        context = FitContext(kernel, model._solver_options(), model._cache_budget(), model.n_jobs, session)
        workers, threads = context.divide_threads(size, len(machines))
        cache_bytes = context.cache_bytes(size)
        solver = context.solver(size, True, cache_bytes // workers, threads)
        if all(len(own) == len(rows) for own in taking_part):
            solver, shared = context.shared_matrix(X, rows, solver, len(machines), workers, threads)
            matrices = [shared] * len(machines)
        else:
            matrix_of = context.kernel_matrices(X, rows, cache_bytes, threads, len(machines))
            matrices = [matrix_of(own) for own in taking_part]
        problems, subproblems = [], []
        for (m, sign), part, own, matrix in zip(machines, parts, taking_part, matrices, strict=True):
            problem = c_classification.pose(matrix, sign * part.linear[own], costs[own], model.fit_intercept)
            by_row = np.zeros(size)
            by_row[learner.slots.identity] = sign * learner.dual[m, : learner.count]
            problems.append(problem)
            subproblems.append(Subproblem.posed(problem, own, by_row[own]))
        trained = train_problems(subproblems, solver, c_classification, session, workers)
    _load(model, X, numbers, costs, trained, problems)
    return trained


def _load(
    model: OnlineSVC, X: Any, numbers: Indices, costs: Floats, trained: list[TrainedModel], problems: list[DualProblem]
) -> None:
    """Put the support vectors of solved problems into the memory, so that the stream can go on."""
    learner = model._learner_
    count, size = len(learner.roles), X.shape[0]
    dual, gradient = np.zeros((count, size)), np.zeros((count, size))
    for (m, sign), machine, problem in zip(model._classes_.machines(learner), trained, problems, strict=True):
        dual[m, machine.samples] = sign * machine.dual
        gradient[m, machine.samples] = sign * machine.gradient_for(problem)
        learner.steps += machine.counters.iterations
    kept = np.flatnonzero(dual.any(axis=0))
    about = Slots(numbers[kept], costs[kept], kept.astype(np.int64), np.full(len(kept), learner.seen - 1))
    learner.load(X[kept], about, dual[:, kept], gradient[:, kept])
