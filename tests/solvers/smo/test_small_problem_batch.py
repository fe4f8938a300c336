"""Small problems in one native call: the optimum of the solver that asks for rows, exact to rounding, certified."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC, _native
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Gaussian, Linear, Polynomial
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import Status, certify
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.smo.small_problem_batch import MAX_STEPS, SmallProblemBatch
from maxmargin.testing.named_problems import two_clouds
from maxmargin.testing.quadratic_program import solve_quadratic_program


def pose_all(X, y, kernel, costs, parts, formulation=c_classification, grouped=True):
    """The problems of some rows each as a batch, and one by one."""
    values = kernel(X, X)
    problems = [
        formulation.pose(PrecomputedMatrix(values, rows), y[rows].astype(float), costs[rows], fit_intercept=grouped)
        for rows in parts
    ]
    return SmallProblemBatch.of(problems), problems


@pytest.mark.parametrize("formulation", [c_classification, squared_hinge])
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.5), Polynomial(3, 0.5, 1.0)], ids=str)
@pytest.mark.parametrize("cost", [1e-3, 1.0, 30.0])
def test_parts_of_a_matrix_are_solved_to_rounding(formulation, grouped, kernel, cost):
    X, y = two_clouds(90, 3, 1.5)
    random = np.random.default_rng(0)
    parts = [np.sort(random.choice(90, size, replace=False)) for size in (2, 9, 40, 90)]
    parts = [rows for rows in parts if len(np.unique(y[rows])) == 2]
    problems, single = pose_all(X, y, kernel, cost * random.uniform(0.5, 2, 90), parts, formulation, grouped)
    solutions = problems.solve(1e-3, 1)
    for p, problem in enumerate(single):
        dual = solutions.dual[problems.edges[p] : problems.edges[p + 1]]
        assert solutions.finished(p)
        certificate = certify(problem, dual)
        best, _ = solve_quadratic_program(problem)
        assert certificate.violation <= 1e-9 * (1.0 + cost)
        assert certificate.dual == pytest.approx(best, rel=1e-6)
        np.testing.assert_allclose(
            solutions.gradient[problems.edges[p] : problems.edges[p + 1]],
            problem.gradient(dual),
            atol=1e-9 * (1 + cost),
        )


def test_it_takes_the_path_of_the_pairwise_solver():
    X, y = two_clouds(200, 3, 1.5)
    costs = np.full(200, 5.0)
    problems, (problem,) = pose_all(X, y, Gaussian(1.0), costs, [np.arange(200)])
    solutions = problems.solve(1e-3, 1)
    step_by_step = PairwiseSolver(shrinking=False, stopping=StoppingRule(1e-3)).solve(problem)
    assert solutions.counters(0).iterations == step_by_step.counters.iterations
    np.testing.assert_allclose(solutions.dual, step_by_step.dual, atol=1e-9)


@pytest.mark.parametrize("opposite", [False, True])
def test_duplicates(opposite):
    X, y = two_clouds(40, 3, 1.5)
    X, y = np.concatenate([X, X]), np.concatenate([y, -y if opposite else y])
    problems, (problem,) = pose_all(X, y, Gaussian(0.5), np.full(80, 3.0), [np.arange(80)])
    solutions = problems.solve(1e-3, 1)
    assert solutions.finished(0)
    assert certify(problem, solutions.dual).violation <= 1e-3


def test_what_takes_many_steps_comes_back_unfinished_and_is_finished():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2)) * [1, 100]
    y = np.where(X[:, 0] + 0.3 * random.normal(size=300) > 0, 1, -1)
    problems, (problem,) = pose_all(X, y, Polynomial(3, 0.5, 1.0), np.full(300, 1e4), [np.arange(300)])
    solutions = problems.solve(1e-3, 1)
    assert not solutions.finished(0)
    assert solutions.counters(0).iterations <= MAX_STEPS
    assert certify(problem, solutions.dual).dual > 0
    model = SVC(kernel="poly", gamma=1e-3, coef0=1.0, C=1e4).fit(X, y)
    assert model.certificate_.violation <= 1e-3


def test_values_that_are_not_numbers_are_not_called_optimal():
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    problem = c_classification.pose(PrecomputedMatrix(np.full((4, 4), np.nan)), signs, np.ones(4))
    assert not SmallProblemBatch.of([problem]).solve(1e-3, 1).finished(0)


def test_threads_do_not_change_the_result():
    X, y = two_clouds(120, 3, 1.5)
    parts = [np.arange(k, 120, 3) for k in range(3)] + [np.arange(120)]
    problems, _ = pose_all(X, y, Gaussian(0.7), np.full(120, 2.0), parts)
    one, two = problems.solve(1e-3, 1), problems.solve(1e-3, 2)
    np.testing.assert_array_equal(one.dual, two.dual)


def test_the_call_checks_its_arguments():
    X, y = two_clouds(10, 3, 1.5)
    problems, _ = pose_all(X, y, Linear(), np.ones(10), [np.arange(10)])
    outcomes = np.full((1, 4), -1)
    arrays = {name: getattr(problems, name) for name in ("linear", "lower", "upper", "ridge")}

    rows, no_groups = np.arange(10), np.empty(0, dtype=np.int32)

    def call(values=problems.values, picks=rows, edges=problems.edges, most_free=5, groups=1, group=no_groups):
        none = np.empty(0)
        batch = _native.ProblemBatch(
            matrix=values, indices=picks, edges=edges, **arrays, groups=groups, group=group, kink=none
        )
        limits = _native.StepLimits(tolerance=1e-3, max_steps=10, max_seconds=1.0)
        offsets = np.zeros((1, groups))
        _native.solve_small_problems(batch, np.zeros(10), np.zeros(10), outcomes, offsets, limits, most_free, 1)

    with pytest.raises(ValueError, match="out of range"):
        call(picks=rows + 1)
    with pytest.raises(ValueError, match="square"):
        call(values=np.ones((10, 9)))
    with pytest.raises(ValueError, match="malformed"):
        call(edges=np.array([0, 9]))
    with pytest.raises(ValueError, match="malformed"):
        call(most_free=-1)
    with pytest.raises(ValueError, match="malformed"):
        call(values=np.ones((12, 12)), picks=np.empty(0, dtype=np.int64))
    with pytest.raises(ValueError, match="at most two groups"):
        call(groups=3)
    with pytest.raises(ValueError, match="one group for every variable"):
        call(groups=2)
    with pytest.raises(ValueError, match="a group is out of range"):
        call(groups=2, group=np.full(10, 2, dtype=np.int32))


def test_ctrl_c_leaves_a_model(monkeypatch):
    X, y = load_iris(return_X_y=True)
    solve, calls = _native.solve_small_problems, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise KeyboardInterrupt
        no_time = _native.StepLimits(tolerance=1e-3, max_steps=10, max_seconds=-1.0)
        solve(*arguments[:-3], no_time, *arguments[-2:])  # nothing is begun

    monkeypatch.setattr(_native, "solve_small_problems", interrupted)
    model = SVC()
    with pytest.raises(KeyboardInterrupt, match="the model so far is usable"):
        model.fit(X, y)
    assert all(status is Status.INTERRUPTED for status in model.status_)
    assert all(certificate.gap > 0 for certificate in model.certificate_)
    assert model.predict(X).shape == y.shape


def test_ctrl_c_in_cross_validation_leaves_a_model_without_probabilities(monkeypatch):
    X, y = load_iris(return_X_y=True)
    solve, calls = _native.solve_small_problems, []

    def interrupted_later(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise KeyboardInterrupt
        solve(*arguments)

    monkeypatch.setattr(_native, "solve_small_problems", interrupted_later)
    model = SVC(probability=True)
    with pytest.raises(KeyboardInterrupt, match="during cross-validation"):
        model.fit(X, y)
    assert model.score(X, y) > 0.9
