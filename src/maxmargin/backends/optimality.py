"""KKT violations of single variables and of all, and the duality gap, from a dual vector and its gradient.

At the optimum no variable of a group that may grow has a larger gradient than one that may fall (Bottou & Lin 1.11).
The distance of a variable from that condition selects working sets, stops solvers and decides about shrinking.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes, known_extremes, violation_of
from maxmargin.problems.losses import residuals
from maxmargin.problems.offsets import group_offsets


class BoxedVariables(Protocol):
    """Dual vector, gradient, box and groups of some variables; the first `active` of them take part."""

    lower: Floats
    upper: Floats
    kink: Floats
    group: np.ndarray
    groups: int

    @property
    def dual(self) -> Floats:
        """The dual variables."""
        ...

    @property
    def gradient(self) -> Floats:
        """The gradient of the dual objective."""
        ...

    @property
    def active(self) -> int:
        """The number of leading entries of the arrays that take part."""
        ...


def kkt_violations(state: BoxedVariables) -> tuple[Floats, Floats]:
    """Return the KKT violation of each active variable when it grows, and when it falls; −∞ if it cannot."""
    up, down = np.empty(state.active), np.empty(state.active)
    _native.kkt_violations(*_criterion(state), up, down)
    return up, down


def can_be_selected(state: BoxedVariables) -> np.ndarray:
    """Return which active variables may still be selected for a step; shrinking removes the others."""
    keep = np.empty(state.active, dtype=bool)
    _native.can_be_selected(*_criterion(state), keep)
    return keep


def known_gap(problem: DualProblem, dual: Floats, gradient: Floats) -> float:
    """Return the duality gap; an infinite gradient means unknown, and its variable contributes nothing."""
    known = np.isfinite(gradient)
    offset = group_offsets(problem, dual, gradient)
    slack = np.where(known, gradient, 0.0) + problem.ridge * dual - problem.expand_groups(offset)
    with np.errstate(over="ignore", invalid="ignore"):  # an infinite gap
        return float(residuals(problem, dual, slack)[known].sum())


def known_violation(problem: DualProblem, dual: Floats, gradient: Floats) -> float:
    """Return the largest KKT violation; unknown gradients are infinite on the side where they do not count."""
    extremes = known_extremes if problem.kinked else gradient_extremes  # at a kink, either side counts
    with np.errstate(invalid="ignore"):  # ∞ − ∞ among those that do not count
        return violation_of(extremes(problem, dual, gradient), gradient)


def _criterion(state: BoxedVariables) -> tuple[_native.BoxProblem, Floats, Floats]:
    """Return the arguments of the native optimality criterion."""
    part = slice(0, state.active)
    problem = _native.BoxProblem(
        lower=state.lower[part],
        upper=state.upper[part],
        kink=state.kink[part],
        group=state.group[part],
        groups=state.groups,
    )
    return problem, state.dual[part], state.gradient[part]
