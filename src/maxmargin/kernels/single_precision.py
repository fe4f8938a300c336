"""How a kernel is computed in single precision without losing the digits that matter.

A float32 value has seven digits. Distances keep them if the samples are centred first; the quick form of the gaussian,
‖x‖² + ‖z‖² − 2 x·z, keeps them as long as γ‖x‖² is moderate, and beyond that the differences are summed. What single
precision gets wrong the certificate sees, which is computed in double precision.

Dense data that are mostly zeros (one-hot columns, images) are compressed: a value then costs the stored features only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.kernels.formula import Formula, FormulaKernel, Function, Term
from maxmargin.kernels.fused_columns import FusedColumns, fused_columns
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points, compressed, in_parts

#: γ‖x‖² up to which the quick form of the gaussian is used: the error of its exponent is 1e-7 of that.
QUICK_UP_TO = 16.0

#: The largest entry, and the largest kernel value, that single precision is trusted with.
LARGEST_ENTRY, LARGEST_VALUE = 1e15, 1e30

#: Dense data are compressed if they have at least so many features, of which at most this part is not 0.
WIDE, SPARSE_BELOW = 32, 0.2


class SinglePrecision(NamedTuple):
    """How to compute in single precision: which formula, on which data, with what taken off all samples first."""

    formula: Formula
    points: Points
    shift: Floats

    def columns(self, index: Indices, threads: int) -> FusedColumns:
        """Return columns of the kernel matrix of all samples."""
        return fused_columns(self.formula, self.points.take(index), np.float32, threads, self.shift)

    def rows(self, index: Indices) -> Points:
        """Return the samples of some rows."""
        return self.points.take(index)


def single_precision(kernel: Kernel, points: Points, threads: int = 1) -> SinglePrecision | None:
    """Return how to compute a kernel in single precision; None if single precision cannot serve.

    It is worked out from all the data behind `points`, once for all views of them.
    """
    if not isinstance(kernel, FormulaKernel):
        return None
    key = ("single precision", kernel.formula)
    if key not in points.memo:
        points.memo[key] = _work_out(kernel, Points(points.data), threads)
    answer: SinglePrecision | None = points.memo[key]
    return answer


def _work_out(kernel: FormulaKernel, points: Points, threads: int) -> SinglePrecision | None:
    formula, nothing = kernel.formula, np.empty(0)
    stored = points.data.data if sparse.issparse(points.data) else points.data
    if stored.size and not max(stored.max(), -stored.min()) < LARGEST_ENTRY:
        return None
    if formula.function in (Function.IDENTITY, Function.POWER):
        diagonal = kernel.diagonal(points)
        if len(diagonal) and not np.abs(diagonal).max() < LARGEST_VALUE:
            return None
    if sparse.issparse(points.data):
        return SinglePrecision(formula, points, nothing)
    few = _compressed(points, threads)
    if formula.term is Term.PRODUCT or formula.term is Term.CHI_SQUARED:
        return SinglePrecision(formula, points if few is None else few, nothing)
    if few is not None and formula.gamma * _largest_square(points.data, nothing) <= QUICK_UP_TO:
        return SinglePrecision(formula, few, nothing)
    centre = np.sum([part.sum(axis=0) for _, part in in_parts(points.data)], axis=0) / len(points)
    if formula.term is Term.SQUARED and formula.gamma * _largest_square(points.data, centre) <= QUICK_UP_TO:
        quick = Formula(Term.PRODUCT, Function.GAUSSIAN_OF_PRODUCT, 2.0 * formula.gamma)
        return SinglePrecision(quick, points, centre)
    return SinglePrecision(formula, points, centre)


def _compressed(points: Points, threads: int) -> Points | None:
    """Return dense samples as compressed rows, if that is worth it."""
    if points.data.shape[1] < WIDE:
        return None
    arrays = compressed(points.data, np.float32, SPARSE_BELOW, threads)
    return None if arrays is None else Points.of_compressed(*arrays, points.data.shape)


def _largest_square(data: NDArray[Any], centre: Floats) -> float:
    """Return the largest ‖x − centre‖²."""
    parts = (part - centre if len(centre) else part for _, part in in_parts(data))
    return max(float(np.einsum("ij,ij->i", part, part).max()) for part in parts)
