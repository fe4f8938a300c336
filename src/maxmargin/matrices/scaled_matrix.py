"""A matrix times a power of two, M_ij = 2^−exponent base_ij: exact, unless a value underflows.

Products with kernel values of 1e300 overflow, and those of 1e-300 underflow. The product with a vector is scaled in two
halves, before and after, so that neither happens on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels.points import Points
from maxmargin.matrices.features import Features
from maxmargin.matrices.rounding import Errors
from maxmargin.matrices.symmetric_matrix import CastColumns, Float32Columns, SymmetricMatrix, WrappedMatrix


@dataclass(frozen=True)
class ScaledMatrix(WrappedMatrix):
    """The base matrix times 2^−exponent; the exponent is even, so that features can be scaled, too."""

    base: SymmetricMatrix
    exponent: int

    def in_memory(self) -> Floats | None:
        values = self.base.in_memory()
        return None if values is None else self._scaled(values)

    def diagonal(self) -> Floats:
        return self._scaled(self.base.diagonal())

    def rows(self, indices: Indices) -> Floats:
        return self._scaled(self.base.rows(indices))

    def block(self, rows: Indices, columns: Indices) -> Floats:
        return self._scaled(self.base.block(rows, columns))

    def matvec(self, vector: Floats) -> Floats:
        half = self.exponent // 2
        return scale(self.base.matvec(scale(vector, -half)), -half)

    def magnitudes(self) -> Floats:
        return scale(self.base.magnitudes(), -self.exponent // 2)

    def diagonal_error(self) -> Floats:
        return self._scaled(self.base.diagonal_error())

    def product_error(self, vector: Floats) -> Errors:
        errors = self.base.product_error(vector)
        return Errors(self._scaled(errors.double), self._scaled(errors.extended))

    def extended_product(self, vector: DoubleDouble) -> DoubleDouble:
        product = self.base.extended_product(vector)
        return DoubleDouble(self._scaled(product.high), self._scaled(product.low))

    def uncached(self) -> ScaledMatrix:
        return ScaledMatrix(self.base.uncached(), self.exponent)

    def take(self, indices: Indices) -> ScaledMatrix:
        return ScaledMatrix(self.base.take(indices), self.exponent)

    def float32_columns(self, columns: Indices) -> Float32Columns:
        return CastColumns(self, columns)  # scaled before they are rounded: float32 has a smaller range

    def features(self) -> Features | None:
        rows = self.base.features()
        if rows is None:
            return None
        half, data = -self.exponent // 2, rows.points.data
        if sparse.issparse(data):
            scaled = data.astype(np.float64)  # a copy
            scaled.data = scale(scaled.data, half)
        else:
            scaled = scale(data.astype(np.float64), half)
        return replace(rows, points=Points(scaled, rows.points.index), constant=float(scale(rows.constant, half)))

    def _scaled(self, values: Floats) -> Floats:
        return scale(values, -self.exponent)


def scale(values: Floats | float, exponent: int) -> Floats:
    """Return values times a power of two; too large ones become infinite and too small ones 0, without a warning."""
    with np.errstate(over="ignore", under="ignore"):
        scaled: Floats = np.ldexp(values, exponent)
    return scaled
