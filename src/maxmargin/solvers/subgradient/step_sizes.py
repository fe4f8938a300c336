"""Step sizes of the subgradient methods, and their choice by trial runs.

Our objective is scaled by C, P(w) = ½‖w‖² + C Σ loss_i, and strongly convex with modulus 1 whatever the data. The
literature often divides it by n C, which gives λ/2 ‖w‖² + mean loss with λ = 1/(n C). A step 1/(λt) there is the same
as a step 1/t here, so that no rule depends on λ.

    constant        η             converges to a neighbourhood of the optimum
    decaying        η / (t + t0)  converges: the sum of the steps is infinite, that of their squares is finite
    inverse time    1 / t         the rule 1/(λt) of Pegasos (Shalev-Shwartz et al. 2007)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from maxmargin.problems import DualProblem
from maxmargin.problems.losses import response
from maxmargin.solvers.linear.linear_point import features_of

#: The ratio of successive trial steps, and the most trials in one direction.
TRIAL_FACTOR, MAX_TRIALS = 2.0, 80

#: The most variables of a trial problem.
MAX_TRIAL_SAMPLES = 1000


@dataclass(frozen=True)
class StepSize:
    """η_t = numerator / (growth · t + delay) for t = 1, 2, …; see `constant`, `decaying` and `inverse_time`."""

    numerator: float
    growth: float
    delay: float

    def __post_init__(self) -> None:
        if not 0 < self.numerator < np.inf:
            raise ValueError(f"a step must be above 0 and finite, not {self.numerator}")
        if not (0 <= self.growth < np.inf and 0 <= self.delay < np.inf and self.growth + self.delay > 0):
            raise ValueError(f"growth and delay must be at least 0 and not both 0, not {self.growth} and {self.delay}")

    @classmethod
    def constant(cls, eta: float) -> StepSize:
        """Return the constant step η."""
        return cls(eta, 0.0, 1.0)

    @classmethod
    def decaying(cls, eta: float, delay: float) -> StepSize:
        """Return η / (t + t0)."""
        return cls(eta, 1.0, delay)

    @classmethod
    def inverse_time(cls) -> StepSize:
        """Return 1/t, which is 1/(λt) for the objective scaled by λ."""
        return cls(1.0, 1.0, 0.0)

    def __call__(self, t: int) -> float:
        return self.numerator / (self.growth * t + self.delay)


def choose_step_size(
    requested: StepSize | str,
    subsample: Callable[[], DualProblem],
    value_after: Callable[[DualProblem, StepSize], float],
    max_delay: float = np.inf,
) -> StepSize:
    """Return the requested rule; for "trial" the η/(t + t0) with the lowest value after a short run on a subsample.

    With η = 1 and t0 = 1/η_1 steps are 1/t asymptotically, as long as t0 does not exceed `max_delay`; otherwise the
    decay begins after `max_delay` steps.
    """
    if isinstance(requested, StepSize):
        return requested
    if requested == "inverse_time":
        return StepSize.inverse_time()
    if requested != "trial":
        raise ValueError(f"the step size must be a StepSize, 'trial' or 'inverse_time', not {requested!r}")
    problem = subsample()

    def rule(first: float) -> StepSize:
        delay = min(1.0 / first, max_delay)
        return StepSize.decaying(first * delay, delay)

    def trial(first: float) -> float:
        try:
            return value_after(problem, rule(first))
        except FloatingPointError:
            return np.inf

    return rule(best_step_by_trial(trial, _initial_guess(problem)))


def best_step_by_trial(value_after: Callable[[float], float], guess: float) -> float:
    """Return the multiple of `guess` with the lowest value after a short run.

    Smaller steps are tried first, then larger ones if smaller are no better, as long as the value decreases. A run that
    overflows has an infinite value.
    """

    def trial(step: float) -> float:
        with np.errstate(all="ignore"):
            value = value_after(step)
        return value if np.isfinite(value) else np.inf

    best, least = guess, trial(guess)
    for factor in (1.0 / TRIAL_FACTOR, TRIAL_FACTOR):
        for _ in range(MAX_TRIALS):
            value = trial(best * factor)
            # While every run overflows, the steps are reduced further.
            if not value < least and not (factor < 1.0 and np.isinf(least)):
                break
            best, least = best * factor, value
        if best != guess:
            break
    return best


def _initial_guess(problem: DualProblem) -> float:
    """Return the step with which a stochastic step changes the decision value of its own sample by about 1."""
    ones = np.ones(problem.size)
    responses = np.maximum(np.abs(response(problem, ones)), np.abs(response(problem, -ones)))
    return 1.0 / (1.0 + float(responses @ features_of(problem, "subgradient").squared_norms()))


def reduced_step_size(requested: StepSize | str, step: StepSize) -> StepSize:
    """Return shorter steps after an overflow if the step size was chosen by trial, otherwise raise ValueError."""
    if requested != "trial":
        raise ValueError(
            "the steps are too long and the weights diverged; use a smaller StepSize, or step_size='trial'"
        )
    return StepSize.decaying(step.numerator, 4.0 * step.delay)


def scaled_subsample(problem: DualProblem, seed: int, samples: float | None = None) -> DualProblem:
    """Return a random subproblem with bounds scaled so that it represents all variables, or `samples` of them."""
    n, size = problem.size, min(problem.size, MAX_TRIAL_SAMPLES)
    factor = (n if samples is None else samples) / size
    if factor == 1.0:
        return problem
    chosen = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    lower, upper, group = problem.lower[chosen] * factor, problem.upper[chosen] * factor, problem.group[chosen]
    least, most = np.zeros(problem.groups), np.zeros(problem.groups)
    np.add.at(least, group[group >= 0], lower[group >= 0])
    np.add.at(most, group[group >= 0], upper[group >= 0])
    return DualProblem(
        problem.matrix.take(chosen),
        problem.linear[chosen],
        lower,
        upper,
        problem.ridge[chosen] / factor,
        group,
        np.clip(problem.total * (factor * size / n), least, most),
    )
