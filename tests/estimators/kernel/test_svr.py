"""SVR in one variable a sample: the optimum of scikit-learn and of a generic solver, in ordinary and in hard cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm

from maxmargin import SVR
from maxmargin.formulations import epsilon_regression, squared_epsilon_regression
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import BlockSolver, PairwiseSolver, QuadraticProgramSolver, StoppingRule
from maxmargin.testing.quadratic_program import solve_quadratic_program


def sine(n=60, noise=0.2, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(0, 6, (n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + noise * random.normal(size=n)


def duplicates():
    X, targets = sine(20)
    return np.repeat(X, 3, axis=0), np.repeat(targets, 3) + np.tile([0.0, 0.5, -0.5], 20)


def exactly_linear():
    X, _ = sine(40)
    return X, X @ [2.0, -1.0] + 3.0


CASES = {
    "ordinary": (sine(), {}),
    "duplicates": (duplicates(), {"C": 10.0}),
    "no_tube": (sine(), {"epsilon": 0.0}),
    "tube_beyond_all_targets": (sine(), {"epsilon": 10.0}),
    "tube_of_exactly_the_range": ((np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])), {"epsilon": 1.0}),
    "huge_cost": (sine(), {"C": 1e6, "gamma": 1.0}),
    "tiny_cost": (sine(), {"C": 1e-8}),
    "two_samples": ((np.array([[0.0], [1.0]]), np.array([0.0, 3.0])), {"kernel": "linear", "C": 100.0}),
    "exactly_linear": (exactly_linear(), {"kernel": "linear", "C": 100.0}),
    "equal_targets": ((sine()[0], np.full(60, 7.0)), {}),
    "equal_samples": ((np.ones((30, 2)), sine(30)[1]), {}),
    "large_targets": ((sine()[0], 1e6 * sine()[1]), {"epsilon": 1e5, "C": 1e5}),
}


def primal(K, coefficients, offset, targets, cost, epsilon, weights=1.0):
    errors = np.abs(targets - K @ coefficients - offset)
    loss = (cost * weights * np.maximum(0.0, errors - epsilon)).sum()
    return 0.5 * coefficients @ K @ coefficients + loss


def compare_with_scikit_learn(X, targets, options, weights=None):
    model = SVR(tol=1e-7, **options).fit(X, targets, weights)
    theirs = svm.SVR(tol=1e-7, **options).fit(X, targets, weights)
    kernel = model.kernel_ if hasattr(model, "kernel_") else model._kernel_
    K = kernel(X)
    values = []
    for each in (model, theirs):
        coefficients = np.zeros(len(X))
        coefficients[each.support_] = each.dual_coef_[0]
        factors = 1.0 if weights is None else weights
        values.append(primal(K, coefficients, each.intercept_[0], targets, model.C, model.epsilon, factors))
    certificate, scale = model.certificate_, 1e-6 * (1.0 + abs(values[1]))
    assert certificate.dual - scale <= values[0] <= values[1] + 10 * scale  # theirs has a tolerance, too
    assert certificate.primal == pytest.approx(values[0], rel=1e-6, abs=1e-6)
    assert certificate.gap <= 1e-5 * (1.0 + abs(certificate.primal))
    return model


@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_scikit_learn(name):
    (X, targets), options = CASES[name]
    compare_with_scikit_learn(X, targets, options)


def test_weights():
    X, targets = sine()
    weights = np.random.default_rng(1).uniform(0.1, 3.0, 60)
    weights[::7] = 0.0
    model = compare_with_scikit_learn(X, targets, {"C": 5.0}, weights)
    assert not set(model.support_) & set(range(0, 60, 7))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", [name for name in CASES if name != "large_targets"])  # too large for the reference
def test_all_kinds_of_solvers_reach_the_same_optimum(name, fit_intercept, squared):
    (X, targets), options = CASES[name]
    formulation = squared_epsilon_regression if squared else epsilon_regression
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    matrix = PrecomputedMatrix(np.exp(-0.5 * distances) if options.get("kernel") is None else X @ X.T)
    costs = np.full(len(X), min(options.get("C", 1.0), 1e3))
    problem = formulation.pose(matrix, targets, costs, options.get("epsilon", 0.1), fit_intercept)
    value, _ = solve_quadratic_program(problem)
    rule = StoppingRule(violation=1e-6 * max(1.0, np.abs(targets).max()))
    for solver in (PairwiseSolver(stopping=rule), BlockSolver(working_set=8, stopping=rule)):
        certificate = certify(problem, solver.solve(problem).dual)
        assert certificate.dual == pytest.approx(value, rel=1e-5, abs=1e-6)
        assert certificate.primal == pytest.approx(value, rel=1e-5, abs=1e-6)


def test_a_solver_without_kinks_returns_the_solution_of_the_whole():
    X, targets = sine()
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    problem = epsilon_regression.pose(PrecomputedMatrix(K), targets, np.ones(60), 0.1)
    points = []

    def keep(progress):
        points.append(progress)

    solution = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-6)).solve(problem, callback=keep)
    split = SplitProblem.of(problem)
    theirs = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-6)).solve(split.problem)
    assert solution.dual.shape == solution.gradient.shape == (60,)
    np.testing.assert_array_equal(solution.dual, split.combined_dual(theirs.dual))
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.7]), st.sampled_from([0.1, 1.0, 100.0]))
def test_properties(seed, epsilon, cost):
    X, targets = sine(30, seed=seed)
    random = np.random.default_rng(seed)
    make = SVR(C=cost, epsilon=epsilon, gamma=0.5, tol=1e-9)
    scale = 1e-5 * (1.0 + np.abs(targets).max())
    values = make.fit(X, targets).predict(X)
    order = random.permutation(30)
    np.testing.assert_allclose(make.fit(X[order], targets[order]).predict(X), values, atol=scale)
    np.testing.assert_allclose(make.fit(X, -targets).predict(X), -values, atol=scale)
    np.testing.assert_allclose(make.fit(X, targets + 10.0).predict(X), values + 10.0, atol=scale)
    weights = random.integers(1, 3, 30)
    repeated = np.repeat(np.arange(30), weights)
    weighted = make.fit(X, targets, weights).predict(X)
    np.testing.assert_allclose(make.fit(X[repeated], targets[repeated]).predict(X), weighted, atol=scale)


def test_a_model_of_two_variables_a_sample_is_no_start():
    """A model file of an earlier version: its dual vector has another size."""
    X, targets = sine()
    model = SVR(warm_start=True).fit(X, targets)
    expected = model.predict(X)
    model._models_[0].dual = np.zeros(120)
    np.testing.assert_array_equal(model.fit(X, targets).predict(X), expected)


@pytest.mark.parametrize("size", [100, 1200])
def test_warm_start_takes_no_steps(size):
    X, targets = sine(size)
    model = SVR(warm_start=True).fit(X, targets)
    assert model.n_iter_ > 0
    expected = model.predict(X)
    assert model.fit(X, targets).n_iter_ == 0
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)
