"""Samples in NumPy files.

- .npz with the arrays X and y, optionally query and feature_names
- .npz written by `scipy.sparse.save_npz` (format, shape, data, indices, indptr), optionally with the same arrays
- .npy with a two-dimensional array, one column of which is the label

Nothing is unpickled, and the indices of sparse matrices are validated.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import IO, Any
from zipfile import ZipFile

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.compression import EXPANDED_BYTES, MAX_EXPANSION, TOO_LARGE, check_expansion
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.exact_numbers import INEXACT, inexact_position, to_float64
from maxmargin.datasets.samples import INDISTINGUISHABLE, INEXACT_LABEL, Samples, indistinguishable_pair
from maxmargin.resources import check_memory

#: The parts of a sparse matrix, and all members of an archive that are read.
PARTS = ("format", "shape", "data", "indices", "indptr")
ARRAYS = frozenset(["X", "y", "query", "feature_names", *PARTS])

#: The compression of archives, deflation, reduces the size by less than this factor.
MAX_DEFLATION = 1100


def read_npz(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from an .npz archive."""
    arrays = read_archive(stream, name)
    X = _numeric_matrix(name, arrays["X"], "X") if "X" in arrays else _sparse_matrix(name, arrays)
    if "X" in arrays:
        _check_exact(name, arrays["X"], range(X.shape[1]))
    _check_features(name, X, selection)
    names = arrays.get("feature_names")
    if names is not None and (names.dtype.kind != "U" or names.shape != (X.shape[1],)):
        raise DataFileError(name, f"feature_names must be {X.shape[1]} strings, one for each column of X")
    if names is not None:
        check_text(name, names, "feature_names")
    with_labels = selection.label is not None and "y" in arrays
    return Samples(
        X,
        y=_labels(name, arrays["y"], X.shape[0]) if with_labels else None,
        query=_labels(name, arrays["query"], X.shape[0], "query") if "query" in arrays else None,
        feature_names=None if names is None else tuple(names.tolist()),
        name=name,
    )


def read_npy(stream: IO[bytes], name: str, selection: ColumnSelection) -> Samples:
    """Read samples from an .npy array."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    try:
        given = _read_array(stream, size, name)
    except MemoryError:
        raise
    except Exception as error:  # damaged files raise many kinds
        raise DataFileError(name, f"not a valid NumPy array: {error}") from error
    table = _numeric_matrix(name, given, "the array")
    roles = selection.resolve(name, None, table.shape[1])
    _check_exact(name, given, roles.features)
    X = np.ascontiguousarray(table[:, roles.features])
    _check_features(name, X, selection)
    return Samples(
        X,
        y=None if roles.label is None else _labels(name, given[:, roles.label], len(given)),
        query=None if roles.query is None else _labels(name, given[:, roles.query], len(given), "query"),
        name=name,
    )


def write_npz(samples: Samples, stream: IO[bytes]) -> None:
    """Write an archive for `read_npz`; `scipy.sparse.load_npz` can read sparse ones, too."""
    names = None if samples.feature_names is None else np.array(samples.feature_names)
    optional: dict[str, Any] = {"y": samples.y, "query": samples.query, "feature_names": names}
    if samples.is_sparse:
        X = samples.X.tocsr()
        parts: dict[str, Any] = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        parts |= {"format": np.array(b"csr"), "shape": np.array(X.shape)}
    else:
        parts = {"X": samples.X}
    parts |= {key: value for key, value in optional.items() if value is not None}
    archive = io.BytesIO()  # the archive writer seeks, which a pipe or a compressed file cannot
    np.savez_compressed(archive, **parts)
    stream.write(archive.getbuffer())


def write_npy(samples: Samples, stream: IO[bytes]) -> None:
    """Write an array with the features and, as the last column, the labels."""
    X = samples.dense()
    if samples.query is not None:
        raise DataFileError(samples.name, "an .npy file cannot store queries; write .npz")
    if samples.y is not None and samples.y.dtype.kind not in "biuf":
        raise DataFileError(samples.name, "an .npy file cannot store labels that are strings; write .npz")
    np.lib.format.write_array(stream, X if samples.y is None else np.column_stack([X, samples.y]), allow_pickle=False)


def read_archive(stream: IO[bytes], name: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of an archive that samples consist of; others only by name, as empty arrays."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    try:
        with ZipFile(stream) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise ValueError("two of its arrays have the same name")
            used = {key: member for key, member in members.items() if key in ARRAYS}
            if any(member.file_size > MAX_DEFLATION * max(1, member.compress_size) for member in used.values()):
                raise ValueError("the size of an array is damaged")
            check_expansion(name, sum(member.file_size for member in used.values()), size)
            arrays: dict[str, np.ndarray[Any, Any]] = {key: np.empty(0) for key in members}
            for key, member in used.items():
                with archive.open(member) as opened:
                    arrays[key] = _read_array(opened, member.file_size, name)
            return arrays
    except MemoryError:
        raise
    except Exception as error:  # damaged files raise many kinds
        raise DataFileError(name, f"not a valid archive of NumPy arrays: {error}") from error


def _read_array(stream: IO[bytes], size: int, name: str) -> np.ndarray[Any, Any]:
    """Return the array of a stream of a size in bytes; its header is validated before memory is allocated."""
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read_header:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is unknown")
    shape, by_columns, dtype = read_header[version](stream)
    if dtype.hasobject:
        raise ValueError("it contains Python objects, which are not read; save numbers or strings")
    expected = stream.tell() + dtype.itemsize * math.prod(shape)
    if min(shape, default=0) < 0 or expected != size:
        raise ValueError(f"its header says that it has {expected:,} bytes, but it has {size:,}")
    # The bytes, float64 values of the same shape, and a flag for each of them.
    check_memory(size + 9 * math.prod(shape), f"{name}: an array of shape {shape}", TOO_LARGE)
    data = np.frombuffer(bytearray(stream.read()), dtype)  # writable
    return data.reshape(shape, order="F" if by_columns else "C")


def _labels(name: str, values: np.ndarray[Any, Any], count: int, what: str = "y") -> np.ndarray[Any, Any]:
    """Return validated labels, float64 or strings."""
    if values.shape != (count,):
        raise DataFileError(name, f"{what} must have shape ({count},), one entry per sample, not {values.shape}")
    if values.dtype.kind == "U":
        check_text(name, values, what)
        return values
    if values.dtype.kind not in "biuf":
        raise DataFileError(name, f"{what} must be numbers or strings, not {values.dtype}")
    numbers = to_float64(values)
    inexact = inexact_position(values) if what == "y" else None
    if inexact is not None:
        problem = f"{values[inexact]}, an integer that float64 cannot represent; {INEXACT_LABEL}"
        raise DataFileError(name, f"y of sample {inexact[0] + 1} is {problem}")
    same = indistinguishable_pair(values[np.abs(numbers) >= 2**53].tolist()) if values.dtype.kind in "iu" else None
    if same is not None:
        raise DataFileError(name, f"{what} has {same[0]} and {same[1]}, {INDISTINGUISHABLE}")
    if not np.isfinite(numbers).all():
        raise DataFileError(name, f"{what} of sample {int(np.argmin(np.isfinite(numbers))) + 1} is not finite")
    return numbers


def check_text(name: str, values: np.ndarray[Any, Any], what: str) -> None:
    """Raise unless the strings are valid Unicode: NumPy reads any 32-bit numbers as characters."""
    codes = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))).view(np.uint32)
    invalid = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))
    if invalid.any():
        raise DataFileError(name, f"{what} has a character that is not valid Unicode")


def _check_exact(name: str, table: np.ndarray[Any, Any], columns: Sequence[int]) -> None:
    """Raise if integers of the features cannot be represented exactly."""
    inexact = inexact_position(table[:, columns])
    if inexact is not None:
        row, column = inexact[0], columns[inexact[1]]
        raise DataFileError(name, f"sample {row + 1} has {table[row, column]} in column {column + 1}, {INEXACT}")


def _check_features(name: str, X: Any, selection: ColumnSelection) -> None:
    if selection.n_features is not None and X.shape[1] != selection.n_features:
        raise DataFileError(name, f"{X.shape[1]} features, but {selection.n_features} are required")


def _numeric_matrix(name: str, table: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a two-dimensional array as float64, checked for finite values."""
    if table.ndim != 2 or 0 in table.shape:
        raise DataFileError(name, f"{what} must be two-dimensional with a row per sample, not of shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise DataFileError(name, f"{what} must be numbers, not {table.dtype}")
    numbers = to_float64(table)
    finite = np.isfinite(numbers)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataFileError(name, f"sample {row + 1} has {numbers[row, column]} in column {column + 1}")
    return numbers


def _sparse_matrix(name: str, arrays: Mapping[str, Any]) -> Any:
    """Return a validated sparse matrix."""
    if not set(PARTS) <= set(arrays):
        found = ", ".join(arrays) or "none"
        raise DataFileError(name, f"the archive must contain X and y or a sparse matrix, but it contains {found}")
    try:
        kind = arrays["format"].item()
        layout = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        if layout not in ("csr", "csc"):
            raise ValueError(f"the format must be csr or csc, not {layout}")
        for part in ("shape", "indices", "indptr"):
            if arrays[part].dtype.kind not in "iu":
                raise ValueError(f"{part} must be integers, not {arrays[part].dtype}")
        rows, columns = (int(size) for size in arrays["shape"])
        if rows < 1 or columns < 1 or arrays["data"].dtype.kind not in "biuf":
            raise ValueError("it must have rows and columns of numbers")
        for part in ("y", "query"):  # before memory is taken for the rows
            if part in arrays and arrays[part].shape != (rows,):
                raise ValueError(f"{part} must have shape ({rows},), one entry per sample, not {arrays[part].shape}")
        if layout == "csc" and 8 * rows > max(EXPANDED_BYTES, MAX_EXPANSION * arrays["data"].nbytes):
            raise ValueError(f"{rows} rows for {arrays['data'].size} values; write it as csr if that is intended")
        inexact = inexact_position(arrays["data"])
        if inexact is not None:
            raise ValueError(f"it has {arrays['data'][inexact]}, {INEXACT}")
        indices, starts = (_as_int64(part, arrays[part]) for part in ("indices", "indptr"))
        make = sparse.csr_matrix if layout == "csr" else sparse.csc_matrix
        X = make((to_float64(arrays["data"]), indices, starts), shape=(rows, columns))
        if (np.diff(X.indptr) < 0).any():  # check_format does not notice it if the last entry is 0
            raise ValueError("indptr must be in ascending order")
        X.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise DataFileError(name, f"the sparse matrix is invalid: {error}") from error
    X = X.tocsr()
    with np.errstate(over="ignore"):
        X.sum_duplicates()
    if not np.isfinite(X.data).all():
        row = int(np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(X.data))[0], side="right"))
        raise DataFileError(name, f"sample {row} has a value that is not finite")
    return X


def _as_int64(part: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the indices of a sparse matrix; scipy makes them smaller where that is possible."""
    if values.ndim != 1:
        raise ValueError(f"{part} must be one-dimensional, not of shape {values.shape}")
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 2**63:
        raise ValueError(f"{part} has {int(values.max())}, which is too large")
    return values.astype(np.int64)
