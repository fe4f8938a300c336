"""The kernel matrix around a mean in feature space, M_ij = ⟨Φ(x_i) − μ, Φ(x_j) − μ⟩ with μ = Σ share_k Φ(x_k).

A function w·(Φ(x) − μ) + r has the mean r over the samples of μ, whatever w is: a constraint on that mean needs no
variable of its own. With s_i = Σ_k share_k base_ik and c = Σ_k share_k s_k, M_ij = base_ij − (s_i − c/2) − (s_j − c/2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices, Singles
from maxmargin.double_double import DoubleDouble, exact_sum, two_product
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.rounding import Errors, sum_errors
from maxmargin.matrices.symmetric_matrix import Float32Columns, SymmetricMatrix, WrappedMatrix
from maxmargin.precision import UNIT_ROUNDOFF


@dataclass(frozen=True)
class CentredMatrix(WrappedMatrix):
    """The matrix `base` minus a number for each row and each column, M_ij = base_ij − (shift_i + shift_j)."""

    base: SymmetricMatrix
    shift: Floats

    def diagonal(self) -> Floats:
        return self.base.diagonal() - (self.shift + self.shift)

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self.base.block(rows, columns) - (self.shift[rows][:, None] + self.shift[columns])

    def matvec(self, vector: Floats) -> Floats:
        return self.base.matvec(vector) - self.shift * float(np.sum(vector)) - inner(self.shift, vector)

    def magnitudes(self) -> Floats:
        # |base_ij| + |shift_i| + |shift_j| ≤ (m_i + |shift_i| / t + t) (m_j + |shift_j| / t + t) for any t > 0.
        size, shift = self.base.magnitudes(), np.abs(self.shift)
        unit = np.sqrt(float(shift.max(initial=0.0)))
        return np.asarray(size + (shift / unit + unit if unit > 0 else 0.0))

    def diagonal_error(self) -> Floats:
        return self.base.diagonal_error() + 4.0 * UNIT_ROUNDOFF * (np.abs(self.base.diagonal()) + np.abs(self.shift))

    def product_error(self, vector: Floats) -> Errors:
        size = self.magnitudes() * float(self.magnitudes() @ np.abs(vector))
        return self.base.product_error(vector).plus(sum_errors(2 * len(vector), len(vector) + 8, size))

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        total = _extended_total(vector)
        products = two_product(self.shift, vector.high).plus(DoubleDouble.of(self.shift * vector.low))
        along = _extended_total(products)
        shifted = DoubleDouble.of(self.shift).times(DoubleDouble(*(np.full(self.size, part) for part in total)))
        base = self.base.extended_product(vector)
        return base.minus(shifted).minus(DoubleDouble(*(np.full(self.size, part) for part in along)))

    def uncached(self) -> CentredMatrix:
        return CentredMatrix(self.base.uncached(), self.shift)

    def take(self, indices: Indices) -> CentredMatrix:
        return CentredMatrix(self.base.take(indices), self.shift[indices])

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return _CentredColumns(self.base.float32_columns(columns), self.shift, columns)


@dataclass(frozen=True)
class _CentredColumns:
    """Columns of the base matrix minus the shifts."""

    columns: Float32Columns
    shift: Floats
    index: Indices

    @property
    def cost(self) -> int:
        return self.columns.cost

    def fill(self, rows: Indices, out: Singles, slots: Indices) -> int:
        computed = self.columns.fill(rows, out, slots)
        of_columns = self.shift[self.index]
        for slot, of_row in zip(slots, self.shift[rows], strict=True):
            out[slot, : len(of_columns)] -= (of_columns + of_row).astype(np.float32)
        return computed

    def combine(self, rows: Indices, weights: Floats) -> tuple[Floats, int]:
        product, computed = self.columns.combine(rows, weights)
        return product - self.shift[rows] * float(weights.sum()) - inner(self.shift[self.index], weights), computed


def centred(base: SymmetricMatrix, shares: Floats) -> SymmetricMatrix:
    """Return the matrix around the mean with these shares, which sum to one; in memory, if the matrix is."""
    means = base.matvec(shares)
    shift = means - 0.5 * inner(shares, means)
    stored = base.stored()
    if stored is None:
        return CentredMatrix(base, shift)
    array, rows = stored
    values = array if rows is None else array[rows[:, None], rows]
    return PrecomputedMatrix(values - (shift[:, None] + shift), origin=CentredMatrix(base.uncached(), shift))


def _extended_total(values: DoubleDouble) -> tuple[float, float]:
    """Return the sum of values and its rounding error."""
    total = exact_sum(values)
    return total, exact_sum(values, DoubleDouble.of(np.array([-total])))
