"""Kernel values of any samples with a fixed set of columns, computed natively.

The columns are packed once, in single or double precision; after that each request costs little more than its values.
Training asks for rows of the matrix, prediction for combinations of the columns, the certificate for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin import _native
from maxmargin.kernels.points import Floats, Indices, Points, work_per_value

if TYPE_CHECKING:
    from maxmargin.kernels.formula import Formula

#: About how many multiplications one native call takes.
STRETCH_WORK = 2 * 10**9

#: The most memory that the rows of one native call are packed into.
STRETCH_BYTES = 2**26


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


def combine_in_stretches(columns: FusedColumns, rows: Points, weights: Floats) -> Floats:
    """Combine columns for many rows, in stretches that do not keep Ctrl-C waiting."""
    step = max(256, STRETCH_WORK // (work_per_value(rows) * max(1, len(weights))))
    step = max(1, min(step, STRETCH_BYTES // (8 * max(1, rows.data.shape[1]))))
    parts = [rows.take(slice(start, start + step)) for start in range(0, len(rows), step)]
    return np.concatenate([columns.combine(part, weights) for part in parts]) if parts else np.empty(0)


class DenseColumns:
    """Columns from a dense array, interleaved in panels."""

    def __init__(self, formula: Formula, points: Points, dtype: np.dtype[Any], threads: int, shift: Floats) -> None:
        self.formula, self.dtype, self.threads, self.shift = formula, dtype, threads, shift
        self.count, self.features = len(points), points.data.shape[1]
        self._width = _native.single_panel if dtype == np.float32 else _native.double_panel
        self._values, self._norms = self._pack(points, self._width)

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        rows = self._alike(rows)
        values, norms = self._pack(rows, _native.strip)
        f = self.formula
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
        values, norms = np.empty(padded * self.features, self.dtype), np.empty(padded, self.dtype)
        _native.pack(points.data, points.index, width, self.shift, values, norms, self.threads)
        return values, norms

    def _alike(self, rows: Points) -> Points:
        _check_features(rows, self.features)
        return Points(rows.values().toarray()) if sparse.issparse(rows.data) else rows


class SparseColumns:
    """Columns from compressed sparse rows; nothing is made dense."""

    def __init__(self, formula: Formula, points: Points, dtype: np.dtype[Any], threads: int) -> None:
        self.formula, self.dtype, self.threads = formula, dtype, threads
        self.points, self.features = points, points.data.shape[1]
        self._arrays, self._alone = points.arrays(dtype), self._lone_sums(points)

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
        return rows if sparse.issparse(rows.data) else Points(sparse.csr_array(rows.values()))

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


def _check_features(rows: Points, features: int) -> None:
    if rows.data.shape[1] != features:
        raise ValueError(f"the two sets of samples differ in features: {rows.data.shape[1]} and {features}")
