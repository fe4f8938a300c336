"""What is proved about a model from a stream with respect to any data set.

Weak duality holds between the decision function as it is (primal) and any feasible dual vector. The one that is tried
here has the dual variables of those samples in memory that are rows of the data; what the others take away from the
sums is repaired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import c_classification
from maxmargin.kernels import Points
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.models import KernelExpansions
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start
from maxmargin.problems.certificate import conjugate, residuals

if TYPE_CHECKING:
    from maxmargin.estimators.online.online_svc import OnlineSVC
    from maxmargin.online import OnlineLearner


def judge(model: OnlineSVC, X: Any, y: Any, weights: Floats) -> list[Certificate]:
    """Return a certificate for each machine."""
    learner, kernel, threads = model._learner_, model._kernel_, model._prediction_threads(X.shape[0])
    rows = np.flatnonzero(weights > 0)
    numbers = np.zeros(len(y), dtype=np.int64)
    numbers[rows] = model._classes_.numbers(y[rows])
    costs = model._costs(weights, model._factors_for(numbers, rows, weights)[numbers])
    points, place = Points.wrap(X), match(learner, X, rows, numbers)
    machines, support = model._classes_.machines(learner), model._support()
    coefficients = np.array([sign * learner.dual[m, support] for m, sign in machines])
    decisions = KernelExpansions(coefficients, model.intercept_).decision_values(model._kernel_blocks(X), threads)
    found = []
    for k, (m, sign) in enumerate(machines):
        part = learner.roles[m].part(numbers, costs)
        own = rows[(part.lower < part.upper)[rows]]
        wanted = np.zeros(len(y))
        there = place >= 0
        wanted[place[there]] = sign * learner.dual[m, : learner.count][there]
        problem = c_classification.pose(
            KernelMatrix(kernel, points.take(own), threads), sign * part.linear[own], costs[own], model.fit_intercept
        )
        in_memory = KernelMatrix(kernel, Points.wrap(model.support_vectors_), threads)
        squared_norm = float(coefficients[k] @ in_memory.matvec(coefficients[k]))
        slack = problem.linear - decisions[own, k]
        found.append(
            of_function(problem, feasible_start(problem, wanted[own]), slack, squared_norm, model.intercept_[k])
        )
    return found


def judge_memory(learner: OnlineLearner, machine: int, sign: float = 1.0) -> Certificate:
    """Return what is proved about a machine with respect to the samples in memory."""
    problem, dual = learner.problem(machine, sign)
    product, offset = problem.matrix.matvec(dual), sign * learner.offset(machine)
    return of_function(problem, dual, problem.linear - product - offset, inner(dual, product), offset)


def of_function(problem: DualProblem, dual: Floats, slack: Floats, squared_norm: float, offset: float) -> Certificate:
    """Return the certificate of a dual vector and of a decision function that leaves these slacks."""
    proof = certify(problem, dual)
    primal = 0.5 * squared_norm + float(conjugate(problem, slack).sum()) + offset * float(problem.total.sum())
    return replace(
        proof,
        primal=primal,
        gap=max(primal - proof.dual, 0.0),
        squared_norm=squared_norm,
        offset=np.array([offset]) if problem.groups else proof.offset,
        slack=slack,
        residual=residuals(problem, dual, slack),
    )


def match(learner: OnlineLearner, X: Any, rows: Indices, numbers: Indices) -> Indices:
    """Return, for each sample in memory, a row of the data that equals it and is of its class, −1 if there is none."""
    waiting: dict[Any, list[int]] = {}
    slots = np.flatnonzero(learner.dual[:, : learner.count].any(axis=0))
    keys = _keys(rows_of(learner.samples.points.data, slots))
    for slot, key in zip(slots.tolist(), keys, strict=True):
        waiting.setdefault((int(learner.slots.label[slot]), key), []).append(slot)
    place = np.full(learner.count, -1, dtype=np.int64)
    for start in range(0, len(rows), 4096):
        some = rows[start : start + 4096]
        for row, key in zip(some.tolist(), _keys(X[some]), strict=True):
            equal = waiting.get((int(numbers[row]), key))
            if equal:
                place[equal.pop(0)] = row
    return place


def _keys(samples: Any) -> list[bytes]:
    """Return what equal samples have in common, dense or sparse, in single or double precision."""
    dense = samples.toarray() if sparse.issparse(samples) else np.asarray(samples)
    values = np.ascontiguousarray(dense, dtype=np.float64) + 0.0  # no negative zeros
    return [row.tobytes() for row in values]
