"""Products with the matrix of a dual problem, and kernel values, in extended or multiple precision with error bounds.

Everything is evaluated from the samples and the parameters of the kernel by the formula in the kernel's docstring; no
kernel value or product that the package computed is used, except those of a user's function, which define the kernel.
Samples of float32 or float64 are exact in both arithmetics. Bounds are to first order in the unit roundoff, doubled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from maxmargin.kernels import (
    ChiSquared,
    FunctionKernel,
    Gaussian,
    Laplacian,
    Linear,
    Points,
    Polynomial,
    Product,
    Scaled,
    Sigmoid,
    Sum,
)
from maxmargin.matrices import (
    BiasAugmentedMatrix,
    CachedMatrix,
    DifferenceMatrix,
    KernelMatrix,
    MulticlassMatrix,
    PrecomputedMatrix,
    RepeatedMatrix,
    SharedCacheMatrix,
)
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.matrices.signed_matrix import SignedMatrix


def dense_rows(points: Points, arithmetic: Any) -> Any:
    """Return the samples as dense rows."""
    rows = points.data[points.index]
    return arithmetic.array(rows.toarray() if sparse.issparse(rows) else rows)


def matrix_product(matrix: Any, vector: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return M v and a bound on the error of each entry."""
    unit, absolute = arithmetic.unit, abs(vector)
    if isinstance(matrix, KernelMatrix):
        used = np.flatnonzero(vector != 0)
        values, errors = kernel_values(matrix.kernel, matrix.points, matrix.points.take(used), arithmetic)
        return _dot(values, errors, vector[used], arithmetic)
    if isinstance(matrix, PrecomputedMatrix):
        if matrix.origin is not None:
            return matrix_product(matrix.origin, vector, arithmetic)
        index = np.arange(len(matrix.values)) if matrix.index is None else matrix.index
        values = arithmetic.array(matrix.values[np.ix_(index, index)])
        return _dot(values, 0 * values, vector, arithmetic)
    if isinstance(matrix, RepeatedMatrix):
        sums, errors = _sums(matrix.sample, vector, matrix.base.size, arithmetic)
        product, bound = _product_of_inexact(matrix.base, sums, errors, arithmetic)
        return product[matrix.sample], bound[matrix.sample]
    if isinstance(matrix, DifferenceMatrix):
        first, first_error = _sums(matrix.first, vector, matrix.base.size, arithmetic)
        second, second_error = _sums(matrix.second, vector, matrix.base.size, arithmetic)
        errors = first_error + second_error + unit * (abs(first) + abs(second))
        product, bound = _product_of_inexact(matrix.base, first - second, errors, arithmetic)
        left, right = product[matrix.first], product[matrix.second]
        return left - right, bound[matrix.first] + bound[matrix.second] + unit * (abs(left) + abs(right))
    if isinstance(matrix, MulticlassMatrix):
        out, bound = 0 * vector, 0 * vector
        for label in np.unique(matrix.label):
            own = matrix.label == label
            sums, errors = _sums(matrix.sample[own], vector[own], matrix.base.size, arithmetic)
            product, error = _product_of_inexact(matrix.base, sums, errors, arithmetic)
            out[own], bound[own] = product[matrix.sample[own]], error[matrix.sample[own]]
        return out, bound
    if isinstance(matrix, BiasAugmentedMatrix):
        product, bound = matrix_product(matrix.base, vector, arithmetic)
        constant = arithmetic.array(matrix.constant)
        extra = constant * vector.sum()
        error = unit * ((len(vector) + 2) * abs(constant) * absolute.sum() + abs(product) + abs(extra))
        return product + extra, bound + 2 * error
    if isinstance(matrix, SignedMatrix):
        signs = arithmetic.array(matrix.signs)
        product, bound = matrix_product(matrix.base, signs * vector, arithmetic)
        return signs * product, bound
    if isinstance(matrix, CachedMatrix):
        base = 0 * vector
        base[matrix.order] = vector
        product, bound = matrix_product(matrix.base, base, arithmetic)
        return product[matrix.order], bound[matrix.order]
    if isinstance(matrix, SharedCacheMatrix | LazyRowCache):
        return matrix_product(matrix.base, vector, arithmetic)
    raise TypeError(f"no exact product with a {type(matrix).__name__}: add it to tests/random_search/exact_products.py")


def matrix_diagonal(matrix: KernelMatrix, arithmetic: Any) -> tuple[Any, Any]:
    """Return k(x, x) of every sample, and error bounds."""
    samples = [matrix.points.take(np.array([k])) for k in range(matrix.size)]
    pairs = [kernel_values(matrix.kernel, sample, sample, arithmetic) for sample in samples]
    return np.array([v[0, 0] for v, _ in pairs]), np.array([e[0, 0] for _, e in pairs])


def kernel_values(kernel: Any, left: Points, right: Points, arithmetic: Any) -> tuple[Any, Any]:
    """Return the block k(x, z) and a bound on the error of each value."""
    unit = arithmetic.unit
    if isinstance(kernel, FunctionKernel):
        values = arithmetic.array(kernel.evaluate(left, right))
        return values, 0 * values
    if isinstance(kernel, Sum | Product):
        first, first_error = kernel_values(kernel.first, left, right, arithmetic)
        second, second_error = kernel_values(kernel.second, left, right, arithmetic)
        if isinstance(kernel, Sum):
            return first + second, first_error + second_error + unit * abs(first + second)
        errors = abs(first) * second_error + abs(second) * first_error + first_error * second_error
        return first * second, errors + unit * abs(first * second)
    if isinstance(kernel, Scaled):
        values, errors = kernel_values(kernel.kernel, left, right, arithmetic)
        factor = arithmetic.array(kernel.factor)
        return factor * values, factor * errors + unit * abs(factor * values)
    X, Z = dense_rows(left, arithmetic), dense_rows(right, arithmetic)
    if isinstance(kernel, Linear | Polynomial | Sigmoid):
        return _of_inner_product(kernel, X, Z, arithmetic)
    if isinstance(kernel, Gaussian | Laplacian | ChiSquared):
        return _of_distance(kernel, X, Z, arithmetic)
    raise TypeError(f"no exact values of a {type(kernel).__name__}: add it to tests/random_search/exact_products.py")


def _of_inner_product(kernel: Any, X: Any, Z: Any, arithmetic: Any) -> tuple[Any, Any]:
    unit, width = arithmetic.unit, X.shape[1]
    inner = arithmetic.dot(X, Z.T)
    error = 2 * (width + 1) * unit * arithmetic.dot(abs(X), abs(Z).T)
    if isinstance(kernel, Linear):
        return inner, error
    gamma, coef0 = arithmetic.array(float(kernel.gamma)), arithmetic.array(float(kernel.coef0))
    base = gamma * inner + coef0
    error = gamma * error + 4 * unit * (abs(gamma * inner) + abs(coef0))
    if isinstance(kernel, Sigmoid):
        return arithmetic.tanh(base), error + 4 * unit
    degree = int(kernel.degree)
    if degree == 0:
        return 0 * base + 1, 0 * base
    value = base**degree
    return value, degree * (abs(base) + error) ** (degree - 1) * error + 4 * (degree + 1) * unit * abs(value)


def _of_distance(kernel: Any, X: Any, Z: Any, arithmetic: Any) -> tuple[Any, Any]:
    distance = arithmetic.array(np.zeros((len(X), len(Z))))
    for j in range(X.shape[1]):
        difference = X[:, j][:, None] - Z[:, j]
        if isinstance(kernel, Laplacian):
            distance = distance + abs(difference)
        elif isinstance(kernel, Gaussian):
            distance = distance + difference * difference
        else:
            total = X[:, j][:, None] + Z[:, j]
            distance = distance + difference * difference / np.where(total == 0, 1, total)
    exponent = arithmetic.array(float(kernel.gamma)) * distance
    value = arithmetic.exp(-exponent)
    return value, value * 2 * arithmetic.unit * ((X.shape[1] + 6) * exponent + 4)


def _dot(values: Any, errors: Any, vector: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return values @ vector, and a bound on its error."""
    weights = abs(vector)
    rounding = 2 * (len(vector) + 1) * arithmetic.unit * arithmetic.dot(abs(values), weights)
    return arithmetic.dot(values, vector), arithmetic.dot(errors, weights) + rounding


def _product_of_inexact(matrix: Any, vector: Any, errors: Any, arithmetic: Any) -> tuple[Any, Any]:
    """Return the product with a vector whose entries have errors.

    The matrix is positive semi-definite or its entries are bounded by √(M_ii M_jj): with that, the entry-wise bound
    |M| errors is at most √M_ii Σ √M_jj errors_j. Errors of exact sums are 0, the usual case.
    """
    product, bound = matrix_product(matrix, vector, arithmetic)
    if (errors != 0).any():
        roots = np.sqrt(np.maximum(np.abs(matrix.diagonal()), 1e-300))
        bound = bound + 2 * arithmetic.array(roots) * (arithmetic.array(roots) * errors).sum()
    return product, bound


def _sums(place: Any, values: Any, count: int, arithmetic: Any) -> tuple[Any, Any]:
    """Return the sum of the values at each place, and a bound on the errors of these sums."""
    sums, sizes = arithmetic.array(np.zeros(count)), arithmetic.array(np.zeros(count))
    terms = np.zeros(count, dtype=np.int64)
    for k in np.flatnonzero(values != 0):
        sums[place[k]] = sums[place[k]] + values[k]
        sizes[place[k]] = sizes[place[k]] + abs(values[k])
        terms[place[k]] += 1
    return sums, np.where(terms > 1, terms * arithmetic.unit * sizes, 0 * sizes)
