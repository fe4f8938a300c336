"""One-vs-one classification: a binary model for each pair of classes on shared support vectors, and their vote.

Two classes are the case of a single pair. Coefficients have the layout of LIBSVM and scikit-learn: support vectors are
sorted by class; row b−1 (for those of class a) and row a (for those of class b) belong to the pair a < b.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats
from maxmargin.models.device_blocks import DeviceKernelBlocks, array_module
from maxmargin.models.kernel_blocks import KernelBlocks, map_blocks
from maxmargin.models.overflow import check_finite, ignored_overflow


@dataclass(frozen=True)
class OneVsOneVote:
    """Decision values of all pairs of classes, and the class with most votes.

    Parameters
    ----------
    coefficients : float array of shape (classes − 1, support vectors)
    offsets : float array, one per pair (0, 1), (0, 2), …, (1, 2), …
    counts : int array, support vectors of each class
    """

    coefficients: Floats
    offsets: Floats
    counts: np.ndarray

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.counts)

    def decision_values(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> Floats:
        """Return the decision value of every pair of classes for every sample, or raise if one is not finite.

        Those of a GPU are a device array.
        """
        pairs = self._pairs
        if isinstance(blocks, DeviceKernelBlocks):
            values: Floats = blocks.decision_values(self._segments(), self.offsets)
            return values
        if not self.coefficients.shape[1]:
            return np.tile(self.offsets, (len(blocks), 1))
        if pairs == 1:
            with ignored_overflow():
                return check_finite(blocks.combine(self.coefficients[0], threads)[:, None] + self.offsets)
        segments = self._segments()

        def combine(block: Floats) -> Floats:
            out = np.tile(self.offsets, (len(block), 1))
            with ignored_overflow():
                for support, weights, pairs_of_class in segments:
                    out[:, pairs_of_class] += block[:, support] @ weights
            return out

        return check_finite(map_blocks(blocks, self.coefficients.shape[1], combine, pairs, threads))

    def predicted_class(self, decisions: Floats) -> np.ndarray:
        """Return the index of the class with most votes, the lowest one of equals.

        As in LIBSVM, a decision value of 0 is a vote for the second class of the pair.
        """
        xp = array_module(decisions)
        votes = xp.zeros((len(decisions), self.classes), dtype=np.int64)
        for a in range(self.classes - 1):
            first = decisions[:, self._pairs_before(a)] > 0
            votes[:, a] += first.sum(axis=1)
            votes[:, a + 1 :] += ~first
        winners: np.ndarray = xp.argmax(votes, axis=1)
        return winners

    def scores(self, decisions: Floats) -> Floats:
        """Return one score per class: its votes plus its summed decision values, squashed below a third."""
        xp = array_module(decisions)
        votes = xp.zeros((len(decisions), self.classes))
        confidence = xp.zeros((len(decisions), self.classes))
        decisions = xp.clip(decisions, -self._limit, self._limit)
        for a in range(self.classes - 1):
            own = decisions[:, self._pairs_before(a)]
            for pair in range(own.shape[1]):  # one after the other, in their order
                confidence[:, a] += own[:, pair]
            confidence[:, a + 1 :] -= own
            first = own >= 0
            votes[:, a] += first.sum(axis=1)
            votes[:, a + 1 :] += ~first
        scores: Floats = votes + confidence / (3.0 * (xp.abs(confidence) + 1.0))
        return scores

    @property
    def _pairs(self) -> int:
        return self.classes * (self.classes - 1) // 2

    def _segments(self) -> list[tuple[slice, Floats, np.ndarray]]:
        """Return the support vectors of each class, their coefficients, and the pairs that these belong to."""
        edges = np.concatenate([[0], np.cumsum(self.counts)]).tolist()
        rows = [slice(first, last) for first, last in pairwise(edges)]
        if self.classes == 2:  # a single pair
            rows = [slice(0, edges[-1])]
        return [
            (of_class, np.ascontiguousarray(self.coefficients[:, of_class].T), self._pairs_of(c))
            for c, of_class in enumerate(rows)
        ]

    @property
    def _limit(self) -> float:
        """Beyond it the squashed value is a third anyway, and the sum over classes must not overflow."""
        return float(np.finfo(np.float64).max / (4.0 * self.classes))

    def classes_of(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> np.ndarray:
        """Return `predicted_class` of samples, without keeping the decision values of all pairs."""
        if isinstance(blocks, DeviceKernelBlocks):
            winners: np.ndarray = blocks.map_parts(
                lambda part: self.predicted_class(self.decision_values(part, threads)), self._pairs
            )
            return winners
        return np.asarray(np.argmax(self._votes(blocks, threads, zero_is_first=False)[0], axis=1))

    def scores_of(self, blocks: KernelBlocks | DeviceKernelBlocks, threads: int) -> Floats:
        """Return `scores` of samples, without keeping the decision values of all pairs."""
        if isinstance(blocks, DeviceKernelBlocks):
            scores: Floats = blocks.map_parts(
                lambda part: self.scores(self.decision_values(part, threads)), self._pairs
            )
            return scores
        votes, confidence = self._votes(blocks, threads, zero_is_first=True)
        return votes + confidence / (3.0 * (np.abs(confidence) + 1.0))

    def _votes(self, blocks: KernelBlocks, threads: int, zero_is_first: bool) -> tuple[Floats, Floats]:
        """Return the votes and the summed decision values of each class; raise if a value is not finite."""
        edges = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        columns = np.ascontiguousarray(self.coefficients.T)

        def count(block: Floats) -> Floats:
            votes, confidence = np.empty((len(block), self.classes)), np.empty((len(block), self.classes))
            if not _native.one_vs_one_votes(
                np.ascontiguousarray(block), columns, edges, self.offsets, zero_is_first, self._limit, votes, confidence
            ):
                votes[:] = np.nan
            return np.hstack([votes, confidence])

        both = map_blocks(blocks, self.coefficients.shape[1], count, 2 * self.classes, threads)
        if np.isnan(both[:, : self.classes]).any():
            self.decision_values(blocks, threads)  # raises and says for which sample
        return both[:, : self.classes], both[:, self.classes :]

    def _pairs_before(self, a: int) -> slice:
        """Return the positions of the pairs of a class with all later classes."""
        start = a * (2 * self.classes - a - 1) // 2
        return slice(start, start + self.classes - 1 - a)

    def _pairs_of(self, c: int) -> np.ndarray:
        """Return the positions of all pairs of a class, by the other class."""
        earlier = np.arange(c)
        with_earlier = earlier * (2 * self.classes - earlier - 1) // 2 + c - earlier - 1
        later = self._pairs_before(c)
        return np.concatenate([with_earlier, np.arange(later.start, later.stop)])

    def weights(self, support_vectors: Any) -> Any:
        """Return the weight vector of each pair of classes, for a linear kernel."""
        edges = np.concatenate([[0], np.cumsum(self.counts)])
        rows = []
        for a, b in combinations(range(self.classes), 2):
            of_a, of_b = slice(edges[a], edges[a + 1]), slice(edges[b], edges[b + 1])
            rows.append(
                self.coefficients[b - 1, of_a] @ support_vectors[of_a]
                + self.coefficients[a, of_b] @ support_vectors[of_b]
            )
        return np.vstack(rows)
