"""The classes of a stream and their machines: which there are, and how they are laid out as in scikit-learn.

Classes are numbered as they appear. One-versus-rest has a machine for each class, of which two share one;
one-versus-one has a machine for each pair. When a class appears late, new machines start from the memory: its samples
are of other classes.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.online import Contrast, OnlineLearner


class StreamClasses:
    """Labels in the order of their appearance, and what tells them apart.

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
        """The place of each class among the sorted labels."""
        rank = np.empty(len(self), dtype=np.int64)
        rank[np.argsort(self.labels, kind="stable")] = np.arange(len(self))
        return rank

    def unknown(self, labels: Any) -> Any:
        """Return the labels that have not appeared yet, in order, or raise if they are of another kind."""
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
        """Make machines for new labels."""
        before = len(self)
        self.labels = np.concatenate([self.labels, labels]) if before else labels
        count = len(self)
        if before == 0 and count:
            learner.add_role(Contrast(0))
        if self.strategy == "ovo":
            if before < 2 <= count:
                learner.roles[0] = Contrast(0, 1)  # for two classes the same as against the rest
            for second in range(max(before, 2), count):
                for first in range(second):
                    learner.add_role(Contrast(first, second))
        elif count > 2:
            if before == 2:
                learner.add_role(Contrast(1), opposite_of=0)
            for number in range(before if before > 1 else 1, count):
                learner.add_role(Contrast(number))

    def numbers(self, y: Any) -> Indices:
        """Return the class of each label by its number."""
        order = np.argsort(self.labels, kind="stable")
        return np.asarray(order[np.searchsorted(self.labels, y, sorter=order)], dtype=np.int64)

    def machines(self, learner: OnlineLearner) -> list[tuple[int, float]]:
        """Return the machines in scikit-learn's order, each with the sign that makes its positive side the right one.

        Two classes: positive is the second. One against the rest: the one. A pair: the first.
        """
        rank, count = self.rank, len(self)
        roles = [role for role in learner.roles if isinstance(role, Contrast)]
        if count <= 2:
            return [(0, -1.0 if count == 2 and rank[0] == 0 else 1.0)]
        if self.strategy == "ovr":
            return [(int(m), 1.0) for m in np.argsort(rank)]
        places = {}
        for m, role in enumerate(roles):
            assert role.negative is not None
            a, b = int(rank[role.positive]), int(rank[role.negative])
            places[min(a, b), max(a, b)] = (m, 1.0 if a < b else -1.0)
        return [places[pair] for pair in combinations(range(count), 2)]

    def lay_out(self, learner: OnlineLearner, support: Indices) -> Floats:
        """Return the coefficients of support vectors that are sorted by class, as in ``dual_coef_``."""
        machines = self.machines(learner)
        lines = np.array([sign * learner.dual[m, support] for m, sign in machines])
        if self.strategy == "ovr" or len(self) <= 2:
            return lines
        of_class = self.rank[learner.slots.label[support]]
        coefficients = np.zeros((len(self) - 1, len(support)))
        for line, (a, b) in zip(lines, combinations(range(len(self)), 2), strict=True):
            coefficients[b - 1, of_class == a] = line[of_class == a]
            coefficients[a, of_class == b] = line[of_class == b]
        return coefficients

    def offsets(self, learner: OnlineLearner) -> Floats:
        """Return the offset of each machine."""
        return np.array([sign * learner.offset(m) for m, sign in self.machines(learner)])

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote | OneVsRestArgmax:
        """Return what predicts."""
        if self.strategy == "ovr" or len(self) <= 2:
            return OneVsRestArgmax(coefficients, offsets)
        return OneVsOneVote(coefficients, offsets, counts)
