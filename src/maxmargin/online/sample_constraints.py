"""What a sample of a stream means to a machine: its linear term, its box, and the value that its variable starts with.

    one class against another, or against the rest     linear = ±1,  [0, C_i] or [−C_i, 0],  starts at 0
    novelty detection                                  linear = 0,   [0, c_i],               starts at ν c_i

With a bias the variables of a machine sum to a constant, which a newcomer raises by the value it starts with. So the
sum of novelty detection is ν Σ c_i over all samples seen, as in the batch problem (`formulations.one_class`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices


class Part(NamedTuple):
    """The part of some samples in a machine; equal bounds mean that they have none."""

    linear: Floats
    lower: Floats
    upper: Floats
    start: Floats


class Role(Protocol):
    """What a machine is about."""

    def part(self, labels: Indices, costs: Floats) -> Part:
        """Return the part of samples with these labels (numbers of classes) and costs."""
        ...


@dataclass(frozen=True)
class Contrast:
    """A class against another, or against all others if `negative` is None."""

    positive: int
    negative: int | None = None

    def part(self, labels: Indices, costs: Floats) -> Part:
        above = labels == self.positive
        below = ~above if self.negative is None else labels == self.negative
        linear = above.astype(np.float64) - below
        return Part(linear, np.where(below, -costs, 0.0), np.where(above, costs, 0.0), np.zeros(len(labels)))


@dataclass(frozen=True)
class Novelty:
    """All samples against the origin, of which a part ν may lie outside."""

    nu: float

    def part(self, labels: Indices, costs: Floats) -> Part:
        nothing = np.zeros(len(labels))
        return Part(nothing, nothing, np.array(costs, dtype=np.float64), self.nu * costs)
