"""A lower bound on the optimum from a dual vector and its squared norm."""

import numpy as np
import pytest

from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify, feasible_start
from maxmargin.problems.dual_bound import best_multiple, bound_of_best_multiple, dual_value_bound


def random_problem(random, formulation, cost=1.0):
    X = random.standard_normal((60, 3))
    signs = np.where(random.random(60) < 0.5, 1.0, -1.0)
    return formulation.pose(KernelMatrix(Gaussian(0.5), Points(X)), signs, np.full(60, cost))


@pytest.mark.parametrize("formulation", [c_classification, squared_hinge])
@pytest.mark.parametrize("cost", [1e-8, 1.0, 1e8])
def test_it_is_the_dual_value_except_for_rounding(formulation, cost):
    random = np.random.default_rng(0)
    problem = random_problem(random, formulation, cost)
    dual = feasible_start(problem, problem.linear * random.random(60) * cost)
    norm = float(dual @ problem.matrix.matvec(dual))
    bound, value = dual_value_bound(problem, dual, norm), problem.value(dual, problem.gradient(dual))
    assert bound == pytest.approx(value, rel=1e-10, abs=1e-12 * norm)
    assert bound < value
    assert dual_value_bound(problem, dual, 2 * norm) < bound
    assert dual_value_bound(problem, dual, norm, norm) < bound


@pytest.mark.parametrize("formulation", [c_classification, squared_hinge])
def test_the_best_multiple(formulation):
    random = np.random.default_rng(0)
    problem = random_problem(random, formulation)
    dual = feasible_start(problem, 0.2 * problem.linear * random.random(60))
    norm = float(dual @ problem.matrix.matvec(dual))
    factor = best_multiple(problem, dual, norm)
    bound = bound_of_best_multiple(problem, dual, norm)
    assert bound == pytest.approx(certify(problem, factor * dual).dual, rel=1e-9)
    for other in (0.5 * factor, 0.9 * factor, factor):
        assert bound >= certify(problem, other * dual).dual - 1e-9
    assert (factor * dual <= problem.upper * (1 + 1e-12)).all()
    assert bound_of_best_multiple(problem, dual, np.inf) == -np.inf
    assert best_multiple(problem, -dual, norm) == 0.0


def test_a_vector_that_is_not_feasible_loses_what_moving_it_costs():
    random = np.random.default_rng(0)
    problem = random_problem(random, c_classification)
    dual = problem.linear * 0.5  # its sum is not 0
    norm = float(dual @ problem.matrix.matvec(dual))
    feasible = problem.linear @ dual - 0.5 * norm
    assert dual_value_bound(problem, dual, norm) < feasible - 0.1
