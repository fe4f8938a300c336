"""Training on few samples: the machines of all pairs of classes, or of all classes, in one native call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np

from maxmargin.estimators.strategy import LabelledData
from maxmargin.formulations.formulation import Expansion, Formulation
from maxmargin.kernels import Kernel, Points
from maxmargin.matrices import KernelMatrix, SymmetricMatrix, WholeKernel
from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import DualProblem, Solution, Status
from maxmargin.problems.certificate import offset_between
from maxmargin.solvers.whole_problems import SmallProblems
from maxmargin.training import Machine, Solver, train

if TYPE_CHECKING:
    from maxmargin.estimators.kernel_classifier import KernelClassifier


class BoxFormulation(Formulation, Protocol):
    """A formulation of two classes in which each sample has a box and a ridge of its own, and all sum up to 0."""

    def pose(self, matrix: SymmetricMatrix, signs: Floats, costs: Floats, fit_intercept: bool) -> DualProblem:
        """Return the problem."""
        ...

    def box(self, signs: Floats, costs: Floats) -> tuple[Floats, Floats, Floats]:
        """Return lower and upper bound and ridge of each sample."""
        ...


def train_at_once(
    classifier: KernelClassifier,
    solver: Solver,
    matrix_of: object,
    data: LabelledData,
    parts: list[tuple[Indices, Floats]],
    threads: int,
) -> list[Machine] | None:
    """Return machines, given the samples of each and their signs; None if that takes a solver.

    It does if the kernel matrix is not there as a whole, or if somebody wants to choose the algorithm or to stop early.
    """
    formulation = classifier._box_formulation
    if formulation is None or not isinstance(matrix_of, WholeKernel) or not data.bounded:
        return None
    if not classifier._may_be_solved_at_once(solver):
        return None
    samples, signs = map(list, zip(*parts, strict=True))
    return _train(matrix_of, samples, signs, data.costs, formulation, classifier.fit_intercept, solver, threads)


def _train(
    whole: WholeKernel,
    samples: list[Indices],
    signs: list[Floats],
    costs: Floats,
    formulation: BoxFormulation,
    fit_intercept: bool,
    solver: Solver,
    threads: int,
) -> list[Machine]:
    """Return the machines. The solver only gets what is left: problems that take many steps."""
    started = perf_counter()
    everything = np.concatenate(samples)
    edges = np.concatenate([[0], np.cumsum([len(rows) for rows in samples])])
    in_order = len(samples) == 1 and len(everything) == len(whole.values)
    linear = np.concatenate(signs)
    solutions = SmallProblems(
        whole.values,
        edges,
        np.empty(0, dtype=np.int64) if in_order else whole.place[everything],
        linear,
        *formulation.box(linear, costs[everything]),
        grouped=fit_intercept,
    ).solve(solver.stopping.violation, threads)
    offsets = offset_between(*solutions.offsets()) if fit_intercept else np.zeros(len(samples))
    checksum = whole.points.checksum()
    share = (perf_counter() - started) / len(samples)
    machines = []
    for p, rows in enumerate(samples):
        part = slice(edges[p], edges[p + 1])
        dual = solutions.dual[part]
        if not solutions.finished(p):
            problem = formulation.pose(whole(rows), signs[p], costs[rows], fit_intercept)
            machines.append(train(problem, solver, rows, formulation, dual))
            continue
        counters = replace(solutions.counters(p), seconds=share)
        solution = Solution(dual, solutions.gradient[part], Status.CONVERGED, counters)
        pose = partial(_pose, whole.kernel, whole.points.take(rows), formulation, signs[p], costs[rows], fit_intercept)
        expansion = Expansion(dual, float(offsets[p]))
        machines.append(Machine.confirmed(pose, solution, rows, formulation, expansion, checksum))
    return machines


def _pose(
    kernel: Kernel, points: Points, formulation: BoxFormulation, signs: Floats, costs: Floats, fit_intercept: bool
) -> DualProblem:
    """Return the problem of one pair, with kernel values that are computed again: those of the fit are let go."""
    return formulation.pose(KernelMatrix(kernel, points), signs, costs, fit_intercept)
