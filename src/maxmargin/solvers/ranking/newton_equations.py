"""The linear equations of a Newton step of a ranking.

With the kernel matrix K of the samples and the Laplacian Λ of the graph of the pairs whose response changes with the
scores, the step of the scores solves (I + K Λ) Δ = −K r, where r is the residual of the coefficients. Only the samples
of those pairs take part. With few features F, K = F Fᵀ and the equations are (I + Fᵀ Λ F) Δw = −Fᵀ r.

A smooth kernel is close to a product L Lᵀ of fewer columns, a partial Cholesky factor. The equations of L Lᵀ in place
of K, as small as with features, precondition an iteration in single precision (GMRES; Saad & Schultz 1986).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

#: Up to this number of edges per sample a sparse Laplacian is multiplied and built faster than a dense one.
SPARSE_EDGES = 50

#: Above this number of samples, equations are solved in single precision, in half the time, and refined.
MIN_SINGLE_SIZE = 1000

#: The columns of a partial Cholesky factor, as a fraction of the samples, and the largest diagonal entry of K − L Lᵀ,
#: as a fraction of that of K, with which it is used: GMRES then takes 5 to 25 iterations. With 0.5 most solves of
#: Gaussian data of 8 features reached the limit.
FACTOR_FRACTION, MAX_FACTOR_ERROR = 0.25, 0.1

#: The diagonal entry of K − L Lᵀ, as a fraction of that of K, at which the factor is complete.
FACTOR_ACCURACY = 1e-4

#: The residual of the preconditioned iteration, relative to the right-hand side, and the limit on its steps.
ITERATED, MAX_ITERATIONS = 1e-2, 40

#: The residual of a refined solution, relative to the right-hand side, and the limit on refinements.
REFINED, MAX_REFINEMENTS = 1e-4, 3

#: The largest diagonal entry of a kernel matrix whose products are computed in single precision.
MAX_SINGLE_DIAGONAL = 1e15

#: Dense or sparse.
Laplacian: TypeAlias = "Floats | sparse.csr_matrix"


@dataclass(frozen=True)
class KernelEquations:
    """The equations in the samples, with the full kernel matrix in memory."""

    values: Floats

    @cached_property
    def _single(self) -> NDArray[np.float32]:
        """K in single precision, in which it may overflow."""
        with np.errstate(over="ignore"):
            return self.values.astype(np.float32)

    @cached_property
    def _factor(self) -> NDArray[np.float32] | None:
        """The partial Cholesky factor of K in single precision; None if there is no good one of few columns."""
        largest = float(self.values.diagonal().max())
        if not 0.0 < largest < MAX_SINGLE_DIAGONAL:
            return None
        packed, order, rank, _ = linalg.lapack.dpstrf(self.values, tol=FACTOR_ACCURACY * largest, lower=1)
        rank = min(rank, int(FACTOR_FRACTION * len(self.values)))
        lower = np.tril(packed[:, :rank])
        factor = np.empty(lower.shape, dtype=np.float32)
        factor[order - 1] = lower
        rest = self.values.diagonal() - np.einsum("ij,ij->i", factor, factor)
        return factor if rest.max() <= MAX_FACTOR_ERROR * largest else None

    def product(self, coefficients: Floats) -> Floats:
        """Return K b."""
        return np.asarray(self.values @ coefficients)

    def step(self, residual: Floats, product: Floats, laplacian: Laplacian) -> tuple[Floats, Floats]:
        """Return the step of the coefficients and of the scores; `product` is K times the residual."""
        used = np.flatnonzero(laplacian.diagonal())
        large = len(used) > MIN_SINGLE_SIZE
        step = self._iterate(laplacian, -residual) if large and self._factor is not None else None
        if step is None or not inner(product, step) < 0.0:  # no descent direction, by the errors of the iteration
            step = -residual - laplacian @ self._solve(used, laplacian, -product, large)
        return step, self.product(step)

    def _iterate(self, laplacian: Laplacian, target: Floats) -> Floats | None:
        """Solve (I + Λ K) x = target by a preconditioned iteration; None where that is not enough.

        This is the step of the coefficients, whose errors Λ would magnify if the step of the scores was iterated.
        """
        single, factor = self._single, self._factor
        assert factor is not None
        with np.errstate(over="ignore", invalid="ignore"):  # float32 may overflow; then there is no solution
            edges = laplacian.astype(np.float32)
            images = edges @ factor
            small = factor.T @ images
            if not np.isfinite(small).all():
                return None
            small[np.diag_indices_from(small)] += 1.0
            try:
                cholesky = linalg.cho_factor(small, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                return None

            def precondition(vector: NDArray[Any]) -> NDArray[Any]:
                part = linalg.cho_solve(cholesky, factor.T @ vector, check_finite=False)
                return np.asarray(vector - images @ part)

            return gmres(lambda vector: vector + edges @ (single @ vector), precondition, target)

    def _solve(self, used: Indices, laplacian: Laplacian, target: Floats, in_single: bool) -> Floats:
        """Solve the equations of the samples in use by factors; the others do not matter."""
        some = len(used) < len(self.values)
        small = laplacian[used][:, used] if some else laplacian
        found = None
        if in_single:
            single = self._single[used][:, used] if some else self._single

            def product(vector: Floats) -> Floats:
                spread = np.zeros(len(target))
                spread[used] = vector
                return self.product(spread)[used]

            found = _solve_in_single(single, small, product, target[used])
        if found is None:
            square = self.values[np.ix_(used, used)] if some else self.values
            found = _factorised(_system(square, small))(target[used])
        change = np.zeros(len(target))
        change[used] = found
        return change


def gmres(
    product: Callable[[NDArray[Any]], NDArray[Any]],
    precondition: Callable[[NDArray[Any]], NDArray[Any]],
    target: Floats,
) -> Floats | None:
    """Solve linear equations by the method of generalised minimal residuals, preconditioned from the right.

    Returns None if `MAX_ITERATIONS` do not reduce the residual to the fraction `ITERATED` of the right-hand side.
    """
    size = float(np.linalg.norm(target))
    basis = np.zeros((MAX_ITERATIONS + 1, len(target)), dtype=np.float32)
    directions = np.zeros((MAX_ITERATIONS, len(target)), dtype=np.float32)
    projected = np.zeros((MAX_ITERATIONS + 1, MAX_ITERATIONS))
    basis[0] = target / size
    for k in range(MAX_ITERATIONS):
        directions[k] = precondition(basis[k])
        image = product(directions[k])
        for _ in range(2):  # once does not give orthogonal vectors in single precision
            along = basis[: k + 1] @ image
            image = image - along @ basis[: k + 1]
            projected[: k + 1, k] += along
        length = float(np.linalg.norm(image))
        projected[k + 1, k] = length
        if not np.isfinite(length):
            return None
        goal = np.zeros(k + 2)
        goal[0] = size
        found = np.linalg.lstsq(projected[: k + 2, : k + 1], goal, rcond=None)[0]
        if np.linalg.norm(projected[: k + 2, : k + 1] @ found - goal) <= ITERATED * size:
            return np.asarray(found @ directions[: k + 1], dtype=np.float64)
        basis[k + 1] = image / length
    return None


def _system(square: NDArray[Any], laplacian: Laplacian) -> NDArray[Any]:
    """Return I + K Λ."""
    system = (laplacian @ square).T
    system[np.diag_indices_from(system)] += 1.0
    return np.asarray(system)


def _factorised(system: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function that solves linear equations by LU factors, which replace the matrix.

    The solution of singular equations is not finite; unlike scipy.linalg.lu_factor, nothing warns of them.
    """
    factorise, substitute = linalg.get_lapack_funcs(("getrf", "getrs"), (system,))
    factors, pivots, _ = factorise(system, overwrite_a=True)
    return lambda target: np.asarray(substitute(factors, pivots, target)[0])


def _solve_in_single(
    single: NDArray[np.float32], laplacian: Laplacian, product: Callable[[Floats], Floats], target: Floats
) -> Floats | None:
    """Solve (I + K Λ) x = target by factors in single precision, refined; None where that is not enough.

    `product` multiplies by K in double precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # float32 may overflow; then there is no solution
        system = _system(single, laplacian.astype(np.float32))
        if not np.isfinite(system).all():
            return None
        solve = _factorised(system)
        solution = np.zeros_like(target)
        rest = target
        for _ in range(MAX_REFINEMENTS):
            solution = solution + solve(rest.astype(np.float32))
            rest = target - solution - product(laplacian @ solution)
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

    def step(self, residual: Floats, product: Floats, laplacian: Laplacian) -> tuple[Floats, Floats]:
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


def pair_laplacian(first: Indices, second: Indices, weights: Floats, size: int, dense: bool = False) -> Laplacian:
    """Return the Laplacian Σ weight · (e_i − e_j)(e_i − e_j)ᵀ of weighted pairs: if wanted, dense for many pairs."""
    if dense and 2 * len(first) > SPARSE_EDGES * size:
        laplacian = -np.bincount(first * size + second, weights, size * size).reshape(size, size)
        laplacian += laplacian.T
        laplacian[np.diag_indices(size)] -= laplacian.sum(axis=1)
        return laplacian
    rows = np.concatenate([first, second, first, second])
    columns = np.concatenate([second, first, first, second])
    values = np.concatenate([-weights, -weights, weights, weights])
    return sparse.csr_matrix((values, (rows, columns)), shape=(size, size))
