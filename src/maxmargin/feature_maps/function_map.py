"""Features computed by a function, a fitted estimator, or a torch module up to one of its layers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.feature_maps.feature_map import FeatureMap, require_finite
from maxmargin.machines.validation.parameters import check_count


class FunctionMap(FeatureMap):
    """Map samples to the output of a function, a fitted estimator or a pretrained network.

    The function must already be trained and must treat each sample independently; `fit` evaluates it on one sample to
    count the features. Input with more than two dimensions (images) is passed on unchanged; output with more than two
    dimensions is flattened.

    Parameters
    ----------
    function : callable, object with `transform` or `predict`, or torch module
        Computes the features. The first that exists is used: a torch module's `forward`, `transform`, `predict`,
        `__call__`. A torch module runs in evaluation mode, without gradients, on the device and in the dtype of its
        parameters; afterwards the training mode of every submodule is restored.
    layer : str, optional
        Name of a submodule, as in ``module.named_modules()``, whose output at its first call is used as features.
        Later layers are not computed. By default the output of the whole network is used.
    batch_size : int, default=256
        Number of samples per forward pass of a torch module; other functions get all samples at once.

    Notes
    -----
    Samples stay float32 or float64; other numeric types are converted to float64. Features have the dtype of the
    output. If a network expects another input shape, put ``torch.nn.Unflatten`` first.

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
        if _is_torch_module(self.function):
            tags.input_tags.sparse = False
            tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> FunctionMap:
        """Evaluate the function on one sample to count the features."""
        X = self._validate_training_data(X, allow_nd=True)
        check_count("batch_size", self.batch_size, 1)
        if self.layer is not None and not _is_torch_module(self.function):
            raise ValueError(f"layer={self.layer!r} requires a torch module, but function is {self.function!r}")
        self._n_features_out = self._evaluate(X[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each sample."""
        X = self._validate_samples(X, allow_nd=True)
        features = self._evaluate(X)
        if features.shape[1] != self._n_features_out:
            raise ValueError(
                f"the function returned {features.shape[1]} features for {X.shape[0]} samples, but "
                f"{self._n_features_out} in fit; it must return the same number of features for every sample"
            )
        return features

    def _evaluate(self, X: Any) -> Any:
        if _is_torch_module(self.function):
            if sparse.issparse(X):
                raise TypeError("a torch module requires dense samples; convert sparse ones with .toarray()")
            from maxmargin.feature_maps.torch_features import module_output

            return _as_feature_matrix(module_output(self.function, self.layer, X, self.batch_size), X.shape[0])
        for method in ("transform", "predict"):
            if hasattr(self.function, method):
                return _as_feature_matrix(getattr(self.function, method)(X), X.shape[0])
        if not callable(self.function):
            raise ValueError(
                f"function must be callable, a torch module or have `transform` or `predict`, not {self.function!r}"
            )
        return _as_feature_matrix(self.function(X), X.shape[0])


def _is_torch_module(function: Any) -> bool:
    torch = sys.modules.get("torch")  # an instance of a module implies that torch is imported
    return torch is not None and isinstance(function, torch.nn.Module)


def _as_feature_matrix(values: Any, samples: int) -> Any:
    """Return the output as a two-dimensional array of finite floats."""
    values = sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values)
    if values.ndim == 0 or values.shape[0] != samples:
        raise ValueError(
            f"the function must return one row per sample, but gave shape {values.shape} for {samples} samples"
        )
    if values.dtype.kind not in "fiub":
        raise ValueError(f"the function must return real numbers, but returned dtype {values.dtype}")
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    rows = values if sparse.issparse(values) else values.reshape(samples, -1)
    return require_finite(rows, "check the output of the function")
