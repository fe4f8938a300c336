"""Certificates of online models with respect to the memory or to any data set.

Weak duality holds between the decision function (primal) and any feasible dual vector. The dual vector used here
consists of the dual variables of the samples in memory that are rows of the data set; their sums are repaired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import c_classification
from maxmargin.kernels import Points
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.online import OnlineLearner
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start
from maxmargin.problems.losses import conjugate, residuals

#: Rows that are compared with the memory together.
CHUNK_ROWS = 4096


class LabelledSamples(NamedTuple):
    """A data set: the samples, the rows with a positive weight, and class numbers and costs of all rows."""

    points: Points
    rows: Indices
    numbers: Indices
    costs: Floats


def certify_on_data(
    learner: OnlineLearner,
    layout: list[tuple[int, float]],
    support: Indices,
    data: LabelledSamples,
    decisions: Floats,
    offsets: Floats,
    threads: int,
) -> list[Certificate]:
    """Return a certificate for each subproblem with respect to a data set.

    `layout` has the index and the sign of each subproblem, `support` the slots of the support vectors, `decisions` the
    decision values, one column for each subproblem.
    """
    points, rows, numbers, costs = data
    in_memory = KernelMatrix(learner.kernel, learner.samples.points.take(support), threads)
    row_of = match_rows(learner, points.data, rows, numbers)
    found = row_of >= 0
    certificates = []
    for k, (m, sign) in enumerate(layout):
        constraints = learner.subproblems[m].constraints(numbers, costs)
        members = rows[(constraints.lower < constraints.upper)[rows]]
        dual = np.zeros(len(numbers))
        dual[row_of[found]] = sign * learner.dual[m, : learner.count][found]
        matrix = KernelMatrix(learner.kernel, points.take(members), threads)
        problem = c_classification.pose(matrix, sign * constraints.linear[members], costs[members], learner.bias)
        coefficients = sign * learner.dual[m, support]
        squared_norm = float(coefficients @ in_memory.matvec(coefficients))
        slack = problem.linear - decisions[members, k]
        feasible = feasible_start(problem, dual[members])
        certificates.append(_certificate(problem, feasible, slack, squared_norm, offsets[k]))
    return certificates


def certify_memory(learner: OnlineLearner, subproblem: int, sign: float = 1.0) -> Certificate:
    """Return the certificate of a subproblem with respect to the samples in memory."""
    problem, dual = learner.dual_problem(subproblem, sign)
    product, offset = problem.matrix.matvec(dual), sign * learner.offset(subproblem)
    return _certificate(problem, dual, problem.linear - product - offset, inner(dual, product), offset)


def _certificate(problem: DualProblem, dual: Floats, slack: Floats, squared_norm: float, offset: float) -> Certificate:
    """Return the certificate of a dual vector and of a decision function with these slacks."""
    certificate = certify(problem, dual)
    primal = 0.5 * squared_norm + float(conjugate(problem, slack).sum()) + offset * float(problem.total.sum())
    return replace(
        certificate,
        primal=primal,
        gap=max(primal - certificate.dual, 0.0),
        squared_norm=squared_norm,
        offset=np.array([offset]) if problem.groups else certificate.offset,
        slack=slack,
        residual=residuals(problem, dual, slack),
    )


def match_rows(learner: OnlineLearner, X: Any, rows: Indices, numbers: Indices) -> Indices:
    """Return for each slot a row of the data that equals its sample and label, −1 if there is none."""
    slots_of: dict[Any, list[int]] = {}
    slots = np.flatnonzero(learner.dual[:, : learner.count].any(axis=0))
    keys = _keys(rows_of(learner.samples.points.data, slots))
    for slot, key in zip(slots.tolist(), keys, strict=True):
        slots_of.setdefault((int(learner.slots.label[slot]), key), []).append(slot)
    row_of = np.full(learner.count, -1, dtype=np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        for row, key in zip(chunk.tolist(), _keys(X[chunk]), strict=True):
            equal = slots_of.get((int(numbers[row]), key))
            if equal:
                row_of[equal.pop(0)] = row
    return row_of


def _keys(samples: Any) -> list[bytes]:
    """Return hashable keys that are equal for equal samples, dense or sparse, in single or double precision."""
    dense = samples.toarray() if sparse.issparse(samples) else np.asarray(samples)
    values = np.ascontiguousarray(dense, dtype=np.float64) + 0.0  # no negative zeros
    return [row.tobytes() for row in values]
