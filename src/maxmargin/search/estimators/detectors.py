"""Novelty detectors that choose their parameters: scores with labels and without."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from maxmargin.machines.validation.training_data import is_table
from maxmargin.search.estimators.cross_validated import CrossValidatedEstimator
from maxmargin.search.novelty_score import BackgroundScore


class SearchingDetector(OutlierMixin, CrossValidatedEstimator):  # type: ignore[misc]  # no type hints
    """Base of the novelty detectors that choose their parameters."""

    _default_scoring = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Search for the best parameters, and train with them on all samples.

        Ctrl-C keeps what is known: ``cv_results_`` and, if a point of the grid is finished, ``best_params_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the symmetric matrix of kernel values.
        y : array-like of shape (n_samples,), optional
            Labels 1 (normal) and −1 (novel), for scores only. With `scoring`, whatever that takes; other labels are
            ignored.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost by sample, in training and in scores that take weights.
        **params
            ``groups`` for the splitter `cv`; with metadata routing, what splitter and scorer request.

        Returns
        -------
        self
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, params)

    def _check_data(self, template: Any, X: Any, y: Any) -> tuple[Any, Any]:
        samples = template._check_training_samples(X)
        targets = None if y is None else np.asarray(y)
        if targets is not None and targets.shape[:1] != samples.shape[:1]:
            raise ValueError(f"y has the shape {targets.shape}, but there are {samples.shape[0]} samples")
        return samples, targets if self.scoring is not None or _are_novelty_labels(targets) else None

    def _is_stratified(self, y: Any) -> bool:
        return _are_novelty_labels(y)

    def _chosen_scoring(self, X: Any, y: Any) -> Any:
        if self.scoring is not None:
            return self.scoring
        if y is not None:
            return "balanced_accuracy"
        if isinstance(self.cv, str):
            raise ValueError(
                "cv='loo' has no models for background samples: give y with the labels 1 and −1, or scoring, or use "
                "cv=LeaveOneOut() of scikit-learn"
            )
        if self._template()._precomputed or not is_table(X):
            raise ValueError(
                "without labels a point is scored on artificial samples, which need a table of features; with a "
                "precomputed kernel or with objects give y with the labels 1 and −1, or scoring"
            )
        return BackgroundScore(X)


def _are_novelty_labels(y: Any) -> bool:
    """Whether labels are 1 and −1, and both occur."""
    return y is not None and y.ndim == 1 and y.dtype.kind in "if" and np.array_equal(np.unique(y), [-1, 1])
