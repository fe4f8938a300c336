"""Validation of blocks: samples, labels and weights as the solvers need them, or one sentence about what is wrong."""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.blocks.sources import FLOATS, float_type
from maxmargin.datasets.exact_numbers import INEXACT, inexact_position, to_float64
from maxmargin.datasets.numpy_files import check_text

#: What to do about values that are not finite.
REPLACE = "replace such values, or leave out their rows"


class Place(NamedTuple):
    """Where a block is, for messages: the source, the number of the block and of its first row, from 0."""

    source: str
    number: int
    first: int

    def error(self, problem: str, row: int | None = None) -> ValueError:
        """Return an error about the block, or about a row of it."""
        at = "" if row is None else f"row {self.first + row} (counting from 0): "
        return ValueError(f"{self.source}, block {self.number}: {at}{problem}")


def check_block(X: Any, n_features: int, dtype: np.dtype[Any], is_sparse: bool, place: Place) -> Any:
    """Return the samples of a block as C-ordered array or canonical CSR of finite values of a type."""
    if X.shape[1] != n_features:
        raise place.error(f"it has {X.shape[1]} columns, but the table has {n_features}")
    if bool(sparse.issparse(X)) != is_sparse:
        kinds = "dense", "sparse"
        raise place.error(f"it is {kinds[not is_sparse]}, but the blocks before it are {kinds[is_sparse]}")
    found = float_type(X.dtype, place.source)
    if found != dtype:
        raise place.error(f"its values are {found}, but those of the table are {dtype}; convert one of them")
    return _check_sparse(X, place) if is_sparse else _check_dense(X, place)


def check_labels(given: Any, rows: int, place: Place) -> np.ndarray[Any, Any]:
    """Return the labels or targets of a block: finite numbers, or strings."""
    y: np.ndarray[Any, Any] = _vector(given, rows, "y", place)
    if y.dtype.kind == "O":
        y = _homogeneous(y, place)
    if y.dtype.kind == "f":
        if not isfinite(_sum(y)) and not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            raise place.error(f"the label or target is {y[row]}; leave out rows without one", row)
    elif y.dtype.kind == "U":
        check_text(f"{place.source}, block {place.number}", y, "y")
    elif y.dtype.kind not in "biuS":
        raise place.error(f"labels must be numbers or strings, not of type {y.dtype}")
    return y


def check_weights(given: Any, rows: int, place: Place) -> Floats:
    """Return the weights of a block: finite and not negative."""
    values = _vector(given, rows, "sample_weight", place)
    if values.dtype.kind not in "biuf":
        raise place.error(f"sample weights must be numbers, not of type {values.dtype}")
    weight = to_float64(values)
    valid = (weight >= 0) & (weight < np.inf)
    if not valid.all():
        row = int(np.argmin(valid))
        raise place.error(f"the sample weight is {weight[row]}; weights are finite and not negative", row)
    return weight


def _check_dense(X: Any, place: Place) -> Any:
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(float_type(X.dtype, place.source)), np.nan)  # masked values are missing
    X = np.asarray(X)
    if X.dtype not in FLOATS:
        X = _converted(X, place, lambda position: (position[0], position[1]))
    X = np.require(X, requirements=["C", "A"])
    if not _native.all_finite(X.reshape(-1), 1):
        row, column = (int(at) for at in np.argwhere(~np.isfinite(X))[0])
        raise place.error(f"{X[row, column]} in column {column}; {REPLACE}", row)
    return X


def _check_sparse(X: Any, place: Place) -> Any:
    def position_of(at: tuple[int, ...]) -> tuple[int, int]:
        return int(np.searchsorted(X.indptr, at[0], side="right")) - 1, int(X.indices[at[0]])

    _check_indices(X, place)
    values = X.data
    if values.dtype not in FLOATS:
        values = _converted(values, place, position_of)
    values = np.require(values, requirements=["C", "A"])
    if not _native.all_finite(values, 1):
        row, column = position_of((int(np.argmin(np.isfinite(values))),))
        raise place.error(f"a value in column {column} is not finite; {REPLACE}", row)
    indices = np.require(X.indices, requirements=["C", "A"])
    checked = sparse.csr_matrix((values, indices, X.indptr), shape=X.shape)
    if not checked.has_canonical_format:
        checked = checked.copy()  # the arrays may be the user's
        checked.sum_duplicates()
    return checked


def _check_indices(X: Any, place: Place) -> None:
    """Raise if rows or columns are outside the matrix: solvers would read outside their arrays."""
    if X.indptr[0] < 0 or X.indptr[-1] > min(len(X.data), len(X.indices)) or (np.diff(X.indptr) < 0).any():
        raise place.error("indptr of the sparse rows must be in ascending order")
    columns = X.indices[: X.indptr[-1]]
    if len(columns) and (int(columns.min()) < 0 or int(columns.max()) >= X.shape[1]):
        at = int(np.argmax((columns < 0) | (columns >= X.shape[1])))
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        raise place.error(f"a value in column {columns[at]}, but there are {X.shape[1]} columns", row)


def _converted(values: Any, place: Place, position_of: Any) -> Any:
    """Return numbers of another type in the type of the table; integers must be exact."""
    inexact = inexact_position(values)
    if inexact is not None:
        row, column = position_of(inexact)
        raise place.error(f"{values[inexact]} in column {column}, {INEXACT}", row)
    return values.astype(float_type(values.dtype, place.source), order="C")


def _vector(values: Any, rows: int, what: str, place: Place) -> np.ndarray[Any, Any]:
    if values is None:
        raise place.error(f"{what} is missing, but other blocks have it")
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.reshape(-1)
    if values.ndim != 1 or len(values) != rows:
        raise place.error(f"{what} must have one value for each of its {rows} rows, not the shape {values.shape}")
    return np.require(values, dtype=values.dtype.newbyteorder("="), requirements=["A"])


def _homogeneous(y: Any, place: Place) -> np.ndarray[Any, Any]:
    """Return labels that are Python objects as strings or numbers."""
    strings = np.fromiter((isinstance(label, str) for label in y), bool, len(y))
    if strings.all():
        return np.array(y.tolist(), dtype=str)
    numbers = np.fromiter((isinstance(label, int | float | np.number) for label in y), bool, len(y))
    if numbers.all():
        return np.asarray(y.tolist())
    row = int(np.argmin(strings if strings.any() else numbers))
    raise place.error(f"the label is {y[row]!r}; labels must be all strings or all numbers, and none missing", row)


def _sum(values: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(values.sum())
