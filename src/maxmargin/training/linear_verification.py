"""Verification of linear models, f(x) = w · x + offset: a few passes over the data give the gap, which decides.

LinearVerifier      the relative gap, from the weights
SparseVerifier      the same for the penalty Σ |w_j|
AllInOneVerifier    one weight vector per class from a single problem
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Generic, TypeVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import TimeLimitReachedError, check_deadline, seconds_until_deadline
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices.features import Features
from maxmargin.problems import (
    Certificate,
    Counters,
    DualProblem,
    Solution,
    Status,
    certify,
    certify_l1,
    feasible_start,
    recorded_start,
)
from maxmargin.problems.certificate import NEGLIGIBLE_ROUNDING, extended_is_affordable, inconclusive
from maxmargin.problems.offsets import MAX_OFFSET_GROUPS
from maxmargin.solvers import StoppingRule
from maxmargin.training.checkpoint import is_feasible
from maxmargin.training.linear_certificate import certify_many
from maxmargin.training.problem_scale import overflow_message
from maxmargin.training.trained_model import TrainedLinearModel
from maxmargin.training.verification import MAX_ROUNDING_FRACTION, Checked, checked_size

#: About how long the certificate of a linear model takes on an ordinary core: seconds for each stored value, for each
#: variable, and for each variable if there are many groups, which are sorted.
SECONDS_PER_VALUE, SECONDS_PER_VARIABLE, SECONDS_PER_GROUPED_VARIABLE = 6e-9, 4e-7, 2e-6

#: The time for each value of a pass over the data on such a core. Where the first pass took longer, on a slow or busy
#: computer, the certificate is expected to take longer in proportion, up to this factor.
ORDINARY_SECONDS_PER_VALUE, MAX_SLOWDOWN = 1.5e-9, 8.0

#: How many times as long as in float64 a certificate of a linear model takes in double-double arithmetic, at least; it
#: is not begun if there is less time.
EXTENDED_SLOWDOWN = 8.0

#: An absolute gap is accepted only where the objective values are no larger than the gap: the optimum may be 0.
MAX_VALUE_PER_GAP = 1.0

Model = TypeVar("Model", covariant=True)


class LinearVerifier:
    """Verification in primal form: a few passes over the data give the certificate, whose relative gap decides."""

    max_attempts = 11
    max_stalled = 2
    tightening = 0.1

    required = True

    def __init__(self, problem: DualProblem, samples: Indices, formulation: Formulation, rule: StoppingRule) -> None:
        self.problem, self.samples, self.formulation, self.rule = problem, samples, formulation, rule
        self.rows = _features_of(problem)
        self._late: Checked | None = None  # verified in float64 only, for lack of time

    @property
    def finishing_seconds(self) -> float:
        """The time of the passes over the data that give weights and certificate, by the pace of the first pass."""
        if not self.required:
            return 0.0
        size, groups = self.problem.size, self.problem.groups
        of_variables = SECONDS_PER_VARIABLE if groups <= MAX_OFFSET_GROUPS else SECONDS_PER_GROUPED_VARIABLE
        ordinary = self.rows.stored * size / max(1, self.rows.size) * SECONDS_PER_VALUE + size * of_variables
        slowdown = self.rows.seconds_per_value / ORDINARY_SECONDS_PER_VALUE
        return ordinary * min(max(1.0, slowdown), MAX_SLOWDOWN)

    def start_of(self, solution: Solution) -> Floats:
        """Return the dual vector."""
        return solution.dual

    def checked_start(self, start: Floats) -> Floats | None:
        """Return the dual vector, made feasible, or None."""
        return recorded_start(self.problem, checked_size(start, self.problem.size))

    def confirms(self, solution: Solution) -> bool:
        """Return whether the point is feasible and the weights are those of these features; `verify` does the rest."""
        fits = solution.weights is None or solution.weights.shape == (self.rows.dimension,)
        return fits and is_feasible(self.problem, solution)

    def initial(self, start: Floats | None, status: Status) -> Solution:
        """Return the feasible point nearest to the start, without its gradient."""
        return Solution(feasible_start(self.problem, start), None, status, Counters())

    def verify(self, solution: Solution) -> Checked:
        """Compute weights and certificate, again in double-double arithmetic where rounding errors are too large."""
        check_deadline()
        began = perf_counter()
        checked = self._check(solution, extended=False)
        certificate, seconds = checked.evidence[0], perf_counter() - began
        if not inconclusive(certificate, self._negligible) or not extended_is_affordable(self.problem, solution.dual):
            return checked
        if seconds_until_deadline() < EXTENDED_SLOWDOWN * seconds:
            self._late = checked
            raise TimeLimitReachedError
        try:
            precise = self._check(solution, extended=True)
        except TimeLimitReachedError:
            self._late = checked
            raise
        return precise if precise.evidence[0].rounding < certificate.rounding else checked

    def unverified(self, solution: Solution) -> Checked:
        """Return what is verified in float64: without weights there is no model."""
        if self._late is not None and self._late.solution is solution:
            return self._late
        return self._check(solution, extended=False)

    def _check(self, solution: Solution, extended: bool) -> Checked:
        """Return the solution with its weights and certificate, in float64 or in double-double arithmetic."""
        certificate, weights = self._certify(solution, extended)
        if not np.isfinite(certificate.squared_norm):
            raise ValueError(overflow_message(self.problem))
        return Checked(solution, meets(self.rule, certificate), -certificate.gap, (certificate, weights))

    @property
    def _negligible(self) -> float:
        """Rounding errors that need no second evaluation, relative to the objective values: far below the tolerance."""
        return max(NEGLIGIBLE_ROUNDING, MAX_ROUNDING_FRACTION * (self.rule.relative_gap or 0.0))

    def finish(self, best: Checked, status: Status, counters: Counters) -> TrainedLinearModel:
        """Return the model."""
        (certificate, weights), dual = best.evidence, best.solution.dual
        weights, offset = self._function(dual, certificate, weights)
        return TrainedLinearModel(weights, offset, dual, self.samples, certificate, status, counters)

    def _certify(self, solution: Solution, extended: bool) -> tuple[Certificate, Floats]:
        own = self.rows.weights(solution.dual)
        weights = own if solution.weights is None else solution.weights
        found = None if extended else certify_many(self.problem, self.rows, solution.dual, weights, own)
        return found or certify(self.problem, solution.dual, weights, own, extended), weights

    def _function(self, dual: Floats, certificate: Certificate, weights: Floats) -> tuple[Floats, Any]:
        """Return weights and offset; the last feature is the constant one of a regularised intercept."""
        offset = self.formulation.expand(self.problem, dual, certificate.offset).offset
        return weights[:-1], offset + self.rows.constant * float(weights[-1])


class SparseVerifier(LinearVerifier):
    """Verification for the penalty Σ |w_j|. A start is a weight vector, which the dual vector does not determine."""

    max_attempts = 1

    def start_of(self, solution: Solution) -> Floats:
        """Return the weights."""
        return np.zeros(self.rows.dimension) if solution.weights is None else solution.weights

    def checked_start(self, start: Floats) -> Floats | None:
        """Return the weights, None if their objective value is larger than that of 0."""
        start = checked_size(start, self.rows.dimension)
        dual, zero = np.zeros(self.problem.size), np.zeros(self.rows.dimension)
        reached, given = (certify_l1(self.problem, dual, weights, extended=False) for weights in (start, zero))
        return start if reached.primal <= given.primal else None

    def initial(self, start: Floats | None, status: Status) -> Solution:
        """Return the starting weights."""
        return Solution(np.zeros(self.problem.size), None, status, Counters(), start)

    _negligible = NEGLIGIBLE_ROUNDING

    def _certify(self, solution: Solution, extended: bool) -> tuple[Certificate, Floats]:
        weights = np.zeros(self.rows.dimension) if solution.weights is None else solution.weights
        certificate = certify_l1(self.problem, solution.dual, weights, extended=extended)
        if not np.isfinite(certificate.primal):
            raise ValueError(overflow_message(self.problem))
        return certificate, weights


class AllInOneVerifier(LinearVerifier):
    """Verification of a problem with one weight vector per class, of the features `rows`."""

    def __init__(
        self, problem: DualProblem, samples: Indices, formulation: Formulation, rule: StoppingRule, rows: Features
    ) -> None:
        self.problem, self.samples, self.formulation, self.rule, self.rows = problem, samples, formulation, rule, rows
        self._late = None

    _negligible = NEGLIGIBLE_ROUNDING

    def _certify(self, solution: Solution, extended: bool) -> tuple[Certificate, Floats]:
        certificate = certify(self.problem, solution.dual, extended=extended)
        columns = self.formulation.expand(self.problem, solution.dual, certificate.offset).coefficients
        return certificate, np.array([self.rows.weights(column)[:-1] for column in columns.T])

    def _function(self, dual: Floats, certificate: Certificate, weights: Floats) -> tuple[Floats, Any]:
        return weights, self.formulation.expand(self.problem, dual, certificate.offset).offset


@dataclass(frozen=True)
class LinearForm(Generic[Model]):
    """How linear models of one penalty are verified and warm-started.

    Attributes
    ----------
    verifier : type of Verifier
    start : callable
        From a trained model and a mask of variables held at 0 to the start of another fit.
    place_start : callable
        From a problem and such a start to the start that its solver takes, None if it does not fit.
    """

    verifier: Callable[[DualProblem, Indices, Formulation, StoppingRule], LinearVerifier]
    start: Callable[[TrainedLinearModel, Any], Floats]
    place_start: Callable[[DualProblem, Floats], Floats | None]


def _sparse_start(problem: DualProblem, start: Floats) -> Floats | None:
    """Return weights and intercept as the weights of the features of the problem; None if there are other features."""
    rows = _features_of(problem)
    last = float(start[-1]) / rows.constant if rows.constant else 0.0
    return np.append(start[:-1], last) if len(start) == rows.dimension else None


#: The forms by the penalty of the solver.
LINEAR_FORMS: dict[str, LinearForm[Any]] = {
    "l2": LinearForm(LinearVerifier, lambda model, held: np.where(held, 0.0, model.dual), lambda problem, start: start),
    "l1": LinearForm(SparseVerifier, lambda model, held: np.append(model.weights, model.offset), _sparse_start),
}


def penalty_of(solver: Any) -> str:
    """Return the penalty that a solver is for."""
    penalty: str = getattr(solver, "penalty", "l2")
    return penalty


def meets(rule: StoppingRule, certificate: Certificate) -> bool:
    """Whether the gap is small enough or, for a rule without a gap, the violation."""
    if rule.gap is None and rule.relative_gap is None:
        return certificate.violation <= rule.violation
    if not np.isfinite(certificate.primal):
        return False
    size = max(abs(certificate.primal), abs(certificate.dual))
    close = rule.gap is not None and certificate.gap <= rule.gap and size <= MAX_VALUE_PER_GAP * rule.gap
    return close or (rule.relative_gap is not None and certificate.relative_gap <= rule.relative_gap)


def _features_of(problem: DualProblem) -> Features:
    rows = problem.matrix.features()
    if rows is None:
        raise ValueError("a linear model needs a matrix that is a product of features")
    return rows
