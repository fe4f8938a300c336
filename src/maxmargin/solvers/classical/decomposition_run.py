"""Decomposition into subproblems that another solver solves (Bottou & Lin 1.6.1, Algorithm 1.2).

    stop    if the violation of (1.11) does not exceed the tolerance
    select  a working set B                                                   `select_violating`
    solve   the subproblem (1.20) of B with all other variables fixed         `restrict`
    update  g ← g − Σ_{i in B} d_i M_i,  b_B ← b_B + d                        with the rows of changed variables

*Subproblem.* It is posed for the change d = b' − b of the variables of B, which needs nothing but the gradient at b:

    maximise    g_B·d − ½ dᵀ M_BB d − ½ Σ ridge_i d_i²
    subject to  lower − b ≤ d ≤ upper − b
                Σ_{i in B, in group g} d_i = 0      for every group g

Its gradients are those of the whole problem, its violation is that among the variables of B, its dual value is the
gain, and d = 0 is feasible. A subproblem that is solved too roughly may change nothing; then it is solved again to
smaller tolerances, and only if the smallest one changes nothing either, double precision is exhausted.

*Selection* (Joachims 1999). The members of a group that can increase are ranked from the largest gradient down, those
that can decrease from the smallest up. The pair of rank k violates optimality by the difference of its gradients, and a
working set takes the worst pairs: with one group, half of the set from each end of the gradient. A variable in no group
moves alone and is ranked by its own gradient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.host_subproblem import renumbered
from maxmargin.matrices import CachedMatrix
from maxmargin.matrices.symmetric_matrix import BLOCK_BYTES, SymmetricMatrix
from maxmargin.precision import BOUND_TOLERANCE
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status
from maxmargin.solvers.dual_point import DualPoint
from maxmargin.solvers.monitor import Interruption, Monitor, status_of
from maxmargin.solvers.stall_detector import StallDetector
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.unbounded_dual import UnboundedDualTest

#: How often the tolerance of a subproblem that changed nothing is divided by ten.
MAX_REFINEMENTS = 8

#: Seconds after which a subproblem reports the progress of the whole.
REPORT_AFTER = 0.1

#: Rounds, and rounds per variable, within which the violation must halve; otherwise rounding undoes them.
STALL_ROUNDS, STALL_ROUNDS_PER_VARIABLE = 10_000, 1000

#: Limits on rounds, and on rounds per variable, unless the user has set one.
MAX_ROUNDS, MAX_ROUNDS_PER_VARIABLE = 5000, 100

#: Limits on iterations of the inner solver, altogether and per variable: twice what the unscaled breast cancer data
#: (569 samples) take with a linear kernel and C = 1.
MAX_INNER_ITERATIONS, MAX_INNER_ITERATIONS_PER_VARIABLE = 10**7, 20_000


def restrict(
    problem: DualProblem, variables: Indices, dual: Floats, gradient: Floats, matrix: SymmetricMatrix | None = None
) -> DualProblem:
    """Return the problem of the change of some variables.

    Parameters
    ----------
    problem : DualProblem
    variables : int array
        Those that may change.
    dual, gradient : float arrays
        Of all variables; the gradient is only read at `variables`.
    matrix : SymmetricMatrix, optional
        The matrix of these variables, if its values are known.
    """
    group, groups = renumbered(problem.group[variables])
    return DualProblem(
        matrix=problem.matrix.take(variables) if matrix is None else matrix,
        linear=gradient[variables],
        lower=problem.lower[variables] - dual[variables],
        upper=problem.upper[variables] - dual[variables],
        ridge=problem.ridge[variables],
        group=group,
        total=np.zeros(groups),
    )


def changed(problem: DualProblem, variables: Indices, dual: Floats, part: DualProblem, change: Floats) -> Floats:
    """Return the new values of the variables; those that have reached a bound are exactly at it."""
    lower, upper = problem.lower[variables], problem.upper[variables]
    values = dual[variables] + change
    with np.errstate(invalid="ignore"):  # an infinite bound is never reached
        at_upper = (change == part.upper) | (upper - values <= BOUND_TOLERANCE * np.abs(upper)) & np.isfinite(upper)
        at_lower = (change == part.lower) | (values - lower <= BOUND_TOLERANCE * np.abs(lower)) & np.isfinite(lower)
    still = change == 0
    return np.where(still, dual[variables], np.where(at_upper, upper, np.where(at_lower, lower, values)))


def select_violating(problem: DualProblem, dual: Floats, gradient: Floats, most: int) -> Indices:
    """Return up to `most` variables, the worst pair first; none if there is no violation."""
    can_increase, can_decrease = dual < problem.upper, dual > problem.lower
    grouped = problem.group >= 0
    up, up_key = _ranked(problem, can_increase & grouped, -gradient, most)
    down, down_key = _ranked(problem, can_decrease & grouped, gradient, most)
    if problem.groups > 1:
        _, of_up, of_down = np.intersect1d(up_key, down_key, assume_unique=True, return_indices=True)
        first, second = up[of_up], down[of_down]
    else:
        pairs = min(len(up), len(down))
        first, second = up[:pairs], down[:pairs]
    violation = gradient[first] - gradient[second]
    if problem.ungrouped:
        alone = np.flatnonzero(~grouped & (np.where(gradient > 0, can_increase, can_decrease)))
        first, second = np.append(first, alone), np.append(second, alone)
        violation = np.append(violation, np.abs(gradient[alone]))
    order = np.argsort(-violation, kind="stable")
    order = order[violation[order] > 0][:most]
    sequence = np.stack([first[order], second[order]], axis=1).ravel()
    _, appearance = np.unique(sequence, return_index=True)
    return np.asarray(sequence[np.sort(appearance)][:most])


def _ranked(problem: DualProblem, chosen: np.ndarray, score: Floats, most: int) -> tuple[Indices, Indices]:
    """Return the chosen variables by group and score, and for each a number that encodes its group and rank there.

    With one group, only those that are among the first `most`, or tied with them, are ranked.
    """
    members = np.flatnonzero(chosen)
    if problem.groups <= 1:
        if len(members) > most:
            scores = score[members]
            members = members[scores <= np.partition(scores, most - 1)[most - 1]]
        order = members[np.argsort(score[members], kind="stable")]
        return order, np.arange(len(order))
    order = members[np.lexsort((score[members], problem.group[members]))]
    group = problem.group[order].astype(np.int64)
    start = np.searchsorted(group, group)  # the first position of the group
    return order, group * problem.size + np.arange(len(order)) - start


@runtime_checkable
class SubproblemSolver(Protocol):
    """Any solver: a dataclass with a stopping rule."""

    @property
    def stopping(self) -> StoppingRule:
        """When it stops; replaced in each round."""
        ...

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return a solution of the problem."""
        ...


def check_subproblem_solver(name: str, solver: object) -> None:
    """Raise if an object cannot solve subproblems."""
    if not hasattr(solver, "solve") or not hasattr(solver, "stopping"):
        raise ValueError(f"{name} must be a solver object such as PairwiseSolver(), not {solver!r}")


class DecompositionRun(ABC):
    """One run: a point, cached rows of the matrix, and the cost so far.

    Attributes
    ----------
    point : DualPoint
        Replaced in one assignment, so that Ctrl-C leaves a consistent point.
    """

    def __init__(
        self, problem: DualProblem, dual: Floats, inner: SubproblemSolver, cache_bytes: int, monitor: Monitor
    ) -> None:
        self.problem, self.inner, self.monitor = problem, inner, monitor
        self.rows = CachedMatrix(problem.matrix, cache_bytes)
        self.rows.evaluations += problem.size * int(np.count_nonzero(dual))
        self.point = DualPoint.of(problem, dual)
        self.iterations = self.rounds = self.active = 0

    @abstractmethod
    def select(self) -> Indices:
        """Return the next working set."""

    @abstractmethod
    def inner_violation(self) -> float:
        """Return the tolerance on the violation of the next subproblem."""

    def inner_gap(self) -> float | None:
        """Return a tolerance on the gap of the next subproblem, if its gap is that of all variables."""
        return None

    def subproblem(self, variables: Indices) -> DualProblem:
        """Return the problem of a working set."""
        return restrict(self.problem, variables, self.point.dual, self.point.gradient)

    def inner_evaluations(self, counters: Counters) -> int:
        """Return how many values of the matrix a subproblem has computed."""
        return counters.kernel_evaluations

    @property
    def counters(self) -> Counters:
        """The cost so far: iterations are those of the subproblems, rounds are working sets."""
        rows = self.rows
        return Counters(self.iterations, rows.evaluations, rows.hits, rows.misses, self.rounds, self.monitor.seconds)

    def progress(self) -> Progress:
        """Return the progress report."""
        return self.point.progress(self.monitor, self.iterations, self.rows.evaluations, self.active)

    def solve(self) -> Solution:
        """Iterate, and return the point reached and how the run ended."""
        try:
            status = self._iterate()
            self.monitor.report(self.progress, now=True)
        except Interruption as interruption:
            status = status_of(interruption)
        point = self.point
        return Solution(point.dual, point.gradient, status, self.counters, trace=self.monitor.trace)

    def _iterate(self) -> Status:
        problem, is_unbounded = self.problem, UnboundedDualTest(self.problem)
        stall = StallDetector(STALL_ROUNDS + STALL_ROUNDS_PER_VARIABLE * problem.size if problem.coercive else np.inf)
        while not self.point.meets(self.monitor.rule):
            if (stop := self.monitor.limit_reached(self.iterations)) is not None:
                return stop
            if self._is_slow():
                return Status.SLOW
            if self.monitor.report(self.progress):
                return Status.STOPPED
            if is_unbounded(self.point.dual, self.point.gradient):
                return Status.UNBOUNDED
            if stall.stalled(self.point.violation, self.rounds):
                return Status.PRECISION
            if (status := self._round(self.select())) is not None:
                return status
        return Status.CONVERGED

    def _round(self, variables: Indices) -> Status | None:
        """Solve the subproblem of a working set; return a status if the run ends with it."""
        self.rounds += 1
        self.active = len(variables)
        part = self.subproblem(variables)
        violation, gap = self.inner_violation(), self.inner_gap()
        for _ in range(MAX_REFINEMENTS):
            limits = self.monitor.iterations_left(self.iterations), self.monitor.seconds_left()
            rule = StoppingRule(violation, gap, *limits)
            solver: SubproblemSolver = replace(self.inner, stopping=rule)  # type: ignore[type-var]  # a dataclass
            solution = solver.solve(part, callback=None if self.monitor.callback is None else self._report)
            self.iterations += solution.counters.iterations
            self.rows.evaluations += self.inner_evaluations(solution.counters)
            moved = self._move(variables, part, solution.dual)
            if solution.status not in (Status.CONVERGED, Status.PRECISION):
                return solution.status
            if moved:
                return None
            if self._is_slow():
                return Status.SLOW
            violation, gap = 0.1 * violation, None if gap is None else 0.1 * gap
        return Status.PRECISION

    def _is_slow(self) -> bool:
        """Return whether a limit of this solver is reached."""
        rounds = MAX_ROUNDS + MAX_ROUNDS_PER_VARIABLE * self.problem.size
        inner = MAX_INNER_ITERATIONS + MAX_INNER_ITERATIONS_PER_VARIABLE * self.problem.size
        return self.monitor.is_slow(self.rounds, rounds) or self.monitor.is_slow(self.iterations, inner)

    def _report(self, inner: Progress) -> bool:
        """Report the progress of the whole during a long subproblem; return whether the callback requests a stop."""
        return inner.seconds > REPORT_AFTER and self.monitor.report(self.progress)

    def _move(self, variables: Indices, part: DualProblem, change: Floats) -> bool:
        """Apply the change of a working set; return whether there is any."""
        values = changed(self.problem, variables, self.point.dual, part, change)
        moved = np.flatnonzero(values != self.point.dual[variables])
        if not len(moved):
            return False
        at, change = variables[moved], change[moved]
        dual = self.point.dual.copy()
        dual[at] = values[moved]
        gradient = self.point.gradient - self._product(at, change)
        gradient[at] -= self.problem.ridge[at] * change
        self.point = DualPoint(self.problem, dual, gradient)
        return True

    def _product(self, variables: Indices, change: Floats) -> Floats:
        """Return Σ change · row."""
        step = max(2, BLOCK_BYTES // (8 * self.problem.size))
        product = np.zeros(self.problem.size)
        for first in range(0, len(variables), step):
            panel, weights = self.rows.rows(variables[first : first + step]), change[first : first + step]
            if len(variables) == 2 and weights[0] == -weights[1]:  # the step of the pairwise solver to the last bit
                return np.asarray(weights[0] * (panel[0] - panel[1]))
            product += weights @ panel
        return product
