"""Repair of the group sums of a dual vector."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem
from maxmargin.solvers.linear.linear_point import repair_sums


def problem_of(lower, upper, group=None, total=(0.0,)) -> DualProblem:
    n = len(lower)
    group = np.zeros(n, dtype=np.int32) if group is None else group
    return DualProblem(PrecomputedMatrix(np.eye(n)), np.ones(n), lower, upper, group=group, total=np.array(total))


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_only_free_variables_change(random):
    lower, upper = -np.ones(400), np.ones(400)
    dual = np.clip(random.normal(scale=1.5, size=400), -1, 1)
    repaired = repair_sums(problem_of(lower, upper), dual)
    bounded = np.abs(dual) == 1
    assert 100 < bounded.sum() < 300
    assert abs(dual.sum()) > 1
    assert abs(repaired.sum()) < 1e-12 * np.abs(repaired).sum()
    np.testing.assert_array_equal(repaired[bounded], dual[bounded])
    assert (np.abs(repaired[~bounded]) < 1).all()
    # In proportion to the distance from the bound ahead.
    ahead = 1 + np.sign(dual.sum()) * dual[~bounded]
    change = repaired[~bounded] - dual[~bounded]
    np.testing.assert_allclose(change / change.sum(), ahead / ahead.sum(), rtol=1e-9)


def test_infinite_bounds_share_equally():
    lower, upper = np.zeros(5), np.array([1.0, np.inf, np.inf, 1.0, np.inf])
    repaired = repair_sums(problem_of(lower, upper, total=[6.0]), np.array([0.5, 1.0, 2.0, 0.5, 0.0]))
    np.testing.assert_allclose(repaired, [0.5, 2.0, 3.0, 0.5, 0.0])


def test_vectors_beyond_their_bounds_are_clipped():
    problem = problem_of(-np.ones(4), np.ones(4))
    np.testing.assert_array_equal(repair_sums(problem, np.array([5.0, -5.0, 7.0, -7.0])), [1, -1, 1, -1])


def test_rounding_errors_are_not_corrected():
    dual = np.array([0.1, 0.2, -0.3])
    assert dual.sum() != 0
    np.testing.assert_array_equal(repair_sums(problem_of(-np.ones(3), np.ones(3)), dual), dual)


def test_variables_at_bounds_move_if_free_ones_do_not_suffice():
    repaired = repair_sums(problem_of(-np.ones(4), np.ones(4)), np.array([1.0, 1.0, 1.0, 0.5]))
    assert abs(repaired.sum()) < 1e-12
    assert (np.abs(repaired) <= 1).all()


def test_several_groups_and_variables_in_none(random):
    group = np.arange(300, dtype=np.int32) % 4 - 1
    total = np.array([0.0, 3.0, -2.0])
    dual = random.uniform(-0.9, 0.9, size=300)
    repaired = repair_sums(problem_of(-np.ones(300), np.ones(300), group, total), dual)
    for g in range(3):
        assert repaired[group == g].sum() == pytest.approx(total[g], abs=1e-12)
    np.testing.assert_array_equal(repaired[group == -1], dual[group == -1])


def test_number_of_threads_does_not_matter(random):
    n = 200_000
    lower, upper, dual = -np.ones(n), np.ones(n), random.uniform(-1, 1, size=n)
    results = []
    for threads in (1, 2, 5):
        copy = dual.copy()
        sums = _native.repair_sum(copy, lower, upper, 10.0, 1e-15, threads)
        assert sums == (pytest.approx(10.0), pytest.approx(np.abs(copy).sum()))
        results.append(copy)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="a start must be finite"):
        repair_sums(problem_of(-np.ones(3), np.ones(3)), np.array([0.0, np.nan, 1.0]))
