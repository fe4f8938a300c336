"""Verification of solutions, and the trained models they become.

A solver's claim of convergence is not trusted: the gradient, or the certificate where the stopping rule is a duality
gap, is recomputed in double precision. Here is what all forms of models share, and the verification of kernel models,
f(x) = Σ b_i k(x_i, x) + offset: the violation decides, or the gap where one is asked for. For linear models see
`linear_verification`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends.optimality import known_violation
from maxmargin.formulations.formulation import Formulation
from maxmargin.matrices.numerics import inner
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems import (
    Certificate,
    Counters,
    DualProblem,
    Solution,
    Status,
    certify,
    feasible_start,
    recorded_start,
)
from maxmargin.solvers import StoppingRule
from maxmargin.training.checkpoint import is_feasible
from maxmargin.training.checkpoint_file import CheckpointError
from maxmargin.training.trained_model import TrainedModel

#: Multiplications above which a solution that its solver has audited in double precision is not verified again. At
#: 10⁸ the verification takes about 0.1 s; half or twice the value only moves where that is paid.
MAX_VERIFICATION_WORK = 10**8

#: Variables whose gradient is recomputed to recognise a solution from a checkpoint: evenly spaced.
CONFIRMED_GRADIENTS = 64

#: Rounding of the gradient, as a fraction of the tolerance, above which the certificate decides about convergence.
MAX_ROUNDING_FRACTION = 0.01

Model = TypeVar("Model", covariant=True)


@dataclass(frozen=True)
class Checked:
    """A solution and the result of its verification.

    Attributes
    ----------
    solution : Solution
    accepted : bool
        Whether the recomputed values meet the stopping rule.
    merit : float
        By which unaccepted solutions are compared; larger is better.
    evidence : object
        What the verifier computed, for the trained model.
    """

    solution: Solution
    accepted: bool
    merit: float
    evidence: Any = None


class Verifier(Protocol[Model]):
    """Verifies solutions of one problem and turns the best one into a trained model."""

    #: How often the problem may be solved, each time from the previous solution.
    max_attempts: int
    #: How often a solver may report that it stalled before no further attempt is made.
    max_stalled: int
    #: The factor on the violation tolerance after each unaccepted attempt.
    tightening: float
    #: The training rows of the problem.
    samples: Indices
    #: Whether a model is needed also where verification is interrupted; otherwise the interruption is passed on.
    required: bool

    @property
    def finishing_seconds(self) -> float:
        """About how long the verification takes that even a fit out of time needs: the solver ends earlier by that."""
        ...

    def start_of(self, solution: Solution) -> Floats:
        """Return the start of a solve that continues from a solution."""
        ...

    def checked_start(self, start: Floats) -> Floats | None:
        """Return a start from a checkpoint, None if it is worse than 0; raise if its size is wrong."""
        ...

    def confirms(self, solution: Solution) -> bool:
        """Return whether a solution from a checkpoint may be one of this problem, so that it can be verified."""
        ...

    def initial(self, start: Floats | None, status: Status) -> Solution:
        """Return a valid solution for a fit that was ended before the solver returned one."""
        ...

    def verify(self, solution: Solution) -> Checked:
        """Recompute what the stopping rule is about."""
        ...

    def unverified(self, solution: Solution) -> Checked:
        """Return the solution after an interrupted verification."""
        ...

    def finish(self, best: Checked, status: Status, counters: Counters) -> Model:
        """Return the trained model."""
        ...


class KernelVerifier:
    """Verification in kernel form: the gradient in double precision, unless the solver has audited it itself."""

    finishing_seconds = 0.0
    required = True
    max_attempts = 4
    max_stalled = 4
    tightening = 1.0

    def __init__(
        self,
        problem: DualProblem,
        samples: Indices,
        formulation: Formulation,
        rule: StoppingRule,
        audited: bool,
        max_work: float = MAX_VERIFICATION_WORK,
    ) -> None:
        self.problem, self.samples, self.formulation, self.rule = problem, samples, formulation, rule
        self.audited, self.max_work = audited, max_work

    def start_of(self, solution: Solution) -> Floats:
        """Return the dual vector."""
        return solution.dual

    def checked_start(self, start: Floats) -> Floats | None:
        """Return the dual vector, made feasible, or None."""
        return recorded_start(self.problem, checked_size(start, self.problem.size))

    def confirms(self, solution: Solution) -> bool:
        """Return whether the point is feasible, and its gradient correct at some variables, for which it is computed.

        The others are checked by `verify`, unless that would be expensive.
        """
        if solution.gradient is None or not is_feasible(self.problem, solution):
            return False
        some = np.unique(np.linspace(0, self.problem.size - 1, CONFIRMED_GRADIENTS).astype(np.int64))
        used = np.flatnonzero(solution.dual)
        products = self.problem.matrix.block(some, used) @ solution.dual[used]
        gradient = self.problem.linear[some] - products - self.problem.ridge[some] * solution.dual[some]
        return bool((np.abs(gradient - solution.gradient[some]) <= self.rule.violation).all())

    def initial(self, start: Floats | None, status: Status) -> Solution:
        """Return the feasible point nearest to the start; its gradient is known only if it is 0."""
        dual = feasible_start(self.problem, start)
        return Solution(dual, None if dual.any() else self.problem.linear.copy(), status, Counters())

    def verify(self, solution: Solution) -> Checked:
        """Compare the violation, or the gap if the rule has one, with the tolerance."""
        if solution.status not in (Status.CONVERGED, Status.PRECISION):
            return self.unverified(solution)
        model = self._model(solution)
        if self._trusted(solution):
            model.release_kernel_values()
            return Checked(solution, True, np.inf, model)
        accepted = model.meets_violation(self.rule.violation)
        if accepted and self._close_to_rounding(solution.dual):
            _ = model.expansion
            accepted = model.certificate.violation <= self.rule.violation
        if not accepted and self.rule.gap is not None:
            _ = model.expansion  # by the gradient, as in a fit without a gap tolerance
            accepted = model.certificate.gap <= self.rule.gap
        return Checked(solution, accepted, np.inf if accepted else model.dual_value, model)

    def unverified(self, solution: Solution) -> Checked:
        """Return the solution as the solver left it."""
        return Checked(solution, False, np.inf, self._model(solution))

    def finish(self, best: Checked, status: Status, counters: Counters) -> TrainedModel:
        """Return the model; where rounding made the best point worse than the trivial one, the trivial one."""
        model: TrainedModel = best.evidence
        if status is Status.PRECISION and not best.accepted:
            model = self._model(best.solution)
            _ = model.expansion  # by the gradient, as in every fit
            model.release_kernel_values()
            trivial, reached = feasible_start(self.problem), model.certificate
            given = certify(self.problem, trivial)
            if self._accepts(reached):  # by other rounding errors than those of the verification
                status = Status.CONVERGED
            elif not (reached.dual >= given.dual and reached.primal <= given.primal):
                model = self._model(Solution(trivial, self.problem.gradient(trivial), status, counters))
                model.release_kernel_values()
        model.status, model.counters = status, counters
        return model

    def _accepts(self, certificate: Certificate) -> bool:
        """Return whether a certificate meets the stopping rule."""
        within_gap = self.rule.gap is not None and certificate.gap <= self.rule.gap
        return within_gap or certificate.violation <= self.rule.violation

    def _close_to_rounding(self, dual: Floats) -> bool:
        """Return whether the gradient computed in another order may differ by a noticeable part of the tolerance.

        Then the certificate decides, which users read.
        """
        magnitudes = self.problem.matrix.magnitudes()
        rounding = DOUBLE_EPSILON * inner(np.abs(dual), magnitudes) * float(magnitudes.max(initial=0.0))
        return not rounding <= MAX_ROUNDING_FRACTION * self.rule.violation

    def _model(self, solution: Solution) -> TrainedModel:
        return TrainedModel(self.problem, solution, self.samples, self.formulation)

    def _violation(self, solution: Solution) -> float:
        """Return the violation by the gradient of the solver."""
        if solution.gradient is None:
            return np.inf
        return known_violation(self.problem, solution.dual, solution.gradient)

    def _trusted(self, solution: Solution) -> bool:
        """Whether verification would be expensive and the solver has audited the violation in double precision."""
        if not self.audited or solution.status is not Status.CONVERGED:
            return False
        if self.rule.gap is not None and self._violation(solution) > self.rule.violation:
            return False  # the gap was reached, not the violation
        work = self.problem.size * int(np.count_nonzero(solution.dual)) * self.problem.matrix.cost
        return work > self.max_work


def checked_size(start: Floats, size: int) -> Floats:
    """Return a start from a checkpoint; raise CheckpointError if it is not of this size."""
    if start.shape != (size,):
        raise CheckpointError(
            f"the checkpoint has a start of {len(start)} numbers for a problem that needs {size}; delete it to start "
            "the fit again"
        )
    return start
