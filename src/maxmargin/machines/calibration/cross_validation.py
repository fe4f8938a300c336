"""Cross-validated decision values: the value of each sample by a model that was trained without its fold.

A fold is the full problem with the bounds of the held-out variables set to 0 and the totals of groups reduced in
proportion. So all folds share the matrix, and the values of the held-out samples are read from the gradient at the
solution, without prediction.

Each fold starts from the solution of the full problem (alpha seeding; DeCoste & Wagstaff 2000), as most variables stay
unchanged when a fifth of the samples is held out. All folds are solved over the same subset of variables, those that
are free or nearest to leaving their bounds, on one table of kernel values. Folds in which other variables violate the
optimality conditions are solved once more, over those and the variables that have changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import TimeLimitReachedError, check_deadline
from maxmargin.formulations.formulation import Formulation
from maxmargin.machines.calibration import small_folds
from maxmargin.machines.calibration.fold import Fold, hold_out
from maxmargin.machines.calibration.small_folds import SmallFolds
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.float32_matrix import Float32Matrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem, InfeasibleProblemError, Solution, Status, recorded_start
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import BlockSolver, Callback, PairwiseSolver
from maxmargin.solvers.block.block_solver import MAX_SINGLE_PRECISION_VALUE
from maxmargin.solvers.monitor import Interruption, status_of
from maxmargin.solvers.smo.small_problem_batch import SmallProblemBatch
from maxmargin.training import Session, Solver, TrainedLinearModel, TrainedModel
from maxmargin.training.checkpoint import is_feasible
from maxmargin.training.linear_verification import LINEAR_FORMS, penalty_of
from maxmargin.training.pipeline import solve_and_verify, solve_in_units
from maxmargin.training.problem_scale import ProblemScale

#: The number of folds.
FOLDS = 5

#: The folds are solved over a subset of variables: at least `MIN_SUBSET`, but no more than `MAX_MIN_FRACTION` of all
#: for that reason, and otherwise this many times the free variables plus this many times the support vectors.
MIN_SUBSET, MAX_MIN_FRACTION, SUBSET_PER_FREE, SUBSET_PER_SUPPORT_VECTOR = 1000, 1 / 3, 1.5, 0.4

#: Up to this many variables a fold is solved in double precision, to the tolerance of the full problem.
MAX_DOUBLE_PRECISION_SIZE = 1000

#: The tolerance of larger folds relative to that of the full problem: a sigmoid or a noise scale is fitted to their
#: values, and the sampling error of the folds is larger.
FOLD_TOLERANCE_FACTOR = 10.0

#: The fraction of the tolerance that single-precision rounding may reach; above it, folds are solved over all variables
#: in the precision of the matrix.
MAX_ROUNDING_FRACTION = 0.1

#: Pair steps per variable after which a fold is solved with shrinking and the equations of the free variables.
QUICK_STEPS_PER_VARIABLE = 20


def stratified_folds(strata: list[Indices], size: int, seed: int) -> Indices:
    """Return the fold of each of `size` samples, with every stratum shuffled and spread evenly over the folds.

    A stratum of fewer samples than folds is held out in as many folds as it has samples.
    """
    random = np.random.default_rng(seed)
    folds = np.zeros(size, dtype=np.int64)
    for members in strata:
        folds[random.permutation(members)] = np.arange(len(members)) % FOLDS
    return folds


@dataclass(frozen=True)
class CrossValidation:
    """Training of the folds of one fit.

    Parameters
    ----------
    solver : Solver
        The solver of the full problem.
    cache_bytes : int
        Memory for the kernel values that the folds share.
    threads : int
        For copying and adding these values.
    session : Session
        Limits and observers of the fit; a fold that is not solved by the deadline keeps its current point.
    tolerance_factor : float
        The tolerance of large folds relative to that of the solver.
    """

    solver: Solver
    cache_bytes: int
    threads: int = 1
    session: Session = field(default_factory=Session)
    tolerance_factor: float = FOLD_TOLERANCE_FACTOR

    @property
    def _tolerance(self) -> float:
        return self.tolerance_factor * self.solver.stopping.violation

    def values(
        self, problem: DualProblem, model: TrainedModel, formulation: Formulation, folds: Indices
    ) -> tuple[Floats, Status]:
        """Return the value of each sample by the model of the other folds, and the status of the least converged fold.

        `folds` has an entry for each sample. A problem may have several variables for each: all first ones, then all
        second ones. The values of an interrupted cross-validation are undefined. Where the deadline passes before all
        folds are solved, they are those of the model itself for a part of its training samples, and NaN for the others.
        """
        try:
            with self.session.deadline.in_force():
                return self._values(problem, model, formulation, folds)
        except TimeLimitReachedError:
            parts = self.session.callback.problems
            return model.training_values(problem, formulation, len(folds), parts), Status.MAX_SECONDS

    def _values(
        self, problem: DualProblem, model: TrainedModel, formulation: Formulation, folds: Indices
    ) -> tuple[Floats, Status]:
        if len(folds) == problem.size and small_folds.applicable(problem, self.cache_bytes):
            try:
                values = self._solve_together(problem, model, formulation, folds)
            except KeyboardInterrupt:
                return np.full(len(folds), np.nan), Status.INTERRUPTED
            if values is not None:
                return values, Status.CONVERGED
        if problem.size <= MAX_DOUBLE_PRECISION_SIZE and self.tolerance_factor > 1.0:
            return replace(self, tolerance_factor=1.0)._values(problem, model, formulation, folds)
        check_deadline()
        split = SplitProblem.of(problem)  # the change of a variable has its kink anywhere
        gradient, dual = split.gradient(model.dual, model.gradient_for(problem)), split.dual(model.dual)
        problem, of_variables = split.problem, np.resize(folds, split.problem.size)
        states = [Fold(problem, dual, gradient, of_variables == fold) for fold in np.unique(folds)]
        cheap = problem.matrix.cost == 1 and problem.size <= MAX_DOUBLE_PRECISION_SIZE
        if cheap or _rounding(problem, dual) > MAX_ROUNDING_FRACTION * self._tolerance:
            status = self._solve_whole(states)
        else:
            try:
                status = self._solve_nearest(states, _nearest(problem, dual, gradient))
            except InfeasibleProblemError:  # the subset cannot compensate for the held-out variables
                status = self._solve_whole(states)
        values = np.full(len(folds), np.nan)
        if status is not Status.INTERRUPTED:
            for state in states:
                held = state.held[: len(folds)]
                values[held] = state.values(formulation, len(folds))[held]
        return values, status

    def _solve_together(
        self, problem: DualProblem, model: TrainedModel, formulation: Formulation, folds: Indices
    ) -> Floats | None:
        """Return the value of each sample of a small problem, None if a fold is not solved."""
        check_deadline()
        dual, gradient = model.dual, model.gradient_for(problem)
        if _rounding(problem, dual) > MAX_ROUNDING_FRACTION * self._tolerance:
            return None
        together = SmallFolds(problem, dual, gradient, folds, self.threads)
        if not together.solve(_nearest(problem, dual, gradient), self._tolerance, self.session):
            return None
        return together.values(formulation)

    def _solve_whole(self, states: list[Fold]) -> Status:
        """Solve the folds over all variables; return the status of the least converged one."""
        matrix, everything = states[0].problem.matrix, np.arange(states[0].problem.size)
        for state in states:
            state.update_gradient(everything, matrix)
        return self._solve(states, everything, matrix)

    def _solve_nearest(self, states: list[Fold], variables: Indices) -> Status:
        """Solve the folds over some variables, and those in which others violate optimality once more."""
        matrix = states[0].problem.matrix
        shared = self._shared(matrix, variables)
        for state in states:
            state.update_gradient(variables, matrix, shared)
        status = self._solve(states, variables, shared)
        others = np.setdiff1d(np.arange(states[0].problem.size), variables, assume_unique=True)
        if not len(others) or status is Status.INTERRUPTED:
            return status
        for state in states:
            state.update_gradient(others, matrix)
        late = [state.violators(variables, self._tolerance) for state in states]
        unfinished = [state for state, some in zip(states, late, strict=True) if some.any()]
        if unfinished and status is Status.CONVERGED:
            moved = [(state.change != 0) & ~state.held for state in unfinished]
            variables = np.flatnonzero(np.any([*late, *moved], axis=0))
            status = self._solve(unfinished, variables, self._shared(matrix, variables))
            for state in unfinished:
                state.update_gradient(np.setdiff1d(np.flatnonzero(state.held), variables), matrix)
        return status

    def _solve(self, states: list[Fold], variables: Indices, matrix: SymmetricMatrix) -> Status:
        """Solve the folds over some variables, given their matrix."""
        parts = [state.restricted_to(variables, matrix) for state in states]
        try:
            at_once = self._solve_at_once(parts)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        worst = Status.CONVERGED
        for state, part, known in zip(states, parts, at_once, strict=True):
            solution = self._solve_one(part, variables) if known is None else known
            state.move(variables, part, solution)
            if solution.status is Status.INTERRUPTED:
                return solution.status
            check_deadline()
            worst = worst if solution.status in (Status.CONVERGED, Status.PRECISION) else solution.status
        return worst

    def _solve_at_once(self, parts: list[DualProblem]) -> list[Solution | None]:
        """Solve folds on a matrix in memory in one native call; None for those that it leaves unfinished."""
        batch = SmallProblemBatch.of(parts) if parts[0].size <= MAX_DOUBLE_PRECISION_SIZE else None
        if batch is None or any(ProblemScale.of(part) is not None for part in parts):
            return [None] * len(parts)
        # Without the equations of the free variables: the folds need no more digits.
        stopped = self.session.callback.stopped
        found = batch.solve(
            self._tolerance,
            self.threads,
            max_free=0,
            deadline=self.session.deadline.at,
            callback=lambda _, finished: stopped.is_set(),
        )
        if found.interrupted:
            raise KeyboardInterrupt
        return [found.solution(p, Status.CONVERGED) if found.finished(p) else None for p in range(len(parts))]

    def _shared(self, matrix: SymmetricMatrix, variables: Indices) -> SymmetricMatrix:
        """Return the matrix of some variables, with its values in memory if the budget allows."""
        largest = float(np.abs(matrix.diagonal()).max(initial=0.0))
        if 8 * len(variables) ** 2 > self.cache_bytes or largest > MAX_SINGLE_PRECISION_VALUE:
            return matrix.take(variables)
        table = Float32Matrix.of(matrix, variables, self.threads)
        return (
            PrecomputedMatrix(table.values.astype(np.float64)) if len(variables) <= MAX_DOUBLE_PRECISION_SIZE else table
        )

    def _solve_one(self, problem: DualProblem, variables: Indices) -> Solution:
        """Solve a fold, from 0 or from where an earlier fit has left it."""
        recorder = self.session.recorder(problem, variables)
        if recorder.finished is not None and is_feasible(problem, recorder.finished):
            return recorder.finished
        start = recorded_start(problem, recorder.start)
        start = np.zeros(problem.size) if start is None else start
        solution = self._solve_from(start, problem, recorder.observe(self.session.callback))
        recorder.close(solution, solution.dual)
        return solution

    def _solve_from(self, start: Floats, problem: DualProblem, callback: Callback) -> Solution:
        """Solve a fold."""
        own: Any = self.session.limit(self.solver, replace(self.solver.stopping, violation=self._tolerance), 0)
        rule, units = own.stopping, ProblemScale.of(problem)
        if isinstance(own, BlockSolver) and isinstance(problem.matrix, Float32Matrix):
            own = replace(own, working_set=max(own.working_set, problem.size), backend="native")  # all in host memory
        elif isinstance(own, BlockSolver) and problem.size <= MAX_DOUBLE_PRECISION_SIZE:
            own = PairwiseSolver(shrinking=own.shrinking, cache_bytes=self.cache_bytes, stopping=rule)
        if isinstance(own, PairwiseSolver):
            # Most folds take few steps, and do not need the equations of the free variables.
            limit, steps = rule.max_iterations, QUICK_STEPS_PER_VARIABLE * problem.size
            few = replace(rule, max_iterations=steps if limit is None else min(steps, limit))
            quick = replace(own, finish_below=0, stopping=few)
            solution = solve_in_units(problem, quick, start, callback, units)
            if solution.status is not Status.MAX_ITERATIONS or (limit is not None and limit <= steps):
                return solution
            own = replace(own, stopping=rule if limit is None else replace(rule, max_iterations=limit - steps))
            start = solution.dual
        return solve_in_units(problem, own, start, callback, units)


def _rounding(problem: DualProblem, dual: Floats) -> float:
    """Return the approximate errors of the gradient with float32 values; infinite is too large, too."""
    with np.errstate(over="ignore"):
        return float(np.finfo(np.float32).eps * problem.curvature.max() * np.linalg.norm(dual))


def _nearest(problem: DualProblem, dual: Floats, gradient: Floats) -> Indices:
    """Return the variables most likely to change: the free ones, and those nearest to leaving their bounds."""
    at_bound = (dual == problem.lower) | (dual == problem.upper)
    least = min(MIN_SUBSET, int(MAX_MIN_FRACTION * problem.size))
    support_vectors = np.count_nonzero(dual)
    count = max(least, int(SUBSET_PER_FREE * np.sum(~at_bound) + SUBSET_PER_SUPPORT_VECTOR * support_vectors))
    if count >= problem.size:
        return np.arange(problem.size)
    offset = problem.expand_groups(interval_midpoint(*offset_bounds(problem, dual, gradient)))
    distance = np.where(at_bound, np.abs(gradient - offset), 0.0)
    return np.sort(np.argpartition(distance, count)[:count])


def linear_held_out_values(
    problem: DualProblem,
    model: TrainedLinearModel,
    formulation: Formulation,
    folds: Indices,
    solver: Solver,
    session: Session,
) -> tuple[Floats, Status]:
    """Return the value of each sample by the model of the other folds, and the status of the least converged fold.

    `folds` has an entry for each sample. A problem may have several variables for each: all first ones, then all
    second ones. The values of an interrupted cross-validation are undefined. The slacks of the certificate cover all
    samples, so that the held-out ones need no prediction. Folds that the deadline leaves no time for have the values of
    the model itself.
    """
    of_variables = np.resize(folds, problem.size)
    values, worst = np.full(len(folds), np.nan), Status.CONVERGED
    form, rule = LINEAR_FORMS[penalty_of(solver)], solver.stopping
    if rule.relative_gap is not None:
        rule = replace(rule, relative_gap=FOLD_TOLERANCE_FACTOR * rule.relative_gap)
        solver = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
    for fold in np.unique(folds):
        held = of_variables == fold
        certificate, status = model.certificate, Status.MAX_SECONDS
        try:
            if not session.deadline.reached:
                part = hold_out(problem, held, largest=np.inf)
                verifier = form.verifier(part, model.samples, formulation, rule)
                verifier.required = False
                start = form.place_start(part, form.start(model, held))
                trained: TrainedLinearModel = solve_and_verify(part, solver, verifier, start, session)
                certificate, status = trained.certificate, trained.status
        except Interruption as interruption:
            status = status_of(interruption)
        if status is Status.INTERRUPTED:
            session.callback.stopped.set()
            return values, status
        worst = worst if status in (Status.CONVERGED, Status.PRECISION) else status
        # The slack of a variable is its linear term minus the decision value; the first of each sample is used.
        held_out = held[: len(folds)]
        values[held_out] = (problem.linear - certificate.slack)[: len(folds)][held_out]
    return values, worst
