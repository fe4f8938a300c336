import numpy as np
import pytest

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem
from maxmargin.problems.gradient_extremes import gradient_extremes, interval_midpoint, violation_of


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("groups", "ungrouped"), [(1, False), (1, True), (4, False), (4, True), (0, True)])
def test_extremes_of_every_group_and_of_variables_in_no_group(groups, ungrouped, seed):
    random = np.random.default_rng(seed)
    group = random.integers(-1 if ungrouped else 0, max(groups, 1) if groups else 0, 40).astype(np.int32)
    lower, upper = -random.random(40), random.random(40)
    dual = np.clip(random.normal(size=40), lower, upper)
    gradient = random.normal(size=40)
    problem = DualProblem(PrecomputedMatrix(np.eye(40)), np.ones(40), lower, upper, group=group, total=np.zeros(groups))
    extremes = gradient_extremes(problem, dual, gradient)
    worst = 0.0
    for g in range(groups):
        up, down = gradient[(group == g) & (dual < upper)], gradient[(group == g) & (dual > lower)]
        assert extremes.largest[g] == up.max(initial=-np.inf)
        assert extremes.smallest[g] == down.min(initial=np.inf)
        worst = max(worst, extremes.largest[g] - extremes.smallest[g])
    assert extremes.largest[-1] == gradient[(group < 0) & (dual < upper)].max(initial=0.0)
    assert extremes.smallest[-1] == gradient[(group < 0) & (dual > lower)].min(initial=0.0)
    assert violation_of(extremes, gradient) == max(worst, extremes.largest[-1], -extremes.smallest[-1])
    gradient[3] = np.nan
    assert violation_of(extremes, gradient) == np.inf


def test_gradients_that_overflowed_are_an_infinite_violation_without_a_warning():
    group, total = np.array([0, 0, 1, 1], dtype=np.int32), np.zeros(2)
    problem = DualProblem(PrecomputedMatrix(np.eye(4)), np.ones(4), -np.ones(4), np.ones(4), group=group, total=total)
    gradient = np.array([np.nan, 1.0, 1e308, -1e308])
    extremes = gradient_extremes(problem, np.zeros(4), gradient)
    assert violation_of(extremes, gradient) == np.inf
    gradient[0] = 1.0
    assert violation_of(gradient_extremes(problem, np.zeros(4), gradient), gradient) == np.inf


def test_the_offset_is_the_middle_of_its_interval_or_its_finite_end():
    low, high = np.array([1.0, -np.inf, 2.0, -np.inf]), np.array([3.0, 5.0, np.inf, np.inf])
    np.testing.assert_array_equal(interval_midpoint(low, high), [2.0, 5.0, 2.0, 0.0])
