import numpy as np
import pytest

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import certify, feasible_start
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.classical.decomposition_run import changed, restrict, select_violating
from maxmargin.testing.named_problems import QUADRATIC
from maxmargin.testing.quadratic_program import solve_quadratic_program


@pytest.fixture(params=QUADRATIC)
def problem(request):
    return QUADRATIC[request.param]()


def on_the_way(problem, steps=7):
    return (
        PairwiseSolver(finish_below=0, stopping=StoppingRule(violation=1e-9, max_iterations=steps)).solve(problem).dual
    )


def test_gain_gradient_and_constraints_are_those_of_the_whole(problem):
    dual = on_the_way(problem)
    gradient = problem.gradient(dual)
    variables = np.random.default_rng(1).permutation(problem.size)[: max(2, problem.size // 2)]
    part = restrict(problem, variables, dual, gradient)
    assert part.size == len(variables)
    change = PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(part).dual
    moved = dual.copy()
    moved[variables] = changed(problem, variables, dual, part, change)
    before, after = certify(problem, dual, extended=True), certify(problem, moved, extended=True)
    scale = 1.0 + np.abs(moved).max()
    assert after.infeasibility <= 1e-9 * scale
    assert certify(part, change).dual == pytest.approx(after.dual - before.dual, rel=1e-6, abs=1e-6 * scale)
    large = np.abs(problem.matrix.block(variables, np.arange(problem.size))).max() * np.abs(moved).sum()
    np.testing.assert_allclose(part.gradient(change), problem.gradient(moved)[variables], atol=1e-9 + 1e-14 * large)


def test_restriction_to_all_variables_is_the_whole_problem(problem):
    dual = on_the_way(problem)
    part = restrict(problem, np.arange(problem.size), dual, problem.gradient(dual))
    value, _ = solve_quadratic_program(problem)
    gain, _ = solve_quadratic_program(part)
    assert certify(problem, dual).dual + gain == pytest.approx(value, rel=1e-4, abs=1e-6)


def test_a_zero_change_leaves_the_values(problem):
    dual = on_the_way(problem)
    variables = np.arange(problem.size)
    part = restrict(problem, variables, dual, problem.gradient(dual))
    np.testing.assert_array_equal(changed(problem, variables, dual, part, np.zeros(problem.size)), dual)


def test_variables_that_reach_a_bound_are_exactly_on_it():
    problem = QUADRATIC["sample_costs"]()
    dual = feasible_start(problem, np.random.default_rng(0).normal(size=problem.size))
    variables = np.arange(problem.size)
    part = restrict(problem, variables, dual, problem.gradient(dual))
    np.testing.assert_array_equal(changed(problem, variables, dual, part, part.upper), problem.upper)
    np.testing.assert_array_equal(changed(problem, variables, dual, part, part.lower), problem.lower)
    nearly = changed(problem, variables, dual, part, part.upper * (1 - 1e-17))
    np.testing.assert_array_equal(nearly, problem.upper)


def test_given_matrix_is_used():
    problem = QUADRATIC["overlapping"]()
    given = PrecomputedMatrix(np.eye(3))
    part = restrict(problem, np.arange(3), np.zeros(80), problem.linear, given)
    assert part.matrix is given


def test_groups_of_a_restriction_are_renumbered():
    problem = QUADRATIC["group_of_each_sample"]()
    variables = np.flatnonzero(np.isin(problem.group, [3, 17]))
    part = restrict(problem, variables, np.zeros(problem.size), problem.linear)
    assert part.groups == 2
    np.testing.assert_array_equal(np.unique(part.group), [0, 1])


# ---- Joachims' rule ------------------------------------------------------------------------------------------------


def test_half_of_a_working_set_comes_from_each_end():
    problem = QUADRATIC["overlapping"]()
    dual = on_the_way(problem, 25)
    gradient = problem.gradient(dual)
    chosen = select_violating(problem, dual, gradient, 6)
    up = np.flatnonzero(dual < problem.upper)
    down = np.flatnonzero(dual > problem.lower)
    ends = np.concatenate([up[np.argsort(-gradient[up])][:3], down[np.argsort(gradient[down])][:3]])
    assert set(chosen) <= set(ends) | set(select_violating(problem, dual, gradient, 8))
    assert {up[np.argmax(gradient[up])], down[np.argmin(gradient[down])]} == set(chosen[:2])


def test_the_worst_pair_is_always_in_the_set(problem):
    dual = on_the_way(problem)
    gradient = problem.gradient(dual)
    violation = certify(problem, dual, extended=True).violation
    for size in (2, 3, 10, 1000):
        chosen = select_violating(problem, dual, gradient, size)
        assert len(chosen) <= size
        assert len(np.unique(chosen)) == len(chosen)
        if violation > 1e-12:
            part = restrict(problem, chosen, dual, gradient)
            assert certify(part, np.zeros(part.size)).violation == pytest.approx(violation, rel=1e-5)


def test_working_set_is_empty_without_violation():
    problem = QUADRATIC["all_at_bound"]()
    dual = PairwiseSolver().solve(problem).dual
    assert not len(select_violating(problem, dual, problem.gradient(dual), 10))
