"""Query strategies of active learning, which select samples by their decision values.

A model assigns a sample x a value f_c(x) for each class; two classes have the values (−f, f). Then

    class margin_c(x) = ½ (f_c(x) − max_{d ≠ c} f_d(x))      y f(x) for two classes
    margin(x)         = max_c class margin_c(x)              |f(x)|: half the difference of the two largest values
    violation_c(x)    = max(0, 1 − class margin_c(x))        max(0, 1 − y f(x))

A new sample with the label y and the dual variable 0 has the gradient y − f(x) (before the offset) in the signed dual,
and can be part of a violating pair if y f(x) < 1. LASVM (Bordes, Ertekin, Weston and Bottou 2005) selects samples with
known labels by the largest violation, and samples without labels by the smallest margin, both among 50 random
candidates. This is nearly as good as the whole pool (one of 59 random samples is among the best 5 % with probability
0.95), and the cost is independent of its size.

The violation of a sample *without* a label depends on the unknown label: 1 + margin for the less likely of the two best
classes, 1 − margin for the more likely one. The former is largest for samples that are classified with confidence, and
hardly ever occurs. The violation that is certain whatever the label is, 1 − margin, is therefore used: without labels
the largest gradient is the smallest margin. (The mean over the two labels, weighted by exp(−violation), the likelihood
of the hinge loss (Sollich 2002), decreases with the margin and would give the same order. The mean over all labels of
many classes is worse than random on USPS digits: it is dominated by implausible labels.)

`LabelingRate` selects a fraction of a stream: a sample is selected if fewer than this fraction of the latest samples
have at least its priority, and if no more than ⌈rate · samples so far⌉ are selected in total. In a constant stream no
sample has a high rank, and only the first is selected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from maxmargin._typing import Floats, Indices

#: Up to this pool size candidates are drawn by a permutation, above it by repeated draws until they differ.
MAX_PERMUTED = 2**16

#: Rounding errors of products such as 0.07 · 100, which exceed the exact integer slightly.
CEILING_TOLERANCE = 1e-9


def class_margins(values: Floats) -> Floats:
    """Return half the difference of each class to the best other class: y f(x) for two classes."""
    two = np.partition(values, -2, axis=1)[:, -2:]
    best = np.argmax(values, axis=1)
    others = np.repeat(two[:, 1:], values.shape[1], axis=1)
    others[np.arange(len(values)), best] = two[:, 0]
    return np.asarray(0.5 * (values - others))


def margins(values: Floats) -> Floats:
    """Return half the difference of the two largest values: |f(x)| for two classes."""
    two = np.partition(values, -2, axis=1)[:, -2:]
    return np.asarray(0.5 * (two[:, 1] - two[:, 0]))


def known_violations(values: Floats, numbers: Indices) -> Floats:
    """Return max(0, 1 − class margin) of known labels; infinite for a class that the model does not know (−1)."""
    own = class_margins(values)[np.arange(len(values)), numbers]
    return np.where(numbers < 0, np.inf, np.maximum(0.0, 1.0 - own))


@dataclass
class Candidates:
    """Samples 0, 1, … to select from, and the margins that were evaluated.

    Attributes
    ----------
    size : int
        The number of samples.
    decide : callable
        Maps sample numbers to decision values by class.
    labels : int array, optional
        The class number of each sample, −1 for a class that the model does not know; None if labels are unknown.
    margins : list of float arrays
        The margins of the evaluated samples.
    """

    size: int
    decide: Callable[[Indices], Floats]
    labels: Indices | None = None
    margins: list[Floats] = field(default_factory=list)

    def evaluate(self, numbers: Indices) -> Floats:
        """Return the decision values of some samples and record their margins."""
        values = self.decide(numbers)
        self.margins.append(margins(values))
        return values


@runtime_checkable
class QueryStrategy(Protocol):
    """A strategy that selects samples to query."""

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        """Return the numbers of up to `n` samples, the highest priority first."""

    def priorities(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        """Return the priority of each sample, for streams."""


def draw(candidates: Candidates, count: int | None, random: np.random.RandomState) -> Indices:
    """Return `count` samples in random order, all if it is None; the order decides between equal priorities."""
    size = candidates.size
    if count is None or size < max(MAX_PERMUTED, 4 * count):
        return random.permutation(size)[:count].astype(np.int64)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:  # one round of 2 · count draws is nearly always sufficient
        drawn = np.append(drawn, random.randint(size, size=2 * count))
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:count]


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"{name} must be at least 1, not {value!r}")


@dataclass(frozen=True)
class Random:
    """Random samples: the baseline."""

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        return draw(candidates, n, random)

    def priorities(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        return np.asarray(random.random_sample(candidates.size))


@dataclass(frozen=True)
class Margin:
    """The samples with the smallest margin, of the whole pool or of random candidates.

    Parameters
    ----------
    n_candidates : int, optional
        The number of candidates for each selected sample; None for the whole pool.
    """

    n_candidates: int | None = None

    def __post_init__(self) -> None:
        _check_positive("n_candidates", self.n_candidates)

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        drawn = self._draw(candidates, n, random)
        return drawn[np.argsort(margins(candidates.evaluate(drawn)), kind="stable")[:n]]

    def priorities(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        return -margins(candidates.evaluate(np.arange(candidates.size)))

    def _draw(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        return draw(candidates, None if self.n_candidates is None else n * self.n_candidates, random)


@dataclass(frozen=True)
class Gradient(Margin):
    """The samples with the largest violation: of their labels, or if these are unknown of any label.

    Parameters
    ----------
    n_candidates : int, optional
        The number of candidates for each selected sample; None for the whole pool.
    """

    n_candidates: int | None = 50

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        if candidates.labels is None:
            return super().choose(candidates, n, random)
        drawn = self._draw(candidates, n, random)
        violations = known_violations(candidates.evaluate(drawn), candidates.labels[drawn])
        return drawn[np.argsort(-violations, kind="stable")[:n]]


@dataclass(frozen=True)
class AutoActive(Margin):
    """LASVM's auto-active search: evaluate random samples until enough are inside the margin, select the closest.

    Few decision values are computed while many samples are inside the margin; later the search goes further.

    Parameters
    ----------
    n_candidates : int
        The most candidates for each selected sample.
    n_inside : int
        The number of samples with a margin below 1, for each selected sample, at which the search ends.
    """

    n_candidates: int = 100
    n_inside: int = 5
    #: Samples that are evaluated together: a few more than necessary, which does not change the selection.
    chunk: ClassVar[int] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive("n_inside", self.n_inside)

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        drawn = self._draw(candidates, n, random)
        found = np.empty(0)
        while len(found) < len(drawn) and np.count_nonzero(found < 1.0) < n * self.n_inside:
            part = drawn[len(found) : len(found) + n * self.chunk]
            found = np.append(found, margins(candidates.decide(part)))
        inside = np.flatnonzero(found < 1.0)
        if len(inside) >= n * self.n_inside:
            found = found[: inside[n * self.n_inside - 1] + 1]
        candidates.margins.append(found)
        return drawn[np.argsort(found, kind="stable")[:n]]


#: The strategies by name.
QUERY_STRATEGIES: dict[str, QueryStrategy] = {
    "random": Random(),
    "gradient": Gradient(),
    "margin": Margin(),
    "margin_of_candidates": Margin(n_candidates=50),
    "auto_active": AutoActive(),
}


class LabelingRate:
    """Selects at most a fraction of a stream, the samples with the highest priorities among the latest.

    Parameters
    ----------
    rate : float
        The largest fraction of selected samples.
    window : int
        The number of latest samples that a sample is compared with.
    """

    def __init__(self, rate: float, window: int = 1000) -> None:
        self.rate = rate
        self.latest: deque[float] = deque(maxlen=window)
        self.seen = self.selected = 0

    def select(self, priority: float | None) -> bool:
        """Return whether the next sample is selected; without a priority it is as long as the rate allows."""
        self.seen += 1
        selected = True
        if priority is not None:
            above = int(np.count_nonzero(np.array(self.latest) >= priority))
            selected = above < self.rate * (len(self.latest) + 1)
            self.latest.append(priority)
        selected = selected and self.selected < ceil(self.rate * self.seen - CEILING_TOLERANCE)
        self.selected += selected
        return selected
