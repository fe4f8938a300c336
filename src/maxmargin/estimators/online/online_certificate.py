"""Certificates of online models with respect to the memory or to any data set.

Weak duality holds between the decision function (primal) and any feasible dual vector. The dual vector used here
consists of the dual variables of the samples in memory that are rows of the data set; their sums are repaired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.double_double import DoubleDouble
from maxmargin.formulations import c_classification
from maxmargin.kernels import Points
from maxmargin.kernels.points import rows_of
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.kernel_matrix import expansion_error
from maxmargin.matrices.numerics import inner
from maxmargin.online import OnlineLearner
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.problems import Certificate, DualProblem, certify, feasible_start
from maxmargin.problems.certificate import certificate_of
from maxmargin.problems.products import evaluate_products, norm_of_expansion

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
        function = _Expansion(in_memory, sign * learner.dual[m, support], decisions[members, k], offsets[k])
        certificates.append(_certify_function(problem, feasible_start(problem, dual[members]), function, matrix))
    return certificates


def certify_memory(learner: OnlineLearner, subproblem: int, sign: float = 1.0) -> Certificate:
    """Return the certificate of a subproblem with respect to the samples in memory."""
    problem, dual = learner.dual_problem(subproblem, sign)
    offset = np.array([sign * learner.offset(subproblem)]) if problem.groups else None
    return certify(problem, dual, offset=offset)


class _Expansion(NamedTuple):
    """A decision function Σ coefficients_j k(x_j, x) + offset, and its values for some samples."""

    matrix: KernelMatrix
    coefficients: Floats
    decisions: Floats
    offset: float


def _certify_function(problem: DualProblem, dual: Floats, function: _Expansion, matrix: KernelMatrix) -> Certificate:
    """Return the certificate of a dual vector and of a decision function with other support vectors.

    With w the weight vector of the function and v that of the dual vector, primal − dual has one more term,
    ½‖w − v‖² = ½‖w‖² + ½‖v‖² − Σ_i b_i (f(x_i) − offset).
    """
    own, size = evaluate_products(problem, dual, None), np.abs(function.decisions) + abs(function.offset)
    product = function.matrix.matvec(function.coefficients)
    product_error = function.matrix.product_error(function.coefficients)
    norm, norm_error = norm_of_expansion(function.coefficients, product, product_error.double)
    error = expansion_error(matrix, function.matrix, function.coefficients).double + 2 * UNIT_ROUNDOFF * size
    decision = function.decisions - function.offset
    distance = 0.5 * (norm + own.dual_norm) - inner(dual, decision)
    distance_error = 0.5 * (norm_error + own.dual_norm_error) + inner(np.abs(dual), error)
    rounding = (len(dual) + 8) * UNIT_ROUNDOFF * (inner(np.abs(dual), size) + norm + own.dual_norm)
    products = replace(
        own,
        decision=DoubleDouble(decision, np.zeros(0)),
        decision_error=error,
        weights_norm=norm,
        weights_norm_error=norm_error,
        distance=max(distance, 0.0),
        distance_error=distance_error + rounding,
    )
    return certificate_of(problem, dual, products, np.array([function.offset]) if problem.groups else None)


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
