"""`MultiLabelModel`: sets of labels whose pairs have scores, on a forest of labels (Finley & Joachims 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models.structured.joint_model import JointModel, check_scores


class MultiLabelModel(JointModel):
    """Assign several labels to each sample, with scores of pairs of labels that occur together.

    The score of labels y ∈ {0, 1}ᴷ of a sample x is Σ_k y_k w_k · (x, 1) + Σ of the edges (j, k) of a table of the four
    values of (y_j, y_k); the loss is the number of wrong labels. The edges form a forest, on which the maximum over
    all 2ᴷ sets is exact, by dynamic programming.

    Samples are rows of an array of shape (n_samples, n_inputs), outputs rows of an array of zeros and ones of shape
    (n_samples, n_labels).

    Parameters
    ----------
    edges : {"tree", "independent"} or sequence of pairs, default="tree"
        ``"tree"``: the spanning tree of the largest mutual information between labels of the training data (Chow & Liu
        1968). ``"independent"``: no edges. Else pairs of numbers of labels, without cycles.

    Attributes
    ----------
    edges_ : int array of shape (n_edges, 2)
        Parent and child, parents before their children.
    n_features : int
        n_labels · (n_inputs + 1) + 4 · n_edges.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import StructuredSVC
    >>> from maxmargin.models import MultiLabelModel
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> y = (X > 0.5).astype(int)
    >>> StructuredSVC(MultiLabelModel(), C=10).fit(X, y).predict([[1.0, 0.0]])
    array([[1, 0]])
    """

    def __init__(self, edges: Any = "tree") -> None:
        self.edges = edges

    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """Check shapes, and find the edges."""
        inputs, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
        if inputs.ndim != 2 or labels.ndim != 2 or not inputs.shape[1] or not labels.shape[1]:
            raise ValueError(
                "MultiLabelModel needs samples of shape (n_samples, n_inputs) and labels of shape "
                f"(n_samples, n_labels), not {inputs.shape} and {labels.shape}"
            )
        if not np.isin(labels, (0, 1)).all():
            raise ValueError("labels must be 0 or 1 for each label of each sample")
        self.n_inputs, self.n_labels = inputs.shape[1], labels.shape[1]
        self.edges_ = _forest(self._pairs(labels.astype(np.float64)), self.n_labels)
        self.n_features = self.n_labels * (self.n_inputs + 1) + 4 * len(self.edges_)

    def _pairs(self, labels: Floats) -> Any:
        if not isinstance(self.edges, str):
            pairs = np.asarray(self.edges, dtype=np.int64).reshape(-1, 2)
            if len(pairs) and not (pairs.min() >= 0 and pairs.max() < self.n_labels):
                raise ValueError(f"edges must name labels from 0 to {self.n_labels - 1}")
            return pairs
        if self.edges == "independent":
            return np.empty((0, 2), dtype=np.int64)
        if self.edges != "tree":
            raise ValueError(f"edges must be 'tree', 'independent' or pairs of labels, not {self.edges!r}")
        return _largest_spanning_tree(_mutual_information(labels))

    def features(self, x: Any, y: Any) -> Floats:
        """Return y ⊗ (x, 1), and the pair of values of each edge as one of four."""
        y = np.asarray(y)
        pairs = np.zeros((len(self.edges_), 4))
        pairs[np.arange(len(pairs)), 2 * y[self.edges_[:, 0]] + y[self.edges_[:, 1]]] = 1.0
        return np.concatenate([np.outer(y, np.append(x, 1.0)).ravel(), pairs.ravel()])

    def loss(self, y: Any, other: Any) -> float:
        """Return the number of wrong labels."""
        return float(np.count_nonzero(np.asarray(y) != np.asarray(other)))

    def largest_loss(self, y: Any) -> float:
        """Return the number of labels."""
        return float(len(y))

    def predict(self, weights: Floats, x: Any) -> Any:
        """Return the labels of the largest score."""
        if np.shape(x) != (self.n_inputs,):
            raise ValueError(f"a sample must have {self.n_inputs} features, not the shape {np.shape(x)}")
        return self._maximum(weights, np.zeros((self.n_labels, 2)), x)

    def most_violated(self, weights: Floats, x: Any, y: Any) -> Any:
        """Return the labels of the largest score and number of wrong labels."""
        losses = np.ones((self.n_labels, 2))
        losses[np.arange(self.n_labels), np.asarray(y)] = 0.0
        return self._maximum(weights, losses, x)

    def collect(self, outputs: list[Any]) -> Any:
        """Return an array with a row for each sample."""
        return np.array(outputs, dtype=np.int64).reshape(len(outputs), self.n_labels)

    def _maximum(self, weights: Floats, values: Floats, x: Any) -> Any:
        """Return the labels of the largest score, to which `values` of each label's two states are added."""
        of_labels, of_pairs = np.split(weights, [self.n_labels * (self.n_inputs + 1)])
        values[:, 1] += of_labels.reshape(self.n_labels, -1) @ np.append(x, 1.0)
        check_scores(values)
        tables = of_pairs.reshape(-1, 2, 2)
        choices = np.empty((len(self.edges_), 2), dtype=np.int64)
        for k in range(len(self.edges_) - 1, -1, -1):  # children before their parents
            parent, child = self.edges_[k]
            reached = tables[k] + values[child]
            choices[k] = reached.argmax(axis=1)
            values[parent] += reached.max(axis=1)
        labels = values.argmax(axis=1)  # right for roots
        for (parent, child), choice in zip(self.edges_, choices, strict=True):
            labels[child] = choice[labels[parent]]
        return labels


def _mutual_information(labels: Floats) -> Floats:
    """Return the mutual information of all pairs of labels, in nats."""
    count = len(labels)
    total = np.zeros((labels.shape[1], labels.shape[1]))
    for first in (labels, 1.0 - labels):
        for second in (labels, 1.0 - labels):
            joint = first.T @ second / count
            apart = np.outer(first.mean(axis=0), second.mean(axis=0))
            with np.errstate(divide="ignore", invalid="ignore"):
                total += np.where(joint > 0, joint * np.log(joint / apart), 0.0)
    return total


def _largest_spanning_tree(values: Floats) -> Any:
    """Return the edges of the spanning tree of the largest sum of values, by the algorithm of Prim."""
    count = len(values)
    inside = np.zeros(count, dtype=bool)
    inside[0] = True
    best, parent, edges = values[0].copy(), np.zeros(count, dtype=np.int64), []
    for _ in range(count - 1):
        child = int(np.where(inside, -np.inf, best).argmax())
        edges.append((parent[child], child))
        inside[child] = True
        nearer = ~inside & (values[child] > best)
        best[nearer], parent[nearer] = values[child][nearer], child
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def _forest(pairs: Any, count: int) -> Any:
    """Return edges from parents to children, parents before their children; raise if there is a cycle."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for first, second in pairs:
        neighbours[first].append(int(second))
        neighbours[second].append(int(first))
    seen = np.zeros(count, dtype=bool)
    edges: list[tuple[int, int]] = []
    for root in range(count):
        if seen[root]:
            continue
        seen[root], waiting = True, [root]
        for parent in waiting:  # grows while it is read
            for child in neighbours[parent]:
                if not seen[child]:
                    seen[child] = True
                    edges.append((parent, child))
                    waiting.append(child)
    if len(edges) != len(pairs):
        raise ValueError("edges must form a forest: each pair of labels once, and no cycles")
    return np.array(edges, dtype=np.int64).reshape(-1, 2)
