"""Base class of the feature maps: input validation that keeps float32 and float64 data in their precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin import _sparse as sparse
from maxmargin.estimators.array_library import ArrayLibraryMixin
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.matrices.numerics import check_finite
from maxmargin.storage.plain_state import PlainState


class FeatureMap(
    ArrayLibraryMixin,
    PlainState,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # no type hints
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base class of the feature maps. A subclass implements `fit` and `transform` on validated data."""

    #: Whether sparse matrices are accepted.
    _accepts_sparse = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("fit", "transform", "inverse_transform"):
            if name in vars(cls):
                setattr(cls, name, following_samples(vars(cls)[name]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_training_data(self, X: Any, **options: Any) -> Any:
        """Return the validated training data."""
        return validate_data(self, X, **self._validation_options, **options)

    def _validate_samples(self, X: Any, **options: Any) -> Any:
        """Return the validated samples to transform."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._validation_options, **options)

    @property
    def _validation_options(self) -> dict[str, Any]:
        """Arguments of scikit-learn's ``validate_data``."""
        return {
            "dtype": (np.float64, np.float32),
            "order": "C",
            "accept_sparse": "csr" if self._accepts_sparse else False,
            "accept_large_sparse": True,
        }


def require_finite(features: Any, advice: str) -> Any:
    """Return the features; raise ValueError with advice if any is not finite."""
    check_finite(features.data if sparse.issparse(features) else features, f"some features are not finite; {advice}")
    return features
