import numpy as np

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import data_description
from maxmargin.formulations.one_class import expand, pose, read
from maxmargin.kernels import Gaussian, Points, Polynomial
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 2))
WEIGHTS = RANDOM.uniform(0.5, 2.0, 50)
NU = 0.3


class TestOneClass(FormulationContract):
    def pose(self):
        return pose(KernelMatrix(Gaussian(0.5), Points(X)), WEIGHTS, NU)

    def textbook_primal(self, product, offset, squared_norm):
        rho = -offset[0]
        return 0.5 * squared_norm - NU * WEIGHTS.sum() * rho + (WEIGHTS * np.maximum(0.0, rho - product)).sum()


def test_geometry():
    problem = pose(KernelMatrix(Gaussian(0.5), Points(X)), WEIGHTS, NU)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    geometry = read(problem, dual, certificate, np.arange(50))
    found = expand(problem, dual, certificate.offset)
    decision = problem.matrix.matvec(found.coefficients) + found.offset
    np.testing.assert_allclose(decision[geometry.edge], 0.0, atol=1e-9)
    assert (decision[geometry.outside] < 1e-9).all()
    assert (decision[geometry.inside] > -1e-9).all()
    np.testing.assert_allclose(geometry.slack, np.maximum(0.0, -decision), atol=1e-9)
    assert geometry.distance > 0
    assert WEIGHTS[decision < -1e-9].sum() <= NU * WEIGHTS.sum() * (1 + 1e-9)


class TestDataDescription(FormulationContract):
    matrix = KernelMatrix(Polynomial(2, 0.5, 1.0), Points(X))

    def pose(self):
        return data_description.pose(self.matrix, WEIGHTS, NU)

    def textbook_primal(self, product, offset, squared_norm):
        squared_radius = 2 * offset[0] + squared_norm
        distances = self.matrix.diagonal() - 2 * product + squared_norm
        outside = (WEIGHTS * np.maximum(0.0, distances - squared_radius)).sum() / (NU * WEIGHTS.sum())
        return 0.5 * (squared_radius + outside)

    def test_geometry_of_the_ball(self, problem):
        dual = PairwiseSolver().solve(problem).dual
        certificate = certify(problem, dual)
        ball = data_description.read(problem, dual, certificate, np.arange(50))
        K = self.matrix.block(np.arange(50), np.arange(50))
        distances = np.diag(K) - 2 * K @ dual + dual @ K @ dual
        np.testing.assert_allclose(ball.squared_distance, distances, atol=1e-9)
        np.testing.assert_allclose(distances[ball.edge], ball.radius**2, atol=1e-8)
        assert (distances[ball.outside] >= ball.radius**2 - 1e-8).all()
        assert (distances[ball.inside] <= ball.radius**2 + 1e-8).all()
        assert ball.squared_norm == certificate.squared_norm
