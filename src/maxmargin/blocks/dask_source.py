"""Dask arrays and data frames as blocks of rows: a pass computes their partitions one after another.

Fits of `maxmargin.dask` are for clusters. Here the rows come to this process, as they do from files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np

from maxmargin.blocks.dask_collections import as_rows, column_values, is_collection, partitions_with_or_without_labels
from maxmargin.blocks.iterable_source import IterableSource
from maxmargin.datasets.column_roles import ColumnSelection, position_of


def open_dask(
    given: Any, y: Any, sample_weight: Any, selection: ColumnSelection, weight: str | int | None
) -> tuple[IterableSource, Any, Any]:
    """Return the source of a collection, and the labels and weights that are not part of it."""
    if hasattr(given, "columns") and given.ndim == 2:
        given, y, sample_weight = _by_roles(given, y, sample_weight, selection, weight)
    lazy_y, lazy_weight = (values if is_collection(values) else None for values in (y, sample_weight))
    source = IterableSource(_Partitions(given, lazy_y, lazy_weight))
    return source, None if lazy_y is not None else y, None if lazy_weight is not None else sample_weight


def _by_roles(
    frame: Any, y: Any, sample_weight: Any, selection: ColumnSelection, weight: str | int | None
) -> tuple[Any, Any, Any]:
    """Return features, labels and weights of a data frame, whose columns have the roles of those of a file."""
    names = [*frame.columns]
    if weight is not None:
        weight = names[position_of("the data frame", names, weight)]
        sample_weight, frame = frame[weight], frame.drop(columns=weight)
        names.remove(weight)
    roles = selection.resolve("the data frame", names, len(names))
    if roles.label is not None:
        y = frame[names[roles.label]]
    return frame[[names[column] for column in roles.features]], y, sample_weight


class _Partitions:
    """Yields X, labels and weights of each partition."""

    def __init__(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._parts = partitions_with_or_without_labels(X, y, sample_weight)
        self.name = self._parts.layout.name
        counted = isinstance(X, da.Array) and not np.isnan(X.shape[0])
        self.shape = X.shape if counted else None  # others are counted in a first pass

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        parts = self._parts
        for lazy in zip(parts.X, parts.y, parts.weights, strict=True):
            X, y, weight = dask.compute(*lazy)
            columns = (None if values is None else column_values(values) for values in (y, weight))
            yield as_rows(X, parts.layout.dtype), *columns
