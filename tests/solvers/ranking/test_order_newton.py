"""Rankings by the order of scores: compared with the solver of listed pairs."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.formulations import order_ranking, pairwise_ranking
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Status, certify
from maxmargin.problems.order_ranking import OrderRanking
from maxmargin.solvers import MultiplierNewtonSolver, StoppingRule
from maxmargin.solvers.ranking import order_newton
from maxmargin.solvers.ranking.order_newton import OrderNewtonSolver


def example(n=80, cost=0.5, queries=1, seed=0, features=5, integers=False, as_sparse=False):
    random = np.random.default_rng(seed)
    X = random.integers(0, 3, (n, features)).astype(float) if integers else random.normal(size=(n, features))
    targets = np.round(X[:, 0] + random.normal(scale=0.5, size=n), 1)
    query, weights = np.arange(n) % queries, random.uniform(0.5, 2.0, n)
    points = Points(sparse.csr_matrix(X) if as_sparse else X)
    return OrderRanking(KernelMatrix(Linear(), points), targets, query, weights, cost)


def listed(problem):
    first, second = pairwise_ranking.list_pairs(problem.targets, problem.queries)
    costs = problem.cost * problem.weights[first] * problem.weights[second]
    return pairwise_ranking.pose(problem.matrix, first, second, costs)


@pytest.mark.parametrize(
    "options",
    [{}, {"cost": 1e-6}, {"cost": 1e3}, {"queries": 9}, {"integers": True}, {"as_sparse": True}, {"n": 2, "seed": 1}],
    ids=str,
)
def test_solution_is_that_of_listed_pairs(options):
    problem = example(**options)
    found = OrderNewtonSolver(StoppingRule(violation=1e-4)).solve(problem)
    assert found.status is Status.CONVERGED
    assert found.certificate.violation <= 1e-4
    assert found.certificate.relative_gap <= 1e-6
    posed = listed(problem)
    expected = certify(posed, MultiplierNewtonSolver(stopping=StoppingRule(violation=1e-8)).solve(posed).dual)
    slack = 1e-9 * abs(expected.primal)
    assert found.certificate.dual <= expected.primal + slack
    assert found.certificate.primal >= expected.dual - slack
    geometry = order_ranking.read(found.window, found.certificate, np.arange(problem.size))
    assert geometry.pairs == posed.size == geometry.free + geometry.bounded + geometry.non_support


def test_conjugate_gradients_take_the_place_of_factors(monkeypatch):
    problem = example(60)
    direct = OrderNewtonSolver().solve(problem).certificate
    monkeypatch.setattr(order_newton, "MAX_FORMED_FEATURES", 0)
    iterative = OrderNewtonSolver().solve(problem).certificate
    assert iterative.violation <= 1e-3
    assert iterative.dual == pytest.approx(direct.dual, rel=1e-5)


def test_starts_and_limits():
    problem = example(200)
    found = OrderNewtonSolver().solve(problem)
    again = OrderNewtonSolver().solve(problem, found.window.coefficients)
    assert again.counters.iterations < found.counters.iterations
    assert again.certificate.dual == pytest.approx(found.certificate.dual, rel=1e-5)
    limited = OrderNewtonSolver(StoppingRule(max_iterations=2)).solve(problem)
    assert limited.status is Status.MAX_ITERATIONS
    assert limited.certificate.gap >= 0
    late = OrderNewtonSolver(StoppingRule(max_seconds=0.0)).solve(problem)
    assert late.status is Status.MAX_SECONDS
    stopped = OrderNewtonSolver().solve(problem, callback=lambda progress: True)
    assert stopped.status is Status.STOPPED
    reports = []
    observed = OrderNewtonSolver().solve(problem, callback=reports.append)
    np.testing.assert_array_equal(observed.window.coefficients, found.window.coefficients)
    assert reports[-1].gap == pytest.approx(found.certificate.gap)


def test_a_tolerance_beyond_double_precision():
    found = OrderNewtonSolver(StoppingRule(violation=1e-17)).solve(example(50))
    assert found.status is Status.PRECISION
    assert found.certificate.relative_gap < 1e-6


def test_other_kernels_are_rejected():
    problem = OrderRanking(
        KernelMatrix(Gaussian(1.0), Points(np.eye(3))), np.arange(3.0), np.zeros(3, int), np.ones(3), 1
    )
    with pytest.raises(ValueError, match="linear kernel"):
        OrderNewtonSolver().solve(problem)
