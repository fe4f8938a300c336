"""Labels as LIBSVM and LIBLINEAR order them, and what predicts them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.option_words import ProgramError

#: Says a line, or nothing in quiet mode.
Say = Callable[[str], None]

#: Labels and factors on their C, in the order of the command line.
Weights = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Classes:
    """Labels by first appearance, but +1 before −1.

    Attributes
    ----------
    labels : int array
    numbers : int array
        The position of the label of each sample.
    """

    labels: Indices
    numbers: Indices

    @classmethod
    def of(cls, y: Floats) -> Classes:
        """Return the classes of samples with whole numbers as labels."""
        found, first, codes = np.unique(y.astype(np.int64), return_index=True, return_inverse=True)
        order = np.argsort(first)
        if found[order].tolist() == [-1, 1]:
            order = order[::-1]
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return cls(found[order], place[codes])

    @property
    def members(self) -> list[Indices]:
        """The samples of each class."""
        return [np.flatnonzero(self.numbers == number) for number in range(len(self.labels))]

    def factors(self, weights: Weights) -> dict[int, float]:
        """Return factors by the number of the class; those of the same label multiply."""
        positions = {label: number for number, label in enumerate(self.labels.tolist())}
        factors: dict[int, float] = {}
        for label, factor in weights:
            if label in positions:
                factors[positions[label]] = factors.get(positions[label], 1.0) * factor
        return factors


@dataclass(frozen=True)
class Trained:
    """A machine that was trained on the numbers of classes, or on targets.

    Attributes
    ----------
    estimator : estimator, optional
        None if there was only one class.
    labels : int array, optional
        Of the classes.
    """

    estimator: Any
    labels: Indices | None

    def predict(self, X: Any) -> Floats:
        """Return labels or values."""
        if self.labels is None:
            return np.asarray(self.estimator.predict(X), dtype=np.float64)
        if self.estimator is None:
            return np.full(X.shape[0], float(self.labels[0]))
        return np.asarray(self.labels[self.estimator.predict(X)], dtype=np.float64)


def check_labels(y: Floats, weights: Weights) -> Floats:
    """Return labels of classes, cut to whole numbers as by the programs, and warn of weights that are for none."""
    whole = np.trunc(y)
    if not np.array_equal(whole, y):
        print("WARNING: labels are cut to whole numbers; other numbers are for regression", file=sys.stderr)
    if len(y) and np.abs(whole).max() >= 2**31:
        raise ProgramError("ERROR: labels of classes must be below 2147483648")
    known = set(whole.tolist())
    for label, _ in weights:
        if label not in known:
            print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    return np.asarray(whole)


def say_nothing(line: str) -> None:
    """Be quiet."""
