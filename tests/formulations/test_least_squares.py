import numpy as np
import pytest

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import least_squares_classification, least_squares_regression
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import LinearSystemSolver
from maxmargin.testing.named_problems import two_clouds

X, SIGNS = two_clouds(40, 2, 1.2)
RANDOM = np.random.default_rng(0)
TARGETS, COSTS = np.sin(X).sum(axis=1) + RANDOM.normal(scale=0.1, size=40), RANDOM.uniform(0.2, 3.0, 40)


def matrix():
    return KernelMatrix(Gaussian(0.5), Points(X))


class TestRegression(FormulationContract):
    fit_intercept = True

    def pose(self):
        return least_squares_regression.pose(matrix(), TARGETS, COSTS, self.fit_intercept)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + 0.5 * (COSTS * (TARGETS - product - offset.sum()) ** 2).sum()


class TestRegressionWithoutBias(TestRegression):
    fit_intercept = False


class TestClassification(FormulationContract):
    def pose(self):
        return least_squares_classification.pose(matrix(), SIGNS, COSTS)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + 0.5 * (COSTS * (1.0 - SIGNS * (product + offset.sum())) ** 2).sum()


def test_geometry_satisfies_the_equations():
    rows = np.arange(100, 140)
    for formulation, targets in ((least_squares_regression, TARGETS), (least_squares_classification, SIGNS)):
        problem = formulation.pose(matrix(), targets, COSTS)
        dual = LinearSystemSolver().solve(problem).dual
        certificate = certify(problem, dual)
        geometry = formulation.read(problem, dual, certificate, rows)
        errors = targets - problem.matrix.matvec(dual) - geometry.offset
        np.testing.assert_allclose(dual, COSTS * errors, atol=1e-10)
        np.testing.assert_array_equal(geometry.samples, rows)
        if formulation is least_squares_regression:
            np.testing.assert_allclose(geometry.error, errors, atol=1e-12)
        else:
            np.testing.assert_allclose(geometry.slack, SIGNS * errors, atol=1e-12)
            assert geometry.margin == pytest.approx(1 / np.sqrt(geometry.squared_norm))
