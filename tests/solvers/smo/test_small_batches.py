"""Batches of small problems of every formulation: the steps of the reference, and the optimum of the other solvers."""

import numpy as np
import pytest

from maxmargin.formulations import (
    data_description,
    epsilon_regression,
    nu_classification,
    nu_regression,
    one_class,
    quantile_regression,
    squared_epsilon_regression,
)
from maxmargin.kernels import Gaussian, Polynomial
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, certify
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.solvers.smo.small_problem_batch import SmallProblemBatch
from maxmargin.testing.named_problems import BOXLESS, CONVEX, two_clouds
from maxmargin.testing.quadratic_program import solve_quadratic_program
from reference.pairwise import pairwise

X, SIGNS = two_clouds(50, 3, 1.5)
TARGETS = X[:, 0] + 0.3 * np.random.default_rng(1).normal(size=50)
COSTS = np.random.default_rng(2).uniform(0.5, 2.0, 50)

#: From a matrix and its rows to the problem.
POSES = {
    "nu classification": lambda M, k: nu_classification.pose(M, SIGNS[k], COSTS[k], 0.4),
    "one class": lambda M, k: one_class.pose(M, COSTS[k], 0.3),
    "data description": lambda M, k: data_description.pose(M, COSTS[k], 0.3),
    "tube": lambda M, k: epsilon_regression.pose(M, TARGETS[k], COSTS[k], 0.1),
    "tube without bias": lambda M, k: epsilon_regression.pose(M, TARGETS[k], COSTS[k], 0.1, fit_intercept=False),
    "squared tube": lambda M, k: squared_epsilon_regression.pose(M, TARGETS[k], COSTS[k], 0.1),
    "nu regression": lambda M, k: nu_regression.pose(M, TARGETS[k], COSTS[k], 0.4),
    "quantile": lambda M, k: quantile_regression.pose(M, TARGETS[k], COSTS[k], 0.2),
}


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2, 0.5, 1.0)], ids=str)
@pytest.mark.parametrize("pose", POSES.values(), ids=POSES)
def test_all_formulations_are_solved_to_rounding(pose, kernel):
    values = kernel(X, X)
    parts = [np.arange(50), np.arange(0, 50, 2) + np.arange(25) % 2, np.arange(30)[::-1]]
    problems = [pose(PrecomputedMatrix(values, rows), rows) for rows in parts]
    batch = SmallProblemBatch.of(problems)
    solved = batch.solve(1e-3, 1)
    for p, problem in enumerate(problems):
        solution = solved.solution(p, None)
        certificate, (best, _) = certify(problem, solution.dual), solve_quadratic_program(problem)
        assert solved.finished(p)
        assert certificate.violation <= 1e-9
        assert certificate.dual == pytest.approx(best, rel=1e-6, abs=1e-8)
        np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-10)
        offsets = interval_midpoint(*offset_bounds(problem, solution.dual, solution.gradient))
        np.testing.assert_array_equal(solved.offsets[p], offsets)


@pytest.mark.parametrize("pose", POSES.values(), ids=POSES)
def test_steps_are_those_of_the_reference(pose):
    values = Gaussian(0.5)(X, X)
    problem = pose(PrecomputedMatrix(values), np.arange(50))
    solved = SmallProblemBatch.of([problem]).solve(1e-3, 1, max_free=0)
    if problem.groups == 2 and (np.diff(problem.group) < 0).any():  # it orders the variables by group
        order = np.argsort(problem.group, kind="stable")
        arrays = (getattr(problem, name)[order] for name in ("linear", "lower", "upper", "ridge", "group"))
        start = SmallProblemBatch.of([problem]).start[order]
        problem = DualProblem(PrecomputedMatrix(values[np.ix_(order, order)]), *arrays, problem.total)
        dual, path = pairwise(problem, "second_order", start=start)
        np.testing.assert_allclose(solved.dual[order], dual, atol=1e-12)
    else:
        dual, path = pairwise(problem, "second_order")
        np.testing.assert_allclose(solved.dual, dual, atol=1e-12)
    assert solved.counters(0).iterations == len(path)


NAMED = CONVEX | BOXLESS


@pytest.mark.parametrize("name", NAMED)
def test_named_problems(name):
    problem = NAMED[name]()
    everything = np.arange(problem.size)
    problem = problem.with_matrix(PrecomputedMatrix(problem.matrix.block(everything, everything)))
    batch = SmallProblemBatch.of([problem])
    if batch is None:  # not its kind
        assert problem.groups > 2 or not problem.coercive or 0 < problem.ungrouped < problem.size
        return
    solved = batch.solve(1e-3, 1)
    if solved.finished(0):
        assert certify(problem, solved.dual).violation <= 1e-3


def test_a_start_is_made_feasible_and_used():
    problem = POSES["nu regression"](PrecomputedMatrix(Gaussian(0.5)(X, X)), np.arange(50))
    first = SmallProblemBatch.of([problem]).solve(1e-3, 1)
    again = SmallProblemBatch.of([problem], [first.dual]).solve(1e-3, 1)
    assert again.counters(0).iterations == 0
    np.testing.assert_array_equal(again.dual, first.dual)
    other = SmallProblemBatch.of([problem], [np.full(problem.size, 7.0)])
    np.testing.assert_allclose(problem.group_sums(other.start), problem.total)


def test_problems_of_different_kinds_are_no_batch():
    values, rows = Gaussian(0.5)(X, X), np.arange(50)
    tube, nu = POSES["tube"](PrecomputedMatrix(values), rows), POSES["nu regression"](PrecomputedMatrix(values), rows)
    assert SmallProblemBatch.of([tube, nu]) is None
    assert SmallProblemBatch.of([tube, POSES["tube"](PrecomputedMatrix(values.copy()), rows)]) is None
    assert SmallProblemBatch.of([tube, tube]) is not None
