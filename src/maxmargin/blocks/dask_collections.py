"""Dask arrays and data frames as partitions of rows: X, y and sample weights aligned with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.sources import FLOATS, float_type


class Layout(NamedTuple):
    """What all partitions have in common.

    Attributes
    ----------
    name : str
        What the data are called in messages.
    n_features : int
    dtype : float32 or float64
        Of the values after conversion.
    columns : tuple of str, or None
        The names of the columns of a data frame.
    """

    name: str
    n_features: int
    dtype: np.dtype[Any]
    columns: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Partitions:
    """The table X, and the delayed parts of X, y and weights; they are None where no y or no weights are given."""

    table: Any
    layout: Layout
    X: list[Any]
    y: list[Any]
    weights: list[Any]


def is_collection(X: Any) -> bool:
    """Whether samples are a Dask array or data frame."""
    return isinstance(X, da.Array) or _is_frame(X)


def _is_frame(X: Any) -> bool:
    """Whether an object is a data frame or series of Dask; does not import dask.dataframe."""
    return dask.is_dask_collection(X) and hasattr(X, "npartitions") and hasattr(X, "map_partitions")


def layout_of(X: Any) -> Layout:
    """Return the columns and the type of the values of a table, or raise; nothing is computed."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, rows and columns, not the shape {X.shape}")
        if np.isnan(X.shape[1]):
            raise ValueError("X must have a known number of columns; X.compute_chunk_sizes() finds it")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must have numbers, not values of type {X.dtype}")
        return Layout("the Dask array X", int(X.shape[1]), float_type(X.dtype, "X"))
    if X.ndim != 2:
        raise ValueError("X must be a data frame, not a series: X.to_frame() makes one of it")
    columns = tuple(X.columns)
    types = {name: _number_type(kind) for name, kind in X.dtypes.items()}
    others = [f"{name!r} ({X.dtypes[name]})" for name, kind in types.items() if kind is None]
    if others:
        raise ValueError(
            f"features must be numbers, but these columns are not: {', '.join(others)}; leave them out or encode them, "
            "for example with dask.dataframe.get_dummies"
        )
    joined = np.result_type(*(kind for kind in types.values() if kind is not None))
    return Layout("the data frame X", len(columns), float_type(joined, "X"), columns)


def _number_type(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy type of a column, None if it has no numbers; a type of pandas' own becomes float64."""
    if isinstance(kind, np.dtype):
        return kind if kind.kind in "biuf" else None
    return np.dtype(np.float64) if getattr(kind, "_is_numeric", False) else None


def partitions_of(X: Any, y: Any, sample_weight: Any) -> Partitions:
    """Return the aligned partitions of X, y and weights, or raise if their lengths differ."""
    if y is None:
        raise ValueError("y must be a Dask array or series like X, not None")
    return partitions_with_or_without_labels(X, y, sample_weight)


def partitions_with_or_without_labels(X: Any, y: Any, sample_weight: Any) -> Partitions:
    """Return the same where y may be None."""
    layout = layout_of(X)
    if isinstance(X, da.Array) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rows = _delayed(X)
    columns = (
        [None] * len(rows) if values is None else _aligned(X, values, what, len(rows))
        for values, what in ((y, "y"), (sample_weight, "sample_weight"))
    )
    return Partitions(X, layout, rows, *columns)


def _aligned(X: Any, values: Any, what: str, count: int) -> list[Any]:
    """Return the parts of one value for each row; chunks are changed to those of X where both are known."""
    if not is_collection(values):
        raise ValueError(f"{what} must be a Dask array or series like X, not {type(values).__name__}")
    if getattr(values, "ndim", 1) == 2:
        if values.shape[1] != 1:
            raise ValueError(f"{what} must have one value for each row, not {values.shape[1]}")
        values = values[:, 0] if isinstance(values, da.Array) else values[values.columns[0]]
    if isinstance(X, da.Array) and isinstance(values, da.Array):
        chunks = X.chunks[0]
        if not (np.isnan(chunks).any() or np.isnan(values.chunks[0]).any()):
            if sum(chunks) != sum(values.chunks[0]):
                raise ValueError(f"X has {sum(chunks)} rows, but {what} has {sum(values.chunks[0])} values")
            values = values.rechunk({0: chunks})
    parts = _delayed(values)
    if len(parts) != count:
        raise ValueError(
            f"X has {count} partitions, but {what} has {len(parts)}, and their lengths are unknown; "
            "compute_chunk_sizes() of arrays finds them, or take both from one data frame"
        )
    return parts


def _delayed(collection: Any) -> list[Any]:
    parts = collection.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def as_rows(X: Any, dtype: np.dtype[Any]) -> Any:
    """Return the rows of a partition as an array, or as CSR, of a type of floats if they are floats."""
    if sparse.issparse(X):
        X = X.tocsr()
    elif hasattr(X, "to_numpy"):
        X = X.to_numpy(dtype=dtype, na_value=np.nan)  # missing values of pandas' own types, too
    else:
        X = np.asanyarray(X)  # masked values are checked later
    return X.astype(dtype) if X.dtype in FLOATS and X.dtype != dtype else X


def column_values(column: Any) -> Any:
    """Return the values of a series, an array, or a table of one column; categories become their labels."""
    if hasattr(column, "to_numpy"):
        return column.to_numpy()
    return np.asarray(column)
