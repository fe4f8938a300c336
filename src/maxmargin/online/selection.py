"""Which sample to ask for: strategies of active selection, from decision values alone.

A machine gives a sample x one value f_c(x) for each class; two classes are (−f, f). With the best rival of a class,

    lead_c(x)      = ½ (f_c(x) − max_{d ≠ c} f_d(x))      y f(x) if there are two classes
    margin(x)      = max_c lead_c(x)                      |f(x)|: half the difference of the two largest values
    violation_c(x) = max(0, 1 − lead_c(x))                max(0, 1 − y f(x))

A sample that comes in with the label y and the dual variable 0 has the gradient y − f(x) (before the offset) in the
signed dual, and can form a violating pair as far as y f(x) < 1: `violation` is how far. LASVM (Bordes, Ertekin, Weston
and Bottou 2005) selects from data whose labels are known by the largest violation, and if labels are unknown by the
smallest margin, both among 50 candidates drawn at random, which is nearly as good as the whole pool (one of 59 random
samples is among the best 5 % with probability 0.95) and does not depend on its size.

A sample *without* a label violates by more or less, depending on the label that comes: by 1 + margin if it is the
worse of the two best, by 1 − margin if it is the better. The former is largest at samples that are surely settled, and
then hardly ever comes true. So the violation counts that is certain whatever the label is, 1 − margin: without labels
the largest gradient is the smallest margin. (The mean over the two labels, weighed by exp(−violation), the likelihood
that the hinge loss stands for (Sollich 2002), falls with the margin too and would choose the same. The mean over all
labels of many classes was tried: on USPS digits it is worse than random, ruled by labels that are out of the question.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from maxmargin._typing import Floats, Indices


def leads(values: Floats) -> Floats:
    """Return by how much each class leads its best rival, halved: y f(x) if there are two classes."""
    two = np.partition(values, -2, axis=1)[:, -2:]
    best = np.argmax(values, axis=1)
    rivals = np.repeat(two[:, 1:], values.shape[1], axis=1)
    rivals[np.arange(len(values)), best] = two[:, 0]
    return np.asarray(0.5 * (values - rivals))


def margins(values: Floats) -> Floats:
    """Return half the difference of the two largest values: the size of f(x) if there are two classes."""
    two = np.partition(values, -2, axis=1)[:, -2:]
    return np.asarray(0.5 * (two[:, 1] - two[:, 0]))


def known_violations(values: Floats, numbers: Indices) -> Floats:
    """Return max(0, 1 − lead) of known labels; one that the machine has never met (−1) violates without limit."""
    own = leads(values)[np.arange(len(values)), numbers]
    return np.where(numbers < 0, np.inf, np.maximum(0.0, 1.0 - own))


@dataclass
class Candidates:
    """Samples to choose from, numbered 0, 1, …, and what was seen of them.

    Attributes
    ----------
    size : int
        How many there are.
    decide : callable
        From numbers of samples to their values by class.
    labels : int array, optional
        The number of each sample's class, −1 for a class that the machine does not know; None if they are unknown.
    seen : list of float arrays
        The margins of the samples that were looked at.
    """

    size: int
    decide: Callable[[Indices], Floats]
    labels: Indices | None = None
    seen: list[Floats] = field(default_factory=list)

    def look(self, numbers: Indices) -> Floats:
        """Return the values of some samples and remember their margins."""
        values = self.decide(numbers)
        self.seen.append(margins(values))
        return values


@runtime_checkable
class Strategy(Protocol):
    """How to choose among samples."""

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        """Return the numbers of up to `n` samples, the most wanted first."""

    def wishes(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        """Return how much each of the samples is wanted, which need not be all at hand: for streams."""


#: Up to so many samples are shuffled to draw some of them; of more the draws are repeated until they differ.
SHUFFLED = 2**16


def draw(candidates: Candidates, count: int | None, random: np.random.RandomState) -> Indices:
    """Return `count` samples at random, all if it is None. Their order is random too: it decides between equals."""
    size = candidates.size
    if count is None or size < max(SHUFFLED, 4 * count):
        return random.permutation(size)[:count].astype(np.int64)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:  # of twice as many draws from four times as many samples nearly always enough differ
        drawn = np.append(drawn, random.randint(size, size=2 * count))
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:count]


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError(f"{name} must be at least 1, not {value!r}")


@dataclass(frozen=True)
class Random:
    """Each sample is as good as any other: what the others have to beat."""

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        return draw(candidates, n, random)

    def wishes(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        return np.asarray(random.random_sample(candidates.size))


@dataclass(frozen=True)
class Margin:
    """The samples closest to the boundary, of the whole pool or of some candidates.

    Parameters
    ----------
    n_candidates : int, optional
        How many samples are looked at for each one that is chosen; None for all.
    """

    n_candidates: int | None = None

    def __post_init__(self) -> None:
        _check_positive("n_candidates", self.n_candidates)

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        drawn = self._draw(candidates, n, random)
        return drawn[np.argsort(margins(candidates.look(drawn)), kind="stable")[:n]]

    def wishes(self, candidates: Candidates, random: np.random.RandomState) -> Floats:
        return -margins(candidates.look(np.arange(candidates.size)))

    def _draw(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        return draw(candidates, None if self.n_candidates is None else n * self.n_candidates, random)


@dataclass(frozen=True)
class Gradient(Margin):
    """The samples that violate most: with their labels, or where these are unknown whatever they are.

    Parameters
    ----------
    n_candidates : int, optional
        How many samples are looked at for each one that is chosen; None for all.
    """

    n_candidates: int | None = 50

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        if candidates.labels is None:
            return super().choose(candidates, n, random)
        drawn = self._draw(candidates, n, random)
        violations = known_violations(candidates.look(drawn), candidates.labels[drawn])
        return drawn[np.argsort(-violations, kind="stable")[:n]]


@dataclass(frozen=True)
class AutoActive(Margin):
    """LASVM's auto-active search: look at fresh samples until enough of them are inside the margin, take the closest.

    While the margin is crowded few decision values are computed; when it empties the search goes further.

    Parameters
    ----------
    n_candidates : int
        The most samples that are looked at for each one that is chosen.
    enough : int
        The search ends as soon as so many of them, for each one that is chosen, have a margin below 1.
    """

    n_candidates: int = 100
    enough: int = 5
    #: How many samples are looked at together. It costs some decision values too many, but never changes the choice.
    together: ClassVar[int] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_positive("enough", self.enough)

    def choose(self, candidates: Candidates, n: int, random: np.random.RandomState) -> Indices:
        drawn = self._draw(candidates, n, random)
        found = np.empty(0)
        while len(found) < len(drawn) and np.count_nonzero(found < 1.0) < n * self.enough:
            part = drawn[len(found) : len(found) + n * self.together]
            found = np.append(found, margins(candidates.decide(part)))
        inside = np.flatnonzero(found < 1.0)
        if len(inside) >= n * self.enough:
            found = found[: inside[n * self.enough - 1] + 1]
        candidates.seen.append(found)
        return drawn[np.argsort(found, kind="stable")[:n]]


#: The strategies by name.
STRATEGIES: dict[str, Strategy] = {
    "random": Random(),
    "gradient": Gradient(),
    "margin": Margin(),
    "margin_of_candidates": Margin(n_candidates=50),
    "auto_active": AutoActive(),
}
