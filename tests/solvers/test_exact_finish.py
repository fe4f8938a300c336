"""The linear equations of the free variables: solved, dependent, or without a solution."""

import numpy as np
import pytest

from contracts.named_problems import classification, two_clouds, two_groups
from maxmargin.kernels import Gaussian, Linear, Polynomial
from maxmargin.problems import Status, certify, feasible_start
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.exact_finish import _solve_dependent, accelerate
from maxmargin.solvers.working_set import SELECTION_RULES
from maxmargin.solvers.working_state import WorkingState
from reference.quadratic_program import solve_quadratic_program


def test_a_regular_system_is_solved():
    random = np.random.default_rng(0)
    A = random.normal(size=(20, 30))
    right = random.normal(size=20)
    solution, flat, rank = _solve_dependent(A @ A.T, right, 1e-11)
    assert (flat, rank) == (False, 20)
    np.testing.assert_allclose(A @ A.T @ solution, right, atol=1e-10)


def test_a_dependent_system_uses_few_unknowns():
    random = np.random.default_rng(0)
    A = random.normal(size=(20, 4))
    right = A @ random.normal(size=4)
    solution, flat, rank = _solve_dependent(A @ A.T, right, 1e-11)
    assert (flat, rank) == (False, 4)
    assert np.count_nonzero(solution) == 4
    np.testing.assert_allclose(A @ A.T @ solution, right, atol=1e-9)


def test_a_system_without_a_solution_gives_a_flat_direction():
    random = np.random.default_rng(0)
    A = random.normal(size=(20, 4))
    right = random.normal(size=20)
    direction, flat, rank = _solve_dependent(A @ A.T, right, 1e-11)
    assert (flat, rank) == (True, 4)
    assert right @ direction > 0
    assert direction @ A @ A.T @ direction < 1e-12 * (direction @ direction)
    assert _solve_dependent(np.zeros((3, 3)), np.ones(3), 1e-11)[1:] == (True, 0)


@pytest.mark.parametrize("keep_bounded_part", [True, False])
@pytest.mark.parametrize("make", [two_groups, lambda: classification(*two_clouds(60, 2, 0.5), Linear(), 10.0)])
def test_acceleration_keeps_everything_true_and_the_dual_rising(make, keep_bounded_part):
    problem = make()
    start = PairwiseSolver(stopping=StoppingRule(max_iterations=30), finish_below=0).solve(problem).dual
    state = WorkingState(problem, start, 10**7, keep_bounded_part)
    before = certify(problem, start)
    accelerate(state, 256)
    dual, gradient = state.point()
    after = certify(problem, dual)
    assert after.dual > before.dual
    assert after.infeasibility < 1e-12
    np.testing.assert_allclose(gradient, problem.gradient(dual), atol=1e-10)
    assert state.dual_value == pytest.approx(after.dual, rel=1e-9)
    if keep_bounded_part:
        np.testing.assert_allclose(state.bounded_part, problem.matrix.matvec(state.resting()), atol=1e-10)


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
    np.testing.assert_allclose(certify(problem, helped.dual).dual, certify(problem, plain.dual).dual, rtol=1e-5)


def test_few_free_variables_are_the_condition():
    problem = classification(*two_clouds(60, 2, 0.5), Linear(), 10.0)
    state = WorkingState(problem, feasible_start(problem), 10**7, keep_bounded_part=False)
    accelerate(state, 256)  # nothing is free yet
    assert not state.dual.any()


def test_nearly_dependent_variables_do_not_trap_the_solution():
    # One feature under a quadratic kernel: rank two, up to rounding. Flat directions here have tops short of the box.
    random = np.random.default_rng(707123189)
    X = 2.0 * random.normal(size=(74, 1))
    problem = classification(X, np.where(random.random(74) < 0.5, 1.0, -1.0), Polynomial(2, 0.25, 1.0), 2718.0)
    for selection in SELECTION_RULES:
        solver = PairwiseSolver(selection, stopping=StoppingRule(max_iterations=100_000, max_seconds=20.0))
        solution = solver.solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).relative_gap < 1e-6
