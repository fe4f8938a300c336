"""A dual vector with its gradient: dual value, violation, duality gap, and the progress report that follows from them.

The formulas are those of the certificate (`maxmargin.problems.certificate`), applied to the gradient that a solver has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.problems import DualProblem, Progress
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import StoppingRule


@dataclass(frozen=True)
class DualPoint:
    """A feasible dual vector and its gradient."""

    problem: DualProblem
    dual: Floats
    gradient: Floats

    @classmethod
    def of(cls, problem: DualProblem, dual: Floats) -> DualPoint:
        """Return the point of a feasible dual vector, with its gradient computed from the matrix."""
        gradient = problem.gradient(dual) if dual.any() else problem.linear.copy()
        if not np.isfinite(gradient).all():
            raise ValueError(NON_FINITE_MESSAGE)
        return cls(problem, dual, gradient)

    @cached_property
    def value(self) -> float:
        """The dual value."""
        return self.problem.value(self.dual, self.gradient)

    @cached_property
    def violation(self) -> float:
        """The largest violation of the optimality criterion (1.11)."""
        return known_violation(self.problem, self.dual, self.gradient)

    @cached_property
    def gap(self) -> float:
        """The duality gap."""
        return known_gap(self.problem, self.dual, self.gradient)

    def meets(self, rule: StoppingRule) -> bool:
        """Return whether the violation or the gap is within the tolerance of the rule."""
        return self.violation <= rule.violation or self.meets_gap(rule)

    def meets_gap(self, rule: StoppingRule) -> bool:
        """Return whether the rule has a tolerance on the gap and the gap is within it."""
        asked = rule.gap is not None or rule.relative_gap is not None
        return asked and rule.accepts_gap(self.value + self.gap, self.value)

    def progress(self, monitor: Monitor, iterations: int, evaluations: int, active: int | None = None) -> Progress:
        """Return the progress report of this point."""
        point = self.dual, self.gradient
        return progress_snapshot(self.problem, point, self.value, monitor, iterations, evaluations, active)


def progress_snapshot(
    problem: DualProblem,
    point: tuple[Floats, Floats],
    value: float,
    monitor: Monitor,
    iterations: int,
    evaluations: int,
    active: int | None = None,
) -> Progress:
    """Return the progress report of a point, dual and gradient, of a known dual value."""
    dual, gradient = point
    return Progress(
        iteration=iterations,
        violation=known_violation(problem, dual, gradient),
        primal=value + known_gap(problem, dual, gradient),
        dual=value,
        active=problem.size if active is None else active,
        seconds=monitor.seconds,
        kernel_evaluations=evaluations,
        support_vectors=int(np.count_nonzero(dual)),
        point=monitor.copy_point(dual),
    )
