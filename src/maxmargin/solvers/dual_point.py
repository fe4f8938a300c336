"""A feasible dual vector with its gradient, and what the functions of the certificate say about it.

Solvers that hold the whole gradient between two rounds judge their point by it: whether to stop, and what to report.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner
from maxmargin.problems import DualProblem, Progress
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.progress_snapshot import standing
from maxmargin.solvers.stopping import StoppingRule


@dataclass(frozen=True)
class DualPoint:
    """Dual vector and gradient of a problem."""

    problem: DualProblem
    dual: Floats
    gradient: Floats

    @classmethod
    def of(cls, problem: DualProblem, dual: Floats) -> DualPoint:
        """Return the point of a feasible dual vector, its gradient computed afresh."""
        gradient = problem.gradient(dual) if dual.any() else problem.linear.copy()
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        return cls(problem, dual, gradient)

    @cached_property
    def value(self) -> float:
        """The dual value."""
        return 0.5 * inner(self.dual, self.problem.linear + self.gradient)

    @cached_property
    def violation(self) -> float:
        """The largest violation of the optimality criterion (1.11)."""
        return known_violation(self.problem, self.dual, self.gradient)

    @cached_property
    def gap(self) -> float:
        """The duality gap."""
        return known_gap(self.problem, self.dual, self.gradient)

    def meets(self, rule: StoppingRule) -> bool:
        """Whether the point is good enough."""
        if self.violation <= rule.violation:
            return True
        asked = rule.gap is not None or rule.relative_gap is not None
        return asked and rule.accepts_gap(self.value + self.gap, self.value)

    def progress(self, monitor: Monitor, iterations: int, evaluations: int, active: int | None = None) -> Progress:
        """Return what a callback is told."""
        point = self.dual, self.gradient
        return standing(self.problem, point, self.value, monitor, iterations, evaluations, active)
