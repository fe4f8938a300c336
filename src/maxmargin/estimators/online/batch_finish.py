"""The end that a pass over the data does not reach: the batch problem, solved from where the stream has led."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.multiclass.parallel_training import train_several
from maxmargin.estimators.validation.callbacks import reporting
from maxmargin.formulations import c_classification
from maxmargin.online.slots import Slots
from maxmargin.problems import DualProblem
from maxmargin.training import Machine

if TYPE_CHECKING:
    from maxmargin.estimators.online.online_svc import OnlineSVC


def finish(
    model: OnlineSVC, X: Any, rows: Indices, numbers: Indices, costs: Floats, deadline: float | None
) -> list[Machine]:
    """Train all machines on some rows from their dual variables in memory, and load their support vectors there."""
    learner, kernel = model._learner_, model._kernel_
    machines, size = model._classes_.machines(learner), X.shape[0]
    parts = [learner.roles[m].part(numbers, costs) for m, _ in machines]
    taking_part = [rows[(part.lower < part.upper)[rows]] for part in parts]
    side_by_side, inside = model._divide_threads(kernel, size, len(machines))
    cache_bytes = model._cache_bytes(size)
    solver = model._make_solver(size, True, cache_bytes // side_by_side, inside)
    if all(len(own) == len(rows) for own in taking_part):
        solver, shared = model._make_shared(kernel, X, rows, solver, len(machines), side_by_side, inside)
        matrices = [shared] * len(machines)
    else:
        matrix_of = model._make_matrix_of(kernel, X, rows, cache_bytes, inside, len(machines))
        matrices = [matrix_of(own) for own in taking_part]
    if deadline is not None:
        rule = replace(solver.stopping, max_seconds=max(0.0, deadline - perf_counter()))
        solver = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
    problems, starts = [], []
    for (m, sign), part, own, matrix in zip(machines, parts, taking_part, matrices, strict=True):
        signs = sign * part.linear[own]
        problems.append(c_classification.pose(matrix, signs, costs[own], model.fit_intercept))
        by_row = np.zeros(size)
        by_row[learner.slots.identity] = sign * learner.dual[m, : learner.count]
        starts.append(by_row[own])
    with reporting(model) as report:
        trained = train_several(
            lambda k: (problems[k], taking_part[k]),
            len(machines),
            solver,
            c_classification,
            starts,
            report,
            side_by_side,
        )
    _load(model, X, numbers, costs, trained, problems)
    return trained


def _load(
    model: OnlineSVC, X: Any, numbers: Indices, costs: Floats, trained: list[Machine], problems: list[DualProblem]
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
