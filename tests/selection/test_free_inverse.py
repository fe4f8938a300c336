"""The equations of the free variables, with and without their explicit inverse."""

import numpy as np
import pytest

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem
from maxmargin.selection.free_equations import RELATIVE_RIDGE, FreeInverse


def problem_of(matrix, group, groups):
    """Return a problem with this matrix."""
    size = len(matrix)
    ones = np.ones(size)
    return DualProblem(
        PrecomputedMatrix(matrix), ones, -ones, ones, 0.1 * ones, np.asarray(group, dtype=np.int32), np.zeros(groups)
    )


def equations(problem, matrix, free, added):
    """Return [M E; Eᵀ 0], with a diagonal value of 1 for groups without a free variable."""
    border = (problem.group[free][:, None] == np.arange(problem.groups)).astype(float)
    corner = np.diag((~border.any(axis=0)).astype(float))
    square = matrix[np.ix_(free, free)] + np.diag(problem.ridge[free] + added)
    return np.block([[square, border], [border.T, corner]])


@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("groups", [0, 1, 2, 3])
@pytest.mark.parametrize("explicit", [False, True])
def test_solutions_and_what_spans_need(definite, groups, explicit):
    random = np.random.default_rng(groups)
    factor = random.normal(size=(9, 9))
    matrix = factor @ factor.T if definite else factor + factor.T
    # Of three groups the last one has no free variable.
    group = np.arange(9) % min(groups, 2) if groups else np.full(9, -1)
    problem, free = problem_of(matrix, group, groups), np.array([0, 2, 3, 5, 8])
    inverse = FreeInverse(problem, free, matrix[np.ix_(free, free)], 1)
    assert inverse.added_ridge == pytest.approx(RELATIVE_RIDGE * np.diagonal(matrix)[free].mean())
    if explicit:
        assert inverse.inverse.shape == (5 + groups, 5 + groups)
    system = equations(problem, matrix, free, inverse.added_ridge)
    columns = random.normal(size=(5 + groups, 4))
    expected = np.linalg.solve(system, columns)
    np.testing.assert_allclose(inverse.solve(columns), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(inverse.quadratic(columns), (columns * expected).sum(axis=0), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(inverse.diagonal(), np.diagonal(np.linalg.inv(system))[:5], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(inverse.inverse, np.linalg.inv(system), rtol=1e-7, atol=1e-8)


def test_without_free_variables():
    problem = problem_of(np.eye(3), [0, 0, 0], 1)
    inverse = FreeInverse(problem, np.empty(0, dtype=np.int64), np.empty((0, 0)), 1)
    assert inverse.solve(np.array([[2.0]])).tolist() == [[2.0]]
    assert inverse.diagonal().shape == (0,)
    assert inverse.inverse.tolist() == [[1.0]]


@pytest.mark.parametrize("definite", [True, False])
def test_spans_of_singular_equations_do_not_depend_on_the_inverse(definite):
    random = np.random.default_rng(0)
    samples = np.repeat(random.normal(size=(6, 2)), 2, axis=0)  # each occurs twice
    matrix = samples @ samples.T if definite else samples @ np.diag([1.0, -1.0]) @ samples.T
    problem = problem_of(matrix, np.zeros(12), 1)
    problem.ridge[:] = 0.0
    free, columns = np.arange(12), random.normal(size=(13, 5))
    found = []
    for explicit in (False, True):
        inverse = FreeInverse(problem, free, matrix.copy(), 1)
        if explicit:
            assert np.abs(inverse.inverse).max() > 1e6
        found.append((inverse.diagonal(), inverse.quadratic(columns)))
    for alone, with_inverse in zip(*found, strict=True):
        np.testing.assert_array_equal(alone, with_inverse)
