"""Kernel values between any samples and a fixed set of columns, computed by the native loops.

The columns are packed once, in float32 or float64; a request then costs little more than its kernel evaluations.
Training reads rows of the matrix, prediction linear combinations of the columns, the certificate both.

In float64 the columns are packed batch by batch, so that there is never a second copy of all data. The rows of linear
combinations are packed by the native loops, a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.formula import KernelFormula
from maxmargin.kernels.points import Points, evaluation_cost, occurring_features, restricted, scaled

#: Approximate number of multiplications per thread of one native call, some tens of milliseconds: Ctrl-C and the time
#: limit are checked between calls.
MULTIPLICATIONS_PER_CALL = 2 * 10**8

#: The fewest panels of columns per thread in a native call for a symmetric block.
PANELS_PER_THREAD = 4

#: The fewest rows per thread of a sum over sparse columns, which are expanded in every call.
MIN_SPARSE_ROWS = 512

#: Maximum memory of the samples that are packed for one native call, in bytes.
PACKED_BYTES = 2**23

#: Bytes of a cache line.
CACHE_LINE = 64


class KernelColumns(Protocol):
    """Columns of a kernel matrix, packed for the native loops."""

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        """Write the values of the k-th row to the first entries of ``out[slots[k]]``."""
        ...

    def combine(self, rows: Points, weights: Floats) -> Floats:
        """Return Σ_c k(row, column c) weights[c] for every row."""
        ...


def pack_columns(
    formula: KernelFormula, points: Points, dtype: Any, threads: int, shift: Floats | None = None
) -> KernelColumns:
    """Return packed columns; `shift` is subtracted from dense samples first, for formulas invariant to translation."""
    check_deadline()
    if sparse.issparse(points.data):
        return SparseColumns(formula, points, np.dtype(dtype), threads)
    return DenseColumns(formula, points, np.dtype(dtype), threads, np.empty(0) if shift is None else shift)


def kernel_square(formula: KernelFormula, points: Points, out: Floats, threads: int) -> None:
    """Write the kernel values of all pairs of some samples to `out`, in float64."""
    count = len(points)
    calls = count**2 * evaluation_cost(points) // (2 * threads * MULTIPLICATIONS_PER_CALL) + 1
    if calls == 1 and formula.gammas is None and type(points.data) is np.ndarray:
        check_deadline()
        _native.dense_matrix(native_formula(formula), points.data, points.index, out, threads)
    else:
        pack_columns(formula, points, np.float64, threads).fill(points, out, np.arange(count))


def kernel_block(formula: KernelFormula, rows: Points, columns: Points, threads: int) -> Floats:
    """Return the block of kernel values k(row, column) in float64."""
    out = np.empty((len(rows), len(columns)))
    for column_batch in batches(columns):
        packed = pack_columns(formula, columns.take(column_batch), np.float64, threads)
        width = column_batch.stop - column_batch.start
        for row_batch in batches(rows):
            samples = rows.take(row_batch)
            if width == len(columns):
                packed.fill(samples, out, np.arange(row_batch.start, row_batch.stop))
            else:
                block = np.empty((len(samples), width))
                packed.fill(samples, block, np.arange(len(samples)))
                out[row_batch, column_batch] = block
    return out


def kernel_product(formula: KernelFormula, rows: Points, columns: Points, weights: Floats, threads: int) -> Floats:
    """Return Σ_c k(row, column c) weights[c] for every row, in float64."""
    out = np.zeros(len(rows))
    for batch in batches(columns):
        packed = pack_columns(formula, columns.take(batch), np.float64, threads)
        out += combine_in_batches(packed, rows, weights[batch])
    return out


def kernel_diagonal(formula: KernelFormula, points: Points) -> Floats:
    """Return k(x, x) for every sample in float64, bit for bit as in a block."""
    out = np.empty(len(points))
    if sparse.issparse(points.data):
        SparseColumns(formula, points, np.dtype(np.float64), 1).fill_diagonal(out)
        return out
    for part in [slice(0, len(points))] if points.data.dtype == np.float64 else batches(points):
        samples = points.take(part)
        if points.data.dtype != np.float64:
            samples = Points(samples.values().astype(np.float64))
        _native.dense_diagonal(native_formula(formula), samples.data, samples.index, out[part])
    return out


def extended_block(formula: KernelFormula, rows: Points, columns: Points, threads: int) -> DoubleDouble:
    """Return the block of kernel values in double-double arithmetic, of few samples at a time.

    Sparse samples are expanded to the features that occur in them: a feature that two samples lack adds nothing.
    """
    weights = np.empty(0) if formula.gammas is None else formula.gammas.values
    formula.factors_of(columns.data.shape[1])
    if sparse.issparse(rows.data) or sparse.issparse(columns.data):
        rows, columns, occurring = _expand_together(rows, columns)
        weights = weights if formula.gammas is None else np.ascontiguousarray(weights[occurring])
    # Terms are multiplied by the γ of their feature, not features by its root: that would be rounded.
    packed = DenseColumns(replace(formula, gammas=None), columns, np.dtype(np.float64), threads, np.empty(0))
    out = DoubleDouble(np.empty((len(rows), len(columns))), np.empty((len(rows), len(columns))))
    packed.fill_extended(rows, weights, out)
    return out


def _expand_together(rows: Points, columns: Points) -> tuple[Points, Points, Indices]:
    """Return samples as arrays of the features that occur in any of them, and which these are."""
    left, right = (sparse.csr_array(points.values()) for points in (rows, columns))
    occurring = np.unique(np.concatenate([left.indices, right.indices]))
    return Points(_expanded(left, occurring)), Points(_expanded(right, occurring)), occurring


def _expanded(data: Any, occurring: Indices) -> Floats:
    """Return the columns of a CSR matrix that occur as an array."""
    starts, features, values = restricted(data, occurring, np.float64)
    return np.asarray(sparse.csr_array((values, features, starts), shape=(data.shape[0], len(occurring))).toarray())


def batches(points: Points) -> list[slice]:
    """Divide samples into batches of at most `PACKED_BYTES` when packed in float64."""
    width = points.table.shape[1]
    if sparse.issparse(points.table):
        width = 2 * points.table.nnz // max(1, points.table.shape[0])  # an index and a value for each stored entry
    step = max(_native.strip, PACKED_BYTES // (8 * max(1, width)))
    return [slice(start, min(len(points), start + step)) for start in range(0, len(points), step)]


def combine_in_batches(columns: KernelColumns, rows: Points, weights: Floats) -> Floats:
    """Return the linear combination of the columns for many rows; sparse ones are converted in batches."""
    if not sparse.issparse(rows.data):
        return columns.combine(rows, weights)
    parts = [columns.combine(rows.take(batch), weights) for batch in batches(rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def slices(rows: int, work: int, least: int, threads: int) -> Iterator[slice]:
    """Divide rows of so many multiplications each into slices of one native call; check the deadline before each.

    A slice has a multiple of `least` rows. Every value depends on its two samples alone, and every sum of a row on that
    row, so that slices change no bit.
    """
    step = least * max(1, threads * MULTIPLICATIONS_PER_CALL // max(1, work * least))
    for start in range(0, rows, step):
        check_deadline()
        yield slice(start, min(rows, start + step))


class DenseColumns:
    """Columns from a dense array, interleaved in panels of the width of the native loops."""

    def __init__(
        self, formula: KernelFormula, points: Points, dtype: np.dtype[Any], threads: int, shift: Floats
    ) -> None:
        self.formula, self.dtype, self.threads, self.shift = formula, dtype, threads, shift
        self.count, self.features = len(points), points.data.shape[1]
        self.scale = formula.factors_of(self.features)
        self._points = points
        self._width = _native.single_panel if dtype == np.float32 else _native.double_panel
        self._arrays = self._pack(points, self._width)
        self.packed = self._first_columns(self.count)

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        rows, formula = self._to_same_format(rows), native_formula(self.formula)
        same = rows is self._points or (
            rows.data is self._points.data and np.array_equal(rows.index, self._points.index)
        )
        calls = self.count**2 * evaluation_cost(rows) // (2 * self.threads * MULTIPLICATIONS_PER_CALL) + 1
        if same and (calls == 1 or self.features <= self.count):  # else packed rows take more memory than the values
            packed = self._packed(rows, _native.strip)
            for part in self._panel_slices(calls):
                _native.dense_square(formula, packed, self.packed, out, slots, part.start, part.stop, self.threads)
            return
        mirrored = same and out.shape == (self.count, self.count) and np.array_equal(slots, np.arange(self.count))
        for part in self._slices(rows):
            packed, columns = self._packed(rows.take(part), _native.strip), self.packed
            if mirrored:  # up to the diagonal
                columns = self._first_columns(part.stop)
            _native.dense_block(formula, packed, columns, out, slots[part], self.threads)
            if mirrored:
                _native.mirror(out, part.start, part.stop, self.threads)

    def combine(self, rows: Points, weights: Floats) -> Floats:
        rows, formula = self._to_same_format(rows), native_formula(self.formula)
        padded = _padded(weights, -(-self.count // self._width) * self._width, self.dtype)
        out = np.empty(len(rows))
        for part in self._slices(rows):
            _native.dense_combination(
                formula,
                rows.data,
                rows.index[part],
                self.shift,
                self.scale,
                self.packed,
                padded,
                out[part],
                self.threads,
            )
        return out

    def _slices(self, rows: Points) -> Iterator[slice]:
        return slices(len(rows), evaluation_cost(rows) * self.count, 2 * _native.strip * self.threads, self.threads)

    def _panel_slices(self, calls: int) -> Iterator[slice]:
        """Divide the panels for so many native calls or a few more; check the deadline before each."""
        panels = -(-self.count // self._width)
        step = max(-(-panels // calls), PANELS_PER_THREAD * self.threads)
        for start in range(0, panels, step):
            check_deadline()
            yield slice(start, min(panels, start + step))

    def _first_columns(self, count: int) -> _native.PackedSamples:
        values, norms = self._arrays
        return _native.PackedSamples(values=values, half_norms=norms, count=count, features=self.features)

    def fill_extended(self, rows: Points, weights: Floats, out: DoubleDouble) -> None:
        """Write all values in double-double arithmetic, with the terms of features multiplied by weights if given."""
        packed = self._packed(self._to_same_format(rows), _native.strip)
        _native.extended_block(native_formula(self.formula), packed, self.packed, weights, *out, self.threads)

    def _packed(self, points: Points, width: int) -> _native.PackedSamples:
        values, norms = self._pack(points, width)
        return _native.PackedSamples(values=values, half_norms=norms, count=len(points), features=self.features)

    def _pack(self, points: Points, width: int) -> tuple[NDArray[Any], NDArray[Any]]:
        padded = -(-len(points) // width) * width
        values, norms = _aligned(padded * self.features, self.dtype), np.empty(padded, self.dtype)
        _native.pack(points.data, points.index, width, self.shift, self.scale, values, norms, self.threads)
        return values, norms

    def _to_same_format(self, rows: Points) -> Points:
        _check_features(rows, self.features)
        return Points(rows.values().toarray()) if sparse.issparse(rows.data) else rows


class SparseColumns:
    """Columns from CSR data, which are never converted to dense; `points` has the factors of the features."""

    def __init__(self, formula: KernelFormula, points: Points, dtype: np.dtype[Any], threads: int) -> None:
        self.formula, self.dtype, self.threads = formula, dtype, threads
        self.features = points.data.shape[1]
        formula.factors_of(self.features)  # raises if there are more features, or fewer
        self.points = scaled(points, formula.gammas).in_precision(dtype)
        # The native loops expand samples: of very wide data, to the features that occur in the columns.
        self._occurring = occurring_features(self.points)
        self._columns = self._samples(self.points)

    def fill(self, rows: Points, out: NDArray[Any], slots: Indices) -> None:
        rows, formula, count = self._to_same_format(rows), native_formula(self.formula), len(self.points)
        same = rows.data is self.points.data and np.array_equal(rows.index, self.points.index)
        if same and count**2 * evaluation_cost(rows) <= 2 * self.threads * MULTIPLICATIONS_PER_CALL:
            check_deadline()
            _native.sparse_block(formula, self._samples(rows), self._columns, out, slots, self.threads)
            return
        mirrored = same and out.shape == (count, count) and np.array_equal(slots, np.arange(count))
        for part in self._slices(rows, _native.sparse_panel):  # the rows or the columns are expanded in panels
            columns = self._samples(self.points.take(slice(0, part.stop))) if mirrored else self._columns
            samples = self._samples(rows.take(part))
            _native.sparse_block(formula, samples, columns, out, slots[part], self.threads)
            if mirrored:
                _native.mirror(out, part.start, part.stop, self.threads)

    def fill_diagonal(self, out: Floats) -> None:
        """Write the value of every column with itself."""
        _native.sparse_diagonal(native_formula(self.formula), self._columns, out)

    def combine(self, rows: Points, weights: Floats) -> Floats:
        rows, formula = self._to_same_format(rows), native_formula(self.formula)
        padded = _padded(weights, len(weights) + _native.sparse_panel, self.dtype)
        out = np.empty(len(rows))
        for part in self._slices(rows, MIN_SPARSE_ROWS * self.threads):
            samples = self._samples(rows.take(part))
            _native.sparse_combination(formula, samples, self._columns, padded, out[part], self.threads)
        return out

    def _slices(self, rows: Points, least: int) -> Iterator[slice]:
        return slices(len(rows), evaluation_cost(rows) * len(self.points), least, self.threads)

    def _samples(self, points: Points) -> _native.SparseSamples:
        # Features that occur in one sample only enter by its separate sum, so those of no column can be left out.
        starts, features, values = self._arrays(points)
        sums = self._separate_sums(points)
        return _native.SparseSamples(
            starts=starts,
            features=features,
            values=values,
            indices=points.index,
            width=self.features if self._occurring is None else len(self._occurring),
            separate_sums=sums,
        )

    def _arrays(self, points: Points) -> tuple[Any, Any, Any]:
        """Return indptr, indices and data of samples, with indices among the features that occur in the columns."""
        if self._occurring is None:
            return points.arrays(self.dtype)
        key = ("occurring", self.dtype)
        known = points.memo.get(key)
        if known is None or known[0] is not self._occurring:
            known = points.memo[key] = self._occurring, restricted(points.data, self._occurring, self.dtype)
        arrays: tuple[Any, Any, Any] = known[1]
        return arrays

    def _to_same_format(self, rows: Points) -> Points:
        _check_features(rows, self.features)
        rows = rows if sparse.issparse(rows.data) else Points(sparse.csr_array(rows.values()))
        return scaled(rows, self.formula.gammas).in_precision(self.dtype)

    def _separate_sums(self, points: Points) -> NDArray[Any]:
        """Return Σ_k term(x_k, 0) of each sample, computed once for all views of the data."""
        key = ("separate sums", self.formula.term, self.dtype)
        if key not in points.memo:
            everything = np.arange(points.data.shape[0])
            out = np.empty(len(everything), self.dtype)
            width = self.features
            if self._occurring is None:
                starts, features, values = points.arrays(self.dtype)
            else:  # of all features, whose indices do not matter here
                starts, values = points.data.indptr.astype(np.int64), points.data.data.astype(self.dtype)
                features, width = np.zeros(len(values), dtype=np.int32), 1
            samples = _native.SparseSamples(
                starts=starts, features=features, values=values, indices=everything, width=width
            )
            _native.sparse_separate_sums(self.formula.term, samples, out)
            points.memo[key] = out
        sums: NDArray[Any] = points.memo[key]
        return sums[points.index]


def native_formula(formula: KernelFormula) -> _native.Formula:
    """Return a formula as an argument of the native loops."""
    f = formula
    return _native.Formula(term=f.term, function=f.function, gamma=f.gamma, coef0=f.coef0, degree=f.degree)


def _padded(weights: Floats, length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return weights in the precision of the columns, with zeros up to a length; infinite where they overflow it."""
    padded = np.zeros(length, dtype=dtype)
    with np.errstate(over="ignore"):
        padded[: len(weights)] = weights
    return padded


def _aligned(count: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a buffer aligned to a cache line: loads across two lines take twice as long."""
    buffer = np.empty(count + CACHE_LINE // dtype.itemsize, dtype)
    start = -buffer.__array_interface__["data"][0] % CACHE_LINE // dtype.itemsize  # faster than `ctypes`
    return buffer[start : start + count]


def _check_features(rows: Points, features: int) -> None:
    if rows.data.shape[1] != features:
        raise ValueError(f"the two sets of samples differ in features: {rows.data.shape[1]} and {features}")
