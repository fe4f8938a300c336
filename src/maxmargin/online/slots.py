"""What is known of the samples in memory besides the samples themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices


@dataclass
class Slots:
    """What is known of the sample in each slot."""

    label: Indices
    cost: Floats
    identity: Indices
    arrived: Indices

    @classmethod
    def empty(cls) -> Slots:
        """Return room for nothing."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def take(self, slots: Indices) -> Slots:
        """Return some of them."""
        return Slots(self.label[slots], self.cost[slots], self.identity[slots], self.arrived[slots])

    def extended(self, more: Slots) -> Slots:
        """Return these and more."""
        pairs = zip(vars(self).values(), vars(more).values(), strict=True)
        return Slots(*(np.concatenate(pair) for pair in pairs))
