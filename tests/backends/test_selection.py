"""Selection of working sets, and the start at bounds."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.backends.selection import largest, place_at_bounds, select_working_set
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem


def random_problem(size, groups=1, seed=0):
    random = np.random.default_rng(seed)
    dual = random.uniform(-1.0, 1.0, size)
    dual[::2], dual[1::3] = -1.0, 1.0
    free = np.flatnonzero(np.abs(dual) < 1.0)
    state = SimpleNamespace(
        dual=dual,
        lower=np.full(size, -1.0),
        upper=np.ones(size),
        kink=np.empty(0),
        group=(np.arange(size) % groups).astype(np.int32),
        groups=groups,
        free=lambda: free,
    )
    up, down = random.normal(size=size), random.normal(size=size)
    up[dual == 1.0] = down[dual == -1.0] = -np.inf
    return state, up, down


@pytest.mark.parametrize("groups", [1, 2, 20])
@pytest.mark.parametrize("size", [2, 3, 10, 50, 500])
def test_a_working_set_holds_the_most_violating_pair_and_no_variable_twice(groups, size):
    state, up, down = random_problem(300, groups)
    worst = int(np.argmax(np.maximum(up, down)))
    most_up, most_down = int(np.argmax(up)), int(np.argmax(down))
    working_set = select_working_set(state, up, down, size)
    assert 2 <= len(working_set) <= size
    assert len(np.unique(working_set)) == len(working_set)
    if groups == 1:
        assert {most_up, most_down} <= set(working_set)
    elif groups == 20:
        assert worst in working_set


def test_half_of_a_working_set_are_free_variables():
    state, up, down = random_problem(300)
    free = set(state.free())
    assert len(free) > 20
    assert len(free & set(select_working_set(state, up, down, 20))) >= 10


@pytest.mark.parametrize("size", [1, 50, 3000])
@pytest.mark.parametrize("count", [0, 1, 7, 40, 4000])
def test_largest_values(size, count):
    values = np.random.default_rng(size).normal(size=size)
    values[::5] = -np.inf
    for above in (0.0, -np.inf):
        expected = np.sort(values[values > above])[::-1][:count]
        np.testing.assert_array_equal(np.sort(values[largest(values, count, above)])[::-1], expected)


def test_equal_values_are_selected_evenly_spread():
    values = np.where(np.arange(1000) < 900, 2.0, -np.inf)
    np.testing.assert_array_equal(largest(values, 9), np.arange(0, 900, 100))


def problem_of(lower, upper, total):
    size = len(lower)
    matrix = PrecomputedMatrix(np.eye(size))
    return DualProblem(matrix, np.zeros(size), lower=lower, upper=upper, total=np.array([total]))


def test_place_at_bounds_fills_up_from_the_largest_slack():
    signs = np.where(np.arange(100) % 2, 1.0, -1.0)
    problem = problem_of(np.minimum(0.0, 2.0 * signs), np.maximum(0.0, 2.0 * signs), 0.0)
    slack = np.random.default_rng(0).normal(size=100)
    dual = place_at_bounds(problem, slack)
    assert abs(dual.sum()) < 1e-12
    assert ((problem.lower <= dual) & (dual <= problem.upper)).all()
    assert ((dual > problem.lower) & (dual < problem.upper)).sum() <= 1
    assert slack[dual == problem.upper].min() >= slack[dual == problem.lower].max()


def test_place_at_bounds_with_a_total_that_rounds_below_the_sum_of_lower_bounds():
    problem = problem_of(np.array([0.1, 0.2, 0.3]), np.ones(3), np.nextafter(0.6, 0))
    np.testing.assert_allclose(place_at_bounds(problem, np.zeros(3)), [0.1, 0.2, 0.3])


def test_place_at_bounds_leaves_slacks_within_a_kink_at_zero():
    slack, kink = np.random.default_rng(0).normal(size=101), np.full(101, 0.5)
    problem = replace(problem_of(np.full(101, -2.0), np.full(101, 2.0), 0.0), kink=kink)
    dual = place_at_bounds(problem, slack)
    assert abs(dual.sum()) < 1e-12
    assert (~np.isin(dual, [-2.0, 0.0, 2.0])).sum() <= 1
    offset = 0.5 * (slack[dual == 2.0].min() + slack[dual == -2.0].max())  # of the tube that the point belongs to
    assert np.abs(slack[dual == 0.0] - offset).max() <= np.abs(slack[np.abs(dual) == 2.0] - offset).min() + 1e-12
    assert (dual == 0.0).sum() > 20
