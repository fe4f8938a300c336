"""Where the problem of a linear machine, a solver and the judge meet.

The function is w · x + b itself, and the judge needs two or three passes over the data. So it judges at once: what it
does not confirm goes back to the solver as a new start, and what is kept of a machine is its weights, its dual vector
and the proof, without the data.

The penalty is ½‖w‖², or Σ |w_j| where the solver says so (`TRAINING`). Of the second kind the proof is another, and a
fit starts from weights in place of a dual vector, which does not tell them.

The tolerance is a part of the optimum, (primal − dual) ≤ relative_gap · max(|primal|, |dual|). Solvers that only know a
violation are asked for a smaller one each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.features import Features
from maxmargin.problems import (
    Certificate,
    Counters,
    DualProblem,
    Solution,
    Status,
    certify,
    certify_sparse,
    feasible_start,
)
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.training import Solver

#: How often the judge sends a point back, each time with a violation ten times smaller.
REVIEWS = 10

#: A small gap alone is enough where the values are at most so many times as large: the optimum may be 0.
NEXT_TO_NOTHING = 1.0

#: How often it does so for a solver that cannot go on.
PATIENCE = 2


@dataclass(frozen=True)
class LinearMachine:
    """One trained linear machine, f(x) = weights · x + offset, and what is proved about it.

    Attributes
    ----------
    weights : float array of shape (features,), or (functions, features) of an all-in-one machine
    offset : float, or an array with one for each function
    dual : float array
        The dual vector, from which another fit can start.
    samples : int array
        The training rows of the problem.
    certificate : Certificate
        The primal value is that of the weights.
    status : Status
    counters : Counters
    """

    weights: Floats = field(repr=False)
    offset: float | Floats
    dual: Floats = field(repr=False)
    samples: Indices = field(repr=False)
    certificate: Certificate
    status: Status
    counters: Counters


def train_linear(
    problem: DualProblem,
    solver: Solver,
    samples: Indices,
    formulation: Formulation,
    start: Floats | None = None,
    callback: Callback | None = None,
    deadline: float | None = None,
) -> LinearMachine:
    """Solve a problem whose matrix is a product of features, and have the solution judged.

    `deadline` is a reading of ``time.perf_counter`` that replaces the solver's own limit on seconds.
    """
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("only a matrix that is a product of features makes a linear machine")

    def judge(solution: Solution) -> tuple[Certificate, Floats]:
        own = rows.weights(solution.dual)
        weights = own if solution.weights is None else solution.weights
        return certify(problem, solution.dual, weights, own), weights

    solution, certificate, weights = _solve_and_judge(problem, solver, judge, start, callback, deadline)
    offset = formulation.expand(problem, solution.dual, certificate.offset).offset
    return LinearMachine(
        weights=weights[:-1],
        offset=offset + rows.constant * float(weights[-1]),
        dual=solution.dual,
        samples=samples,
        certificate=certificate,
        status=solution.status,
        counters=solution.counters,
    )


def train_sparse(
    problem: DualProblem,
    solver: Solver,
    samples: Indices,
    formulation: Formulation,
    start: Floats | None = None,
    callback: Callback | None = None,
    deadline: float | None = None,
) -> LinearMachine:
    """Solve a problem whose penalty is Σ |w_j|, and have the solution judged.

    `start` are the weights of another machine, and its offset. One of other features is not used.
    """
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("only a matrix that is a product of features makes a linear machine")
    if start is not None:
        last = float(start[-1]) / rows.constant if rows.constant else 0.0
        start = np.append(start[:-1], last) if len(start) == rows.dimension else None
    rule = solver.stopping
    if deadline is None and rule.max_seconds is not None:
        deadline = perf_counter() + rule.max_seconds
    try:
        solution = _limited(solver, 0, 0, deadline).solve(problem, start, callback)
    except KeyboardInterrupt:  # before the first look of the solver; where it started is a model too
        solution = Solution(np.zeros(problem.size), None, Status.INTERRUPTED, Counters(), start)
    weights = np.zeros(rows.dimension) if solution.weights is None else solution.weights
    certificate, status = certify_sparse(problem, solution.dual, weights), solution.status
    if not np.isfinite(certificate.primal):
        raise ValueError(NON_FINITE_MESSAGE)
    if status in (Status.CONVERGED, Status.PRECISION):
        status = Status.CONVERGED if _accepts(rule, certificate) else Status.PRECISION
    offset = formulation.expand(problem, solution.dual, certificate.offset).offset
    return LinearMachine(
        weights=weights[:-1],
        offset=offset + rows.constant * float(weights[-1]),
        dual=solution.dual,
        samples=samples,
        certificate=certificate,
        status=status,
        counters=solution.counters,
    )


class Training(NamedTuple):
    """How machines with a penalty are trained, and from what.

    Attributes
    ----------
    train : callable
        `train_linear`, or a function with the same arguments.
    start : callable
        From a machine and which variables are held at 0 in the next problem to where that starts.
    """

    train: Callable[..., LinearMachine]
    start: Callable[[LinearMachine, Any], Floats]


#: The kinds by the penalty that a solver is for; "l2" for those that do not say.
TRAINING = {
    "l2": Training(train_linear, lambda machine, held: np.where(held, 0.0, machine.dual)),
    "l1": Training(train_sparse, lambda machine, held: np.append(machine.weights, machine.offset)),
}


def train_all_in_one(
    problem: DualProblem,
    rows: Features,
    solver: Solver,
    samples: Indices,
    formulation: Formulation,
    start: Floats | None = None,
    callback: Callback | None = None,
    deadline: float | None = None,
) -> LinearMachine:
    """Train a machine whose problem has a function for each class of the `rows`."""

    def judge(solution: Solution) -> tuple[Certificate, Floats]:
        certificate = certify(problem, solution.dual)
        columns = formulation.expand(problem, solution.dual, certificate.offset).coefficients
        return certificate, np.array([rows.weights(column)[:-1] for column in columns.T])

    solution, certificate, weights = _solve_and_judge(problem, solver, judge, start, callback, deadline)
    expansion: KernelExpansion = formulation.expand(problem, solution.dual, certificate.offset)
    return LinearMachine(
        weights=weights,
        offset=expansion.offset,
        dual=solution.dual,
        samples=samples,
        certificate=certificate,
        status=solution.status,
        counters=solution.counters,
    )


def _solve_and_judge(
    problem: DualProblem,
    solver: Solver,
    judge: Callable[[Solution], tuple[Certificate, Floats]],
    start: Floats | None,
    callback: Callback | None,
    deadline: float | None,
) -> tuple[Solution, Certificate, Floats]:
    """Return the first solution that the judge confirms, or the best one with a status that says why not."""
    rule, spent = solver.stopping, Counters()
    if deadline is None and rule.max_seconds is not None:
        deadline = perf_counter() + rule.max_seconds
    best: tuple[Solution, Certificate, Floats] | None = None
    failures = 0
    for review in range(REVIEWS + 1):
        try:
            solution = _limited(solver, review, spent.iterations, deadline).solve(problem, start, callback)
        except KeyboardInterrupt:  # between two of the solver's own looks; where it started is a model too
            dual = feasible_start(problem, start)
            solution = Solution(dual, problem.gradient(dual), Status.INTERRUPTED, Counters())
        spent = spent + solution.counters
        status = solution.status
        try:
            certificate, weights = judge(solution)
        except KeyboardInterrupt:  # a few passes, without which there is no model
            certificate, weights = judge(solution)
            status = Status.INTERRUPTED
        if not np.isfinite(certificate.squared_norm):
            raise ValueError(NON_FINITE_MESSAGE)
        accepted = _accepts(rule, certificate)
        if best is None or accepted or certificate.gap < best[1].gap:
            best = solution, certificate, weights
        if status in (Status.CONVERGED, Status.PRECISION):
            status = Status.CONVERGED if accepted else Status.PRECISION
        failures += solution.status is Status.PRECISION
        if status is not Status.PRECISION or failures >= PATIENCE:
            break
        start = solution.dual
    assert best is not None
    solution, certificate, weights = best
    return replace(solution, status=status, counters=spent), certificate, weights


def _limited(solver: Solver, review: int, spent: int, deadline: float | None) -> Solver:
    """Return the solver with what is left of its limits; after a review it looks for a smaller violation."""
    rule = solver.stopping
    limited = replace(
        rule,
        violation=rule.violation * 0.1**review,
        gap=rule.gap if review == 0 else None,
        max_seconds=None if deadline is None else max(0.0, deadline - perf_counter()),
        max_iterations=None if rule.max_iterations is None else max(0, rule.max_iterations - spent),
    )
    return replace(solver, stopping=limited)  # type: ignore[type-var]  # solvers are dataclasses


def _accepts(rule: StoppingRule, certificate: Certificate) -> bool:
    """Whether a gap is small enough, or, of a rule that has none, the violation."""
    if rule.gap is None and rule.relative_gap is None:
        return certificate.violation <= rule.violation
    if not np.isfinite(certificate.primal):
        return False
    size = max(abs(certificate.primal), abs(certificate.dual))
    close = rule.gap is not None and certificate.gap <= rule.gap and size <= NEXT_TO_NOTHING * rule.gap
    return close or (rule.relative_gap is not None and certificate.relative_gap <= rule.relative_gap)
