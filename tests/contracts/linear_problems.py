"""Small problems with the linear kernel, by name: every loss, and cases that are hard for primal methods."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from maxmargin.formulations import (
    c_classification,
    epsilon_regression,
    nu_classification,
    one_class,
    squared_epsilon_regression,
    squared_hinge,
)
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.bias_augmented_matrix import BiasAugmentedMatrix
from maxmargin.problems import DualProblem
from maxmargin.testing.named_problems import two_clouds


def matrix_of(X) -> KernelMatrix:
    return KernelMatrix(Linear(), Points(X))


def hinge(n=60, cost=0.1, distance=1.5, seed=0, fit_intercept=True) -> DualProblem:
    X, signs = two_clouds(n, 3, distance, seed)
    return c_classification.pose(matrix_of(X), signs, np.full(n, cost), fit_intercept)


def without_bias() -> DualProblem:
    return hinge(fit_intercept=False)


def regularised_bias() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return c_classification.pose(BiasAugmentedMatrix(matrix_of(X), 4.0), signs, np.full(60, 0.1), False)


def squared() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return squared_hinge.pose(matrix_of(X), signs, np.full(60, 0.05))


def sparse_rows() -> DualProblem:
    random = np.random.default_rng(2)
    X = sparse.random_array((80, 50), density=0.1, format="csr", rng=random)
    signs = np.where(np.asarray(X[:, :25].sum(axis=1)).ravel() > 0.9, 1.0, -1.0)
    return c_classification.pose(matrix_of(X), signs, np.full(80, 0.5))


def regression() -> DualProblem:
    X, _ = two_clouds(60, 3, 1.0)
    targets = X @ [1.0, -2.0, 0.5] + 3.0 + 0.1 * np.sin(np.arange(60))
    return epsilon_regression.pose(matrix_of(X), targets, np.full(60, 0.2), 0.1)


def squared_regression() -> DualProblem:
    X, _ = two_clouds(60, 3, 1.0)
    targets = X @ [1.0, -2.0, 0.5] + 3.0
    return squared_epsilon_regression.pose(matrix_of(X), targets, np.full(60, 0.1), 0.1)


def novelty() -> DualProblem:
    X, _ = two_clouds(60, 3, 0.0)
    return one_class.pose(matrix_of(X + 3.0), np.full(60, 0.05), 0.3)


def two_groups() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return nu_classification.pose(matrix_of(X), signs, np.ones(60), 0.4)


def opposite_duplicates() -> DualProblem:
    X, signs = two_clouds(30, 2, 1.0)
    return c_classification.pose(matrix_of(np.vstack([X, X])), np.concatenate([signs, -signs]), np.full(60, 0.1))


def almost_empty_class() -> DualProblem:
    X, signs = two_clouds(60, 2, 1.0)
    signs[:] = -1.0
    signs[7] = 1.0
    return c_classification.pose(matrix_of(X), signs, np.full(60, 0.5))


def zero_rows() -> DualProblem:
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    return c_classification.pose(matrix_of(np.zeros((5, 2))), signs, np.ones(5))


def zero_costs() -> DualProblem:
    X, signs = two_clouds(50, 2, 1.0)
    costs = np.random.default_rng(3).uniform(0, 0.2, 50)
    costs[::7] = 0.0
    return c_classification.pose(matrix_of(X), signs, costs)


def tiny_cost() -> DualProblem:
    return hinge(cost=1e-8)


def two_samples() -> DualProblem:
    return c_classification.pose(matrix_of(np.array([[0.0], [1.0]])), np.array([-1.0, 1.0]), np.full(2, 10.0))


def unscaled_columns() -> DualProblem:
    X, signs = two_clouds(60, 3, 1.5)
    return c_classification.pose(matrix_of(X * [1.0, 1e2, 1e-2]), signs, np.full(60, 1e-4))


EASY = {
    make.__name__: make
    for make in (
        hinge, without_bias, regularised_bias, squared, sparse_rows, regression, squared_regression, novelty,
        two_groups, opposite_duplicates, almost_empty_class, zero_rows, zero_costs, tiny_cost, two_samples,
        unscaled_columns,
    )
}  # fmt: skip
