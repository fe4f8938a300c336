"""The subproblems of multiple kernel learning, solved with fixed weights of the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.optimality import known_gap, known_violation
from maxmargin.problems import DualProblem, Solution
from maxmargin.problems.combination_certificate import dual_norm


@dataclass(frozen=True)
class Evaluation:
    """The subproblems, solved with fixed weights.

    `value` is the sum of their dual values, `gap` that of their duality gaps, `squared` has q_m of each kernel, and
    `curvature` the second derivatives of the value by the weights (p = 1).
    """

    weights: Floats
    solutions: list[Solution]
    value: float
    gap: float
    violation: float
    squared: Floats
    curvature: Floats | None

    @property
    def constant(self) -> float:
        """The value at weights of 0: linear in the dual vectors."""
        return self.value + 0.5 * float(self.weights @ self.squared)

    def lacking(self, p: float) -> float:
        """Return what the weights lack to be optimal at these dual vectors."""
        return max(0.0, 0.5 * (dual_norm(self.squared, p) - float(self.weights @ self.squared)))

    def joint_gap(self, p: float) -> float:
        """Return the gap of the joint problem."""
        return self.gap + self.lacking(p)

    def size(self, p: float) -> float:
        """Return the larger of primal and dual value of the joint problem."""
        return max(abs(self.value + self.gap), abs(self.value - self.lacking(p)))


def values_of(problems: Sequence[DualProblem], solutions: Sequence[Solution]) -> tuple[float, float, float]:
    """Return the sum of the dual values, that of the duality gaps, and the largest violation."""
    gradients = [_gradient(problem, one) for problem, one in zip(problems, solutions, strict=True)]
    solved = [
        (problem, one.dual, gradient) for problem, one, gradient in zip(problems, solutions, gradients, strict=True)
    ]
    value = sum((problem.value(dual, gradient) for problem, dual, gradient in solved), 0.0)
    gap = sum((known_gap(problem, dual, gradient) for problem, dual, gradient in solved), 0.0)
    return value, gap, max(known_violation(problem, dual, gradient) for problem, dual, gradient in solved)


def _gradient(problem: DualProblem, solution: Solution) -> Floats:
    """Return the gradient of a solution, of which a solver may not know all."""
    known = solution.gradient
    return known if known is not None and np.isfinite(known).all() else problem.gradient(solution.dual)
