"""Distances to prototypes: φ(x) = (d(x, p_1), …, d(x, p_B)), or Gaussians of them, exp(−γ d(x, p_j)²).

The distance need not belong to a kernel. A radial basis function network is a linear estimator on Gaussians of
distances. Prototypes are given, drawn from the samples, or computed by k-means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.feature_maps.feature_map import FeatureMap, require_finite
from maxmargin.machines.linear.landmarks import choose_landmarks
from maxmargin.machines.validation.parameters import check_count, check_number


class DistanceMap(FeatureMap):
    """Map each sample to its distances from prototypes.

    Parameters
    ----------
    prototypes : "kmeans", "sample" or array-like of shape (n_prototypes, n_features), default="kmeans"
        Centres of k-means (fitted on up to max(10,000, 50 · `n_prototypes`) samples, with mini-batches from 10,000
        samples on), samples drawn at random, or an array of prototypes.
    n_prototypes : int, default=10
        Number of prototypes to choose, at most the number of samples.
    metric : str or callable, default="euclidean"
        A metric of scikit-learn's ``pairwise_distances``, or a function of two samples. Sparse samples require one of
        "euclidean", "manhattan", "cosine" or their synonyms.
    gamma : float, optional
        If given, the features are exp(−gamma · distance²) instead of the distances.
    n_jobs : int, optional
        Number of jobs for ``pairwise_distances``.
    random_state : int, RandomState or None
        Controls the choice of prototypes.

    Attributes
    ----------
    prototypes_ : array or sparse matrix of shape (n_prototypes, n_features)

    Examples
    --------
    >>> from maxmargin.feature_maps import DistanceMap
    >>> DistanceMap(prototypes=[[0.0, 0.0], [3.0, 0.0]]).fit_transform([[0.0, 4.0], [3.0, 1.0]]).round(4)
    array([[4.    , 5.    ],
           [3.1623, 1.    ]])
    """

    def __init__(
        self,
        prototypes: Any = "kmeans",
        n_prototypes: Any = 10,
        metric: Any = "euclidean",
        gamma: Any = None,
        n_jobs: Any = None,
        random_state: Any = None,
    ) -> None:
        self.prototypes = prototypes
        self.n_prototypes = n_prototypes
        self.metric = metric
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> DistanceMap:
        """Choose the prototypes."""
        X = self._validate_training_data(X)
        count = check_count("n_prototypes", self.n_prototypes, 1)
        if self.gamma is not None:
            check_number("gamma", self.gamma, least=0)
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' has no prototypes; use the precomputed distances as features without DistanceMap"
            )
        self.prototypes_ = choose_landmarks("prototypes", self.prototypes, X, count, self.random_state)
        self._n_features_out = self.prototypes_.shape[0]
        self._distances(X[:1])  # raises here if the metric does not support the data
        return self

    def transform(self, X: Any) -> Any:
        """Return the distances from each sample to the prototypes, or Gaussians of them."""
        features = self._distances(self._validate_samples(X))
        if self.gamma is not None:
            with np.errstate(over="ignore"):  # exp(-inf) is 0
                np.exp(-float(self.gamma) * np.square(features), out=features)
        return require_finite(features, "scale the data, or choose another metric")

    def _distances(self, X: Any) -> Any:
        from sklearn.metrics import pairwise_distances  # slow import

        distances = pairwise_distances(X, self.prototypes_.astype(X.dtype), metric=self.metric, n_jobs=self.n_jobs)
        return distances.astype(X.dtype, copy=False)
