"""Dask arrays and data frames as partitions of rows: X, y and sample weights aligned with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask
import dask.array as da
import numpy as np

from maxmargin.blocks.sources import float_type
from maxmargin.dask.partitions import Layout


@dataclass(frozen=True)
class Partitions:
    """The table X, and the delayed parts of X, y and weights; those of the weights are None where none are given."""

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
    if not hasattr(X, "columns"):
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
    layout = layout_of(X)
    if isinstance(X, da.Array) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    rows = _delayed(X)
    weights: list[Any] = [None] * len(rows)
    if sample_weight is not None:
        weights = _aligned(X, sample_weight, "sample_weight", len(rows))
    return Partitions(X, layout, rows, _aligned(X, y, "y", len(rows)), weights)


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
