"""The form bᵀMb, divided by groups of variables: Q_gh = Σ b_i M_ij b_j over i in g and j in h.

By symmetry half of the values among the variables are needed: those of a group with itself and the groups after it. For
factors t of the groups, the form of t∘b is tᵀQt.
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.kernels import NativeKernel
from maxmargin.kernels.kernel_columns import combine_in_batches, pack_columns
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import UNIT_ROUNDOFF

#: Smaller groups, on average, are summed from blocks of values: the native loops combine so many columns at a time.
MIN_COMBINED_COLUMNS = 16

#: Values of such a block.
VALUES_AT_ONCE = 2**21


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bounds infinite
def group_forms(matrix: SymmetricMatrix, vector: Floats, starts: Indices) -> Floats:
    """Return Q for groups of consecutive variables, which begin at `starts`."""
    return symmetric_forms(group_form_rows(matrix, vector, starts, 0, len(starts)))


def symmetric_forms(rows: Floats) -> Floats:
    """Return Q from its rows, whose values below the diagonal are arbitrary."""
    return np.triu(rows) + np.triu(rows, 1).T


@np.errstate(over="ignore", invalid="ignore")
def group_form_rows(matrix: SymmetricMatrix, vector: Floats, starts: Indices, first: int, last: int) -> Floats:
    """Return the rows of Q from `first` to `last`, of the upper triangle; the other values are arbitrary."""
    native = isinstance(matrix, KernelMatrix) and isinstance(matrix.kernel, NativeKernel)
    forms = np.zeros((last - first, len(starts)))
    if native and matrix.size >= MIN_COMBINED_COLUMNS * len(starts):
        assert isinstance(matrix, KernelMatrix)
        _combine_columns(matrix, vector, starts, first, forms)
    else:
        _sum_blocks(matrix, vector, starts, first, forms)
    return forms


def equal_shares(starts: Indices, size: int, parts: int) -> list[tuple[int, int]]:
    """Return ranges of groups, at most so many, whose rows of Q take about the same number of values."""
    work = np.cumsum(np.diff(starts, append=size) * (size - starts))
    ends = np.searchsorted(work, work[-1] * np.arange(1, parts + 1) / parts * (1.0 - 1e-12)) + 1
    bounds = np.unique(np.append(0, np.minimum(ends, len(starts))))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


@np.errstate(over="ignore", invalid="ignore")
def form_error(matrix: SymmetricMatrix, vector: Floats, groups: int) -> float:
    """Return a bound on the rounding error of tᵀQt, where `vector` is t∘b."""
    size, length = np.abs(vector), inner(np.abs(vector), matrix.magnitudes())
    # Rounded: the products with the vector, sums over at most all groups and all rows of a group, and t∘b itself.
    error = inner(size, matrix.product_error(vector).double) + (matrix.size + groups + 32) * UNIT_ROUNDOFF * length**2
    return error if np.isfinite(error) else np.inf


def _combine_columns(matrix: KernelMatrix, vector: Floats, starts: Indices, first: int, out: Floats) -> None:
    """Write rows of Q from `first` on, a group of columns at a time, without storing kernel values."""
    assert isinstance(matrix.kernel, NativeKernel)
    points, ends = matrix.points, np.append(starts[1:], matrix.size)
    for row in range(len(out)):
        group = first + row
        start, end = int(starts[group]), int(ends[group])
        columns = pack_columns(matrix.kernel.formula, points.take(slice(start, end)), np.float64, matrix.threads)
        products = combine_in_batches(columns, points.take(slice(start, None)), vector[start:end])
        out[row, group:] = np.add.reduceat(vector[start:] * products, starts[group:] - start)


def _sum_blocks(matrix: SymmetricMatrix, vector: Floats, starts: Indices, first: int, out: Floats) -> None:
    """Write rows of Q from `first` on, from blocks of values."""
    ends, offset, end = np.append(starts[1:], matrix.size), first, first + len(out)
    variables = np.arange(matrix.size)
    while first < end:
        check_deadline()
        start = int(starts[first])
        fits = int(np.searchsorted(ends, start + max(1, VALUES_AT_ONCE // (matrix.size - start)), side="right"))
        last = min(end, max(first + 1, fits))
        rows = variables[start : ends[last - 1]]
        values = vector[rows, None] * matrix.block(rows, variables[start:]) * vector[start:]
        by_column = np.add.reduceat(values, starts[first:] - start, axis=1)
        out[first - offset : last - offset, first:] = np.add.reduceat(by_column, starts[first:last] - start, axis=0)
        first = last
