import numpy as np

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations.one_class import expand, pose, read
from maxmargin.kernels import Gaussian, Points
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
