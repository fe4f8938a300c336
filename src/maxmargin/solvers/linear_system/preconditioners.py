"""Preconditioners of conjugate gradients: Cholesky factors of M + diag(ridge), whole or of a few columns.

    whole    M + R = L Lᵀ                  the Cholesky factor, 8 n² bytes: one step of conjugate gradients is exact
    partial  M ≈ F Fᵀ,  F of k columns     (F Fᵀ + R)⁻¹ by singular values: few steps if M − F Fᵀ is small

The columns of the partial factor are drawn at random, with probabilities in proportion to the diagonal of M − F Fᵀ so
far (randomly pivoted Cholesky: Chen, Epperly, Tropp & Webber 2025), always the same for the same matrix; why low rank
is enough is in Frangella, Tropp & Udell (2023). Both are computed in panels that take a fraction of a second, with
`check` called in between: it handles Ctrl-C and raises when a limit is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs, dpstrf

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline, until_deadline
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Columns of the whole factor, and of the partial one, that are computed together.
WHOLE_PANEL, PARTIAL_PANEL = 512, 128

#: Relative residual of a diagonal entry below which its column is rounding.
MIN_RESIDUAL = 1e-12

#: Limit on the singular values of a partial factor, relative to the ridge: (F Fᵀ + R)⁻¹ must stay positive definite in
#: double precision.
MAX_SINGULAR_VALUE = 1e6


class Preconditioner(Protocol):
    """An approximate inverse of M + diag(ridge), symmetric and positive definite."""

    def solve(self, right: Floats) -> Floats:
        """Return the product with a vector, or with the columns of an array."""
        ...


class WholeCholesky:
    """(L Lᵀ)⁻¹."""

    def __init__(self, factor: Floats) -> None:
        self._factor = factor

    def solve(self, right: Floats) -> Floats:
        solution: Floats = dpotrs(self._factor.T, right, lower=0)[0]  # a transposed view: LAPACK's order, no copy
        return solution


def whole_cholesky(matrix: SymmetricMatrix, ridge: Floats, check: Callable[[], None]) -> WholeCholesky | None:
    """Return the Cholesky factor of the whole matrix, None if it is not positive definite in double precision."""
    size = matrix.size
    factor = np.empty((size, size))
    for left in range(0, size, WHOLE_PANEL):
        columns = np.arange(left, min(left + WHOLE_PANEL, size))
        corner = np.empty(0)
        for top in range(left, size, WHOLE_PANEL):
            check()
            rows = np.arange(top, min(top + WHOLE_PANEL, size))
            block = matrix.block(rows, columns)
            check_finite(block)
            block = block - factor[rows[0] : rows[-1] + 1, :left] @ factor[columns[0] : columns[-1] + 1, :left].T
            if top == left:
                block.ravel()[:: len(rows) + 1] += ridge[columns]
                corner, failed = dpotrf(block, lower=1)
                if failed:
                    return None
                block = corner
            else:
                block = solve_triangular(corner, block.T, lower=True, check_finite=False).T
            factor[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = block
    return WholeCholesky(factor)


class PartialCholesky:
    """(F Fᵀ + R)⁻¹ = R^−½ (I − U diag(s²/(1 + s²)) Uᵀ) R^−½ with U s Vᵀ = R^−½ F."""

    def __init__(self, columns: Floats, ridge: Floats) -> None:
        self._root = 1.0 / np.sqrt(ridge)
        scaled = self._root[:, None] * columns
        orthogonal, triangle = until_deadline(lambda: np.linalg.qr(scaled))
        inner, values, _ = until_deadline(lambda: np.linalg.svd(triangle))
        self._directions = until_deadline(lambda: orthogonal @ inner)
        squares = np.square(np.minimum(values, MAX_SINGULAR_VALUE))
        self._filter = squares / (1.0 + squares)

    def solve(self, right: Floats) -> Floats:
        root = self._root if right.ndim == 1 else self._root[:, None]
        scaled = root * right
        check_deadline()
        projected = self._directions.T @ scaled
        projected = (self._filter if right.ndim == 1 else self._filter[:, None]) * projected
        return np.asarray(root * (scaled - self._directions @ projected))


def partial_cholesky(matrix: SymmetricMatrix, ridge: Floats, rank: int, check: Callable[[], None]) -> PartialCholesky:
    """Return the factor of up to `rank` columns; fewer if the residual is rounding before."""
    everything, random = np.arange(matrix.size), np.random.default_rng(matrix.size)
    diagonal = np.maximum(matrix.diagonal(), 0.0)
    residual = diagonal.copy()
    columns = np.empty((matrix.size, 0))
    while columns.shape[1] < rank:
        check()
        # A sample with a large cost has a small ridge: its column matters in proportion.
        weight = np.where(residual > MIN_RESIDUAL * diagonal, residual, 0.0) / ridge
        candidates = int(np.count_nonzero(weight))
        if not candidates:
            break
        pivots = random.choice(
            matrix.size, min(PARTIAL_PANEL, rank - columns.shape[1], candidates), replace=False, p=weight / weight.sum()
        )
        block = matrix.block(everything, pivots)
        check_finite(block)
        block = block - _product(columns, columns[pivots])
        corner = block[pivots]
        triangle, order, count, _ = dpstrf(corner, tol=MIN_RESIDUAL * float(diagonal.max()), lower=1)
        if not count:
            break
        chosen = order[:count] - 1
        new = solve_triangular(triangle[:count, :count], block[:, chosen].T, lower=True, check_finite=False).T
        columns = np.hstack([columns, new])
        residual -= np.square(new).sum(axis=1)
        residual[pivots] = 0.0
    return PartialCholesky(columns, ridge)


def _product(columns: Floats, pivots: Floats) -> Floats:
    """Return columns @ pivotsᵀ."""
    return until_deadline(lambda: columns @ pivots.T)
