"""The result of a search by gradients: the best hyperparameters, the relevance of the features, and all evaluations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from maxmargin._typing import Floats
from maxmargin.search.grid_search_result import COMPLETE


class Evaluation(NamedTuple):
    """The loss of hyperparameters on held-out samples.

    Attributes
    ----------
    C : float
    gamma : float or array
        One number in the first part of a search; then one for each feature.
    epsilon : float or None
    loss : float
        On held-out samples: the log loss of a sigmoid of the decision values; of a regression, the squared error
        divided by the variance of the targets.
    penalty : float
        What is added to the loss for relevant features.
    """

    C: float
    gamma: float | Floats
    epsilon: float | None
    loss: float
    penalty: float

    @property
    def objective(self) -> float:
        """Loss and penalty."""
        return self.loss + self.penalty


@dataclass(frozen=True)
class GradientSearchResult:
    """The result of `gradient_search`.

    Attributes
    ----------
    estimator : estimator
        Not fitted; it defines all other parameters.
    common : tuple of Evaluation
        Those with one γ in units of the features, in order.
    by_feature : tuple of Evaluation
        Those with a γ for each feature; empty if there was one γ for all.
    spread : float array
        The mean distance of two samples in each feature: for the Gaussian kernel twice the variance.
    feature_names : list of str
    status : str
        "complete", "time limit", "interrupted" or "stopped".
    fits : int
        The number of models that were trained.
    seconds : float
    """

    estimator: Any
    common: tuple[Evaluation, ...] = field(repr=False)
    by_feature: tuple[Evaluation, ...] = field(repr=False)
    spread: Floats = field(repr=False)
    feature_names: list[str] = field(repr=False)
    status: str = COMPLETE
    fits: int = 0
    seconds: float = 0.0

    @cached_property
    def best(self) -> Evaluation:
        """The evaluation with the smallest loss and penalty, of those with a γ for each feature if there are any."""
        found = self.by_feature or self.common
        if not found:
            raise ValueError(f"no hyperparameters were evaluated: {self.status}; give the search more time")
        return min(found, key=lambda evaluation: evaluation.objective)

    @property
    def best_params(self) -> dict[str, Any]:
        """The best values of C, gamma, and epsilon of a regression."""
        best = self.best
        found: dict[str, Any] = {"C": best.C, "gamma": best.gamma}
        return found if best.epsilon is None else {**found, "epsilon": best.epsilon}

    @property
    def best_estimator(self) -> Any:
        """An unfitted estimator with the best parameters."""
        return clone(self.estimator).set_params(**self.best_params)

    @property
    def relevance(self) -> Floats:
        """The relevance of each feature: its share of the mean distance of two samples, Σ_j γ_j distance_j."""
        parts = np.asarray(self.best.gamma) * self.spread
        total = float(parts.sum())
        return np.asarray(parts / total if total > 0 else parts)

    @property
    def relevant(self) -> Any:
        """The numbers of the features with γ above 0, the most relevant first."""
        relevance = self.relevance
        order = np.argsort(-relevance, kind="stable")
        return order[relevance[order] > 0]
