"""Objectives of `SVC` against a generic interior-point solver: every kernel, with and without bias and weights."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import SVC
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Laplacian, Linear, make_kernel
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.testing.quadratic_program import solve_quadratic_program

PROBLEMS = range(20)
KERNELS = {
    "linear": "linear",
    "poly": "poly",
    "rbf": "rbf",
    "laplacian": "laplacian",
    "sigmoid": "sigmoid",
    "chi_squared": "chi_squared",
    "sum and product": 0.5 * Gaussian(0.4) + Linear() * Laplacian(0.3),
    "function": lambda A, B: rbf_kernel(A, B, gamma=0.3),
}


def random_case(seed):
    random = np.random.default_rng(seed)
    n, features = random.integers(8, 32), random.integers(1, 6)
    y = np.arange(n) % 2
    X = np.abs(random.normal(size=(n, features)) + 0.7 * y[:, None])  # at least 0, for the chi-squared kernel
    return X, y, 10.0 ** random.uniform(-2, 2), random.uniform(0, 3, n) * (random.random(n) > 0.1)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_is_that_of_a_generic_solver(name, fit_intercept, weighted):
    for seed in PROBLEMS:
        X, y, cost, weights = random_case(seed)
        sample_weight = weights if weighted else np.ones(len(y))
        class_weight = {0: 1.0, 1: 2.5} if weighted else None
        kernel = make_kernel(KERNELS[name], gamma=0.3, coef0=0.5, degree=3)
        model = SVC(C=cost, kernel=KERNELS[name], gamma=0.3, coef0=0.5, fit_intercept=fit_intercept,
                    class_weight=class_weight)  # fmt: skip
        model.fit(X, y, sample_weight=sample_weight)
        certificate = model.certificate_
        assert certificate.violation <= 1e-3

        K = kernel(X)
        costs = cost * sample_weight * np.where(y == 1, 2.5 if weighted else 1.0, 1.0)
        problem = pose(PrecomputedMatrix(K), np.where(y == 1, 1.0, -1.0), costs, fit_intercept)
        if np.linalg.eigvalsh(K).min() < -1e-9:
            assert name == "sigmoid"  # not concave: the stationary point is all there is to certify
            continue
        value, _ = solve_quadratic_program(problem)
        assert certificate.dual == pytest.approx(value, rel=1e-6, abs=1e-9)
        assert certificate.primal == pytest.approx(value, rel=1e-6, abs=1e-9)

        # The same from what a user sees: coefficients and decision values.
        dual = np.zeros(len(y))
        dual[model.support_] = model.dual_coef_[0]
        loss = (costs * np.maximum(0, 1 - np.where(y == 1, 1, -1) * model.decision_function(X))).sum()
        assert 0.5 * dual @ K @ dual + loss == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_precomputed_objective_is_that_of_a_generic_solver():
    for seed in PROBLEMS:
        X, y, cost, _ = random_case(seed)
        K = Gaussian(0.5)(X)
        model = SVC(C=cost, kernel="precomputed").fit(K, y)
        problem = pose(PrecomputedMatrix(K), np.where(y == 1, 1.0, -1.0), np.full(len(y), cost))
        assert model.certificate_.dual == pytest.approx(solve_quadratic_program(problem)[0], rel=1e-6)
