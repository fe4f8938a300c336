"""What a scorer sees of a model that was trained without some samples: its decision values and predictions of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.models import OneVsOneVote, OneVsRestArgmax


class HeldOutModel:
    """A model whose values are known for the held-out samples only, in their order.

    Parameters
    ----------
    estimator : estimator
        Of which it would be a fitted copy.
    values : float array
        A row for each held-out sample, a column for each decision function.
    """

    def __init__(self, estimator: Any, values: Floats) -> None:
        self._estimator, self._values = estimator, values

    def __sklearn_tags__(self) -> Any:
        return self._estimator.__sklearn_tags__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._estimator!r})"

    def _check(self, X: Any) -> Floats:
        if X.shape[0] != len(self._values):
            raise ValueError(f"this model knows its {len(self._values)} held-out samples only, not {X.shape[0]} others")
        return self._values


class HeldOutRegressor(HeldOutModel):
    """A regression function with one output."""

    def predict(self, X: Any) -> Floats:
        """Return the values of the held-out samples."""
        return self._check(X)[:, 0]


class HeldOutDetector(HeldOutModel):
    """A novelty detector, whose values are also known for other samples than those of the data.

    Parameters
    ----------
    estimator, values
        As for `HeldOutModel`; the other samples last.
    others : array or sparse matrix
    """

    def __init__(self, estimator: Any, values: Floats, others: Any) -> None:
        split = len(values) - others.shape[0]
        super().__init__(estimator, values[:split])
        self._others, self._values_of_others = others, values[split:]

    def decision_function(self, X: Any) -> Floats:
        """Return the values of the held-out samples, or of the other ones."""
        return (self._values_of_others if X is self._others else self._check(X))[:, 0]

    def predict(self, X: Any) -> Any:
        """Return 1 for samples inside, −1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


class HeldOutClassifier(HeldOutModel):
    """A classifier, with the rules of `KernelClassifier` for decisions.

    Parameters
    ----------
    estimator, values
        As for `HeldOutModel`.
    classes : array
    vote : OneVsOneVote or OneVsRestArgmax
        From decision values to classes.
    """

    def __init__(self, estimator: Any, values: Floats, classes: Any, vote: OneVsOneVote | OneVsRestArgmax) -> None:
        super().__init__(estimator, values)
        self.classes_, self._vote = classes, vote

    def decision_function(self, X: Any) -> Floats:
        """Return the decision values of the held-out samples, in the shape of the estimator."""
        values = self._check(X)
        if len(self.classes_) == 2:
            return values[:, 0]
        return values if self._estimator.decision_function_shape == "ovo" else self._vote.scores(values)

    def predict(self, X: Any) -> Any:
        """Return the classes of the held-out samples."""
        values = self._check(X)
        if len(self.classes_) == 2:
            winners = (values[:, 0] >= 0).astype(np.intp)
        elif self._estimator.break_ties:
            winners = np.argmax(self._vote.scores(values), axis=1)
        else:
            winners = self._vote.predicted_class(values)
        return self.classes_[winners]
