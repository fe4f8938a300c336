"""The loss of a sample and its derivative, for every formulation: three functions of the slack z.

response(z)  = argmax over [lower, upper] of βz − kink |β| − ½ ridge β²
conjugate(z) = that maximum                                          the primal loss of the sample
residual     = conjugate(z) + kink |b| + ½ ridge b² − z b ≥ 0        its share of the duality gap

A kink makes them functions of the excess of z, the part that exceeds the kink: βz − kink |β| = β · excess for the β of
its sign, and others are not optimal.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems.dual_problem import DualProblem
from maxmargin.problems.kinks import excess_of


def excess(problem: DualProblem, slack: Floats) -> Floats:
    """Return the part of each slack that exceeds the kink of its variable."""
    return excess_of(slack, problem.kink) if problem.kinked else slack


def response(problem: DualProblem, slack: Floats) -> Floats:
    """Return the β in [lower, upper] that maximises βz − kink |β| − ½ ridge β²: the optimal variable of a slack."""
    return response_to_excess(problem, excess(problem, slack))


@np.errstate(over="ignore")  # a quotient that overflows is beyond every bound
def response_to_excess(problem: DualProblem, slack: Floats) -> Floats:
    """Return the same for the excess of a slack."""
    if problem.ridged:
        return np.clip(slack / problem.ridge, problem.lower, problem.upper)
    bound = np.where(slack > 0, problem.upper, np.where(slack < 0, problem.lower, 0.0))
    if not problem.ridge.any():
        return np.minimum(np.maximum(bound, problem.lower), problem.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        unclipped = np.where(problem.ridge > 0, slack / problem.ridge, bound)
    return np.clip(unclipped, problem.lower, problem.upper)


@np.errstate(over="ignore", invalid="ignore")  # infinite losses; 0 · ∞ where a branch is not taken
def conjugate(problem: DualProblem, slack: Floats) -> Floats:
    """Return max over [lower, upper] of βz − kink |β| − ½ ridge β²: the loss of each sample in the primal."""
    slack = excess(problem, slack)
    beta = response_to_excess(problem, slack)
    if problem.bounded and not problem.ridge.any():
        return beta * slack
    if problem.ridged:
        return beta * (slack - 0.5 * problem.ridge * beta)
    gain = np.where(slack == 0, 0.0, beta * slack)
    return gain - np.where(problem.ridge > 0, 0.5 * (problem.ridge * beta) * beta, 0.0)


@np.errstate(over="ignore", invalid="ignore")  # infinite, or not a number, where the values overflow
def residuals(problem: DualProblem, dual: Floats, slack: Floats, loss: Floats | None = None) -> Floats:
    """Return each variable's share of the duality gap, at least 0; `loss` is conjugate(slack) if it is known.

    Where loss and product overflow, their difference is not a number: the share is infinite.
    """
    share = (conjugate(problem, slack) if loss is None else loss) - (slack - 0.5 * problem.ridge * dual) * dual
    if problem.kinked:
        share += problem.kink * np.abs(dual)
    np.maximum(share, 0.0, out=share)
    if np.isnan(share.sum()):
        share[np.isnan(share)] = np.inf
    return share
