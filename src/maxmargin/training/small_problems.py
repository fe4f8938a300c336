"""Training of small problems on one kernel matrix, in one native call.

With a hundred samples per problem, Python between two stretches of solver steps takes longer than the steps. The batch
solver (`solvers.smo.small_problem_batch`) takes all problems of a fit at once, the pairs of classes or the outputs of a
regression, and verifies each with a recomputed gradient; those that it leaves unfinished continue in the pipeline. The
matrix is in memory, or its rows are computed when a problem needs them (`matrices.packed_kernel`).
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
from maxmargin.backends.interface import StopReason
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices import SymmetricMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.packed_kernel import PackedKernel
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.precision import GROUP_SUM_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Status
from maxmargin.problems.gradient_extremes import interval_midpoint
from maxmargin.solvers.dual_point import progress_snapshot
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.smo.small_problem_batch import MAX_STEPS, NOT_BEGUN, BatchSolution, SmallProblemBatch
from maxmargin.training.joined_models import JoinedModels, JoinedProblem, JoinedSolution, StoppedProblems
from maxmargin.training.pipeline import (
    MadeWhenRead,
    Session,
    Solver,
    Subproblem,
    run_parallel,
    solve_and_verify,
    train,
    train_parallel,
)
from maxmargin.training.problem_scale import is_ordinary
from maxmargin.training.trained_model import TrainedModel
from maxmargin.training.verification import MAX_ROUNDING_FRACTION, MAX_VERIFICATION_WORK, KernelVerifier

#: Up to so many variables a problem, the folds of problems on computed rows are solved in one call from the start; of
#: larger ones, each from the solution of the whole. Tuned on `abalone_28_classes`, `six_classes` and generated classes.
MAX_VARIABLES_OF_FOLDS = 512


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
    grouped_by_class : bool
        Whether the variables of each class are a group: then a kernel matrix in the order of classes needs no copies.
    elementwise : bool
        Whether the arrays of the problem depend on a sample at a time, so that all pairs can be posed as one.
    """

    formulation: Formulation
    pose: Callable[[SymmetricMatrix, Floats, Floats], DualProblem]
    fit_intercept: bool
    grouped_by_class: bool = False
    elementwise: bool = False


@dataclass(frozen=True)
class SmallProblemTraining:
    """Problems on rows of one kernel matrix in memory.

    Attributes
    ----------
    batch : SmallProblemBatch
    posed : DualProblem
        The first of the problems, or all of them as one.
    problems : sequence of DualProblem
    subproblems : sequence of Subproblem
    formulation : Formulation
    solver : Solver
        Continues what the batch leaves unfinished.
    threads : int
    session : Session
    joined : JoinedProblem, optional
        All problems as one, if they were posed so.
    """

    batch: SmallProblemBatch
    posed: DualProblem
    problems: Sequence[DualProblem]
    subproblems: Sequence[Subproblem]
    formulation: Formulation
    solver: Solver
    threads: int
    session: Session
    joined: JoinedProblem | None = None

    @classmethod
    def of(
        cls,
        subproblems: Sequence[Subproblem],
        formulation: Formulation,
        solver: Solver,
        threads: int,
        session: Session,
        kernel: PackedKernel | None = None,
    ) -> SmallProblemTraining | None:
        """Return the training of problems in a batch, None if they are not of its kind or of extreme magnitudes.

        Without `kernel`, their matrix must be in memory.
        """
        first = subproblems[0].pose()
        if kernel is None and first.matrix.stored() is None:
            return None
        problems = [first, *(subproblems[p].pose() for p in range(1, len(subproblems)))]
        batch = SmallProblemBatch.of(problems, [one.start for one in subproblems], kernel)
        if batch is None:
            return None
        diagonal = float(np.abs(np.diagonal(batch.values)).max()) if kernel is None else kernel.diagonal
        if not all(is_ordinary(problem, diagonal) for problem in problems):
            return None
        return cls(batch, first, problems, subproblems, formulation, solver, threads, session)

    @classmethod
    def of_joined(
        cls,
        joined: JoinedProblem,
        subproblems: Sequence[Subproblem],
        formulation: Formulation,
        solver: Solver,
        threads: int,
        session: Session,
        kernel: PackedKernel | None = None,
    ) -> SmallProblemTraining | None:
        """Return the training of problems that were posed as one, None if that is not possible."""
        problem = joined.pose()
        batch = SmallProblemBatch.of_joined(problem, joined.sizes, kernel)
        if batch is None:
            return None
        diagonal = float(np.abs(np.diagonal(batch.values)).max()) if kernel is None else kernel.diagonal
        if not is_ordinary(problem, diagonal):
            return None
        return cls(
            batch,
            problem,
            MadeWhenRead(len(batch), lambda p: subproblems[p].pose()),
            subproblems,
            formulation,
            solver,
            threads,
            session,
            joined,
        )

    def train(self) -> Sequence[TrainedModel]:
        """Return the trained model of each problem."""
        started = perf_counter()
        batch, rule = self.batch, self.solver.stopping
        self.session.callback.begin(len(batch))
        solved = batch.solve(
            rule.violation,
            self.threads,
            max_steps=MAX_STEPS if rule.max_iterations is None else min(MAX_STEPS, rule.max_iterations),
            deadline=self.session.deadline.at,
            callback=self._reporter(self.problems.__getitem__, batch),
        )
        checksum = self.posed.matrix.uncached().checksum()  # of the data, the same for all problems
        seconds = (perf_counter() - started) / len(batch)
        unfinished = np.flatnonzero(~self._confirmed(solved))
        continued, ended = self._continue_all(solved, unfinished.tolist()) if len(unfinished) else ({}, None)
        if self.joined is not None:
            stopped = None
            if ended is not None:
                left = unfinished[[p not in continued for p in unfinished.tolist()]]
                stopped = StoppedProblems(left, ended, self._leave(solved, left))
            offsets = solved.offsets[:, 0] if batch.groups else np.zeros(len(batch))
            found = JoinedSolution(solved.dual, solved.gradient, offsets, *solved.costs(), seconds, stopped)
            return JoinedModels(self.joined, found, continued, self.formulation, checksum)
        models = []
        for p, (one, problem) in enumerate(zip(self.subproblems, self.problems, strict=True)):
            if p in continued:
                models.append(continued[p])
                continue
            solution = solved.solution(p, Status.CONVERGED, seconds)
            expansion = self.formulation.expand(problem, solution.dual, solved.offsets[p])
            source = one.uncached(problem)
            models.append(TrainedModel(source, solution, one.samples, self.formulation, expansion, checksum))
        return models

    @property
    def solves_folds(self) -> bool:
        """Whether `held_out_values` takes less time than folds one by one."""
        return self.batch.kernel is None or len(self.batch.linear) <= MAX_VARIABLES_OF_FOLDS * len(self.batch)

    def held_out_values(self, folds: Indices, tolerance: float) -> list[Floats] | None:
        """Return the decision value of each sample of each problem by a model trained without its fold.

        A fold is the whole problem with the bounds of the held-out samples set to 0: its gradient contains their
        values. None if a fold is not finished by the batch solver, or if totals other than 0 depend on the samples.
        """
        problems = list(self.problems)
        if any(problem.total.any() for problem in problems):
            return None
        count = int(folds.max()) + 1
        folds_of_all = [problem for problem in problems for _ in range(count)]
        whole = SmallProblemBatch.of(folds_of_all, kernel=self.batch.kernel)
        assert whole is not None
        held = np.concatenate([folds[one.samples] == fold for one in self.subproblems for fold in range(count)])
        batch = replace(
            whole,
            lower=np.where(held, 0.0, whole.lower),
            upper=np.where(held, 0.0, whole.upper),
        )
        self.session.callback.begin(len(batch))

        def fold(p: int) -> DualProblem:
            at = batch.variables(p)
            return replace(problems[p // count], lower=batch.lower[at], upper=batch.upper[at])

        solved = batch.solve(
            tolerance,
            self.threads,
            max_free=0,
            deadline=self.session.deadline.at,
            callback=self._reporter(fold, batch),
        )
        if solved.interrupted:
            raise KeyboardInterrupt
        if not solved.all_finished().all():
            return None
        values = batch.linear - solved.gradient
        if batch.groups:
            values += np.repeat(solved.offsets[:, 0], np.diff(batch.edges))
        values = np.where(held, values, 0.0)
        starts = batch.edges[::count]
        return [values[a:b].reshape(count, -1).sum(axis=0) for a, b in pairwise(starts)]

    def _confirmed(self, solved: BatchSolution) -> np.ndarray:
        """Return for each problem whether it is solved and rounding errors are negligible; else it must be verified.

        The native loops know the rounding of sums, but not that of kernel values, which exceeds the values themselves
        where large numbers cancel, for example in the argument of a sigmoid kernel.
        """
        negligible = MAX_ROUNDING_FRACTION * self.solver.stopping.violation
        matrix = self.posed.matrix.uncached()
        matrix = matrix.base if isinstance(matrix, RepeatedMatrix) else matrix
        error = matrix.kernel.largest_error(matrix.points.data) if isinstance(matrix, KernelMatrix) else np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.reduceat(np.abs(solved.dual), self.batch.edges[:-1])
            small = error * sums <= (0.0 if self.posed.linear_error is not None else negligible)

        def confirmed(p: int) -> bool:
            problem, dual = self.problems[p], solved.dual[self.batch.variables(p)]
            errors = problem.matrix.product_error(dual).double
            if problem.linear_error is not None:
                errors = errors + problem.linear_error
            return bool(errors.max() <= negligible)

        finished = solved.all_finished()
        for p in np.flatnonzero(finished & ~small).tolist():
            finished[p] = not self.session.deadline.reached and confirmed(p)
        return finished

    def _ended(self, solved: BatchSolution) -> Status | None:
        """Return why no problem is continued any more, None if there is no reason."""
        if self.session.callback.stopped.is_set():
            return Status.STOPPED
        if solved.interrupted:
            return Status.INTERRUPTED
        return Status.MAX_SECONDS if self.session.deadline.reached else None

    def _continue_all(
        self, solved: BatchSolution, unfinished: list[int]
    ) -> tuple[dict[int, TrainedModel], Status | None]:
        """Return the models of the unfinished problems, of joined ones only those that were continued in time.

        A hundred thousand models take half a minute. So once the fit has ended, the others stay arrays; returned is why
        it has, None if there are none.
        """
        ended = self._ended(solved)
        if ended is not None and self.joined is not None:
            return {}, ended

        shared, done = self.session.callback, len(self.batch) - len(unfinished)
        if self.joined is None:
            counts = len(unfinished), self.session, self.threads
            found = train_parallel(lambda k: self._continue(solved, unfinished[k]), *counts, finished=done)
            return dict(zip(unfinished, found, strict=True)), None

        def continue_in_time(k: int) -> TrainedModel | None:
            model = self._continue(solved, unfinished[k]) if self._ended(solved) is None else None
            if model is not None and model.status is Status.INTERRUPTED:
                shared.stopped.set()
            return model

        some, interrupted = run_parallel(continue_in_time, len(unfinished), shared, self.threads, done)
        models = {p: model for p, model in zip(unfinished, some, strict=True) if model is not None}
        interrupted |= any(model.status is Status.INTERRUPTED for model in models.values())
        for model in models.values():
            if interrupted and model.status is Status.STOPPED:
                model.status = Status.INTERRUPTED
        ended = Status.INTERRUPTED if interrupted else self._ended(solved)
        return models, ended if len(models) < len(unfinished) else None

    def _leave(self, solved: BatchSolution, left: Indices) -> Floats:
        """Turn the arrays of unfinished problems into feasible points with their gradients; return the violations.

        A problem that was not begun, or whose numbers overflowed, as an indefinite kernel lets them, is left at 0.
        """
        batch, edges = self.batch, self.batch.edges
        dual, gradient, sizes = solved.dual, solved.gradient, np.diff(edges)
        with np.errstate(over="ignore", invalid="ignore"):
            inside = (batch.lower <= dual) & (dual <= batch.upper) & np.isfinite(gradient)
            feasible = np.logical_and.reduceat(inside, edges[:-1])
            if batch.groups:
                sums, scale = (np.add.reduceat(values, edges[:-1]) for values in (dual, np.abs(dual)))
                feasible &= np.abs(sums) <= GROUP_SUM_TOLERANCE * scale
        unfinished, begun = np.zeros(len(batch), dtype=bool), solved.outcomes[:, 0] != NOT_BEGUN
        unfinished[left] = True
        at_zero = np.repeat(unfinished & ~(begun & feasible), sizes)
        dual[at_zero], gradient[at_zero] = 0.0, batch.linear[at_zero]
        if batch.kernel is not None:  # steps may have ended where a row was missing, before the gradient was updated
            gradient[np.repeat(unfinished & begun & feasible, sizes)] = np.nan
        low: Floats = np.maximum.reduceat(np.where(dual < batch.upper, gradient, -np.inf), edges[:-1])[left]
        high: Floats = np.minimum.reduceat(np.where(dual > batch.lower, gradient, np.inf), edges[:-1])[left]
        violations: Floats = low - high if batch.groups else np.maximum(low, -high)
        if batch.groups:
            known = ~np.isnan(violations)
            solved.offsets[left[known], 0] = interval_midpoint(low[known], high[known])
        return np.maximum(violations, 0.0)

    def _continue(self, solved: BatchSolution, p: int) -> TrainedModel:
        """Return the model of an unfinished problem, from where the batch solver left it."""
        samples, problem = self.subproblems[p].samples, self.problems[p]
        stopped = self.session.callback.stopped.is_set()
        if solved.interrupted or stopped:
            solution = solved.solution(p, Status.STOPPED if stopped else Status.INTERRUPTED)
            solution = replace(solution, gradient=problem.gradient(solution.dual))
            return TrainedModel(problem, solution, samples, self.formulation)
        if solved.outcomes[p, 0] == StopReason.NEEDS_ROW:  # for the solver of large problems, from the start
            max_work = MAX_VERIFICATION_WORK / len(self.problems)
            earlier, spent = self.subproblems[p].start, solved.counters(p)
            return train(problem, self.solver, samples, self.formulation, earlier, self.session, max_work, spent)
        verifier = KernelVerifier(problem, samples, self.formulation, self.solver.stopping, False)
        reached, spent = solved.solution(p, Status.STOPPED).dual, solved.counters(p)
        start = reached if np.isfinite(reached).all() else None  # an indefinite kernel may have no solution
        return solve_and_verify(problem, self.solver, verifier, start, self.session, spent)

    def _reporter(
        self, problem_of: Callable[[int], DualProblem], batch: SmallProblemBatch
    ) -> Callable[[BatchSolution, list[int]], bool] | None:
        """Return a function that reports finished problems and returns whether the callback asks to stop."""
        shared = self.session.callback
        if shared.callback is None:
            return None

        def report(solved: BatchSolution, finished: list[int]) -> bool:
            for p in finished:
                monitor, start = Monitor(self.solver.stopping, shared), batch.start[batch.variables(p)]
                problem, solution = problem_of(p), solved.solution(p, Status.CONVERGED)
                monitor.report_start(partial(_progress_at, problem, start, None, monitor, Counters()))
                point = solution.dual, solution.gradient, monitor, solution.counters
                monitor.report(partial(_progress_at, problem, *point), now=True)
                shared.count_finished()
            return shared.stopped.is_set()

        return report


def _progress_at(
    problem: DualProblem, dual: Floats, gradient: Floats | None, monitor: Monitor, counters: Counters
) -> Progress:
    """Return the progress report of a point, whose gradient is computed if it is not known."""
    gradient = problem.gradient(dual) if gradient is None else gradient
    value = problem.value(dual, gradient)
    cost = counters.iterations, counters.kernel_evaluations
    return progress_snapshot(problem, (dual, gradient), value, monitor, *cost, problem.size)
