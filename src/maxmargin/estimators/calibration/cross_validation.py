"""Decision values of samples by machines that have not seen them: cross-validation around a solution that is there.

A fold is the whole problem with the bounds of the variables held out closed at 0, and totals of groups shrunk with the
room that is left. So all folds share the matrix, and the values of the samples held out are read off the gradient at
the solution: no machine has to predict.

Each fold starts from the solution of the whole (alpha seeding; DeCoste & Wagstaff 2000). Most variables stay where
they are when a fifth of the samples leaves. So all folds are solved among the same variables, those that are free or
nearest to leaving their bounds, on one table of kernel values. Then everybody is looked at: folds in which others want
to move are solved once more, among those and the ones that have moved.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.float32_matrix import Float32Matrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import DualProblem, InfeasibleProblemError, Solution, Status, feasible_start
from maxmargin.problems.certificate import of_samples
from maxmargin.problems.gradient_extremes import offset_between, offset_bounds
from maxmargin.solvers import BlockSolver, PairwiseSolver, SharedCallback
from maxmargin.solvers.smo.small_problem_batch import SmallProblems
from maxmargin.training import Machine, Solver

#: So many parts, each held out once.
FOLDS = 5

#: The folds are solved among at least so many variables, and so many times the free ones and those in use.
LEAST, PER_FREE, PER_USED = 1000, 1.5, 0.4

#: But at least is no more than this part of all.
LEAST_PART = 1 / 3

#: Up to so many variables a problem is solved in double precision, to the tolerance of the whole.
SMALL = 1000

#: Folds of many variables are solved to so many times the tolerance of the whole: what is made of their values blurs
#: more than that.
LOOSER = 10.0

#: The part of the tolerance that rounding to single precision may take; with more, all variables and all digits count.
ROUNDING_FRACTION = 0.1

#: Pair steps by variable after which a fold is a slow one.
QUICK = 20

#: Totals of groups stay so far from the most that is feasible.
MARGIN = 1e-9


def deal(strata: list[Indices], size: int, seed: int) -> Indices:
    """Return the fold of each of `size` samples: every stratum is shuffled and dealt, so that each fold has its share.

    A stratum of fewer samples than folds is held out in as many folds as it has samples.
    """
    random = np.random.default_rng(seed)
    folds = np.zeros(size, dtype=np.int64)
    for members in strata:
        folds[random.permutation(members)] = np.arange(len(members)) % FOLDS
    return folds


def deadline_of(solver: Solver, started: float) -> float | None:
    """Return when the time of a fit that started then is up."""
    limit = solver.stopping.max_seconds
    return None if limit is None else started + limit


def warn_of_limit(estimator: Any, status: Status, stacklevel: int) -> None:
    """Warn that cross-validation came to a limit, or raise after an interruption."""
    if status is Status.INTERRUPTED:
        raise KeyboardInterrupt(
            "fit was interrupted in cross-validation; the model is usable, without what that was for"
        )
    if not status.converged and not estimator.fit_status_:  # else it was said already
        warnings.warn(
            f"{type(estimator).__name__} stopped before the tolerance in cross-validation, so that its estimates of "
            f"probabilities or noise are rougher: {status.value}.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


@dataclass(frozen=True)
class CrossValidation:
    """How the machines of the folds are trained.

    Parameters
    ----------
    solver : Solver
        As for the whole problem.
    cache_bytes : int
        Memory for the values that the folds share.
    threads : int
        For copying and adding these values.
    deadline : float, optional
        A reading of ``time.perf_counter``; a fold that is not solved by then stays where it is.
    callback : callable, optional
        Called by the solver.
    looser : float
        Large folds are solved to so many times the tolerance of the solver.
    """

    solver: Solver
    cache_bytes: int
    threads: int = 1
    deadline: float | None = None
    callback: SharedCallback | None = None
    looser: float = LOOSER

    @property
    def _tolerance(self) -> float:
        return self.looser * self.solver.stopping.violation

    def values(
        self, problem: DualProblem, machine: Machine, formulation: Formulation, folds: Indices
    ) -> tuple[Floats, Status]:
        """Return the value of each sample by the machine of the other folds, and how the least finished one ended.

        `folds` has an entry for each sample. A problem may have several variables for each: all first ones, then all
        second ones. The values of an interrupted cross-validation mean nothing.
        """
        if problem.size <= SMALL and self.looser > 1.0:
            return replace(self, looser=1.0).values(problem, machine, formulation, folds)
        gradient, of_variables = machine.gradient_for(problem), np.resize(folds, problem.size)
        states = [_Fold(problem, machine.dual, gradient, of_variables == fold) for fold in np.unique(folds)]
        rounding = float(np.finfo(np.float32).eps * problem.curvature.max() * np.linalg.norm(machine.dual))
        if rounding > ROUNDING_FRACTION * self._tolerance or (problem.matrix.cost == 1 and problem.size <= SMALL):
            status = self._solve_whole(states)
        else:
            try:
                status = self._solve_nearest(states, _nearest(problem, machine.dual, gradient))
            except InfeasibleProblemError:  # so few variables cannot make up for those held out
                status = self._solve_whole(states)
        values = np.full(len(folds), np.nan)
        if status is not Status.INTERRUPTED:
            for state in states:
                held = state.held[: len(folds)]
                values[held] = state.values(formulation, len(folds))[held]
        return values, status

    def _solve_whole(self, states: list[_Fold]) -> Status:
        """Solve the folds among all variables, on the matrix as it is; return how the least finished one ended."""
        matrix, everything = states[0].problem.matrix, np.arange(states[0].problem.size)
        for state in states:
            state.look_at(everything, matrix)
        return self._solve(states, everything, matrix)

    def _solve_nearest(self, states: list[_Fold], variables: Indices) -> Status:
        """Solve the folds among some variables, and those in which others want to move once more."""
        matrix = states[0].problem.matrix
        shared = self._shared(matrix, variables)
        for state in states:
            state.look_at(variables, matrix, shared)
        status = self._solve(states, variables, shared)
        others = np.setdiff1d(np.arange(states[0].problem.size), variables, assume_unique=True)
        if not len(others) or status is Status.INTERRUPTED:
            return status
        for state in states:
            state.look_at(others, matrix)
        late = [state.violators(variables, self._tolerance) for state in states]
        unfinished = [state for state, some in zip(states, late, strict=True) if some.any()]
        if unfinished and status is Status.CONVERGED:
            moved = [(state.change != 0) & ~state.held for state in unfinished]
            variables = np.flatnonzero(np.any([*late, *moved], axis=0))
            status = self._solve(unfinished, variables, self._shared(matrix, variables))
            for state in unfinished:
                state.look_at(np.setdiff1d(np.flatnonzero(state.held), variables), matrix)
        return status

    def _solve(self, states: list[_Fold], variables: Indices, matrix: SymmetricMatrix) -> Status:
        """Solve the folds among some variables, on their matrix."""
        parts = [state.among(variables, matrix) for state in states]
        at_once = self._solve_at_once(parts, matrix)
        worst = Status.CONVERGED
        for state, part, known in zip(states, parts, at_once, strict=True):
            solution = self._solve_one(part) if known is None else known
            state.move(variables, part, solution)
            if solution.status is Status.INTERRUPTED:
                return solution.status
            worst = worst if solution.status in (Status.CONVERGED, Status.PRECISION) else solution.status
        return worst

    def _solve_at_once(self, parts: list[DualProblem], matrix: SymmetricMatrix) -> list[Solution | None]:
        """Solve folds whose matrix is there in one native call; None for those that take a solver."""
        values = matrix.in_memory() if isinstance(matrix, PrecomputedMatrix) else None
        if self.callback is not None and not self.callback.needs_no_report():
            values = None  # somebody wants to hear how it gets on
        if values is None or parts[0].groups > 1 or self.deadline is not None or not parts[0].has_limit:
            return [None] * len(parts)
        linear, lower, upper, ridge = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("linear", "lower", "upper", "ridge")
        )
        edges, all_rows = parts[0].size * np.arange(len(parts) + 1), np.empty(0, dtype=np.int64)
        start = np.concatenate([feasible_start(part) for part in parts])
        problems = SmallProblems(values, edges, all_rows, linear, lower, upper, ridge, parts[0].groups == 1)
        # More digits are not worth the equations of the free variables.
        found = problems.solve(self._tolerance, self.threads, start, most_free=0)
        return [
            Solution(found.dual[a:b], found.gradient[a:b], Status.CONVERGED, found.counters(p))
            if found.finished(p)
            else None
            for p, (a, b) in enumerate(pairwise(edges))
        ]

    def _shared(self, matrix: SymmetricMatrix, variables: Indices) -> SymmetricMatrix:
        """Return the matrix of some variables, with its values in memory if there is room for them."""
        if 8 * len(variables) ** 2 > self.cache_bytes:
            return matrix.take(variables)
        table = Float32Matrix.of(matrix, variables, self.threads)
        return PrecomputedMatrix(table.values.astype(np.float64)) if len(variables) <= SMALL else table

    def _solve_one(self, problem: DualProblem) -> Solution:
        """Solve a fold, from 0."""
        seconds = None if self.deadline is None else max(0.0, self.deadline - perf_counter())
        rule = replace(self.solver.stopping, violation=self._tolerance, max_seconds=seconds)
        own: Any = replace(self.solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
        start = np.zeros(problem.size)
        if isinstance(own, BlockSolver) and isinstance(problem.matrix, Float32Matrix):
            own = replace(own, working_set=max(own.working_set, problem.size))  # its values are there: one tile
        elif isinstance(own, BlockSolver) and problem.size <= SMALL:
            own = PairwiseSolver(shrinking=own.shrinking, cache_bytes=self.cache_bytes, stopping=rule)
        if isinstance(own, PairwiseSolver) and rule.max_iterations is None:
            # Most folds are done in a few steps, and more digits are not worth the equations of the free variables.
            quick = replace(own, finish_below=0, stopping=replace(rule, max_iterations=QUICK * problem.size))
            solution = quick.solve(problem, start, self.callback)
            if solution.status is not Status.MAX_ITERATIONS:
                return solution
            start = solution.dual
        finished: Solution = own.solve(problem, start, self.callback)
        return finished


class _Fold:
    """The problem without the variables held out, and where it stands.

    Attributes
    ----------
    problem : DualProblem
    held : bool array
        Which variables are held out.
    dual : float array
        At first the solution of the whole, without the variables held out.
    gradient : float array
        Of the problem at `dual`, where somebody has looked.
    offset : float array
        Of each group, as the variables that were solved last agree on it.
    """

    def __init__(self, whole: DualProblem, dual: Floats, gradient: Floats, held: np.ndarray) -> None:
        self._start = dual, gradient
        # Without some samples a hard margin is not narrower: its dual variables sum up to no more than before.
        self.problem = hold_out(whole, held, 2.0 * float(np.abs(dual).sum()) + 1.0)
        self.held = held
        self.dual = np.where(held, 0.0, dual)
        self.gradient = np.empty(whole.size)
        self.offset = np.zeros(whole.groups)

    @property
    def change(self) -> Floats:
        """How far the dual is from the solution of the whole."""
        return self.dual - self._start[0]

    def look_at(self, variables: Indices, matrix: SymmetricMatrix, part: SymmetricMatrix | None = None) -> None:
        """Bring the gradient of some variables up to date; if it is all, with all digits that the matrix has.

        What lies between these variables may be known as a matrix of its own.
        """
        change = self.change
        if len(variables) == matrix.size:
            product = (matrix if part is None else part).matvec(change)
        else:
            product = np.zeros(len(variables))
            if part is not None:
                product += part.matvec(change[variables])
                change = change.copy()
                change[variables] = 0.0
            moved = np.flatnonzero(change)
            if len(moved):
                product += matrix.float32_columns(moved).combine(variables, change[moved])[0]
        change = self.change
        ridge = self.problem.ridge[variables] * change[variables]
        self.gradient[variables] = self._start[1][variables] - product - ridge

    def among(self, variables: Indices, matrix: SymmetricMatrix) -> DualProblem:
        """Return the problem of the steps of some variables, on their matrix; the others stay where they are."""
        problem, dual = self.problem, self.dual[variables]
        return DualProblem(
            matrix=matrix,
            linear=self.gradient[variables],
            lower=problem.lower[variables] - dual,
            upper=problem.upper[variables] - dual,
            ridge=problem.ridge[variables],
            group=problem.group[variables],
            total=problem.total - problem.group_sums(self.dual),
        )

    def move(self, variables: Indices, part: DualProblem, solution: Solution) -> None:
        """Take the steps of some variables; the gradient of others is not brought up to date."""
        step, gradient = solution.dual, solution.gradient
        assert gradient is not None
        if not np.isfinite(gradient).all():  # it was stopped on the way
            gradient = part.gradient(step)
        lower, upper = self.problem.lower[variables], self.problem.upper[variables]
        moved = self.dual[variables] + step
        self.dual[variables] = np.where(step == part.lower, lower, np.where(step == part.upper, upper, moved))
        self.gradient[variables] = gradient
        self.offset = offset_between(*offset_bounds(part, step, gradient))

    def violators(self, variables: Indices, tolerance: float) -> np.ndarray:
        """Return which variables other than these want to move."""
        slack = self.gradient - of_samples(self.problem, self.offset)
        late: np.ndarray = (slack > tolerance) & (self.dual < self.problem.upper)
        late |= (slack < -tolerance) & (self.dual > self.problem.lower)
        late[variables] = False
        return late

    def values(self, formulation: Formulation, samples: int) -> Floats:
        """Return the decision values of the samples held out; what stands at others means nothing."""
        product = self.problem.linear - self.gradient
        product[samples:] = 0.0  # all variables of a sample have the same product: the first speaks for them
        expansion = formulation.expand(self.problem, product, self.offset)  # it scales the product like the dual
        return expansion.coefficients + expansion.offset


def _nearest(problem: DualProblem, dual: Floats, gradient: Floats) -> Indices:
    """Return the variables most likely to move: those off their bounds, and those next to leaving them."""
    resting = (dual == problem.lower) | (dual == problem.upper)
    least = min(LEAST, int(LEAST_PART * problem.size))
    count = max(least, int(PER_FREE * np.sum(~resting) + PER_USED * np.count_nonzero(dual)))
    if count >= problem.size:
        return np.arange(problem.size)
    offset = of_samples(problem, offset_between(*offset_bounds(problem, dual, gradient)))
    reach = np.where(resting, np.abs(gradient - offset), 0.0)
    return np.sort(np.argpartition(reach, count)[:count])


def hold_out(problem: DualProblem, held: np.ndarray, largest: float) -> DualProblem:
    """Return the problem with some variables fixed at 0, and its totals shrunk with the room of the others.

    Totals stay in proportion to each other and feasible: the part ν of a ν-machine is then the largest possible. Open
    boxes end at `largest`.
    """
    lower, upper = np.where(held, 0.0, problem.lower), np.where(held, 0.0, problem.upper)
    if not problem.has_limit:
        lower, upper = np.maximum(lower, -largest), np.minimum(upper, largest)
    total = problem.total
    if total.any():
        part = float((upper - lower).sum() / (problem.upper - problem.lower).sum())
        room = np.where(total > 0, problem.group_sums(upper), problem.group_sums(lower))
        total = total * min(part, (1.0 - MARGIN) * float((room[total != 0] / total[total != 0]).min()))
    return DualProblem(problem.matrix, problem.linear, lower, upper, problem.ridge, problem.group, total)
