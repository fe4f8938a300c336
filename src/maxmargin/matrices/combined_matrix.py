"""A weighted sum of symmetric matrices, Σ_m weights_m M_m; the matrices of several kernels, stored while they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.double_double import DoubleDouble
from maxmargin.matrices.full_kernel_matrix import fill_kernel_matrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.rounding import Errors
from maxmargin.matrices.symmetric_matrix import (
    CastColumns,
    Float32Columns,
    SymmetricMatrix,
    partial_product_by_blocks,
)
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.resources import blas_thread_limit

#: Size of the stripe of rows in which matrices are added, in bytes: it stays in the cache of a core.
STRIPE_BYTES = 2**18


@dataclass(frozen=True)
class CombinedMatrix:
    """Σ_m weights_m M_m of matrices of the same samples, with weights of at least 0; nothing is stored."""

    parts: Sequence[SymmetricMatrix]
    weights: Floats

    @property
    def used(self) -> list[tuple[float, SymmetricMatrix]]:
        """The matrices with a positive weight; the first one if there is none."""
        pairs = list(zip(self.weights.tolist(), self.parts, strict=True))
        return [pair for pair in pairs if pair[0] > 0] or pairs[:1]

    @property
    def size(self) -> int:
        return self.parts[0].size

    @property
    def rows_per_request(self) -> int:
        return min(part.rows_per_request for _, part in self.used)

    @property
    def cost(self) -> int:
        return sum(part.cost for _, part in self.used)

    def checksum(self) -> int:
        return reduce(xor, ((k + 1) * part.checksum() for k, part in enumerate(self.parts)))

    def in_memory(self) -> None:
        return None

    def stored(self) -> None:
        return None

    def diagonal(self) -> Floats:
        return np.asarray(sum(weight * part.diagonal() for weight, part in self.used))

    def rows(self, indices: Indices) -> Floats:
        return self.block(indices, np.arange(self.size))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        total = np.zeros((len(rows), len(columns)))
        with np.errstate(over="ignore", invalid="ignore"):  # whether values are finite is checked where they are used
            for weight, part in self.used:
                total += weight * part.block(rows, columns)
        return total

    def matvec(self, vector: Floats) -> Floats:
        return np.asarray(sum(weight * part.matvec(vector) for weight, part in self.used))

    def partial_product(self, rows: Indices, columns: Indices, weights: Floats) -> Floats:
        return partial_product_by_blocks(self, rows, columns, weights)

    def magnitudes(self) -> Floats:
        return np.asarray(np.sqrt(sum(weight * part.magnitudes() ** 2 for weight, part in self.used)))

    def diagonal_error(self) -> Floats:
        errors = sum(weight * part.diagonal_error() for weight, part in self.used)
        return np.asarray(errors + self._roundings * self.magnitudes() ** 2)

    def product_error(self, vector: Floats) -> Errors:
        size = self.magnitudes()
        rounding = self._roundings * size * float(size @ np.abs(vector))
        errors = Errors(rounding, 2.0**-50 * rounding)
        for weight, part in self.used:
            of_part = part.product_error(vector)
            errors = errors.plus(Errors(weight * of_part.double, weight * of_part.extended))
        return errors

    @property
    def _roundings(self) -> float:
        """A bound on the relative error of the products with the weights and their sum."""
        return (len(self.used) + 4) * UNIT_ROUNDOFF

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        products = [part.extended_product(vector).scaled(weight) for weight, part in self.used]
        return reduce(DoubleDouble.plus, products)

    def extended_work(self, count: int) -> float:
        return sum(part.extended_work(count) for _, part in self.used)

    def uncached(self) -> CombinedMatrix:
        return CombinedMatrix([part.uncached() for part in self.parts], self.weights)

    def take(self, indices: Indices) -> CombinedMatrix:
        return CombinedMatrix([part.take(indices) for part in self.parts], self.weights)

    def features(self) -> None:
        return None

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return CastColumns(self, columns)


class BaseMatrices:
    """The matrices of several kernels on the same samples: each is computed once if it fits, else when it is needed.

    Parameters
    ----------
    sources : sequence of SymmetricMatrix
        One for each kernel.
    max_bytes : int
        Memory for values, those of the sum included.
    threads : int
    """

    def __init__(self, sources: Sequence[SymmetricMatrix], max_bytes: int, threads: int = 1) -> None:
        self.sources, self.threads = list(sources), threads
        self.size = sources[0].size
        self._most = max_bytes // max(1, 8 * self.size**2) - 1
        self._total: Floats | None = None
        self._values: dict[int, Floats] = {m: one for m, one in enumerate(map(_array_of, sources)) if one is not None}

    @property
    def stores_sum(self) -> bool:
        """Whether the sum of the matrices is stored."""
        return self._most >= 0

    def combined(self, weights: Floats) -> SymmetricMatrix:
        """Return Σ_m weights_m M_m; a stored sum is valid until the next one."""
        origin = CombinedMatrix(self.sources, weights)
        if not self.stores_sum:
            return origin
        used = np.flatnonzero(weights)
        self._store(used)
        if self._total is None:
            self._total = np.empty((self.size, self.size))
        columns, step = np.arange(self.size), max(1, STRIPE_BYTES // (8 * self.size))
        product = np.empty((step, self.size))
        for start in range(0, self.size, step):
            check_deadline()
            rows = slice(start, min(self.size, start + step))
            stripe = self._total[rows]
            stripe[:] = 0.0
            for m in used.tolist():
                known = self._values.get(m)
                values = known[rows] if known is not None else self.sources[m].block(columns[rows], columns)
                stripe += np.multiply(values, weights[m], out=product[: len(stripe)])
        check_finite(self._total)
        return PrecomputedMatrix(self._total, None, origin)

    def product(self, m: int, rows: Indices, weights: Floats) -> Floats:
        """Return the product of the submatrix of some rows of one matrix with a vector."""
        known = self._values.get(m)
        if known is None:
            return self.part(m, rows).matvec(weights)
        vector = np.zeros(self.size)
        vector[rows] = weights
        with blas_thread_limit(1):  # a product with all columns reads memory in order
            return np.asarray((known @ vector)[rows])

    def part(self, m: int, rows: Indices) -> SymmetricMatrix:
        """Return the submatrix of some rows of one matrix, with its values in memory if that takes no more than it."""
        known, source = self._values.get(m), self.sources[m]
        if known is not None:
            return PrecomputedMatrix(known, rows, source.take(rows))
        restricted = source.take(rows)
        if not isinstance(restricted, KernelMatrix) or not self.stores_sum:
            return restricted
        return self._computed(restricted)

    def _computed(self, source: KernelMatrix) -> PrecomputedMatrix:
        check_deadline()
        values = np.empty((source.size, source.size))
        fill_kernel_matrix(source.kernel, source.points, values, self.threads)
        return PrecomputedMatrix(values, None, source)

    def _store(self, used: Indices) -> None:
        """Compute and keep the matrices of some kernels while there is room; those that are not among them give way."""
        computed = [m for m, source in enumerate(self.sources) if isinstance(source, KernelMatrix)]
        wanted = [m for m in used.tolist() if m not in self._values and m in computed]
        unused = [m for m in self._values if m not in used and m in computed]
        for m in wanted:
            if len(self._values) >= self._most:
                if not unused:
                    return
                del self._values[unused.pop()]
            source = self.sources[m]
            assert isinstance(source, KernelMatrix)
            self._values[m] = np.asarray(self._computed(source).values, dtype=np.float64)


def _array_of(source: SymmetricMatrix) -> Floats | None:
    """Return the array that a matrix is, None if it is computed, or some rows of an array."""
    stored = source.stored()
    return None if stored is None or stored[1] is not None else stored[0]
