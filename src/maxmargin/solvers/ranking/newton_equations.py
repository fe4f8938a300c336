"""The linear equations of a Newton step of a ranking.

With the kernel matrix K of the samples and the Laplacian Λ of the graph of the pairs whose response changes with the
scores, the step of the scores solves (I + K Λ) Δ = −K r, where r is the residual of the coefficients. Only the samples of
those pairs take part. With few features F, K = F Fᵀ and the equations are (I + Fᵀ Λ F) Δw = −Fᵀ r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Up to this number of edges per sample a sparse Laplacian is multiplied faster than a dense one.
SPARSE_EDGES = 50


@dataclass(frozen=True)
class KernelEquations:
    """The equations in the samples, with the full kernel matrix in memory."""

    values: Floats

    def product(self, coefficients: Floats) -> Floats:
        """Return K b."""
        return np.asarray(self.values @ coefficients)

    def step(self, residual: Floats, product: Floats, laplacian: sparse.csr_matrix) -> tuple[Floats, Floats]:
        """Return the step of the coefficients and of the scores; `product` is K times the residual."""
        used = np.flatnonzero(laplacian.getnnz(axis=1))
        small = laplacian[used][:, used]
        square = self.values[np.ix_(used, used)] if len(used) < len(self.values) else self.values
        system = np.asarray((small @ square).T) if small.nnz <= SPARSE_EDGES * len(used) else square @ small.toarray()
        system[np.diag_indices_from(system)] += 1.0
        change = linalg.solve(system, -product[used], overwrite_a=True, overwrite_b=True, check_finite=False)
        step = -residual
        step[used] -= small @ change
        return step, self.product(step)


@dataclass(frozen=True)
class FeatureEquations:
    """The equations in the weights of the linear kernel, for few features."""

    rows: Floats

    def product(self, coefficients: Floats) -> Floats:
        """Return F Fᵀ b."""
        return np.asarray(self.rows @ (coefficients @ self.rows))

    def step(self, residual: Floats, product: Floats, laplacian: sparse.csr_matrix) -> tuple[Floats, Floats]:
        """Return the step of the coefficients and of the scores."""
        system = self.rows.T @ (laplacian @ self.rows)
        system[np.diag_indices_from(system)] += 1.0
        weights = linalg.solve(system, -(residual @ self.rows), assume_a="pos", check_finite=False)
        change = self.rows @ weights
        return -residual - laplacian @ change, change


def equations_for(matrix: SymmetricMatrix) -> KernelEquations | FeatureEquations:
    """Return the equations of a matrix: in its features if there are fewer than samples, else in its samples."""
    features = matrix.features()
    if features is not None and features.width < matrix.size:
        data = features.points.data[features.points.index]
        rows = data.toarray() if sparse.issparse(data) else data
        return FeatureEquations(np.ascontiguousarray(rows, dtype=np.float64))
    values = matrix.in_memory()
    return KernelEquations(matrix.rows(np.arange(matrix.size)) if values is None else values)


def pair_laplacian(first: Indices, second: Indices, weights: Floats, size: int) -> sparse.csr_matrix:
    """Return the Laplacian Σ weight · (e_i − e_j)(e_i − e_j)ᵀ of weighted pairs."""
    rows = np.concatenate([first, second, first, second])
    columns = np.concatenate([second, first, first, second])
    values = np.concatenate([-weights, -weights, weights, weights])
    return sparse.csr_matrix((values, (rows, columns)), shape=(size, size))
