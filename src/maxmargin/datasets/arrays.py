"""Samples as NumPy files.

- .npz with the arrays X and y, and if there are such, query and feature_names
- .npz as `scipy.sparse.save_npz` writes it (format, shape, data, indices, indptr), and the same further arrays beside
- .npy with a table of numbers, one column of which is the label

Nothing is unpickled, and sparse matrices are checked before anybody follows their indices.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from scipy import sparse

from maxmargin.datasets.column_roles import ColumnChoice
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.samples import TOO_LARGE, Samples, merged


def read_npz(stream: IO[bytes], name: str, choice: ColumnChoice) -> Samples:
    """Return the samples of an archive of arrays."""
    try:
        with np.load(stream, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive}
    except Exception as error:  # of many kinds, where a file is damaged
        raise DataFileError(name, f"it must be an archive of NumPy arrays: {error}") from error
    X = _dense(name, arrays) if "X" in arrays else _sparse(name, arrays)
    if choice.n_features is not None and X.shape[1] != choice.n_features:
        raise DataFileError(name, f"it has {X.shape[1]} features, but {choice.n_features} are needed")
    names = arrays.get("feature_names")
    if names is not None and (names.dtype.kind != "U" or names.shape != (X.shape[1],)):
        raise DataFileError(name, f"feature_names must be {X.shape[1]} words")
    wants_labels = choice.label is not None and "y" in arrays
    return Samples(
        X,
        y=labels(name, arrays["y"], X.shape[0]) if wants_labels else None,
        query=labels(name, arrays["query"], X.shape[0], "query") if "query" in arrays else None,
        feature_names=None if names is None else tuple(names.tolist()),
        name=name,
    )


def read_npy(stream: IO[bytes], name: str, choice: ColumnChoice) -> Samples:
    """Return the samples of a table of numbers."""
    try:
        given = np.lib.format.read_array(stream, allow_pickle=False)
    except Exception as error:  # of many kinds, where a file is damaged
        raise DataFileError(name, f"it must be a NumPy array: {error}") from error
    table = _numbers(name, given, "the array")
    roles = choice.resolve(name, None, table.shape[1])
    X = np.ascontiguousarray(table[:, roles.features])
    if choice.n_features is not None and X.shape[1] != choice.n_features:
        raise DataFileError(name, f"it has {X.shape[1]} features, but {choice.n_features} are needed")
    return Samples(
        X,
        y=None if roles.label is None else labels(name, given[:, roles.label], len(given)),
        query=None if roles.query is None else labels(name, given[:, roles.query], len(given), "query"),
        name=name,
    )


def write_npz(samples: Samples, stream: IO[bytes]) -> None:
    """Write an archive that `read_npz` reads; a sparse one can also be read by `scipy.sparse.load_npz`."""
    names = None if samples.feature_names is None else np.array(samples.feature_names)
    beside: dict[str, Any] = {"y": samples.y, "query": samples.query, "feature_names": names}
    if samples.is_sparse:
        X = samples.X.tocsr()
        parts: dict[str, Any] = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        parts |= {"format": np.array(b"csr"), "shape": np.array(X.shape)}
    else:
        parts = {"X": samples.X}
    parts |= {key: value for key, value in beside.items() if value is not None}
    archive = io.BytesIO()  # it is written back and forth, which a pipe or a compressed file cannot be
    np.savez_compressed(archive, **parts)
    stream.write(archive.getbuffer())


def write_npy(samples: Samples, stream: IO[bytes]) -> None:
    """Write a table of numbers: features, and the label as the last column."""
    X = samples.X.toarray() if samples.is_sparse else samples.X
    if samples.query is not None:
        raise DataFileError(samples.name, "a .npy file has no place for queries; .npz has")
    if samples.y is not None and samples.y.dtype.kind not in "biuf":
        raise DataFileError(samples.name, "a .npy file has no place for labels that are words; .npz has")
    np.lib.format.write_array(stream, X if samples.y is None else np.column_stack([X, samples.y]), allow_pickle=False)


def labels(name: str, values: np.ndarray[Any, Any], count: int, what: str = "y") -> np.ndarray[Any, Any]:
    """Return labels as float64 or words, checked."""
    if values.shape != (count,):
        raise DataFileError(name, f"{what} must have a label for each of {count} samples, not shape {values.shape}")
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind not in "biuf":
        raise DataFileError(name, f"{what} must be numbers or words, not {values.dtype}")
    numbers = values.astype(np.float64)
    same = merged(values[np.abs(numbers) >= 2**53].tolist()) if values.dtype.kind in "iu" else None
    if same is not None:
        raise DataFileError(name, f"{what} has {same[0]} and {same[1]}, {TOO_LARGE}")
    if not np.isfinite(numbers).all():
        raise DataFileError(name, f"{what} of sample {int(np.argmin(np.isfinite(numbers))) + 1} is not finite")
    return numbers


def _dense(name: str, arrays: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return _numbers(name, arrays["X"], "X")


def _numbers(name: str, table: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a table as float64, checked."""
    if table.ndim != 2 or 0 in table.shape:
        raise DataFileError(name, f"{what} must be a table with samples in its rows, not of shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise DataFileError(name, f"{what} must be numbers, not {table.dtype}")
    numbers = np.ascontiguousarray(table, dtype=np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataFileError(name, f"sample {row + 1} has {numbers[row, column]} in column {column + 1}")
    return numbers


def _sparse(name: str, arrays: Mapping[str, Any]) -> Any:
    """Return a sparse matrix, of which nothing is believed."""
    parts = ("format", "shape", "data", "indices", "indptr")
    if not set(parts) <= set(arrays):
        found = ", ".join(arrays) or "none"
        raise DataFileError(name, f"it must have the arrays X and y, or the parts of a sparse matrix; it has {found}")
    try:
        kind = arrays["format"].item()
        layout = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        if layout not in ("csr", "csc"):
            raise ValueError(f"a sparse matrix must be stored as csr or csc, not {layout}")
        rows, columns = (int(size) for size in arrays["shape"])
        if not rows or not columns or arrays["data"].dtype.kind not in "biuf":
            raise ValueError("a sparse matrix must have rows and columns of numbers")
        make = sparse.csr_matrix if layout == "csr" else sparse.csc_matrix
        X = make((arrays["data"].astype(np.float64), arrays["indices"], arrays["indptr"]), shape=(rows, columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise DataFileError(name, f"the sparse matrix is damaged: {error}") from error
    X = X.tocsr()
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0], side="right"))
        raise DataFileError(name, f"sample {row} has a value that is not finite")
    return X
