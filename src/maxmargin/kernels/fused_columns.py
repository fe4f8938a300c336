"""Kernel values of any samples with a fixed set of columns, computed natively.

The columns are packed once, in single or double precision; after that each request costs little more than its values.
Training asks for rows of the matrix, prediction for combinations of the columns, the certificate for both.

In double precision columns are packed a stretch at a time and forgotten: there never is a second copy of all data.
Samples that are stored in single precision become double precision piece by piece on their way into the packed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.kernels.points import Points, work_per_value

if TYPE_CHECKING:
    from maxmargin.kernels.formula import Formula

#: About how many multiplications one native call takes.
STRETCH_WORK = 2 * 10**9

#: The most memory that samples are packed into for one native call.
STRETCH_BYTES = 2**23

#: Bytes of a cache line.
CACHE_LINE = 64

#: The most memory for samples on their way from single to double precision.
PIECE_BYTES = 2**20


class FusedColumns(Protocol):
    """Columns of a kernel matrix, ready to meet rows."""

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        """Write the values of the k-th row to the front of ``out[slots[k]]``."""
        ...

    def combine(self, rows: Points, weights: Floats) -> Floats:
        """Return Σ_c k(row, column c) weights[c] for every row."""
        ...


def fused_columns(
    formula: Formula, points: Points, dtype: Any, threads: int, shift: Floats | None = None
) -> FusedColumns:
    """Pack the columns. `shift` is taken off all samples first, where the formula does not mind (dense only)."""
    if sparse.issparse(points.data):
        return SparseColumns(formula, points, np.dtype(dtype), threads)
    return DenseColumns(formula, points, np.dtype(dtype), threads, np.empty(0) if shift is None else shift)


def fill_in_stretches(formula: Formula, rows: Points, columns: Points, threads: int) -> Floats:
    """Return the block of kernel values of any samples with any others, in double precision."""
    out = np.empty((len(rows), len(columns)))
    for across in stretches(columns):
        fused = fused_columns(formula, columns.take(across), np.float64, threads)
        for down in stretches(rows):
            some = rows.take(down)
            if across.stop - across.start == len(columns):
                fused.fill(some, out, np.arange(down.start, down.stop))
            else:
                block = np.empty((len(some), across.stop - across.start))
                fused.fill(some, block, np.arange(len(some)))
                out[down, across] = block
    return out


def combine(formula: Formula, rows: Points, columns: Points, weights: Floats, threads: int) -> Floats:
    """Return Σ_c k(row, column c) weights[c] for every row, in double precision."""
    out = np.zeros(len(rows))
    for across in stretches(columns):
        fused = fused_columns(formula, columns.take(across), np.float64, threads)
        out += combine_in_stretches(fused, rows, weights[across])
    return out


def stretches(points: Points) -> list[slice]:
    """Divide samples into stretches that take a limited memory when packed in double precision."""
    width = points.data.shape[1]
    if sparse.issparse(points.data):
        width = 2 * points.data.nnz // max(1, points.data.shape[0])  # a feature and a value for each that is stored
    step = max(_native.strip, STRETCH_BYTES // (8 * max(1, width)))
    return [slice(start, min(len(points), start + step)) for start in range(0, len(points), step)]


def combine_in_stretches(columns: FusedColumns, rows: Points, weights: Floats) -> Floats:
    """Combine columns for many rows, in stretches that do not keep Ctrl-C waiting."""
    step = max(256, STRETCH_WORK // (work_per_value(rows) * max(1, len(weights))))
    parts = [
        part.take(slice(start, start + step))
        for part in map(rows.take, stretches(rows))
        for start in range(0, len(part), step)
    ]
    return np.concatenate([columns.combine(part, weights) for part in parts]) if parts else np.empty(0)


class DenseColumns:
    """Columns from a dense array, interleaved in panels."""

    def __init__(self, formula: Formula, points: Points, dtype: np.dtype[Any], threads: int, shift: Floats) -> None:
        self.formula, self.dtype, self.threads, self.shift = formula, dtype, threads, shift
        self.count, self.features = len(points), points.data.shape[1]
        self._points = points
        self._width = _native.single_panel if dtype == np.float32 else _native.double_panel
        self._values, self._norms = self._pack(points, self._width)

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        rows = self._alike(rows)
        values, norms = self._pack(rows, _native.strip)
        f = self.formula
        if rows.data is self._points.data and np.array_equal(rows.index, self._points.index):
            _native.dense_square(
                f.term, f.function, f.gamma, f.coef0, f.degree, values, norms, self._values, self._norms, self.features,
                out, slots, self.threads,
            )  # fmt: skip
            return
        _native.dense_block(
            f.term, f.function, f.gamma, f.coef0, f.degree, values, norms, self._values, self._norms, self.count,
            self.features, out, slots, self.threads,
        )  # fmt: skip

    def combine(self, rows: Points, weights: Floats) -> Floats:
        rows = self._alike(rows)
        values, norms = self._pack(rows, _native.strip)
        padded = np.zeros(len(self._norms), dtype=self.dtype)
        padded[: self.count] = weights
        out = np.empty(len(rows))
        f = self.formula
        _native.dense_combination(
            f.term, f.function, f.gamma, f.coef0, f.degree, values, norms, self._values, self._norms, self.features,
            padded, out, self.threads,
        )  # fmt: skip
        return out

    def _pack(self, points: Points, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
        padded = -(-len(points) // width) * width
        values, norms = _aligned(padded * self.features, self.dtype), np.empty(padded, self.dtype)
        if points.data.dtype == np.float64:
            _native.pack(points.data, points.index, width, self.shift, values, norms, self.threads)
            return values, norms
        step = width * max(1, PIECE_BYTES // (8 * max(1, self.features) * width))
        for start in range(0, len(points), step):
            piece = points.take(slice(start, start + step)).values().astype(np.float64)
            room = slice(start * self.features, (start + step) * self.features)
            _native.pack(
                piece, np.arange(len(piece)), width, self.shift, values[room], norms[start : start + step], self.threads
            )
        return values, norms

    def _alike(self, rows: Points) -> Points:
        _check_features(rows, self.features)
        return Points(rows.values().toarray()) if sparse.issparse(rows.data) else rows


class SparseColumns:
    """Columns from compressed sparse rows; nothing is made dense."""

    def __init__(self, formula: Formula, points: Points, dtype: np.dtype[Any], threads: int) -> None:
        self.formula, self.dtype, self.threads = formula, dtype, threads
        self.points, self.features = points.in_precision(dtype), points.data.shape[1]
        self._arrays, self._alone = self.points.arrays(dtype), self._lone_sums(self.points)

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        rows = self._alike(rows)
        f = self.formula
        _native.sparse_block(
            f.term, f.function, f.gamma, f.coef0, f.degree,
            *rows.arrays(self.dtype), rows.index, self._lone_sums(rows),
            *self._arrays, self.points.index, self._alone, self.features, out, slots, self.threads,
        )  # fmt: skip

    def combine(self, rows: Points, weights: Floats) -> Floats:
        rows = self._alike(rows)
        padded = np.zeros(len(weights) + _native.sparse_panel, dtype=self.dtype)
        padded[: len(weights)] = weights
        out = np.empty(len(rows))
        f = self.formula
        _native.sparse_combination(
            f.term, f.function, f.gamma, f.coef0, f.degree,
            *rows.arrays(self.dtype), rows.index, self._lone_sums(rows),
            *self._arrays, self.points.index, self._alone, self.features, padded, out, self.threads,
        )  # fmt: skip
        return out

    def _alike(self, rows: Points) -> Points:
        _check_features(rows, self.features)
        rows = rows if sparse.issparse(rows.data) else Points(sparse.csr_array(rows.values()))
        return rows.in_precision(self.dtype)

    def _lone_sums(self, points: Points) -> NDArray[Any]:
        """Return the share of the sum that each sample has alone; it is worked out once for all views of the data."""
        key = ("alone", self.formula.term, self.dtype)
        if key not in points.memo:
            everything = np.arange(points.data.shape[0])
            out = np.empty(len(everything), self.dtype)
            _native.sparse_alone(self.formula.term, *points.arrays(self.dtype), everything, self.features, out)
            points.memo[key] = out
        sums: NDArray[Any] = points.memo[key]
        return sums[points.index]


def _aligned(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return room that starts with a cache line: a vector that lies across two takes twice as long to load."""
    room = np.empty(count + CACHE_LINE // dtype.itemsize, dtype)
    start = -room.ctypes.data % CACHE_LINE // dtype.itemsize
    return room[start : start + count]


def _check_features(rows: Points, features: int) -> None:
    if rows.data.shape[1] != features:
        raise ValueError(f"the two sets of samples differ in features: {rows.data.shape[1]} and {features}")
