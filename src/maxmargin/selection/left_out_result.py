"""What is known of the samples of a problem, each by the model without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices

#: Samples of one native call.
CHUNK = 256

#: Called with the number of samples whose result is known; raises to stop.
Report = Callable[[int], None]


@dataclass
class LeftOut:
    """What is known of the samples of one problem, each by the model without it.

    Attributes
    ----------
    values : float array
        Decision values; NaN where only the sign is known.
    signs : float array
        +1 or −1; 0 where nothing is known.
    proved : bool array
        Whether a bound shows the sign, up to the rounding of its sums; otherwise it is that of a value within the
        tolerance.
    solves : int
        The number of problems that were solved, at any tolerance.
    """

    values: Floats
    signs: Floats
    proved: np.ndarray
    solves: int = 0

    @classmethod
    def of(cls, size: int) -> LeftOut:
        """Return the result of which nothing is known."""
        return cls(np.full(size, np.nan), np.zeros(size), np.zeros(size, dtype=bool))

    def set_value(self, sample: int, value: float) -> None:
        """Set the value of a sample, and its sign."""
        self.values[sample], self.signs[sample] = value, 1.0 if value >= 0 else -1.0


def chunks(samples: Indices, size: int = CHUNK) -> Iterator[Indices]:
    """Yield so many samples at a time as one native call takes."""
    for first in range(0, len(samples), size):
        yield samples[first : first + size]
