"""Labels in the order of LIBSVM and LIBLINEAR, and models that predict them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.program_options import ProgramError

#: Prints a line of output; `discard` in quiet mode.
Log = Callable[[str], None]

#: Labels and their factors on C, in the order of the command line.
Weights = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Classes:
    """Distinct labels in the order of their first occurrence, but +1 before −1.

    Attributes
    ----------
    labels : int array
    numbers : int array
        Index of the label of each sample.
    """

    labels: Indices
    numbers: Indices

    @classmethod
    def of(cls, y: Floats) -> Classes:
        """Return the classes of samples with integer labels."""
        labels, first, codes = np.unique(y.astype(np.int64), return_index=True, return_inverse=True)
        order = np.argsort(first)
        if labels[order].tolist() == [-1, 1]:
            order = order[::-1]
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return cls(labels[order], rank[codes])

    @property
    def members(self) -> list[Indices]:
        """Indices of the samples of each class."""
        return [np.flatnonzero(self.numbers == number) for number in range(len(self.labels))]

    def factors(self, weights: Weights) -> dict[int, float]:
        """Return the factors by class index; several factors of a label multiply."""
        positions = {label: number for number, label in enumerate(self.labels.tolist())}
        factors: dict[int, float] = {}
        for label, factor in weights:
            if label in positions:
                factors[positions[label]] = factors.get(positions[label], 1.0) * factor
        return factors


@dataclass(frozen=True)
class ProgramModel:
    """A machine trained on class indices, or on targets.

    Attributes
    ----------
    machine : machine, optional
        None if there is only one class.
    labels : int array, optional
        Labels of the classes; None without classes.
    """

    machine: Any
    labels: Indices | None

    def predict(self, X: Any) -> Floats:
        """Return labels or values of a regression."""
        if self.labels is None:
            return np.asarray(self.machine.predict(X), dtype=np.float64)
        if self.machine is None:
            return np.full(X.shape[0], float(self.labels[0]))
        return np.asarray(self.labels[self.machine.predict(X)], dtype=np.float64)


def check_labels(y: Floats, weights: Weights) -> Floats:
    """Return labels truncated to integers, as the programs do; warn of weights for unknown labels."""
    truncated = np.trunc(y)
    if not np.array_equal(truncated, y):
        print("WARNING: labels are truncated to integers; other numbers are for regression", file=sys.stderr)
    if len(y) and np.abs(truncated).max() >= 2**31:
        raise ProgramError("ERROR: class labels must be below 2147483648")
    known = set(truncated.tolist())
    for label, _ in weights:
        if label not in known:
            print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    return np.asarray(truncated)


def discard(line: str) -> None:
    """Print nothing."""
