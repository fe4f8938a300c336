"""Predictions of Dask collections: tasks on their partitions, nothing is computed before the user asks for it."""

from __future__ import annotations

from copy import copy
from typing import Any

import dask.array as da
import numpy as np

from maxmargin.blocks.dask_collections import as_rows, layout_of


def predict(model: Any, X: Any) -> Any:
    """Return the predictions of any fitted model for a Dask collection, such as those of `SVC`, partition by partition.

    Parameters
    ----------
    model : estimator
        A fitted model of a single machine.
    X : Dask array or data frame

    Returns
    -------
    predictions
        An array for an array, a series or a data frame with the same index for a data frame. Nothing is computed
        before the user asks for it.
    """
    return _as_on_one_row(model, "predict", X)


def decision_function(model: Any, X: Any) -> Any:
    """Return the decision values of any fitted model for a Dask collection; the rest is as in `predict`."""
    return _as_on_one_row(model, "decision_function", X)


def predict_proba(model: Any, X: Any) -> Any:
    """Return the class probabilities of any fitted model for a Dask collection; the rest is as in `predict`."""
    return _as_on_one_row(model, "predict_proba", X)


def _as_on_one_row(model: Any, method: str, X: Any) -> Any:
    """Return a prediction whose type and width are those of a row of zeros."""
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}")
    if not hasattr(model, "n_features_in_"):
        raise ValueError(f"this {type(model).__name__} is not fitted yet")
    one = np.asarray(getattr(_without_names(model), method)(np.zeros((1, model.n_features_in_))))
    return predict_lazily(model, method, X, one.dtype, None if one.ndim == 1 else one.shape[1])


def predict_lazily(model: Any, method: str, X: Any, dtype: Any, columns: int | None) -> Any:
    """Return the Dask collection of a prediction.

    Parameters
    ----------
    model : estimator
        A fitted model of a single machine.
    method : str
        The method that predicts a partition.
    X : Dask array or data frame
    dtype : data type
        Of the result.
    columns : int or None
        The number of columns of the result, None for a vector.

    Returns
    -------
    predictions
        An array for an array, a series or a data frame with the same index for a data frame.
    """
    layout = layout_of(X)
    if layout.n_features != model.n_features_in_:
        raise ValueError(f"X has {layout.n_features} features, but the model was fitted with {model.n_features_in_}")
    empty = np.empty((0,) if columns is None else (0, columns), dtype=dtype)
    options = {"model": _without_names(model), "method": method, "empty": empty, "number_type": layout.dtype}
    if not isinstance(X, da.Array):
        _check_names(model, layout.columns)
        return X.map_partitions(_predict_frame, **options, meta=_as_frame(empty, X._meta.index[:0]))
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if columns is None:
        return X.map_blocks(_predict, **options, drop_axis=1, dtype=dtype, meta=empty)
    return X.map_blocks(_predict, **options, chunks=(X.chunks[0], (columns,)), dtype=dtype, meta=empty)


def _predict(X: Any, model: Any, method: str, empty: Any, number_type: Any) -> Any:
    """Return the predictions of a partition, which may have no rows."""
    if not X.shape[0]:
        return empty
    return getattr(model, method)(as_rows(X, number_type)).astype(empty.dtype, copy=False)


def _predict_frame(X: Any, model: Any, method: str, empty: Any, number_type: Any) -> Any:
    return _as_frame(_predict(X, model, method, empty, number_type), X.index)


def _as_frame(values: Any, index: Any) -> Any:
    import pandas  # loaded already by the data frame

    return pandas.Series(values, index=index) if values.ndim == 1 else pandas.DataFrame(values, index=index)


def _check_names(model: Any, columns: tuple[Any, ...] | None) -> None:
    """Raise if the columns of a data frame are not those of the fit, in the same order."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None and columns is not None and tuple(names) != columns:
        raise ValueError(
            "the feature names should match those that were passed during fit, in the same order: "
            f"{', '.join(map(str, names[:10]))}{', ...' if len(names) > 10 else ''}"
        )


def _without_names(model: Any) -> Any:
    """Return the model without the names of its features: collections are checked once, and their rows have none."""
    if not hasattr(model, "feature_names_in_"):
        return model
    unnamed = copy(model)
    del unnamed.feature_names_in_
    return unnamed
