"""The linear equations of a Newton step of a ranking.

With the kernel matrix K of the samples and the Laplacian Λ of the graph of the pairs whose response changes with the
scores, the step of the scores solves (I + K Λ) Δ = −K r, where r is the residual of the coefficients. Only the samples
of those pairs take part. With few features F, K = F Fᵀ and the equations are (I + Fᵀ Λ F) Δw = −Fᵀ r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Up to this number of edges per sample a sparse Laplacian is multiplied faster than a dense one.
SPARSE_EDGES = 50

#: Above this number of samples, factors are computed in single precision, in half the time, and refined.
MIN_SINGLE_SIZE = 1000

#: The residual of a refined solution, relative to the right-hand side, and the limit on refinements.
REFINED, MAX_REFINEMENTS = 1e-4, 3


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
        target = -product[used]
        change = _solve_in_single(square, small, target) if len(used) > MIN_SINGLE_SIZE else None
        if change is None:
            system = _system(square, small)
            change = linalg.lu_solve(linalg.lu_factor(system, True, False), target, check_finite=False)
        step = -residual
        step[used] -= small @ change
        return step, self.product(step)


def _system(square: NDArray[Any], laplacian: sparse.csr_matrix) -> NDArray[Any]:
    """Return I + K Λ."""
    few = laplacian.nnz <= SPARSE_EDGES * len(square)
    system = (laplacian @ square).T if few else square @ laplacian.toarray()
    system[np.diag_indices_from(system)] += 1.0
    return np.asarray(system)


def _solve_in_single(square: Floats, laplacian: sparse.csr_matrix, target: Floats) -> Floats | None:
    """Solve (I + K Λ) x = target by factors in single precision, refined; None where that is not enough."""
    with np.errstate(over="ignore", invalid="ignore"):  # float32 may overflow; then there is no solution
        system = _system(square.astype(np.float32), laplacian.astype(np.float32))
        if not np.isfinite(system).all():
            return None
        factor = linalg.lu_factor(system, True, False)
        solution = np.zeros_like(target)
        rest = target
        for _ in range(MAX_REFINEMENTS):
            solution = solution + linalg.lu_solve(factor, rest.astype(np.float32), check_finite=False)
            rest = target - solution - square @ (laplacian @ solution)
            if np.abs(rest).max() <= REFINED * np.abs(target).max():
                return np.asarray(solution)
    return None


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
