"""What all feature maps share at the door: data are checked once, single precision stays single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin.matrices.values import check_finite


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # no type hints
    """Base of the feature maps. They say what they accept and what becomes of a checked table."""

    #: Whether sparse matrices are accepted.
    _takes_sparse = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_training(self, X: Any, **more: Any) -> Any:
        """Return the table that a map is fitted to."""
        return validate_data(self, X, **self._table, **more)

    def _check_samples(self, X: Any, **more: Any) -> Any:
        """Return a table that is to be mapped."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, **self._table, **more)

    @property
    def _table(self) -> dict[str, Any]:
        """What is asked of a table of numbers."""
        return {
            "dtype": (np.float64, np.float32),
            "order": "C",
            "accept_sparse": "csr" if self._takes_sparse else False,
            "accept_large_sparse": True,
        }


def finite(features: Any, advice: str) -> Any:
    """Return features, if they are all finite numbers."""
    check_finite(
        features.data if sparse.issparse(features) else features, f"some features are not finite numbers; {advice}"
    )
    return features
