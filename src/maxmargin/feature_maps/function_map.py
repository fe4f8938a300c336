"""The output of anything that computes features: a function, a fitted estimator, a network up to one of its layers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.estimators.validation.parameters import check_count
from maxmargin.feature_maps.feature_map import FeatureMap, finite


class FunctionMap(FeatureMap):
    """Map samples to what a function, a fitted estimator or a pretrained network makes of them.

    The function must treat every sample alone, and be trained already; `fit` looks at one sample, to count the
    features. More than two dimensions (images) are handed on as they are; outputs of more than two are flattened.

    Parameters
    ----------
    function : callable, object with `transform` or `predict`, or torch module
        What computes the features. Of an object that has several of these, the first in this order is used: a torch
        module's `forward`, `transform`, `predict`, the call itself. A torch module runs in evaluation mode without
        gradients, where its parameters are and in their precision; afterwards every part is in the mode it was in.
    layer : str, optional
        The name of a part of a torch module, as in ``module.named_modules()``: its output, the first time that it is
        called, is the features. What comes after it is not computed. By default the whole network.
    batch_size : int, default=256
        How many samples a network sees at once; others see all.

    Notes
    -----
    Samples are float32 or float64 as given, other numbers become float64. Features are in the precision that comes out.
    A network that wants another shape begins with ``torch.nn.Unflatten``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.feature_maps import FunctionMap
    >>> FunctionMap(lambda X: np.column_stack([X.sum(axis=1), X.max(axis=1)])).fit_transform([[1.0, 2.0], [3.0, 0.0]])
    array([[3., 2.],
           [3., 3.]])
    """

    def __init__(self, function: Any = None, layer: Any = None, batch_size: Any = 256) -> None:
        self.function = function
        self.layer = layer
        self.batch_size = batch_size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = True
        if _is_network(self.function):
            tags.input_tags.sparse = False
            tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> FunctionMap:
        """Count the features of one sample."""
        X = self._check_training(X, allow_nd=True)
        check_count("batch_size", self.batch_size, 1)
        if self.layer is not None and not _is_network(self.function):
            raise ValueError(f"layer={self.layer!r} is a part of a torch module, and the function is none")
        self._n_features_out = self._evaluate(X[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each sample."""
        X = self._check_samples(X, allow_nd=True)
        features = self._evaluate(X)
        if features.shape[1] != self._n_features_out:
            raise ValueError(
                f"the function gave {features.shape[1]} features for {X.shape[0]} samples, but {self._n_features_out} "
                "for the first sample of the fit"
            )
        return features

    def _evaluate(self, X: Any) -> Any:
        if _is_network(self.function):
            if sparse.issparse(X):
                raise TypeError("a network wants dense samples; convert sparse ones with .toarray()")
            from maxmargin.feature_maps.network import outputs

            return _as_table(outputs(self.function, self.layer, X, self.batch_size), X.shape[0])
        for method in ("transform", "predict"):
            if hasattr(self.function, method):
                return _as_table(getattr(self.function, method)(X), X.shape[0])
        if not callable(self.function):
            raise ValueError(
                f"function must be callable, a torch module or have `transform` or `predict`, not {self.function!r}"
            )
        return _as_table(self.function(X), X.shape[0])


def _is_network(function: Any) -> bool:
    torch = sys.modules.get("torch")  # who has a module has loaded torch
    return torch is not None and isinstance(function, torch.nn.Module)


def _as_table(values: Any, samples: int) -> Any:
    """Return what came out as a table of finite floats."""
    values = sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values)
    if values.ndim == 0 or values.shape[0] != samples:
        raise ValueError(f"the function gave an array of shape {values.shape} for {samples} samples, no row for each")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"the function gave values of type {values.dtype}, not real numbers")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    rows = values if sparse.issparse(values) else values.reshape(samples, -1)
    return finite(rows, "look at what the function returns")
