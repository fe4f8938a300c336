"""Problems of extreme magnitudes are solved in units in which their numbers are ordinary.

A dual problem has two scales of its own. With b = λ b′ and gradients in units of γ,

    M = (γ/λ) M′,   linear = γ linear′,   kink = γ kink′,   ridge = (γ/λ) ridge′,
    bounds and totals = λ bounds′ and totals′,

its objective is γλ times that of the scaled problem. λ is the magnitude that the variables can have, γ that of the
gradient, both powers of two, so that scaling is exact. Only problems with a number outside a wide ordinary range are
scaled; all others are solved as they are.

Bounds so large that float64 hardly resolves the gradient of a variable there, and ridges so small that they almost
vanish in the rounding of the diagonal, are replaced by the nearest numbers that have an effect. Every feasible point of
the scaled problem is one of the original problem, in whose units the solution is verified and certified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp

import numpy as np

from maxmargin._typing import Floats
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.scaled_matrix import ScaledMatrix, scale
from maxmargin.precision import DOUBLE_EPSILON
from maxmargin.problems import Certificate, DualProblem, Progress, Solution
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.solvers.translated_callback import translated

#: Magnitudes between 2^−66 and 2^66 (about 1e-20 to 1e20) are ordinary: no product of four of them overflows.
ORDINARY_EXPONENT = 66

#: A variable of this magnitude, relative to the inverse curvature, has a gradient of one correct digit.
MAX_VARIABLE = 2.0**48

#: No bound or inverse ridge of a scaled problem is larger, also of variables without curvature.
MAX_BOUND = 2.0**120

#: A ridge of this size makes its variable 0 in all digits of the others; a larger one might overflow.
MAX_RIDGE = 2.0**900


@dataclass(frozen=True)
class ProblemScale:
    """The units of a scaled problem, as exponents of two: those of dual variables, gradients, values and weights."""

    dual: int
    gradient: int
    value: int
    weight: int
    l1: bool = False

    @classmethod
    def of(cls, problem: DualProblem, l1: bool = False) -> ProblemScale | None:
        """Return the units for a problem, None if it is ordinary; `l1` if the penalty is Σ |w_j|."""
        diagonal = _largest_diagonal(problem)
        if is_ordinary(problem, diagonal):
            return None
        if l1:
            return cls._of_l1(diagonal)
        facts, total = problem.facts, largest(problem.total)
        linear, bound = facts.largest_linear, facts.largest_bound
        curvature = _exponent(max(diagonal, facts.least_ridge))
        if total:
            dual = _exponent(total)
        else:
            dual = _exponent(linear) - curvature
            dual = min(dual, _exponent(bound)) if bound and problem.coercive and not facts.largest_ridge else dual
        gradient = max(_exponent(linear), curvature + dual) if linear else curvature + dual
        dual -= (gradient - dual) % 2
        return cls(dual, gradient, gradient + dual, (gradient + dual) // 2)

    @classmethod
    def _of_l1(cls, diagonal: float) -> ProblemScale:
        """Return the units for the penalty Σ |w_j|, where only the features are scaled: |Fᵀ b| ≤ 1 has no unit."""
        half = _exponent(diagonal) // 2
        return cls(dual=-half, gradient=0, value=-half, weight=-half, l1=True)

    @property
    def matrix(self) -> int:
        """The exponent of the matrix, even."""
        return -2 * self.dual if self.l1 else self.gradient - self.dual

    def problem(self, problem: DualProblem) -> DualProblem:
        """Return the problem in these units."""
        matrix = ScaledMatrix(problem.matrix, self.matrix)
        diagonal, ridge = matrix.diagonal(), scale(problem.ridge, 2 * self.dual - self.value)
        ridge = np.where(problem.ridge > 0, np.maximum(ridge, np.maximum(diagonal / MAX_VARIABLE, 1 / MAX_BOUND)), 0.0)
        ridge = np.minimum(ridge, MAX_RIDGE)
        lower, upper = scale(problem.lower, -self.dual), scale(problem.upper, -self.dual)
        if not problem.total.any():
            most = np.full(problem.size, MAX_BOUND)
            np.divide(MAX_VARIABLE, diagonal, out=most, where=diagonal > MAX_VARIABLE / MAX_BOUND)
            lower = np.where(np.isinf(problem.lower), lower, np.maximum(lower, -most))
            upper = np.where(np.isinf(problem.upper), upper, np.minimum(upper, most))
        return DualProblem(
            matrix,
            scale(problem.linear, -self.gradient),
            lower,
            upper,
            ridge,
            problem.group,
            scale(problem.total, -self.dual),
            scale(problem.kink, -self.gradient) if problem.kinked else problem.kink,
        )

    def rule(self, rule: StoppingRule, problem: DualProblem) -> StoppingRule:
        """Return a stopping rule in these units for the scaled problem; no tolerance is finer than its rounding."""
        gap = None if rule.gap is None else float(scale(rule.gap, -self.value))
        if rule.relative_gap is not None:  # which has no unit; the violation is that of rounding
            return replace(rule, gap=gap)
        finest = 4 * DOUBLE_EPSILON * max(1.0, largest(problem.linear))
        return replace(rule, violation=max(float(scale(rule.violation, -self.gradient)), finest), gap=gap)

    def start(self, start: Floats | None) -> Floats | None:
        """Return a start in these units: a dual vector or, for the penalty Σ |w_j|, weights."""
        return None if start is None else scale(start, -self._of_starts)

    @property
    def _of_starts(self) -> int:
        return self.weight if self.l1 else self.dual

    def solution(self, solution: Solution, problem: DualProblem) -> Solution:
        """Return a solution of the scaled problem in the units of the original problem."""
        dual = np.clip(scale(solution.dual, self.dual), problem.lower, problem.upper)
        gradient = None if solution.gradient is None else scale(solution.gradient, self.gradient)
        weights = None if solution.weights is None else scale(solution.weights, self.weight)
        value = None if solution.value is None else float(scale(solution.value, self.value))
        return replace(solution, dual=dual, gradient=gradient, weights=weights, value=value)

    def original_start(self, start: Floats) -> Floats:
        """Return a start of the scaled problem in the units of the original problem."""
        return scale(start, self._of_starts)

    def observe(self, callback: Callback) -> Callback:
        """Return the callback of the original problem for the solver of the scaled one."""
        return translated(callback, self.progress, self.original_start)

    def progress(self, progress: Progress) -> Progress:
        """Return a progress report in the units of the original problem."""
        return replace(
            progress,
            violation=float(scale(progress.violation, self.gradient)),
            primal=float(scale(progress.primal, self.value)),
            dual=float(scale(progress.dual, self.value)),
            point=None if progress.point is None else scale(progress.point, self.dual),
        )


def check_representable(problem: DualProblem, certificate: Certificate) -> None:
    """Raise ValueError if a value of the certificate overflows; a hard margin that is violated has an infinite loss."""
    values = [certificate.dual, certificate.squared_norm]
    if problem.coercive:
        values += [certificate.primal, certificate.gap, certificate.violation]
    if not np.isfinite(values).all():
        raise ValueError(overflow_message(problem))


def is_ordinary(problem: DualProblem, diagonal: float) -> bool:
    """Whether no magnitude of a problem needs scaling, given the largest one of the diagonal of its matrix."""
    facts = problem.facts
    of_costs = facts.largest_bound, facts.least_ridge, facts.largest_ridge
    return all(map(_ordinary, (diagonal, facts.largest_linear, *of_costs, facts.largest_total)))


def overflow_message(problem: DualProblem) -> str:
    """Return the error message about a problem whose objective or kernel overflows float64, with its magnitudes."""
    diagonal = problem.matrix.diagonal()
    if not np.isfinite(diagonal).all():
        return NON_FINITE_MESSAGE
    kernel = largest(diagonal)
    bound = max(largest(problem.lower), largest(problem.upper))
    ridge = problem.ridge[problem.ridge > 0]
    cost = 1.0 / float(ridge.min()) if len(ridge) else bound
    return (
        f"the objective overflows float64: with targets or margins up to {largest(problem.linear):.2g}, costs up to "
        f"{cost:.2g} and kernel values up to {kernel:.2g}, its value is not finite; scale the data (for example with "
        "StandardScaler) and the targets, or use a smaller C or smaller sample weights"
    )


def _largest_diagonal(problem: DualProblem) -> float:
    """Return the largest entry of the diagonal, without evaluating the kernel; infinite where it overflows."""
    rows = problem.matrix.features()
    if rows is not None:
        return largest(rows.known_squared_norms()) + rows.constant**2
    magnitude = largest(problem.matrix.magnitudes())
    return magnitude * magnitude


def largest(values: Floats) -> float:
    """Return the largest magnitude of the finite values, 0 if there is none."""
    most = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return most if np.isfinite(most) else float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _ordinary(magnitude: float) -> bool:
    return magnitude == 0 or abs(_exponent(magnitude)) <= ORDINARY_EXPONENT


def _exponent(magnitude: float) -> int:
    """Return the exponent of two of a magnitude, 0 for 0."""
    return frexp(magnitude)[1]
