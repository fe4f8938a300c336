"""Which samples of a stream get one of few labels, decided at once: those that rank high among the latest.

A sample is taken if fewer than a share `rate` of the latest samples and itself were wanted as much, and if then no
more than ⌈rate · samples so far⌉ were taken. The first makes it choosy, the second is a promise. In a stream that
repeats one sample nothing ranks high, and nothing is taken.
"""

from __future__ import annotations

from collections import deque
from math import ceil

import numpy as np

#: Products such as 0.07 · 100 come out a little above the whole number that is meant.
CEILING_TOLERANCE = 1e-9


class StreamRate:
    """A share of a stream.

    Parameters
    ----------
    rate : float
        The most samples to take, as a share of all.
    window : int
        With how many of the latest samples one is compared.
    """

    def __init__(self, rate: float, window: int = 1000) -> None:
        self.rate = rate
        self.latest: deque[float] = deque(maxlen=window)
        self.seen = 0
        self.taken = 0

    def take(self, wish: float | None) -> bool:
        """Decide about the next sample. Without a wish it is taken as long as the share allows."""
        self.seen += 1
        wanted = True
        if wish is not None:
            above = int(np.count_nonzero(np.array(self.latest) >= wish))
            wanted = above < self.rate * (len(self.latest) + 1)
            self.latest.append(wish)
        wanted = wanted and self.taken < ceil(self.rate * self.seen - CEILING_TOLERANCE)
        self.taken += wanted
        return wanted
