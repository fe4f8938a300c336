"""The classes of a stream, their binary subproblems, and scikit-learn's layout of the coefficients.

Classes are numbered in the order of appearance. One-vs-rest has a subproblem for each class, of which two classes share
one; one-vs-one has one for each pair. The subproblems of a class that appears late start with the samples in memory,
which belong to other classes.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.machines.validation.training_data import class_factors
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.online import BinaryClassification, OnlineLearner


class StreamClasses:
    """Labels in the order of appearance, and their binary subproblems.

    Parameters
    ----------
    strategy : {"ovr", "ovo"}
    """

    def __init__(self, strategy: str) -> None:
        self.strategy = strategy
        self.labels: Any = np.empty(0)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def sorted(self) -> Any:
        """All labels, sorted."""
        return np.sort(self.labels)

    @property
    def rank(self) -> Indices:
        """The position of each class among the sorted labels."""
        rank = np.empty(len(self), dtype=np.int64)
        rank[np.argsort(self.labels, kind="stable")] = np.arange(len(self))
        return rank

    def unknown(self, labels: Any) -> Any:
        """Return the labels that have not appeared yet, in order, or raise if numbers and strings are mixed."""
        labels, first = np.unique(labels, return_index=True)
        labels = labels[np.argsort(first)]
        if not len(self):
            return labels
        kinds = [array.dtype.kind in "OUS" for array in (labels, self.labels)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"labels must all be numbers or all be strings, but {labels[0]!r} follows {self.labels[0]!r}"
            )
        return labels[~np.isin(labels, self.labels)]

    def add(self, labels: Any, learner: OnlineLearner) -> None:
        """Add new labels and their subproblems."""
        before = len(self)
        self.labels = np.concatenate([self.labels, labels]) if before else labels
        count = len(self)
        if before == 0 and count:
            learner.add_subproblem(BinaryClassification(0))
        if self.strategy == "ovo":
            if before < 2 <= count:
                learner.subproblems[0] = BinaryClassification(0, 1)  # for two classes the same as one-vs-rest
            for second in range(max(before, 2), count):
                for first in range(second):
                    learner.add_subproblem(BinaryClassification(first, second))
        elif count > 2:
            if before == 2:
                learner.add_subproblem(BinaryClassification(1), negated=0)
            for number in range(before if before > 1 else 1, count):
                learner.add_subproblem(BinaryClassification(number))

    def numbers(self, y: Any) -> Indices:
        """Return the class number of each label."""
        order = np.argsort(self.labels, kind="stable")
        return np.asarray(order[np.searchsorted(self.labels, y, sorter=order)], dtype=np.int64)

    def layout(self, learner: OnlineLearner) -> list[tuple[int, float]]:
        """Return the subproblems in scikit-learn's order, each with the sign that makes the right class positive.

        The positive class is the second of two classes, the one of one-vs-rest, the first of a pair.
        """
        rank, count = self.rank, len(self)
        if count <= 2:
            return [(0, -1.0 if count == 2 and rank[0] == 0 else 1.0)]
        if self.strategy == "ovr":
            return [(int(m), 1.0) for m in np.argsort(rank)]
        places = {}
        for m, pair in enumerate(learner.subproblems):
            assert isinstance(pair, BinaryClassification)
            assert pair.negative is not None
            a, b = int(rank[pair.positive]), int(rank[pair.negative])
            places[min(a, b), max(a, b)] = (m, 1.0 if a < b else -1.0)
        return [places[both] for both in combinations(range(count), 2)]

    def coefficients(self, learner: OnlineLearner, support: Indices) -> Floats:
        """Return ``dual_coef_`` of support vectors that are sorted by class."""
        rows = np.array([sign * learner.dual[m, support] for m, sign in self.layout(learner)])
        if self.strategy == "ovr" or len(self) <= 2:
            return rows
        of_class = self.rank[learner.slots.label[support]]
        coefficients = np.zeros((len(self) - 1, len(support)))
        for row, (a, b) in zip(rows, combinations(range(len(self)), 2), strict=True):
            coefficients[b - 1, of_class == a] = row[of_class == a]
            coefficients[a, of_class == b] = row[of_class == b]
        return coefficients

    def offsets(self, learner: OnlineLearner) -> Floats:
        """Return the offset of each subproblem."""
        return np.array([sign * learner.offset(m) for m, sign in self.layout(learner)])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote | OneVsRestArgmax:
        """Return the model that predicts classes."""
        if self.strategy == "ovr" or len(self) <= 2:
            return OneVsRestArgmax(coefficients, offsets)
        return OneVsOneVote(coefficients, offsets, counts)

    def factors_of(self, class_weight: Any, numbers: Indices, weights: Floats) -> Floats:
        """Return the factor of each class for a data set; "balanced" uses its class frequencies."""
        if not isinstance(class_weight, str):
            return factors_in_stream(class_weight, self.labels)
        present, codes = np.unique(numbers, return_inverse=True)
        factors = np.ones(len(self))
        factors[present] = class_factors(class_weight, present, codes, weights)
        return factors


def factors_in_stream(class_weight: Any, labels: Any) -> Floats:
    """Return the factor of each class; a dict may name classes that have not appeared yet."""
    if isinstance(class_weight, dict):
        class_weight = {label: class_weight.get(label, 1.0) for label in labels.tolist()}
    return class_factors(class_weight, labels, np.empty(0, dtype=np.int64), np.empty(0))
