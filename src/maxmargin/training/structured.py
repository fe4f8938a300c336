"""Training with structured outputs: solve, and keep what the certificate needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from maxmargin._typing import Floats
from maxmargin.problems import Certificate, Counters, Status
from maxmargin.problems.structured_problem import StructuredDual, StructuredProblem
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.solvers.structured import StructuredSolution
from maxmargin.training.pipeline import Session
from maxmargin.training.trained_model import NOT_COMPUTED


class StructuredSolver(Protocol):
    """A solver of structured outputs: a dataclass."""

    @property
    def stopping(self) -> StoppingRule:
        """When to stop."""
        ...

    def solve(self, problem: StructuredProblem, callback: Callback | None = None) -> StructuredSolution:
        """Return a solution of the problem."""
        ...


class TrainedStructuredModel:
    """Weights, dual variables and certificate of structured outputs.

    The certificate of a fit that met its tolerance is known; that of another one is computed when it is first read,
    from the training data, which a pickled model leaves behind.
    """

    def __init__(self, problem: StructuredProblem, solution: StructuredSolution) -> None:
        self._problem: StructuredProblem | None = problem
        self._certificate = solution.certificate
        self._weights = solution.weights
        self.dual: StructuredDual = solution.dual
        self.status: Status = solution.status
        self.counters: Counters = solution.counters
        self.trace = solution.trace
        self.weights: Floats = problem.weights_of(solution.dual) if self._weights is None else self._weights

    @property
    def certificate(self) -> Certificate:
        """The certificate of optimality."""
        if self._certificate is None:
            if self._problem is None:
                raise AttributeError(NOT_COMPUTED)
            self._certificate = self._problem.certify(self.dual, self._weights)
        return self._certificate

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_problem": None}


def train_structured(problem: StructuredProblem, solver: StructuredSolver, session: Session) -> TrainedStructuredModel:
    """Solve a problem of structured outputs and return its model."""
    rule = replace(solver.stopping, max_seconds=session.deadline.seconds_left())
    limited: StructuredSolver = replace(solver, stopping=rule)  # type: ignore[type-var]  # solvers are dataclasses
    with session.deadline.in_force():
        solution = limited.solve(problem, session.callback)
    return TrainedStructuredModel(problem, solution)
