"""The native Newton method for squared losses: optima, samples, threads, hard cases, and when it is chosen."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, LinearSVR
from maxmargin.deadline import Deadline
from maxmargin.formulations import squared_epsilon_regression, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix
from maxmargin.problems import certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import SemismoothNewtonSolver, StoppingRule
from maxmargin.training import small_linear_problems
from maxmargin.training.small_linear_problems import MAX_STEPS, RidgedNewtonFit, suits_ridged_newton

RULE = StoppingRule(violation=1e-13, relative_gap=1e-8)
INTERCEPTS = ["free", "regularised", "none"]


def pose(n, d, kind="classes", intercept="free", storage="dense", cost=1.0, weighted=True, threads=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) + 2 * random.normal(size=d)
    targets = X[:, 0] - X[:, 0].mean() + 0.7 * random.normal(size=n)
    if storage != "dense":
        X = sparse.csr_array(np.where(np.abs(X) > 1.2, X, 0.0))
    X = X.astype(np.float32) if storage == "single" else X
    matrix = KernelMatrix(Linear(), Points(X), threads)
    matrix = BiasAugmentedMatrix(matrix, 4.0) if intercept == "regularised" else matrix
    costs = cost * (random.uniform(0.5, 1.5, n) if weighted else np.ones(n))
    if kind == "classes":
        return squared_hinge.pose(matrix, np.where(targets > 0, 1.0, -1.0), costs, intercept == "free")
    return SplitProblem.of(squared_epsilon_regression.pose(matrix, targets, costs, 0.1, intercept == "free")).problem


def fit(problem, rule=RULE, max_steps=MAX_STEPS):
    return RidgedNewtonFit(problem, problem.matrix.features(), rule, max_steps)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", ["dense", "single", "csr"])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["classes", "targets"])
@pytest.mark.parametrize("n", [60, 7000])
def test_optimum_is_that_of_the_pipeline(n, kind, intercept, storage, weighted):
    problem = pose(n, 5, kind, intercept, storage, weighted=weighted)
    found, solution = fit(problem), SemismoothNewtonSolver(RULE).solve(problem)
    assert found.converged
    assert found.certificate.relative_gap <= 1e-8
    np.testing.assert_allclose(found.dual, solution.dual, atol=1e-3 * np.abs(solution.dual).max())
    exact = certify(problem, found.dual, found.weights, extended=True)
    assert found.certificate.primal >= exact.primal - exact.rounding
    assert found.certificate.dual <= exact.dual + exact.rounding
    assert found.certificate.infeasibility <= 1e-12 * np.abs(found.dual).sum()
    for name in ("primal", "dual"):
        assert getattr(found.certificate, name) == pytest.approx(getattr(exact, name), rel=1e-9)


def test_sample_of_many_rows_saves_steps_on_all():
    problem = pose(20_000, 4, cost=10.0)
    few = pose(5000, 4, cost=10.0)
    own, small = fit(problem, replace(RULE, relative_gap=1e-4)), fit(few, replace(RULE, relative_gap=1e-4))
    assert own.converged
    assert small.converged
    np.testing.assert_array_equal(own.dual, fit(problem, replace(RULE, relative_gap=1e-4)).dual)
    assert own.steps > small.steps  # those on the sample are counted


@pytest.mark.parametrize("kind", ["classes", "targets"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_threads_change_rounding_errors_only(storage, kind):
    one, three = (pose(9000, 12, kind, "free", storage, threads=threads) for threads in (1, 3))
    alone, shared, again = (fit(problem) for problem in (one, three, three))
    np.testing.assert_array_equal(shared.dual, again.dual)
    np.testing.assert_allclose(alone.weights, shared.weights, rtol=1e-7, atol=1e-9)
    assert alone.steps == shared.steps


@pytest.mark.parametrize("cost", [1e-6, 1e-2, 1e2, 1e4])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_costs(cost, intercept):
    found = fit(pose(800, 6, intercept=intercept, cost=cost), replace(RULE, relative_gap=1e-4))
    assert found.converged
    assert found.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("change", ["duplicates", "unscaled", "far", "one positive", "two rows", "separable"])
def test_hard_data(change, scaling, C):
    random = np.random.default_rng(1)
    X = random.normal(size=(400, 5))
    y = np.sign(X[:, 0] + 0.5 * random.normal(size=400))
    if change == "duplicates":
        X, y = np.tile(X[:20], (20, 1)), np.tile(y[:20], 20)
    elif change == "unscaled":
        X *= 10.0 ** np.arange(-3, 2)
    elif change == "far":
        X += 1e4
    elif change == "one positive":
        y = np.where(np.arange(400) == 7, 1.0, -1.0)
    elif change == "two rows":
        X, y = X[:2], np.array([-1.0, 1.0])
    else:
        y = np.sign(X[:, 0])
    model = LinearSVC(C=C, intercept_scaling=scaling, class_weight="balanced").fit(X, y)
    assert model.fit_status_ == 0
    assert model.certificate_.relative_gap <= 1e-4


def test_a_limit_of_steps_gives_a_feasible_point():
    for intercept in INTERCEPTS:
        problem = pose(7000, 5, intercept=intercept, cost=100.0)
        found = fit(problem, max_steps=1)
        assert found.steps == 1
        assert not found.converged
        assert found.certificate.dual >= -found.certificate.rounding
        assert found.certificate.infeasibility <= 1e-10 * max(1.0, np.abs(found.dual).sum())


def test_a_deadline_ends_the_call():
    problem = pose(3000, 20, cost=100.0)
    with Deadline.after(0.0).in_force():
        found = fit(problem)
    assert found.steps == 0
    assert not found.converged


def test_is_chosen_by_cost():
    few = pose(3000, 5)
    assert suits_ridged_newton(few, few.matrix.features())
    wide = pose(500, 300)
    assert not suits_ridged_newton(wide, wide.matrix.features())
    hinged = pose(3000, 5)
    hinged = replace(hinged, ridge=np.zeros(hinged.size))
    assert not suits_ridged_newton(hinged, hinged.matrix.features())


def test_estimators_agree_without_it(monkeypatch):
    random = np.random.default_rng(2)
    X = sparse.random_array((4000, 60), density=0.2, rng=random, format="csr")
    y = np.asarray(X[:, :5].sum(axis=1)).ravel() + 0.3 * random.normal(size=4000)
    for estimator, targets in (
        (LinearSVC(tol=1e-8), y > np.median(y)),
        (LinearSVR(loss="squared_epsilon_insensitive", tol=1e-8), y),
    ):
        native = estimator.fit(X, targets).coef_.copy()
        with monkeypatch.context() as patch:
            patch.setattr(small_linear_problems, "MAX_RIDGED_VALUES", -1)
            np.testing.assert_allclose(estimator.fit(X, targets).coef_, native, atol=1e-5)
