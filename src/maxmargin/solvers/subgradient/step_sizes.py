"""How long the steps of a subgradient method are, and how to find out by trial.

Our objective is scaled by C, P(w) = ½‖w‖² + C Σ loss_i, and bends with modulus 1 whatever the data are. The literature
often divides it by n C, to λ/2 ‖w‖² + mean loss with λ = 1/(n C). A step 1/(λt) there is the same as a step 1/t here,
so no rule below needs to know λ.

    constant        η             ends near the optimum, not at it
    decaying        η / (t + t0)  converges: the sum of the steps is infinite, that of their squares is not
    inverse time    1 / t         the rule 1/(λt) of Pegasos (Shalev-Shwartz et al. 2007)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Trials differ by this factor, and there are at most so many in one direction.
TRIAL_FACTOR, MOST_TRIALS = 2.0, 80


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
        """Return the same step for ever."""
        return cls(eta, 0.0, 1.0)

    @classmethod
    def decaying(cls, eta: float, delay: float) -> StepSize:
        """Return η / (t + t0)."""
        return cls(eta, 1.0, delay)

    @classmethod
    def inverse_time(cls) -> StepSize:
        """Return 1/t, which is 1/(λt) for the objective that is scaled by λ."""
        return cls(1.0, 1.0, 0.0)

    def __call__(self, t: int) -> float:
        return self.numerator / (self.growth * t + self.delay)


def best_by_trial(value_after: Callable[[float], float], guess: float) -> float:
    """Return the step, among multiples of `guess`, after which a short run has the least value.

    "Try different values, see which one decreases the objective": first towards smaller steps if they are better, else
    towards larger ones, as long as that helps. A run that overflows is worse than any other.
    """

    def trial(step: float) -> float:
        with np.errstate(all="ignore"):
            value = value_after(step)
        return value if np.isfinite(value) else np.inf

    best, least = guess, trial(guess)
    for factor in (1.0 / TRIAL_FACTOR, TRIAL_FACTOR):
        for _ in range(MOST_TRIALS):
            value = trial(best * factor)
            # While everything overflows, only smaller steps can help.
            if not value < least and not (factor < 1.0 and np.isinf(least)):
                break
            best, least = best * factor, value
        if best != guess:
            break
    return best
