"""The linear equations of the free variables: solved, dependent, or without a solution."""

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.kernels import Gaussian, Linear, Polynomial
from maxmargin.problems import Status, certify, feasible_start
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.smo.exact_finish import accelerate
from maxmargin.solvers.smo.smo_state import SELECTION_RULES, SmoState
from maxmargin.testing.named_problems import classification, two_clouds, two_groups
from maxmargin.testing.quadratic_program import solve_quadratic_program


def solve_free(block, right, group, lower=-np.inf, upper=np.inf, accuracy=1e-11):
    """Return where free variables that start from 0 with the gradient `right` go, and the gradient there."""
    n = len(right)
    group = np.asarray(group, dtype=np.int32)
    dual, gradient = np.zeros(n), right.copy()
    lower, upper = np.full(n, lower), np.full(n, upper)
    problem = _native.BoxProblem(lower=lower, upper=upper, group=group, groups=group.max() + 1)
    _native.solve_free_variables(block, problem, dual, gradient, accuracy, 1e9)
    np.testing.assert_allclose(gradient, right - block @ dual, atol=1e-9 * (1 + np.abs(dual).max() * block.max()))
    return dual, gradient


def random_block(rank, n=20):
    A = np.random.default_rng(0).normal(size=(n, rank))
    return A @ A.T


def test_a_regular_system_is_solved():
    right = np.random.default_rng(1).normal(size=20)
    _, gradient = solve_free(random_block(30), right, [-1] * 20)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("group", [[0] * 20, [0, 1] * 10, [-1] * 5 + [0] * 7 + [1] * 7 + [2]])
def test_groups_keep_their_sums(group):
    right = np.random.default_rng(1).normal(size=20)
    dual, gradient = solve_free(random_block(30), right, group)
    for g in range(max(group) + 1):
        members = np.array(group) == g
        assert dual[members].sum() == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(gradient[members], gradient[members][0], atol=1e-12)
    np.testing.assert_allclose(gradient[np.array(group) < 0], 0.0, atol=1e-12)


def test_singular_system_changes_few_variables():
    block = random_block(4)
    dual, gradient = solve_free(block, block @ np.random.default_rng(1).normal(size=20), [-1] * 20)
    assert np.count_nonzero(dual) == 4
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


def test_a_system_without_a_solution_or_a_box_stays_finite():
    dual, _ = solve_free(random_block(4), np.random.default_rng(1).normal(size=20), [-1] * 20)
    assert np.isfinite(dual).all()
    dual, _ = solve_free(np.zeros((3, 3)), np.ones(3), [-1] * 3)
    assert np.isfinite(dual).all()


@pytest.mark.parametrize("rank", [1, 4, 19, 30])
@pytest.mark.parametrize("group", [[-1] * 20, [0] * 20, [0, 1] * 10, [-1] * 5 + [0] * 7 + [1] * 8])
@pytest.mark.parametrize("size", [1e-3, 0.1, 10.0])
def test_bounded_system_leaves_few_free_variables_that_solve_their_equations(rank, group, size):
    block, group = random_block(rank), np.array(group)
    right = np.random.default_rng(rank).normal(size=20)
    dual, gradient = solve_free(block, right, group, -size, size)
    assert (np.abs(dual) <= size).all()
    assert dual @ (right + gradient) > 0  # twice the gain
    free = np.abs(dual) < size
    assert free.sum() <= rank + group.max() + 1
    for g in range(group.max() + 1):
        assert dual[group == g].sum() == pytest.approx(0.0, abs=1e-12 * max(1.0, size))
        level = gradient[free & (group == g)]
        np.testing.assert_allclose(level, level[:1].repeat(len(level)), atol=1e-9)
    np.testing.assert_allclose(gradient[free & (group < 0)], 0.0, atol=1e-9)


@pytest.mark.parametrize("keep_bounded_part", [True, False])
@pytest.mark.parametrize("make", [two_groups, lambda: classification(*two_clouds(60, 2, 0.5), Linear(), 10.0)])
def test_acceleration_keeps_the_state_consistent_and_raises_the_dual(make, keep_bounded_part):
    problem = make()
    start = PairwiseSolver(stopping=StoppingRule(max_iterations=30), finish_below=0).solve(problem).dual
    state = SmoState(problem, start, 10**7, keep_bounded_part)
    before = certify(problem, start)
    accelerate(state, 256)
    dual, gradient = state.point()
    after = certify(problem, dual)
    assert after.dual > before.dual
    assert after.infeasibility < 1e-12
    np.testing.assert_allclose(gradient, problem.gradient(dual), atol=1e-10)
    assert state.dual_value == pytest.approx(after.dual, rel=1e-9)
    if keep_bounded_part:
        np.testing.assert_allclose(state.bounded_part, problem.matrix.matvec(state.at_bounds()), atol=1e-10)


@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_unscaled_inseparable_data_take_thousands_of_steps_not_millions(scale):
    X, signs = two_clouds(200, 3, 0.5)
    problem = classification(X * scale, signs, Linear(), 1.0)
    solution = PairwiseSolver(stopping=StoppingRule(max_iterations=100_000)).solve(problem)
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution.dual)
    assert certificate.relative_gap < 1e-5
    if scale > 1e2:
        return  # beyond what the interior-point solver can do; the certificate stands alone
    value, _ = solve_quadratic_program(classification(X, signs, Linear(), scale**2))
    assert certificate.dual * scale**2 == pytest.approx(value, rel=1e-5)


def test_large_costs_take_fewer_steps_with_the_equations():
    problem = classification(*two_clouds(150, 2, 1.0), Gaussian(1.0), 1e5)
    plain = PairwiseSolver(finish_below=0).solve(problem)
    helped = PairwiseSolver().solve(problem)
    assert helped.counters.iterations < plain.counters.iterations / 2
    found, slow = (certify(problem, solution.dual) for solution in (helped, plain))
    assert helped.status is Status.CONVERGED
    assert found.violation <= 1e-3
    assert found.relative_gap <= 1e-6
    assert found.dual >= slow.dual  # pair steps alone stall, on some computers at another point than on others


def test_no_acceleration_without_free_variables():
    problem = classification(*two_clouds(60, 2, 0.5), Linear(), 10.0)
    state = SmoState(problem, feasible_start(problem), 10**7, keep_bounded_part=False)
    accelerate(state, 256)  # nothing is free yet
    assert not state.dual.any()


def test_nearly_dependent_variables_do_not_stall():
    # One feature under a quadratic kernel: rank two, up to rounding. Flat directions here have tops short of the box.
    random = np.random.default_rng(707123189)
    X = 2.0 * random.normal(size=(74, 1))
    problem = classification(X, np.where(random.random(74) < 0.5, 1.0, -1.0), Polynomial(2, 0.25, 1.0), 2718.0)
    for selection in SELECTION_RULES:
        solver = PairwiseSolver(selection, stopping=StoppingRule(max_iterations=100_000, max_seconds=20.0))
        solution = solver.solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).relative_gap < 1e-6
