"""Objects of a user that yield blocks: iterables that can be iterated several times, and functions that return one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.row_blocks import RowBlock
from maxmargin.blocks.sources import Rows, Source, check_shape, float_type

#: What a user's object has to give.
EXPECTED = "blocks must be X, (X, y), (X, y, sample_weight) or RowBlock, with X an array or a sparse matrix"


class IterableSource(Source):
    """An object that gives its blocks anew at each iteration.

    If it does not say how many rows and columns it has (`n_rows` and `n_features`, or `shape`), they are counted in a
    first pass.
    """

    def __init__(self, given: Any) -> None:
        self.name = getattr(given, "name", None) or _kind(given)
        self._start: Callable[[], Iterator[Any]] = _starter(given, self.name)
        shape = _declared_shape(given)
        with self._reading() as blocks:
            first = next((rows for rows in blocks if rows.X.shape[0]), None)
            if first is None:
                raise ValueError(f"{self.name}: the table is empty: there is no block with a row")
            width = first.X.shape[1]
            counted = first.X.shape[0] + sum(rows.X.shape[0] for rows in blocks) if shape is None else shape[0]
        self.n_rows, self.n_features = check_shape((counted, width), self.name)
        if shape is not None and shape[1] != width:
            raise ValueError(f"{self.name}: it says that it has {shape[1]} columns, but block 0 has {width}")
        self.dtype = float_type(first.X.dtype, self.name)
        self.is_sparse = bool(sparse.issparse(first.X))
        self.has_labels, self.has_weights = first.y is not None, first.sample_weight is not None

    def read(self, block_rows: int | None) -> Iterator[Rows]:
        with self._reading() as blocks:
            for rows in blocks:
                yield from _cut(rows, block_rows)

    @contextmanager
    def _reading(self) -> Iterator[Iterator[Rows]]:
        """Start an iteration, and end it: a generator of the user may hold files."""
        iterator = self._start()
        try:
            yield (_rows(given, number, self.name) for number, given in enumerate(iterator))
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()


def _starter(given: Any, name: str) -> Callable[[], Iterator[Any]]:
    if not hasattr(given, "__iter__"):
        return lambda: iter(given())
    if iter(given) is given:
        raise ValueError(
            f"{name}: a generator or iterator can be read only once, but a fit reads its data several times; pass the "
            "function that makes it, without calling it, or an object whose __iter__ starts anew"
        )
    return lambda: iter(given)


def _rows(given: Any, number: int, name: str) -> Rows:
    """Return a block of the user, with samples as an array or a sparse matrix of two dimensions."""
    if isinstance(given, RowBlock):
        X, y, weight = given.X, given.y, given.sample_weight
    elif isinstance(given, tuple | list) and 1 <= len(given) <= 3:
        X, y, weight = (*given, None, None)[:3]
    elif isinstance(given, np.ndarray) or sparse.issparse(given):
        X, y, weight = given, None, None
    else:
        raise ValueError(f"{name}, block {number}: {EXPECTED}, not {type(given).__name__}")
    if sparse.issparse(X):
        X = X.tocsr()
    elif not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        found = f"an array of shape {X.shape} and type {X.dtype}"
        raise ValueError(f"{name}, block {number}: X must be a table of numbers, not {found}")
    for what, values in (("y", y), ("sample_weight", weight)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(f"{name}, block {number}: {len(values)} values of {what} for {X.shape[0]} rows of X")
    return Rows(X, y, weight, name)


def _cut(rows: Rows, block_rows: int | None) -> Iterator[Rows]:
    """Yield a block, in parts if it has more rows than are wanted."""
    count = rows.X.shape[0]
    if block_rows is None or count <= block_rows:
        yield rows
        return
    for first in range(0, count, block_rows):
        part = slice(first, first + block_rows)
        y, weight = (None if given is None else np.asarray(given)[part] for given in (rows.y, rows.sample_weight))
        yield Rows(rows.X[part], y, weight, rows.part)


def _declared_shape(given: Any) -> tuple[int, int] | None:
    n_rows, n_features = getattr(given, "n_rows", None), getattr(given, "n_features", None)
    if n_rows is not None and n_features is not None:
        return int(n_rows), int(n_features)
    shape = getattr(given, "shape", None)
    return (int(shape[0]), int(shape[1])) if isinstance(shape, tuple) and len(shape) == 2 else None


def _kind(given: Any) -> str:
    return getattr(given, "__qualname__", None) or type(given).__name__
