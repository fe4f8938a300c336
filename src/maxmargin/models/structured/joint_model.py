"""`JointModel`: what `StructuredSVC` needs to know of a kind of structured outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin._typing import Floats


class JointModel(ABC):
    """Outputs of a kind of your own for `StructuredSVC`: joint feature map, loss, and maximiser.

    An output is predicted by the largest score w·ψ(x, y). Subclasses implement four methods; `prepare` sets
    `n_features` and what else follows from the training data.

    Attributes
    ----------
    n_features : int
        The length of ψ(x, y), set by `prepare`.

    Examples
    --------
    Classes with costs of their own for each confusion:

    >>> import numpy as np
    >>> from maxmargin import StructuredSVC
    >>> from maxmargin.models import JointModel
    >>> class CostSensitiveClasses(JointModel):
    ...     def __init__(self, costs):
    ...         self.costs = np.asarray(costs)
    ...     def prepare(self, X, y):
    ...         self.n_features = len(self.costs) * len(X[0])
    ...     def features(self, x, y):
    ...         return np.outer(np.arange(len(self.costs)) == y, x).ravel()
    ...     def loss(self, y, other):
    ...         return self.costs[y, other]
    ...     def predict(self, weights, x):
    ...         return int(np.argmax(weights.reshape(-1, len(x)) @ x))
    ...     def most_violated(self, weights, x, y):
    ...         return int(np.argmax(weights.reshape(-1, len(x)) @ x + self.costs[y]))
    >>> X = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [-1.0, -1.0, 1.0]] * 5
    >>> model = StructuredSVC(CostSensitiveClasses([[0, 1, 3], [1, 0, 3], [3, 3, 0]]), C=10)
    >>> model.fit(np.array(X), [0, 1, 2] * 5).predict(X[:3])
    [0, 1, 2]
    """

    n_features: int

    @abstractmethod
    def prepare(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        """Set `n_features`, and check the training data; called on a copy of the model at the beginning of `fit`."""

    @abstractmethod
    def features(self, x: Any, y: Any) -> Floats:
        """Return the joint features ψ(x, y), an array of shape (n_features,)."""

    @abstractmethod
    def loss(self, y: Any, other: Any) -> float:
        """Return the loss of predicting `other` where `y` is right: at least 0, and 0 for `y` itself."""

    @abstractmethod
    def predict(self, weights: Floats, x: Any) -> Any:
        """Return the output of the largest score ``weights @ features(x, y)``."""

    @abstractmethod
    def most_violated(self, weights: Floats, x: Any, y: Any) -> Any:
        """Return the output of the largest ``loss(y, other) + weights @ features(x, other)``.

        It must be exact, since the certificate rests on it.
        """

    def largest_loss(self, y: Any) -> float:
        """Return the largest loss of any output where `y` is right, by which `score` is normalised; by default 1."""
        return 1.0

    def collect(self, outputs: list[Any]) -> Any:
        """Return the predictions of several samples as `predict` of the estimator shall; by default the list."""
        return outputs


def check_scores(scores: Floats) -> None:
    """Raise if scores are not finite, of which the largest would be arbitrary."""
    if not np.isfinite(scores).all():
        raise ValueError("a score is NaN or infinite; check the samples for missing values")
