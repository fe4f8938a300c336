"""Training on few samples: the machines of all pairs of classes, or of all classes, in one native call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.calibration.cross_validation import LOOSER
from maxmargin.estimators.multiclass.strategy import LabelledData
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.kernels import Kernel, Points
from maxmargin.matrices import FullKernelMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.problems import DualProblem, Solution, Status
from maxmargin.problems.gradient_extremes import offset_between
from maxmargin.solvers.smo.small_problem_batch import SmallProblems, SmallSolutions
from maxmargin.training import Machine, Solver, train

if TYPE_CHECKING:
    from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier

#: Samples and their signs, of each problem.
Parts = list[tuple[Indices, Floats]]


class BoxFormulation(Formulation, Protocol):
    """A formulation of two classes in which each sample has a box and a ridge of its own, and all sum up to 0."""

    def pose(self, matrix: SymmetricMatrix, signs: Floats, costs: Floats, fit_intercept: bool) -> DualProblem:
        """Return the problem."""
        ...

    def box(self, signs: Floats, costs: Floats) -> tuple[Floats, Floats, Floats]:
        """Return lower and upper bound and ridge of each sample."""
        ...


def at_once(
    classifier: KernelClassifier, solver: Solver, matrix_of: object, data: LabelledData, parts: Parts, threads: int
) -> SmallPairs | None:
    """Return the problems of some samples and their signs each, if they can be solved in one native call.

    They cannot if the kernel matrix is not there as a whole, or if somebody wants to choose the algorithm or to stop
    early.
    """
    formulation = classifier._box_formulation
    if formulation is None or not isinstance(matrix_of, FullKernelMatrix) or not data.bounded:
        return None
    if not classifier._may_be_solved_at_once(solver):
        return None
    return SmallPairs(matrix_of, parts, data.costs, formulation, classifier.fit_intercept, solver, threads)


@dataclass(frozen=True)
class SmallPairs:
    """Problems on parts of one kernel matrix: the samples of each, and their signs."""

    whole: FullKernelMatrix
    parts: Parts
    costs: Floats
    formulation: BoxFormulation
    fit_intercept: bool
    solver: Solver
    threads: int

    def train(self) -> list[Machine]:
        """Return the machines. The solver only gets what is left: problems that take many steps."""
        started = perf_counter()
        problems = self._posed(self.parts)
        solutions = problems.solve(self.solver.stopping.violation, self.threads)
        offsets = offset_between(*solutions.offsets()) if self.fit_intercept else np.zeros(len(self.parts))
        checksum = self.whole.points.checksum()
        share = (perf_counter() - started) / len(self.parts)
        machines = []
        for p, ((samples, signs), (start, stop)) in enumerate(zip(self.parts, pairwise(problems.edges), strict=True)):
            dual, costs = solutions.dual[start:stop], self.costs[samples]
            if not solutions.finished(p):
                machines.append(self._go_on(solutions, p, dual))
                continue
            counters = replace(solutions.counters(p), seconds=share)
            solution = Solution(dual, solutions.gradient[start:stop], Status.CONVERGED, counters)
            points = self.whole.points.take(samples)
            pose = partial(_pose, self.whole.kernel, points, self.formulation, signs, costs, self.fit_intercept)
            expansion = KernelExpansion(dual, float(offsets[p]))
            machines.append(Machine.confirmed(pose, solution, samples, self.formulation, expansion, checksum))
        return machines

    def _go_on(self, solutions: SmallSolutions, p: int, dual: Floats) -> Machine:
        """Return the machine of a problem that is not finished, by the solver or, after Ctrl-C, as it is."""
        samples, signs = self.parts[p]
        problem = self.formulation.pose(self.whole(samples), signs, self.costs[samples], self.fit_intercept)
        if solutions.interrupted:
            solution = Solution(dual, problem.gradient(dual), Status.INTERRUPTED, solutions.counters(p))
            return Machine(problem, solution, samples, self.formulation)
        machine = train(problem, self.solver, samples, self.formulation, dual)
        machine.counters = solutions.counters(p) + machine.counters
        return machine

    def held_out(self, folds: Indices) -> list[Floats] | None:
        """Return the value of each sample of each part by a machine without its fold; None if that takes a solver.

        A fold is the whole problem with the bounds of those held out closed at 0: its gradient knows their values.
        """
        count = int(folds.max()) + 1
        problems = self._posed([part for part in self.parts for _ in range(count)])
        held = np.concatenate([folds[samples] == fold for samples, _ in self.parts for fold in range(count)])
        lower, upper = np.where(held, 0.0, problems.lower), np.where(held, 0.0, problems.upper)
        problems = replace(problems, lower=lower, upper=upper)
        solutions = problems.solve(LOOSER * self.solver.stopping.violation, self.threads, most_free=0)
        if solutions.interrupted:
            raise KeyboardInterrupt
        if not all(solutions.finished(p) for p in range(len(problems.edges) - 1)):
            return None
        values = problems.linear - solutions.gradient
        if self.fit_intercept:
            values += np.repeat(offset_between(*solutions.offsets()), np.diff(problems.edges))
        values = np.where(held, values, 0.0)
        starts = problems.edges[::count]
        return [values[a:b].reshape(count, -1).sum(axis=0) for a, b in pairwise(starts)]

    def _posed(self, parts: Parts) -> SmallProblems:
        samples = np.concatenate([rows for rows, _ in parts])
        edges = np.concatenate([[0], np.cumsum([len(rows) for rows, _ in parts])])
        in_order = all(len(rows) == len(self.whole.values) for rows, _ in parts)
        linear = np.concatenate([signs for _, signs in parts])
        return SmallProblems(
            self.whole.values,
            edges,
            np.empty(0, dtype=np.int64) if in_order else self.whole.place[samples],
            linear,
            *self.formulation.box(linear, self.costs[samples]),
            grouped=self.fit_intercept,
        )


def _pose(
    kernel: Kernel, points: Points, formulation: BoxFormulation, signs: Floats, costs: Floats, fit_intercept: bool
) -> DualProblem:
    """Return the problem of one pair, with kernel values that are computed again: those of the fit are let go."""
    return formulation.pose(KernelMatrix(kernel, points), signs, costs, fit_intercept)
