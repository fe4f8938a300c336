"""The linear cases: data sets with C from 0.01 to 100, in a suite for each loss.

Mostly zero data stay sparse. Each data set is read once for all values of C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from benchmarks.peers import loading
from benchmarks.peers.linear.synthetic_text import repeated_text, text_like
from benchmarks.peers.loading import Data, standardised

COSTS = (0.01, 1.0, 100.0)


@dataclass(frozen=True)
class LinearCase:
    """A data set and the parameters of its fit.

    Attributes
    ----------
    name : str
        Without blanks; the part before `_C` selects all costs in `--cases`.
    load : function without arguments
        Returns samples and labels.
    repeats : int
        Warm fits in each process, after the first fit; their median counts.
    max_seconds : float, optional
        A smaller time limit than that of the benchmark.
    """

    name: str
    load: Callable[[], Data]
    C: float = 1.0
    loss: str = "squared_hinge"
    repeats: int = 1
    max_seconds: float | None = None


def linear(folder: Path) -> list[LinearCase]:
    """Return all data sets with the squared hinge, the default of scikit-learn."""
    many = {
        "usps": partial(loading.libsvm_text, folder, "usps.libsvm.xz"),
        "mnist": partial(loading.mnist, folder, 60_000),
    }
    return _with_costs({**two_classes(folder), **many}, "squared_hinge")


def linear_hinge(folder: Path) -> list[LinearCase]:
    """Return the data sets of two classes with the hinge."""
    return _with_costs(two_classes(folder), "hinge")


def linear_quick(folder: Path) -> list[LinearCase]:
    """Return tiny generated cases as a smoke test: dense, sparse, several classes."""
    data: dict[str, Callable[[], Data]] = {"clouds": _clouds, "three_clouds": partial(_clouds, 3), "text": _few_words}
    return _with_costs(data, "squared_hinge", repeats=3)


LINEAR_SUITES: dict[str, Callable[[Path], list[LinearCase]]] = {
    "linear": linear,
    "linear-hinge": linear_hinge,
    "linear-quick": linear_quick,
}


def two_classes(folder: Path) -> dict[str, Callable[[], Data]]:
    """Return the data sets of two classes by name."""
    text = partial(loading.libsvm_text, folder)
    return {
        "a9a": partial(text, "a9a.libsvm", features=123, dense=False),
        "ijcnn1": partial(text, "ijcnn1.libsvm.bz2"),
        "mushrooms": partial(text, "mushrooms.libsvm", dense=False),
        "splice": lambda: standardised(text("splice.libsvm", "splice.t.libsvm")),
        "reuters": partial(text, "lasvm_reuters.libsvm.bz2", dense=False),
        "unscaled": lambda: loading.covtype(folder, 5_000),
        "covtype": lambda: from_zero_to_one(loading.covtype(folder, 581_012)),
        "text": text_like,
        "copies": repeated_text,
    }


def from_zero_to_one(data: Data) -> Data:
    """Return the data with columns scaled to [0, 1]; constant columns become 0."""
    X, y = data
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    width[width == 0] = 1.0
    X -= low
    X /= width
    return X, y


#: Data sets whose fits take milliseconds.
SMALL = ("a9a", "ijcnn1", "mushrooms", "splice", "reuters", "unscaled")


def _with_costs(data: dict[str, Callable[[], Data]], loss: str, repeats: int = 5) -> list[LinearCase]:
    cases = []
    for name, load in data.items():
        often = repeats if name in SMALL else 1
        cases += [LinearCase(f"{name}_C{C:g}", partial(_latest, load), C, loss, often) for C in COSTS]
    return cases


@lru_cache(maxsize=1)
def _latest(load: Callable[[], Data]) -> Data:
    """Return the most recently loaded data from a cache."""
    return load()


def _clouds(classes: int = 2) -> Data:
    random = np.random.default_rng(0)
    y = np.arange(300) % classes
    return random.normal(size=(300, 6)) + np.eye(6)[y], y


def _few_words() -> Data:
    return text_like(rows=400, features=2_000, words=20)
