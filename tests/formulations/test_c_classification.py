import numpy as np
import pytest

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import squared_hinge
from maxmargin.formulations.c_classification import pose, read
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver
from maxmargin.testing.named_problems import two_clouds
from maxmargin.testing.quadratic_program import solve_quadratic_program

X, SIGNS = two_clouds(50, 2, 1.2)
COSTS = np.random.default_rng(0).uniform(0.2, 3.0, 50)


class TestSoftMargin(FormulationContract):
    fit_intercept = True

    def pose(self):
        return pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, COSTS, self.fit_intercept)

    def textbook_primal(self, product, offset, squared_norm):
        decision = product + offset.sum()  # of one group or none
        return 0.5 * squared_norm + (COSTS * np.maximum(0.0, 1.0 - SIGNS * decision)).sum()


class TestSquaredHinge(FormulationContract):
    def pose(self):
        return squared_hinge.pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, COSTS)

    def textbook_primal(self, product, offset, squared_norm):
        decision = product + offset.sum()
        return 0.5 * squared_norm + (COSTS * np.maximum(0.0, 1.0 - SIGNS * decision) ** 2).sum()


class TestWithoutBias(TestSoftMargin):
    fit_intercept = False


def test_hard_margin_is_the_limit_of_large_costs():
    Z, signs = two_clouds(40, 3, 8.0)
    matrix = KernelMatrix(Linear(), Points(Z))
    hard = pose(matrix, signs, np.full(40, np.inf))
    soft = pose(matrix, signs, np.full(40, 1e4))
    hard_optimum = certify(hard, PairwiseSolver().solve(hard).dual)
    assert hard_optimum.dual == pytest.approx(solve_quadratic_program(soft)[0], rel=1e-7)
    assert hard_optimum.gap < 1e-8


def test_geometry():
    problem = pose(KernelMatrix(Gaussian(0.5), Points(X)), SIGNS, np.ones(50))
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    rows = np.arange(100, 150)
    geometry = read(problem, dual, certificate, rows)
    decision = problem.matrix.matvec(dual) + geometry.offset
    reach = SIGNS * decision
    assert sorted([*geometry.free, *geometry.bounded, *geometry.non_support]) == rows.tolist()
    np.testing.assert_allclose(reach[geometry.free - 100], 1.0, atol=1e-9)
    assert (reach[geometry.bounded - 100] < 1 + 1e-9).all()
    assert (reach[geometry.non_support - 100] > 1 - 1e-9).all()
    np.testing.assert_allclose(geometry.slack, np.maximum(0, 1 - reach), atol=1e-12)
    assert geometry.margin == pytest.approx(1 / np.sqrt(geometry.squared_norm))
    assert geometry.offset_interval[0] == pytest.approx(geometry.offset_interval[1])


def test_two_samples_have_a_margin_of_half_their_distance():
    problem = pose(
        KernelMatrix(Linear(), Points(np.array([[0.0, 0.0], [0.0, 4.0]]))),
        np.array([-1.0, 1.0]),
        np.full(2, 10.0),
    )
    dual = PairwiseSolver().solve(problem).dual
    assert read(problem, dual, certify(problem, dual), np.arange(2)).margin == pytest.approx(2.0)
