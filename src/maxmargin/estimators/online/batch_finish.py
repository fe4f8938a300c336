"""Solve the batch problem, started at the dual variables of online learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, TimeLimitReachedError
from maxmargin.estimators.online.online_estimator import OnlineEstimator
from maxmargin.estimators.online.stream_classes import StreamClasses
from maxmargin.formulations import c_classification
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.online import OnlineLearner
from maxmargin.online.sample_store import SlotData
from maxmargin.problems import Counters, DualProblem, Solution, Status, feasible_start
from maxmargin.solvers import SharedCallback
from maxmargin.training import Session, Subproblem, TrainedModel, train_problems
from maxmargin.training.fit_context import FitContext


def finish(
    estimator: OnlineEstimator,
    classes: StreamClasses,
    X: Any,
    rows: Indices,
    numbers: Indices,
    costs: Floats,
    deadline: Deadline,
) -> list[TrainedModel]:
    """Solve all subproblems on some rows, started at the online solution, and load the support vectors into memory.

    If the deadline passes before the gradient at the solution is known, the online solution stays in memory.
    """
    learner, size = estimator._learner_, X.shape[0]
    layout = classes.layout(learner)
    constraints = [learner.subproblems[m].constraints(numbers, costs) for m, _ in layout]
    members = [rows[(own.lower < own.upper)[rows]] for own in constraints]
    with reporting(estimator) as callback:
        session = Session(SharedCallback(callback), deadline)
        options, cache_budget = estimator._solver_options(), estimator._cache_budget()
        context = FitContext(learner.kernel, options, cache_budget, estimator.n_jobs, session)
        workers, threads = context.divide_threads(X, len(layout))
        cache_bytes = context.cache_bytes(size)
        solver = context.solver(size, True, cache_bytes // workers, threads)
        if all(len(own) == len(rows) for own in members):
            solver, shared = context.shared_matrix(X, rows, solver, len(layout), workers, threads)
            matrices = [shared] * len(layout)
        else:
            matrix_of = context.kernel_matrices(X, rows, cache_bytes, threads, len(layout))
            matrices = [matrix_of(own) for own in members]
        problems, subproblems = [], []
        for (m, sign), own, chosen, matrix in zip(layout, constraints, members, matrices, strict=True):
            problem = c_classification.pose(matrix, sign * own.linear[chosen], costs[chosen], learner.bias)
            start = np.zeros(size)
            start[learner.slots.identity] = sign * learner.dual[m, : learner.count]
            problems.append(problem)
            subproblems.append(Subproblem.posed(problem, chosen, start[chosen]))
        trained = train_problems(subproblems, solver, c_classification, session, workers)
    dual, gradient = np.zeros((len(learner.subproblems), size)), np.zeros((len(learner.subproblems), size))
    try:
        with deadline.in_force():
            for (m, sign), model, problem in zip(layout, trained, problems, strict=True):
                dual[m, model.samples] = sign * model.dual
                gradient[m, model.samples] = sign * model.gradient_for(problem)
                learner.steps += model.counters.iterations
    except TimeLimitReachedError:
        return [_unfinished(one, problem) for one, problem in zip(subproblems, problems, strict=True)]
    _load(learner, X, numbers, costs, dual, gradient)
    return trained


def _unfinished(subproblem: Subproblem, problem: DualProblem) -> TrainedModel:
    """Return the online solution of a subproblem as a model that a time limit has ended."""
    start = Solution(feasible_start(problem, subproblem.start), None, Status.MAX_SECONDS, Counters())
    return TrainedModel(problem, start, subproblem.samples, c_classification)


def _load(learner: OnlineLearner, X: Any, numbers: Indices, costs: Floats, dual: Floats, gradient: Floats) -> None:
    """Load the support vectors into memory, so that the stream can be continued."""
    kept = np.flatnonzero(dual.any(axis=0))
    data = SlotData(numbers[kept], costs[kept], kept.astype(np.int64), np.full(len(kept), learner.seen - 1))
    learner.load(X[kept], data, dual[:, kept], gradient[:, kept])
