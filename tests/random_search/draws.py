"""Random choices for the generator of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

#: Factors that are far outside what is usual, and what they apply to.
EXTREME = (1e-300, 1e-150, 1e-100, 1e-30, 1e-12, 1e8, 1e12, 1e30, 1e100, 1e122, 1e150, 1e300)
EXTREME_OF = ("samples", "targets", "weights", "costs")


class Draw:
    """A random generator with the choices that cases are made of."""

    def __init__(self, seed: int, number: int, extreme: bool = False) -> None:
        self.rng = np.random.default_rng([seed, number])
        drawn = [name for name in EXTREME_OF if self.chance(0.4)]
        self._extreme = (drawn or [self.one_of(EXTREME_OF)]) if extreme else []

    def factor(self, of: str, usual: float) -> float:
        """Return the usual factor on samples, targets, weights or costs, or an extreme one if the case has such."""
        return float(self.one_of(EXTREME)) if of in self._extreme else usual

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < probability)

    def pick(self, *options: Any) -> Any:
        """Return one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def one_of(self, options: Sequence[Any]) -> Any:
        """Return one of a sequence."""
        return self.pick(*options)

    def mostly(self, usual: Any, *rare: Any, probability: float = 0.2) -> Any:
        """Return the usual value, or with some probability one of the others."""
        return self.pick(*rare) if self.chance(probability) else usual

    def power(self, least: float, most: float) -> float:
        """Return a power of ten with a uniformly distributed exponent, rounded to three digits."""
        return float(f"{10.0 ** self.rng.uniform(least, most):.3g}")

    def count(self, least: int, most: int) -> int:
        """Return a whole number, small ones more often."""
        return int(np.round(np.exp(self.rng.uniform(np.log(least), np.log(most)))))
