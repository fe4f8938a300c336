"""Training of many small two-class problems on one kernel matrix, in one native call.

With a hundred samples per problem, Python between two stretches of solver steps takes longer than the steps. The batch
solver (`solvers.smo.small_problem_batch`) takes all problems at once and verifies each with a recomputed gradient;
those that it leaves unfinished continue in the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.kernels import Kernel, Points
from maxmargin.matrices import FullKernelMatrix, KernelMatrix, SymmetricMatrix
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.problems.gradient_extremes import interval_midpoint
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.small_problem_batch import MAX_STEPS, BatchSolution, SmallProblemBatch
from maxmargin.training.pipeline import Session, Solver, solve_and_verify
from maxmargin.training.problem_scale import ordinary
from maxmargin.training.trained_model import TrainedModel
from maxmargin.training.verification import KernelVerifier


class TwoClassSamples(NamedTuple):
    """The training rows of one two-class problem, and their labels as +1 and −1."""

    samples: Indices
    signs: Floats


@dataclass(frozen=True)
class TwoClassFormulation:
    """A formulation of two classes with its parameters fixed.

    Attributes
    ----------
    formulation : Formulation
        Reads the solution.
    pose : callable
        From a matrix, the signs and the slack costs of its samples to the dual problem.
    fit_intercept : bool
    box : callable, optional
        From signs and costs to lower bound, upper bound and ridge of each sample, for formulations whose dual has a
        single variable for each sample and one sum of 0: these can be solved in batches.
    """

    formulation: Formulation
    pose: Callable[[SymmetricMatrix, Floats, Floats], DualProblem]
    fit_intercept: bool
    box: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]] | None = None


@dataclass(frozen=True)
class SmallProblemTraining:
    """Two-class problems on parts of one kernel matrix."""

    kernel_matrix: FullKernelMatrix
    parts: Sequence[TwoClassSamples]
    costs: Floats
    two_class: TwoClassFormulation
    solver: Solver
    threads: int
    session: Session

    @property
    def ordinary(self) -> bool:
        """Whether costs and kernel values need no scaling: extreme ones are left to the pipeline."""
        return ordinary(np.abs(np.diagonal(self.kernel_matrix.values)), self.costs[self.costs > 0])

    def train(self) -> list[TrainedModel]:
        """Return the trained model of each part."""
        started = perf_counter()
        batch, rule = self._batch(self.parts), self.solver.stopping
        self.session.callback.begin(len(self.parts))
        solved = batch.solve(
            rule.violation,
            self.threads,
            max_steps=MAX_STEPS if rule.max_iterations is None else min(MAX_STEPS, rule.max_iterations),
            deadline=self.session.deadline.at,
            callback=self._reporter(self._problem),
        )
        fit_intercept = self.two_class.fit_intercept
        offsets = interval_midpoint(*solved.offset_bounds()) if fit_intercept else np.zeros(len(self.parts))
        checksum = self.kernel_matrix.points.checksum()
        seconds = (perf_counter() - started) / len(self.parts)
        # There may be a hundred thousand problems of a few samples: as little as possible for each of them.
        edges, finished, offset = batch.edges.tolist(), solved.all_finished().tolist(), offsets.tolist()
        counts = np.maximum(solved.outcomes[:, 1:], 0).tolist()
        pose = partial(_pose, self.kernel_matrix.kernel, self.kernel_matrix.points, self.two_class, self.costs)
        models = []
        for p, part in enumerate(self.parts):
            if not finished[p]:
                models.append(self._continue(solved, p))
                continue
            at, (steps, requests) = slice(edges[p], edges[p + 1]), counts[p]
            counters = Counters(steps, (edges[p + 1] - edges[p]) ** 2, requests, seconds=seconds)
            solution = Solution(solved.dual[at], solved.gradient[at], Status.CONVERGED, counters)
            expansion = KernelExpansion(solution.dual, offset[p])
            models.append(
                TrainedModel(
                    partial(pose, part), solution, part.samples, self.two_class.formulation, expansion, checksum
                )
            )
        return models

    def held_out_values(self, folds: Indices, tolerance: float) -> list[Floats] | None:
        """Return the decision value of each sample of each part by a model trained without its fold.

        A fold is the whole problem with the bounds of the held-out samples set to 0: its gradient contains their
        values. None if a fold is not finished by the batch solver.
        """
        count = int(folds.max()) + 1
        batch = self._batch([part for part in self.parts for _ in range(count)])
        held = np.concatenate([folds[part.samples] == fold for part in self.parts for fold in range(count)])
        lower, upper = np.where(held, 0.0, batch.lower), np.where(held, 0.0, batch.upper)
        batch = replace(batch, lower=lower, upper=upper)
        self.session.callback.begin(len(batch))

        def fold(p: int) -> DualProblem:
            whole, at = self._problem(p // count), batch.variables(p)
            bounds = batch.lower[at], batch.upper[at]
            return DualProblem(whole.matrix, whole.linear, *bounds, whole.ridge, whole.group, whole.total, whole.kink)

        solved = batch.solve(
            tolerance, self.threads, max_free=0, deadline=self.session.deadline.at, callback=self._reporter(fold)
        )
        if solved.interrupted:
            raise KeyboardInterrupt
        if not solved.all_finished().all():
            return None
        values = batch.linear - solved.gradient
        if self.two_class.fit_intercept:
            values += np.repeat(interval_midpoint(*solved.offset_bounds()), np.diff(batch.edges))
        values = np.where(held, values, 0.0)
        starts = batch.edges[::count]
        return [values[a:b].reshape(count, -1).sum(axis=0) for a, b in pairwise(starts)]

    def _continue(self, solved: BatchSolution, p: int) -> TrainedModel:
        """Return the model of an unfinished problem, from where the batch solver left it."""
        samples, problem = self.parts[p].samples, self._problem(p)
        stopped = self.session.callback.stopped.is_set()
        if solved.interrupted or stopped:
            solution = solved.solution(p, Status.STOPPED if stopped else Status.INTERRUPTED)
            solution = replace(solution, gradient=problem.gradient(solution.dual))
            return TrainedModel(problem, solution, samples, self.two_class.formulation)
        verifier = KernelVerifier(problem, samples, self.two_class.formulation, self.solver.stopping, False)
        start, spent = solved.solution(p, Status.STOPPED).dual, solved.counters(p)
        return solve_and_verify(problem, self.solver, verifier, start, self.session, spent)

    def _reporter(self, problem_of: Callable[[int], DualProblem]) -> Callable[[BatchSolution, list[int]], bool] | None:
        """Return a function that reports finished problems and returns whether the callback asks to stop."""
        shared = self.session.callback
        if shared.callback is None:
            return None

        def report(solved: BatchSolution, finished: list[int]) -> bool:
            for p in finished:
                problem, solution = problem_of(p), solved.solution(p, Status.CONVERGED)
                monitor, counters = Monitor(self.solver.stopping, shared), solution.counters
                assert solution.gradient is not None
                value = problem.value(solution.dual, solution.gradient)
                origin = np.zeros(problem.size), problem.linear
                monitor.report_start(partial(progress_snapshot, problem, origin, 0.0, monitor, 0, 0, problem.size))
                point, cost = (solution.dual, solution.gradient), (counters.iterations, counters.kernel_evaluations)
                monitor.report(
                    partial(progress_snapshot, problem, point, value, monitor, *cost, problem.size), now=True
                )
                shared.count_finished()
            return shared.stopped.is_set()

        return report

    def _problem(self, p: int) -> DualProblem:
        samples, signs = self.parts[p]
        return self.two_class.pose(self.kernel_matrix(samples), signs, self.costs[samples])

    def _batch(self, parts: Sequence[TwoClassSamples]) -> SmallProblemBatch:
        samples = np.concatenate([part.samples for part in parts])
        edges = np.concatenate([[0], np.cumsum([len(part.samples) for part in parts])])
        in_order = all(len(part.samples) == len(self.kernel_matrix.values) for part in parts)
        linear = np.concatenate([part.signs for part in parts])
        assert self.two_class.box is not None
        return SmallProblemBatch(
            self.kernel_matrix.values,
            edges,
            np.empty(0, dtype=np.int64) if in_order else self.kernel_matrix.place[samples],
            linear,
            *self.two_class.box(linear, self.costs[samples]),
            grouped=self.two_class.fit_intercept,
        )


def _pose(
    kernel: Kernel, points: Points, two_class: TwoClassFormulation, costs: Floats, part: TwoClassSamples
) -> DualProblem:
    """Return the problem of one part with kernel values that are computed again: those of the fit are released."""
    samples, signs = part
    return two_class.pose(KernelMatrix(kernel, points.take(samples)), signs, costs[samples])
