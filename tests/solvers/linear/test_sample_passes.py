"""Native passes over numbers of each sample against NumPy."""

import numpy as np
import pytest

from maxmargin import _native


@pytest.fixture
def arrays():
    random = np.random.default_rng(0)
    return [random.normal(size=20_011) for _ in range(4)]


@pytest.mark.parametrize("threads", [1, 3])
def test_slack_changes(arrays, threads):
    after, before, change, decrease = arrays
    _native.slack_changes(after, before, 0.7, change, decrease, threads)
    np.testing.assert_array_equal(change, after - before)
    np.testing.assert_array_equal(decrease, (after - before) + 0.7)
    with pytest.raises(ValueError, match="one length"):
        _native.slack_changes(after, before[1:], 0.7, change, decrease, threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_strictly_between(arrays, threads):
    values, lower, upper = arrays[:3]
    lower[:100] = values[:100]
    upper[100:200] = values[100:200]
    found = np.zeros(len(values), dtype=bool)
    count = _native.strictly_between(values, lower, upper, found, threads)
    np.testing.assert_array_equal(found, (values > lower) & (values < upper))
    assert count == np.count_nonzero(found)


def test_squared_distance_does_not_depend_on_the_number_of_threads(arrays):
    left, right = arrays[:2]
    one = _native.squared_distance(left, right, 1)
    assert one == pytest.approx(((left - right) ** 2).sum(), rel=1e-13)
    assert [_native.squared_distance(left, right, threads) for threads in (2, 3, 7)] == [one] * 3
    assert _native.squared_distance(left[:0], right[:0], 2) == 0.0


def test_derivatives_with_more_ridge_are_those_of_the_sum(arrays):
    slack, width, ridge, direction = arrays
    lower, upper, ridge = -np.abs(width), np.abs(width), np.abs(ridge)
    together = _native.loss_derivatives(slack, lower, upper, ridge, direction, 0.3, 1, 0.2)
    assert together == _native.loss_derivatives(slack, lower, upper, ridge + 0.2, direction, 0.3, 1)
