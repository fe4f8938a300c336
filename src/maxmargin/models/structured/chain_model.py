"""`ChainModel`: sequences of labels, a hidden Markov support vector machine (Altun, Tsochantaridis & Hofmann 2003)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.models.structured.joint_model import JointModel, check_scores


class ChainModel(JointModel):
    """Label the elements of sequences, each label by the features of its element and the label before it.

    The score of labels y of a sequence x is Σ_t (w_{y_t} · x_t) + Σ_t transition(y_{t−1}, y_t), and start and end
    scores of the first and the last label; the loss is the number of wrong labels. The maximum over all sequences of
    labels is exact, by the algorithm of Viterbi in O(length · labels²).

    Samples are arrays or CSR matrices of shape (length, n_inputs), outputs sequences of as many labels. A constant
    feature gives each label an offset.

    Parameters
    ----------
    ends : bool, default=False
        Whether the first and the last label of a sequence have scores of their own.

    Attributes
    ----------
    classes_ : array
        The labels.
    n_features : int
        labels · n_inputs + labels², and 2 · labels with `ends`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVC
    >>> from maxmargin.models import ChainModel
    >>> X = [np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[1, 0, 0]]] * 5
    >>> y = [["a", "a", "b", "b"], ["b", "a", "a"]] * 5
    >>> StructuredSVC(ChainModel()).fit(X, y).predict([np.eye(2)[[0, 1]]])
    [array(['a', 'b'], dtype='<U1')]
    """

    def __init__(self, ends: bool = False) -> None:
        self.ends = ends

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """Find the labels and the number of features of an element."""
        labels = [np.asarray(of_one) for of_one in y]
        widths = set()
        for i, (x, of_one) in enumerate(zip(X, labels, strict=True)):
            shape = np.shape(x)
            if len(shape) != 2 or not shape[0] or of_one.shape != (shape[0],):
                raise ValueError(
                    "a sequence must be an array of shape (length, n_inputs) with one label for each element, but "
                    f"sample {i} has the shape {shape} and labels of the shape {of_one.shape}"
                )
            widths.add(shape[1])
        if len(widths) > 1:
            raise ValueError(f"all sequences must have the same number of features, but there are {sorted(widths)}")
        self.classes_ = np.unique(np.concatenate(labels))
        if len(self.classes_) < 2:
            raise ValueError(f"sequences need at least two different labels, but all are {self.classes_[0]!r}")
        self.n_inputs = widths.pop()
        count = len(self.classes_)
        self.n_features = count * self.n_inputs + count**2 + (2 * count if self.ends else 0)

    def features(self, x: Any, y: Any) -> Floats:
        """Return the sums of the elements of each label, and the counts of each pair of consecutive labels."""
        codes, count = self._codes(y), len(self.classes_)
        indicators = np.zeros((len(codes), count))
        indicators[np.arange(len(codes)), codes] = 1.0
        sums = np.asarray((x.T @ indicators).T if sparse.issparse(x) else indicators.T @ np.asarray(x))
        pairs = np.bincount(codes[:-1] * count + codes[1:], minlength=count**2)
        ends = [indicators[0], indicators[-1]] if self.ends else []
        return np.concatenate([sums.ravel(), pairs, *ends])

    def loss(self, y: Any, other: Any) -> float:
        """Return the number of wrong labels."""
        return float(np.count_nonzero(np.asarray(y) != np.asarray(other)))

    def largest_loss(self, y: Any) -> float:
        """Return the length of the sequence."""
        return float(len(y))

    def predict(self, weights: Floats, x: Any) -> Any:
        """Return the labels of the largest score."""
        if np.ndim(x) != 2 or x.shape[1] != self.n_inputs:
            raise ValueError(f"a sequence must have the shape (length, {self.n_inputs}), not {np.shape(x)}")
        return self.classes_[self._viterbi(weights, x, None)]

    def most_violated(self, weights: Floats, x: Any, y: Any) -> Any:
        """Return the labels of the largest score and number of wrong labels."""
        return self.classes_[self._viterbi(weights, x, self._codes(y))]

    def _codes(self, y: Any) -> Indices:
        return np.searchsorted(self.classes_, np.asarray(y)).astype(np.int64)

    def _viterbi(self, weights: Floats, x: Any, right: Indices | None) -> Indices:
        """Return the labels of the largest score, by number; with `right` labels, of score and loss."""
        count = len(self.classes_)
        of_elements, rest = np.split(weights, [count * self.n_inputs])
        transitions = rest[: count**2].reshape(count, count)
        scores = np.array(x @ of_elements.reshape(count, self.n_inputs).T, dtype=np.float64)
        check_scores(scores)
        if right is not None:
            scores += 1.0
            scores[np.arange(len(right)), right] -= 1.0
        if self.ends:
            scores[0] += rest[count**2 : count**2 + count]
            scores[-1] += rest[count**2 + count :]
        before = np.empty(scores.shape, dtype=np.int64)
        best = scores[0]
        for t in range(1, len(scores)):
            reached = best[:, None] + transitions
            before[t] = reached.argmax(axis=0)
            best = reached[before[t], np.arange(count)] + scores[t]
        path = np.empty(len(scores), dtype=np.int64)
        path[-1] = best.argmax()
        for t in range(len(scores) - 1, 0, -1):
            path[t - 1] = before[t, path[t]]
        return path
