"""Factors of M + diag(ridge), whole or of a few columns: what conjugate gradients are preconditioned with.

    whole    M + R = L Lᵀ                  Cholesky's factor, 8 n² bytes: one step of conjugate gradients is then exact
    partial  M ≈ F Fᵀ,  F of k columns     (F Fᵀ + R)⁻¹ by its singular values: few steps if what F leaves out is small

The columns of the partial factor are drawn at random, each with a probability proportional to what the factor so far
leaves of its diagonal (Chen, Epperly, Tropp & Webber 2025), always the same for the same matrix; why low rank is enough
is in Frangella, Tropp & Udell (2023). Both are computed in pieces of a fraction of a second, with `look` called in
between: it lets Ctrl-C in and raises when a limit is reached.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs, dpstrf

from maxmargin._typing import Floats
from maxmargin.matrices.numerics import check_finite
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Columns of the whole factor, and of the partial one, that are worked on together.
PANEL, BLOCK = 512, 128

#: What is left of a diagonal, relative to what was there, below which a column is rounding alone.
NOTHING_LEFT = 1e-12

#: The largest singular value of a partial factor relative to the ridge that is used: (F Fᵀ + R)⁻¹ must stay positive
#: definite in double precision.
STEEPEST = 1e6


class Factor(Protocol):
    """Something near the inverse of M + diag(ridge), symmetric and positive definite."""

    def solve(self, right: Floats) -> Floats:
        """Return the product with a vector, or with the columns of an array."""
        ...


class WholeFactor:
    """(L Lᵀ)⁻¹."""

    def __init__(self, factor: Floats) -> None:
        self._factor = factor

    def solve(self, right: Floats) -> Floats:
        solution: Floats = dpotrs(self._factor.T, right, lower=0)[0]  # a transposed view: LAPACK's order, no copy
        return solution


def whole_factor(matrix: SymmetricMatrix, ridge: Floats, look: Callable[[], None]) -> WholeFactor | None:
    """Return the factor of the whole matrix, None if it is not positive definite in double precision."""
    size = matrix.size
    factor = np.empty((size, size))
    for left in range(0, size, PANEL):
        columns = np.arange(left, min(left + PANEL, size))
        corner = np.empty(0)
        for top in range(left, size, PANEL):
            look()
            rows = np.arange(top, min(top + PANEL, size))
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
    return WholeFactor(factor)


class PartialFactor:
    """(F Fᵀ + R)⁻¹ = R^−½ (I − U diag(s²/(1 + s²)) Uᵀ) R^−½ with U s Vᵀ = R^−½ F."""

    def __init__(self, columns: Floats, ridge: Floats) -> None:
        self._root = 1.0 / np.sqrt(ridge)
        orthogonal, triangle = np.linalg.qr(self._root[:, None] * columns)
        inner, values, _ = np.linalg.svd(triangle)
        self._directions = orthogonal @ inner
        squares = np.square(np.minimum(values, STEEPEST))
        self._share = squares / (1.0 + squares)

    def solve(self, right: Floats) -> Floats:
        root = self._root if right.ndim == 1 else self._root[:, None]
        scaled = root * right
        inside = self._directions.T @ scaled
        inside = (self._share if right.ndim == 1 else self._share[:, None]) * inside
        return np.asarray(root * (scaled - self._directions @ inside))


def partial_factor(matrix: SymmetricMatrix, ridge: Floats, rank: int, look: Callable[[], None]) -> PartialFactor:
    """Return the factor of up to `rank` columns; fewer if they leave nothing but rounding."""
    everything, random = np.arange(matrix.size), np.random.default_rng(matrix.size)
    start = np.maximum(matrix.diagonal(), 0.0)
    left = start.copy()
    columns = np.empty((matrix.size, 0))
    while columns.shape[1] < rank:
        look()
        # A sample with a large cost is a direction that its ridge hardly holds: it counts as much as it weighs.
        weight = np.where(left > NOTHING_LEFT * start, left, 0.0) / ridge
        candidates = int(np.count_nonzero(weight))
        if not candidates:
            break
        picks = random.choice(
            matrix.size, min(BLOCK, rank - columns.shape[1], candidates), replace=False, p=weight / weight.sum()
        )
        block = matrix.block(everything, picks)
        check_finite(block)
        block = block - columns @ columns[picks].T
        corner = block[picks]
        triangle, order, count, _ = dpstrf(corner, tol=NOTHING_LEFT * float(start.max()), lower=1)
        if not count:
            break
        chosen = order[:count] - 1
        new = solve_triangular(triangle[:count, :count], block[:, chosen].T, lower=True, check_finite=False).T
        columns = np.hstack([columns, new])
        left -= np.square(new).sum(axis=1)
        left[picks] = 0.0
    return PartialFactor(columns, ridge)
