"""Feature rows f_i of a linear kernel matrix, M_ij = f_i · f_j.

With explicit features, a product with the matrix is two products with the data, M b = F (Fᵀ b), and a linear solver
maintains the weights w = Fᵀ b instead of all gradients. Products are computed in float64 from dense or CSR data in
float32 or float64, without a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import TimeLimitReachedError, check_deadline, seconds_until_deadline
from maxmargin.double_double import DoubleDouble, exact_sum
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.points import Points
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.rounding import Errors, sum_errors

#: Minimum number of multiplications per thread: starting a thread takes as long as some ten thousand.
MULTIPLICATIONS_PER_THREAD = 2 * 10**5

#: A pass over several numbers of each sample takes as long as so many multiplications.
MULTIPLICATIONS_PER_SAMPLE = 10

_NO_FLOATS = np.empty(0)


class Moments(NamedTuple):
    """Σ c_i, Σ c_i f_i and the lower triangle of Σ c_i f_i f_iᵀ, without the constant feature."""

    total: float
    sums: Floats
    squares: Floats

    def plus(self, other: Moments, times: float = 1.0) -> Moments:
        """Return these moments plus `times` those of other rows, in whose memory."""
        squares = other.squares
        if times != 1.0:
            squares *= times
        squares += self.squares
        return Moments(self.total + times * other.total, self.sums + times * other.sums, squares)

    def times(self, factor: float) -> Moments:
        """Return the moments multiplied by a factor."""
        return Moments(factor * self.total, factor * self.sums, factor * self.squares)


@dataclass(frozen=True)
class Features:
    """One row of features for each variable.

    Parameters
    ----------
    points : Points
        The rows, dense or CSR, without the constant feature.
    constant : float
        The value of an additional last feature of all rows; 0 for none.
    threads : int
        Maximum number of threads for products.
    """

    points: Points
    constant: float = 0.0
    threads: int = 1

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.points)

    @property
    def width(self) -> int:
        """The number of features, without the constant one."""
        return int(self.points.table.shape[1])

    @property
    def dimension(self) -> int:
        """The number of weights: one per feature, and the last for the constant one (0 if there is none)."""
        return self.width + 1

    @cached_property
    def stored(self) -> int:
        """The number of stored values of all rows: the cost of a pass over the data."""
        data = self.points.table
        if not sparse.issparse(data):
            return self.size * self.width
        if self.points.in_order:
            return int(data.nnz)
        index = self.points.index
        return int((data.indptr[index + 1] - data.indptr[index]).sum())

    @property
    def device_rows(self) -> DeviceRows | None:
        """The rows in the memory of a device, which then computes products with them; None in host memory."""
        table = self.points.table
        return table if isinstance(table, DeviceRows) else None

    def threads_for(self, multiplications: int) -> int:
        """Return the number of threads for a number of multiplications."""
        return max(1, min(self.threads, multiplications // MULTIPLICATIONS_PER_THREAD))

    @property
    def threads_for_samples(self) -> int:
        """The number of threads for a pass over numbers of each row, without its features."""
        return self.threads_for(MULTIPLICATIONS_PER_SAMPLE * self.size)

    def decisions(self, weights: Floats) -> Floats:
        """Return F w."""
        check_deadline()
        if not weights.any():
            return np.zeros(self.size)
        table = self.device_rows
        if table is not None:
            out = table.decisions(weights[:-1], self._indices)
        else:
            out = np.empty(self.size)
            threads = self.threads_for(self.stored)
            _native.row_decisions(self.native, np.ascontiguousarray(weights[:-1]), out, threads)
        return out + self.constant * weights[-1] if self.constant else out

    def weights(self, dual: Floats) -> Floats:
        """Return Fᵀ b."""
        check_deadline()
        dual = np.ascontiguousarray(dual, dtype=np.float64)
        if not dual.any():
            return np.zeros(self.dimension)
        out, table = np.empty(self.dimension), self.device_rows
        if table is not None:
            out[:-1] = table.combination(dual, self._indices)
        else:
            _native.combine_rows(self.native, dual, out[:-1], self.threads_for(self.stored))
        out[-1] = self.constant * dual.sum() if self.constant else 0.0
        return out

    @cached_property
    def norms(self) -> Floats:
        """‖f_i‖ of each row, with the constant feature."""
        return np.sqrt(self.known_squared_norms() + self.constant**2)

    def known_squared_norms(self) -> Floats:
        """Return ‖f_i‖² of each row, without the constant feature; computed once for all views of the data."""
        memo = self.points.memo
        table = self.device_rows
        if table is not None and "sums of squares" not in memo:
            memo["sums of squares"] = table.row_sums(True, None)
        if "sums of squares" not in memo:
            began, everything = perf_counter(), Features(Points.wrap(self.points.data), threads=self.threads)
            memo["sums of squares"] = everything.squared_norms()
            memo["seconds per value"] = (perf_counter() - began) / max(1, everything.stored)
        return self.squared_norms()

    @property
    def seconds_per_value(self) -> float:
        """How long the pass over the data took that computed the norms, for each stored value; 0 if unknown."""
        return float(self.points.memo.get("seconds per value", 0.0))

    def weights_error(self, dual: Floats) -> Errors:
        """Return bounds on the norm of the error of ``weights(dual)``, as arrays of one number."""
        used = int(np.count_nonzero(dual))
        size = np.array([float(self.norms @ np.abs(dual))])
        return sum_errors(used, used + self.threads + 8, size)

    def decisions_error(self, weights: Floats) -> Errors:
        """Return bounds on the errors of ``decisions(weights)``."""
        most = self.most_stored
        return sum_errors(most, most + 8, self.norms * float(np.sqrt(inner(weights, weights))))

    def product_error(self, dual: Floats) -> Errors:
        """Return bounds on the errors of ``decisions(weights(dual))``."""
        of_weights = self.weights_error(dual)
        most = self.most_stored
        of_sums = sum_errors(most, most + 8, self.norms * float(self.norms @ np.abs(dual)))
        carried = Errors(self.norms * of_weights.double, self.norms * of_weights.extended)
        return of_sums.plus(carried)

    def extended_weights(self, dual: DoubleDouble) -> DoubleDouble:
        """Return Fᵀ b in double-double arithmetic."""
        out = DoubleDouble(np.zeros(self.dimension), np.zeros(self.dimension))
        high, low = np.ascontiguousarray(dual.high), np.ascontiguousarray(dual.low)
        _native.extended_combination(self.native, high, low, out.high[:-1], out.low[:-1])
        if self.constant:
            total = exact_sum(dual)
            rest = exact_sum(dual, DoubleDouble.of(np.array([-total])))
            last = DoubleDouble(np.array([total]), np.array([rest])).scaled(self.constant)
            out.high[-1], out.low[-1] = last.high[0], last.low[0]
        return out

    def extended_decisions(self, weights: DoubleDouble) -> DoubleDouble:
        """Return F w in double-double arithmetic."""
        out = DoubleDouble(np.empty(self.size), np.empty(self.size))
        high, low = (np.ascontiguousarray(part[:-1]) for part in weights)
        _native.extended_decisions(self.native, high, low, *out, self.threads_for(self.stored))
        if not self.constant:
            return out
        last = weights.take(slice(-1, None)).scaled(self.constant)
        return out.plus(DoubleDouble(*(np.broadcast_to(part, self.size) for part in last)))

    def squared_norms(self) -> Floats:
        """Return ‖f_i‖² of each row, without the constant feature; known ones are not computed again."""
        known: Floats | None = self.points.memo.get("sums of squares")
        if known is not None:
            return known if self.points.in_order else known[self.points.index]
        if self.device_rows is not None:
            return self.known_squared_norms()
        out = np.empty(self.size)
        _native.row_squared_norms(self.native, out, self.threads_for(self.stored))
        return out

    def take(self, rows: Indices) -> Features:
        """Return some of the rows."""
        return Features(self.points.take(rows), self.constant, self.threads)

    def moments(self, factors: Floats, origin: Floats | None = None) -> Moments:
        """Return the zeroth, first and second moments of the rows about `origin`, which must be None for CSR rows."""
        dense = not sparse.issparse(self.points.table)
        if origin is not None and not dense:
            raise ValueError("moments of sparse rows are about zero: origin must be None")
        factors, table = np.ascontiguousarray(factors, dtype=np.float64), self.device_rows
        if table is not None:
            return Moments(float(factors.sum()), *table.moments(factors, origin, self._indices))
        sums, squares = np.empty(self.width), np.empty((self.width, self.width))
        per_row = self.stored // max(1, self.size)
        threads = self.threads_for(self.stored * per_row // (16 if dense else 2))
        origin = _NO_FLOATS if origin is None else origin
        seconds = seconds_until_deadline()
        if not _native.row_moments(self.native, factors, origin, sums, squares, threads, seconds):
            raise TimeLimitReachedError
        return Moments(float(factors.sum()), sums, squares)

    @property
    def native(self) -> _native.DataRows:
        """The rows as the compiled loops take them."""
        values, starts, features = self._arrays
        return _native.DataRows(
            values=values, starts=starts, features=features, width=self.width, indices=self._indices
        )

    @cached_property
    def _arrays(self) -> tuple[Any, Any, Any]:
        """The values, and for CSR rows indptr and indices."""
        data = self.points.data
        if not sparse.issparse(data):
            return data, None, None
        starts, features = data.indptr, data.indices
        if starts.dtype != features.dtype:
            starts = starts.astype(features.dtype)
        return data.data, starts, features

    @cached_property
    def _indices(self) -> Indices | None:
        """The row of the data of each variable; None for all rows in order."""
        return None if self.points.in_order else np.ascontiguousarray(self.points.index, dtype=np.int64)

    @cached_property
    def most_stored(self) -> int:
        """The largest number of stored values of a row."""
        return (
            self.width
            if not sparse.issparse(self.points.table)
            else int(np.diff(self.points.table.indptr).max(initial=0))
        )
