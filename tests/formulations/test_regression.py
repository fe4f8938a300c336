import numpy as np
import pytest

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import epsilon_regression, nu_regression, quantile_regression, squared_epsilon_regression
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule

RANDOM = np.random.default_rng(3)
X = np.sort(RANDOM.uniform(0, 6, (40, 1)), axis=0)
TARGETS = np.sin(X[:, 0]) + RANDOM.normal(scale=0.2, size=40)
COSTS = RANDOM.uniform(0.5, 3.0, 40)
EPSILON, NU = 0.1, 0.3


def matrix():
    return KernelMatrix(Gaussian(1.0), Points(X))


def tube_loss(product, offset, epsilon):
    distance = np.abs(TARGETS - product[:40] - offset)
    return (COSTS * np.maximum(0.0, distance - epsilon)).sum()


class TestEpsilonRegression(FormulationContract):
    fit_intercept = True

    def pose(self):
        return epsilon_regression.pose(matrix(), TARGETS, COSTS, EPSILON, self.fit_intercept)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + tube_loss(product, offset.sum(), EPSILON)


class TestEpsilonRegressionWithoutBias(TestEpsilonRegression):
    fit_intercept = False


class TestSquaredEpsilonRegression(FormulationContract):
    def pose(self):
        return squared_epsilon_regression.pose(matrix(), TARGETS, COSTS, EPSILON)

    def textbook_primal(self, product, offset, squared_norm):
        distance = np.abs(TARGETS - product[:40] - offset.sum())
        return 0.5 * squared_norm + (COSTS * np.maximum(0.0, distance - EPSILON) ** 2).sum()


class TestNuRegression(FormulationContract):
    def pose(self):
        return nu_regression.pose(matrix(), TARGETS, COSTS, NU)

    def textbook_primal(self, product, offset, squared_norm):
        above, below = TARGETS - product[:40] - offset[0], product[:40] + offset[1] - TARGETS
        loss = (COSTS * (np.maximum(0.0, above) + np.maximum(0.0, below))).sum()
        return 0.5 * squared_norm + NU * COSTS.sum() * 0.5 * (offset[0] - offset[1]) + loss


class TestNuRegressionWithoutIntercept(FormulationContract):
    def pose(self):
        return nu_regression.pose(matrix(), TARGETS, COSTS, NU, fit_intercept=False)

    def textbook_primal(self, product, offset, squared_norm):
        distance = np.abs(TARGETS - product[:40])
        loss = (COSTS * np.maximum(0.0, distance - offset[0])).sum()
        return 0.5 * squared_norm + NU * COSTS.sum() * offset[0] + loss

    def test_equals_epsilon_regression_of_the_resulting_tube(self):
        problem = self.pose()
        dual = PairwiseSolver().solve(problem).dual
        certificate = certify(problem, dual)
        geometry = nu_regression.read(problem, dual, certificate, np.arange(40))
        same = epsilon_regression.pose(matrix(), TARGETS, COSTS, geometry.epsilon, fit_intercept=False)
        theirs = PairwiseSolver().solve(same).dual
        mine = nu_regression.expand(problem, dual, certificate.offset)
        assert mine.offset == 0.0
        np.testing.assert_allclose(mine.coefficients, theirs, atol=1e-6)
        twin = epsilon_regression.read(same, theirs, certify(same, theirs), np.arange(40))
        np.testing.assert_allclose(geometry.slack, twin.slack, atol=1e-6)


class TestQuantileRegression(FormulationContract):
    quantile = 0.8

    def pose(self):
        return quantile_regression.pose(matrix(), TARGETS, COSTS, self.quantile)

    def textbook_primal(self, product, offset, squared_norm):
        errors = TARGETS - product - offset[0]
        return 0.5 * squared_norm + (COSTS * np.where(errors > 0, self.quantile, self.quantile - 1) * errors).sum()


def test_geometry_of_a_quantile():
    problem = quantile_regression.pose(matrix(), TARGETS, np.full(40, 10.0), 0.8)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    geometry = quantile_regression.read(problem, dual, certificate, np.arange(40))
    found = quantile_regression.expand(problem, dual, certificate.offset)
    errors = TARGETS - matrix().matvec(found.coefficients) - found.offset
    np.testing.assert_allclose(geometry.error, errors, atol=1e-9)
    assert len(geometry.below) <= 0.8 * 40 <= len(geometry.below) + len(geometry.on)
    assert (errors[geometry.above] > -1e-9).all()
    assert (errors[geometry.below] < 1e-9).all()
    np.testing.assert_allclose(errors[geometry.on], 0.0, atol=1e-9)


def test_nu_regression_equals_epsilon_regression_of_the_resulting_tube():
    problem = nu_regression.pose(matrix(), TARGETS, COSTS, NU)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    geometry = nu_regression.read(problem, dual, certificate, np.arange(40))
    mine = nu_regression.expand(problem, dual, certificate.offset)
    same = epsilon_regression.pose(matrix(), TARGETS, COSTS, geometry.epsilon)
    other = PairwiseSolver().solve(same).dual
    theirs = epsilon_regression.expand(same, other, certify(same, other).offset)
    values = matrix().block(np.arange(40), np.arange(40))
    np.testing.assert_allclose(
        values @ mine.coefficients + mine.offset, values @ theirs.coefficients + theirs.offset, atol=1e-6
    )


def test_geometry_of_the_tube():
    problem = epsilon_regression.pose(matrix(), TARGETS, COSTS, EPSILON)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    rows = np.arange(200, 240)
    geometry = epsilon_regression.read(problem, dual, certificate, rows)
    found = epsilon_regression.expand(problem, dual, certificate.offset)
    distance = np.abs(TARGETS - matrix().matvec(found.coefficients) - found.offset)
    assert geometry.epsilon == pytest.approx(EPSILON)
    assert sorted([*geometry.edge, *geometry.outside, *geometry.inside]) == rows.tolist()
    np.testing.assert_allclose(distance[geometry.edge - 200], EPSILON, atol=1e-9)
    assert (distance[geometry.outside - 200] > EPSILON - 1e-9).all()
    assert (distance[geometry.inside - 200] < EPSILON + 1e-9).all()
    np.testing.assert_allclose(geometry.slack, np.maximum(0.0, distance - EPSILON), atol=1e-9)


@pytest.mark.parametrize("pose", [epsilon_regression.pose, nu_regression.pose, squared_epsilon_regression.pose])
def test_the_block_solver_solves_regression(pose):
    Z = RANDOM.normal(size=(400, 4))
    targets = np.sin(Z).sum(axis=1)
    problem = pose(KernelMatrix(Gaussian(0.3), Points(Z)), targets, np.full(400, 5.0), 0.1)
    rule = StoppingRule(violation=1e-4)
    values = [
        certify(problem, solver.solve(problem).dual)
        for solver in (BlockSolver(stopping=rule), BlockSolver(working_set=100, stopping=rule, nested_above=300),
                       BlockSolver(working_set=100, cache_bytes=0, stopping=rule), PairwiseSolver(stopping=rule))
    ]  # fmt: skip
    for certificate in values:
        assert certificate.violation <= 1e-4
        assert certificate.dual == pytest.approx(values[-1].dual, rel=1e-5)
