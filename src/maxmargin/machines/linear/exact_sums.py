"""Bounds on the exact optimum of a machine on landmarks from parts of the rows: blocks of a file, or of a cluster.

The objective of the landmark function is a sum over rows. The dual vector of the lower bound needs no fit, either: near
an optimum it is determined by the function, whose rows with a loss, or close to one, have a variable in proportion to
it. So one pass over the rows gives all that `training.exact_certificate` needs, and keeps the rows with a variable, at
random if they are too many: any feasible vector is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Points
from maxmargin.machines.linear.exact_bounds import ExactProblems
from maxmargin.machines.validation.training_data import Labels
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, feasible_start
from maxmargin.resources import thread_count
from maxmargin.training.adapted_dual import adapted_dual
from maxmargin.training.exact_certificate import (
    Adapt,
    ExactCertificate,
    LandmarkFunction,
    bound_from_parts,
    loss_of_function,
)

#: Bytes of the rows that are kept for the lower bounds of all problems.
MAX_KEPT_BYTES = 2**27

#: Rows that lack at least so much of their margin (lie beyond it by less, if negative) have a variable. A function that
#: is optimal up to a few percent has support vectors beyond its margin, too. These widths give the closest bounds for
#: chessboards and 20,000 rows of covertype; ten times as much or as little loosens them.
HINGE_SHORT, SQUARED_HINGE_SHORT = -0.05, -0.03


class Support(NamedTuple):
    """Rows with a variable, or random ones of them: those with the smallest keys.

    Attributes
    ----------
    X : array or CSR matrix
    numbers : int array
        The class of each row.
    weights, short, keys : float arrays
        `short` is what the value of the function lacks of the margin.
    """

    X: Any
    numbers: Indices
    weights: Floats
    short: Floats
    keys: Floats

    def take(self, rows: Indices) -> Support:
        """Return some of these rows."""
        return Support(self.X[rows], self.numbers[rows], self.weights[rows], self.short[rows], self.keys[rows])

    def limited(self, most: int) -> Support:
        """Return these rows, or as many random ones."""
        return self if len(self.keys) <= most else self.take(np.sort(np.argpartition(self.keys, most)[:most]))


class ExactSums(NamedTuple):
    """Of some rows: for each problem an upper bound on the loss of the machine's function, and the support."""

    losses: list[float]
    support: list[Support]


def add_up(parts: Iterable[ExactSums]) -> ExactSums:
    """Return the sums over all parts of the rows, one after another."""
    losses: list[float] = []
    pools: list[list[Support]] = []
    for part in parts:
        if not part.losses:  # without rows
            continue
        if not pools:
            losses, pools = [0.0] * len(part.losses), [[] for _ in part.losses]
        losses = [float(np.nextafter(a + b, np.inf)) for a, b in zip(losses, part.losses, strict=True)]
        for pool, found in zip(pools, part.support, strict=True):
            pool.append(found)
            if sum(len(one.keys) for one in pool) > 2 * _most(found.X, len(pools)):
                pool[:] = [_joined(pool, len(pools))]
    return ExactSums(losses, [_joined(pool, len(pools)) for pool in pools])


def exact_sums(machine: Any, X: Any, y: Any, weights: Floats, seed: int, name: str) -> ExactSums:
    """Return the sums of validated rows with a positive weight.

    `seed` is different for each part. `name` is that of the data, for messages.
    """
    numbers = numbers_of(y, machine.classes_, name)
    problems = problems_of(machine, X, numbers, weights)
    keys = np.random.default_rng(seed).random(len(numbers))
    losses, support = [], []
    for number, function in enumerate(functions_of(machine)):
        problem = problems.problem(number)
        loss, slack = loss_of_function(problem, function)
        short = np.sign(problem.linear) * slack
        every = Support(X, numbers, weights, short, keys)
        losses.append(loss)
        least = SQUARED_HINGE_SHORT if problem.ridged else HINGE_SHORT
        support.append(every.take(np.flatnonzero(short > least)).limited(_most(X, problems.count)))
    return ExactSums(losses, support)


def bounds_of_sums(machine: Any, sums: ExactSums) -> list[ExactCertificate]:
    """Return the bounds on the optimum of each problem, from the sums over all rows."""
    if not sums.losses:
        raise ValueError("all sample weights are 0, and rows of weight 0 are left out")
    return [bounds_of_problem(machine, sums, number) for number in range(len(sums.losses))]


def bounds_of_problem(machine: Any, sums: ExactSums, number: int, adapt: Adapt = adapted_dual) -> ExactCertificate:
    """Return the bounds on the optimum of a problem; `adapt` is as in `bound_from_parts`."""
    problem, dual = problem_of_support(machine, sums.support[number], number)
    return bound_from_parts(sums.losses[number], functions_of(machine)[number], problem, dual, adapt)


def functions_of(machine: Any) -> list[LandmarkFunction]:
    """Return the functions of a machine."""
    threads = thread_count(machine.n_jobs) if machine._kernel_.vectorised else 1
    landmarks = KernelMatrix(machine._kernel_, Points(machine.landmarks_), threads)
    pairs = zip(machine.dual_coef_, machine.intercept_, strict=True)
    return [LandmarkFunction(landmarks, coefficients, float(offset)) for coefficients, offset in pairs]


def problem_of_support(machine: Any, support: Support, number: int) -> tuple[DualProblem, Floats]:
    """Return the exact problem of the rows that were kept, and a feasible vector that suits the function."""
    problem = problems_of(machine, support.X, support.numbers, support.weights).problem(number)
    if problem.ridged:
        size, unit = np.maximum(0.0, support.short - SQUARED_HINGE_SHORT), 1.0 / problem.ridge
    else:  # from 0 to C on both sides of the margin
        size, unit = np.clip(0.5 - 0.5 * support.short / HINGE_SHORT, 0.0, 1.0), problem.upper - problem.lower
    return problem, feasible_start(problem, np.sign(problem.linear) * size * unit)


def problems_of(machine: Any, X: Any, numbers: Indices, weights: Floats) -> ExactProblems:
    """Return the exact problems of some rows."""
    rows = np.arange(len(numbers))
    return ExactProblems(machine, Points(X), Labels(machine.classes_, numbers, rows), weights, rows)


def numbers_of(y: Any, classes: Any, name: str) -> Indices:
    """Return the class of each row, or raise if it is none of the fit."""
    try:
        numbers: Indices = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        unknown = classes[numbers] != y
    except TypeError:  # text and numbers
        numbers, unknown = np.zeros(len(y), dtype=np.intp), np.ones(len(y), dtype=bool)
    if np.any(unknown):
        label = np.asarray(y)[unknown].tolist()[0]
        raise ValueError(f"{name} has the label {label!r}, which is not one of the {len(classes)} classes of fit")
    return numbers


def _most(X: Any, problems: int) -> int:
    """Return how many rows may be kept for a problem."""
    if sparse.issparse(X):
        size = max(1.0, X.nnz / max(1, X.shape[0])) * (X.dtype.itemsize + X.indices.itemsize)
    else:
        size = X.shape[1] * X.dtype.itemsize
    return max(1000, int(MAX_KEPT_BYTES / problems / size))


def _joined(parts: list[Support], problems: int) -> Support:
    """Return the rows of all parts, or random ones of them."""
    if len(parts) == 1:
        return parts[0]
    tables = [part.X for part in parts]
    X = sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)
    rest = [np.concatenate(columns) for columns in zip(*(part[1:] for part in parts), strict=True)]
    return Support(X, *rest).limited(_most(X, problems))
