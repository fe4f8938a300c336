"""Coordinate descent for the L1 penalty: native loops, hard problems, limits and certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from maxmargin import _native
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix
from maxmargin.matrices.feature_columns import FeatureColumns
from maxmargin.matrices.features import Features
from maxmargin.problems import Status, certify_l1
from maxmargin.solvers import CoordinateDescentSolver, StoppingRule
from maxmargin.solvers.linear import coordinate_descent, l1_model
from maxmargin.solvers.linear.l1_model import minimise_model
from maxmargin.testing.named_problems import overlapping, two_clouds
from reference import l1_coordinate_descent
from reference.sparse_program import solve_sparse_program


def pose(X, signs, costs, scaling=None, threads=1):
    matrix = KernelMatrix(Linear(), Points(X), threads)
    matrix = BiasAugmentedMatrix(matrix, scaling**2) if scaling else matrix
    return squared_hinge.pose(matrix, signs, np.broadcast_to(costs, len(signs)).astype(float), scaling is None)


def solve(problem, gap=1e-6, **limits):
    return CoordinateDescentSolver(StoppingRule(1e-13, relative_gap=gap, **limits)).solve(problem)


def few_informative(n, d, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    signs = np.where(X[:, 0] - 2 * X[:, 1 % d] + random.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return X, signs


def forms(X):
    """Yield the same numbers in every supported format."""
    for values in (X, X.astype(np.float32)):
        yield values
        compressed = sparse.csr_array(values)
        yield compressed
        long = compressed.copy()
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        yield long


def problem_by_name(name):
    """Return samples, signs and costs of a named problem."""
    X, signs = few_informative(60, 8)
    costs = np.full(60, 0.5)
    if name == "duplicates of rows and columns":
        X = np.vstack([X[:30], X[:30]])
        X, signs = np.c_[X, X], np.concatenate([signs[:30], -signs[:30]])
    elif name == "columns of zeros":
        X[:, [0, 3]] = 0.0
    elif name == "nothing but zeros":
        X[:] = 0.0
    elif name == "unscaled columns":
        X = X * np.array([1, 1e6, 1e-6, 1e3, 1, 1, 1e-3, 1])
    elif name == "columns far from zero":
        X = X + 1e3
    elif name == "huge cost":
        costs[:] = 1e6
    elif name == "huge cost, separable":
        X, costs = X + 0.5 * signs[:, None], costs * 1e6
    elif name == "tiny cost":
        costs[:] = 1e-10
    elif name == "one almost empty class":
        signs[:] = -1.0
        signs[7] = 1.0
    elif name == "two samples":
        X, signs, costs = X[:2], signs[:2], costs[:2]
    elif name == "more features than samples":
        X, signs = few_informative(40, 300)
        costs = np.full(40, 100.0)
    elif name == "correlated columns":
        random = np.random.default_rng(3)
        X = random.normal(size=(60, 4)) @ random.normal(size=(4, 40)) + 1e-2 * random.normal(size=(60, 40))
        costs[:] = 10.0
    elif name == "uneven costs":
        costs = 10.0 ** np.random.default_rng(2).uniform(-6, 2, 60)
    return X, signs, costs


NAMES = [
    "plain", "duplicates of rows and columns", "columns of zeros", "nothing but zeros", "unscaled columns",
    "columns far from zero", "huge cost", "huge cost, separable", "tiny cost", "one almost empty class", "two samples",
    "more features than samples", "correlated columns", "uneven costs",
]  # fmt: skip


@pytest.mark.parametrize("scaling", [None, 0.0, 2.0], ids=["unregularised bias", "no bias", "regularised bias"])
@pytest.mark.parametrize("name", NAMES)
def test_certified_optimum_of_a_generic_solver(name, scaling):
    X, signs, costs = problem_by_name(name)
    problem = pose(X, signs, costs, scaling)
    solution = solve(problem)
    certificate = certify_l1(problem, solution.dual, solution.weights)
    assert solution.status is Status.CONVERGED, solution.status
    assert certificate.relative_gap <= 1e-6 * (1 + 1e-6)
    assert certificate.infeasibility <= 1e-12 * (1.0 + np.abs(solution.dual).sum())
    slack = np.maximum(0.0, 1.0 - signs * (problem.linear - certificate.slack))
    assert certificate.primal == pytest.approx(np.abs(solution.weights).sum() + costs @ slack**2, rel=1e-9)
    value = solve_sparse_program(X, signs, costs, scaling)
    if name != "unscaled columns":  # the generic solver is inaccurate there
        assert certificate.dual <= value * (1 + 1e-6) + 1e-10
        assert certificate.primal >= value * (1 - 1e-6) - 1e-10
    assert certificate.primal <= value * (1 + 2e-6) + 1e-10


def test_smallest_cost_with_a_nonzero_weight():
    X, signs, _ = problem_by_name("plain")
    free = solve(pose(X, signs, 1.0))
    assert np.count_nonzero(free.weights) > 0
    centred = signs - signs.mean()
    least = 1.0 / np.abs(2 * X.T @ centred).max()  # where Fᵀ b of b = 2 C (y − mean) reaches 1
    assert not solve(pose(X, signs, 0.999 * least)).weights.any()
    assert np.count_nonzero(solve(pose(X, signs, 1.001 * least), gap=1e-12).weights) == 1


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_the_gap_is_never_negative(seed):
    random = np.random.default_rng(seed)
    X, signs = few_informative(20, 5, seed)
    problem = pose(X, signs, 10.0 ** random.uniform(-3, 3), [None, 0.0, 1.0][seed % 3])
    weights = random.normal(size=6) * (random.random(6) < 0.5)
    if seed % 3 != 2:
        weights[-1] = 0.0
    dual = random.normal(size=20) * 10.0 ** random.uniform(-2, 2)
    certificate = certify_l1(problem, dual, weights)
    assert certificate.gap >= 0
    assert certificate.primal - certificate.dual == pytest.approx(certificate.gap, rel=1e-6, abs=1e-9)
    assert certificate.infeasibility <= 1e-12
    optimum = certify_l1(problem, *[getattr(solve(problem), part) for part in ("dual", "weights")])
    assert certificate.dual <= optimum.primal * (1 + 1e-12)
    assert certificate.primal >= optimum.dual * (1 - 1e-12)


def test_steps_equal_the_reference():
    X, signs = few_informative(37, 9)
    X[np.abs(X) < 0.7] = 0.0
    X[:, 4] = 0.0
    for form in forms(X):
        columns = FeatureColumns(Features(Points(form), constant=1.5))
        random = np.random.default_rng(5)
        inverse = random.uniform(0.1, 50.0, 37)
        state = {
            "weights": np.where(random.random(10) < 0.5, random.normal(size=10), 0.0),
            "slack": random.normal(size=37),
            "inverse_ridge": inverse,
            "lower": np.where(signs > 0, 0.0, -np.inf),
            "upper": np.where(signs > 0, np.inf, 0.0),
            "curvature": columns.curvatures(inverse),
        }
        twin = {name: values.copy() for name, values in state.items()}
        table = np.c_[form.toarray() if sparse.issparse(form) else form, np.full(37, 1.5)].T.astype(float)
        for _ in range(5):
            order = random.permutation(10)
            met = _native.coordinate_descent(columns.native, _native.ColumnState(**state), order)
            assert met == pytest.approx(l1_coordinate_descent.take_pass(table, twin, order), rel=1e-9, abs=1e-12)
            np.testing.assert_allclose(state["weights"], twin["weights"], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(state["slack"], twin["slack"], rtol=1e-9, atol=1e-12)


def test_objective_never_increases():
    X, signs = few_informative(50, 12)
    problem = pose(X + 2.0, signs, 30.0)
    columns, weights, slack = FeatureColumns(Features(Points(X + 2.0))), np.zeros(12), problem.linear.copy()
    inverse, last = 1.0 / problem.ridge, np.inf
    state = _native.ColumnState(
        weights=weights,
        slack=slack,
        inverse_ridge=inverse,
        lower=problem.lower,
        upper=problem.upper,
        curvature=columns.curvatures(inverse),
    )
    for k in range(300):
        _native.coordinate_descent(columns.native, state, np.array([k % 12]))
        value = np.abs(weights).sum() + 30.0 * np.sum(np.maximum(0.0, signs * slack) ** 2)
        assert value <= last * (1 + 1e-12)
        last = value


def test_quadratic_model():
    random = np.random.default_rng(0)
    factor = random.normal(size=(20, 15))
    factor[:, 3], factor[:, 4] = factor[:, 2], 0.0  # equal columns, and one of zeros
    square, slope = factor.T @ factor, 3.0 * random.normal(size=15)
    slope[4], slope[3] = 0.5, slope[2]
    start = random.normal(size=15)
    weights, twin = start.copy(), start.copy()
    kept, twins = slope.copy(), slope.copy()
    met = _native.descend_quadratic_model(square, weights, kept, 1e-3, 7)
    assert met == pytest.approx(l1_coordinate_descent.take_model_passes(square, twin, twins, 1e-3, 7))
    np.testing.assert_allclose(weights, twin, rtol=1e-9, atol=1e-12)
    best = minimise_model(square, start, slope, 1e-10)
    gradient = slope + square @ (best - start)
    assert max(map(l1_coordinate_descent.violation_at, best, gradient)) <= 1e-9
    assert best[4] == 0


def test_steps_that_overflow_are_not_taken():
    square, weights = np.diag([1e-300, 1e5]), np.array([1e-3, 2e-3])
    for slope in (-1e5, -1e10):
        step = l1_model._newton_step(square, weights, np.array([slope, 3.0]))
        assert np.isfinite(step).all()


@pytest.mark.parametrize("most", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("centred", [False, True])
def test_products_of_columns(monkeypatch, most, centred):
    monkeypatch.setattr("maxmargin.matrices.feature_columns.MIN_FRACTION_FOR_ROWS", most)
    monkeypatch.setattr("maxmargin.matrices.feature_columns.CONVERSION_VALUES", 50)
    X = np.where(np.random.default_rng(0).random((40, 9)) < 0.5, 0.0, np.random.default_rng(1).normal(size=(40, 9)))
    factors = np.random.default_rng(2).uniform(0, 2, 40) * (np.arange(40) % 3 > 0)
    picks = np.array([0, 2, 3, 7])
    for form in forms(X):
        columns = FeatureColumns(Features(Points(form).take(np.arange(5, 40))))
        chosen, weights = X[5:], factors[5:]
        mean = weights @ chosen[:, picks] / weights.sum() if centred else None
        expected = chosen[:, picks] - (mean if centred else 0.0)
        tolerance = {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(
            columns.squares(picks, weights, mean), (expected.T * weights) @ expected, **tolerance
        )
        np.testing.assert_allclose(columns.curvatures(weights), weights @ chosen**2, **tolerance)
        np.testing.assert_allclose(columns.products(weights, picks), weights @ chosen[:, picks], **tolerance)
        np.testing.assert_allclose(columns.image(picks, np.arange(4.0)), chosen[:, picks] @ np.arange(4.0), **tolerance)


def test_data_formats_and_threads():
    X, signs = few_informative(300, 40)
    X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32).astype(float)
    expected = certify_l1(*_solved(pose(X, signs, 0.1)))
    for threads in (1, 2):
        for form in forms(X):
            found = certify_l1(*_solved(pose(form, signs, 0.1, threads=threads)))
            assert found.primal == pytest.approx(expected.primal, rel=1e-6)


def _solved(problem):
    solution = solve(problem)
    return problem, solution.dual, solution.weights


def test_convergence_without_newton_steps(monkeypatch):
    monkeypatch.setattr(coordinate_descent, "MAX_NEWTON_WEIGHTS", 0)
    X, signs = few_informative(200, 30)
    problem = pose(X, signs, 0.1)
    solution = solve(problem, gap=1e-8)
    assert solution.status is Status.CONVERGED
    assert certify_l1(problem, solution.dual, solution.weights).relative_gap <= 1e-8


def test_more_columns_than_a_working_set():
    random = np.random.default_rng(0)
    X = sparse.random_array((200, 3000), density=0.05, format="csr", rng=random)
    signs = np.where(np.asarray(X[:, :300].sum(axis=1)).ravel() > 7.3, 1.0, -1.0)
    problem = pose(X, signs, 1.0)
    solution = solve(problem)
    assert certify_l1(problem, solution.dual, solution.weights).relative_gap <= 1e-6
    assert 0 < np.count_nonzero(solution.weights) <= 200


def test_start_from_the_optimum_takes_no_steps():
    X, signs = few_informative(100, 10)
    problem, solver = pose(X, signs, 0.1), CoordinateDescentSolver(StoppingRule(relative_gap=1e-6))
    first = solver.solve(problem)
    again = solver.solve(problem, first.weights)
    assert again.counters.iterations == 0
    np.testing.assert_array_equal(again.weights, first.weights)
    np.testing.assert_array_equal(solver.solve(problem).weights, first.weights)  # and it is deterministic


def test_violation_as_the_only_tolerance():
    X, signs = few_informative(100, 10)
    problem = pose(X, signs, 0.1)
    solution = CoordinateDescentSolver(StoppingRule(violation=1e-8)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify_l1(problem, solution.dual, solution.weights).violation <= 1e-8


def test_limits_and_callbacks():
    X, signs = few_informative(100, 60)
    problem = pose(X, signs, 100.0)
    limited = solve(problem, max_iterations=2)
    assert limited.status is Status.MAX_ITERATIONS
    assert limited.counters.iterations == 2
    assert certify_l1(problem, limited.dual, limited.weights).gap > 0
    assert solve(problem, max_seconds=0.0).status is Status.MAX_SECONDS
    seen = []

    def watch(progress):
        seen.append(progress)
        return True

    solver = CoordinateDescentSolver(StoppingRule(1e-13, relative_gap=1e-9))
    assert solver.solve(problem, callback=watch).status is Status.STOPPED
    assert seen[0].primal >= seen[0].dual
    assert seen[0].violation > 0


def test_status_beyond_double_precision():
    X, signs = few_informative(60, 8)
    assert solve(pose(X * 1e8, signs, 1e8), gap=1e-14).status is Status.PRECISION
    with pytest.raises(ValueError, match="finite"):
        solve(pose(X * 1e200, signs, 1.0))


def test_unsupported_problems_raise():
    X, signs = two_clouds(30, 2, 1.0)
    with pytest.raises(ValueError, match="linear kernel only"):
        solve(overlapping())
    hinge = c_classification.pose(KernelMatrix(Linear(), Points(X)), signs, np.ones(30))
    with pytest.raises(ValueError, match="squared loss"):
        solve(hinge)
    with pytest.raises(ValueError, match="sums of 0"):
        certify_l1(replace(pose(X, signs, 1.0), total=np.ones(1)), np.zeros(30), np.zeros(3))
