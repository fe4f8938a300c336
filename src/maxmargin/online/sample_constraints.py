"""The binary subproblems of a stream: linear term, bounds and start value of each sample's dual variable.

    classification, one class against another or the rest     linear = ±1,  [0, C_i] or [−C_i, 0],  start 0
    novelty detection                                         linear = 0,   [0, c_i],               start ν c_i

With a bias the dual variables have a constant sum, which a new sample increases by its start value. The sum of novelty
detection is therefore ν Σ c_i over all samples seen, as in the batch problem (`formulations.one_class`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices


class SampleConstraints(NamedTuple):
    """Linear term, bounds and start value of some samples; equal bounds exclude a sample from the subproblem."""

    linear: Floats
    lower: Floats
    upper: Floats
    start: Floats


class StreamSubproblem(Protocol):
    """A binary subproblem of a stream."""

    def constraints(self, labels: Indices, costs: Floats) -> SampleConstraints:
        """Return the constraints of samples with these labels (class numbers) and costs."""
        ...


@dataclass(frozen=True)
class BinaryClassification:
    """Classification of a class against another, or against all others if `negative` is None."""

    positive: int
    negative: int | None = None

    def constraints(self, labels: Indices, costs: Floats) -> SampleConstraints:
        positive = labels == self.positive
        negative = ~positive if self.negative is None else labels == self.negative
        return SampleConstraints(
            linear=positive.astype(np.float64) - negative,
            lower=np.where(negative, -costs, 0.0),
            upper=np.where(positive, costs, 0.0),
            start=np.zeros(len(labels)),
        )


@dataclass(frozen=True)
class NoveltyDetection:
    """Novelty detection with at most a fraction ν of outliers."""

    nu: float

    def constraints(self, labels: Indices, costs: Floats) -> SampleConstraints:
        zeros = np.zeros(len(labels))
        return SampleConstraints(zeros, zeros, np.array(costs, dtype=np.float64), self.nu * costs)
