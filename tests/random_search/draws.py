"""Random choices for the generator of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Draw:
    """A random generator with the choices that cases are made of."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng([seed, number])

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
