from fractions import Fraction
from math import fsum

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, InfeasibleProblemError, feasible_start
from maxmargin.problems.dual_problem import ProblemFacts


def problem(**changes):
    n = 4
    arrays = {"linear": np.ones(n), "lower": np.zeros(n), "upper": np.ones(n), "total": np.array([1.0])}
    return DualProblem(PrecomputedMatrix(np.eye(n)), **{**arrays, **changes})


def test_defaults_are_one_group_and_no_ridge():
    p = problem()
    assert (p.size, p.groups, p.ungrouped, p.bounded) == (4, 1, 0, True)
    np.testing.assert_array_equal(p.ridge, np.zeros(4))
    np.testing.assert_array_equal(p.kink, np.zeros(4))
    assert not p.kinked
    np.testing.assert_array_equal(p.curvature, np.ones(4))
    np.testing.assert_array_equal(p.gradient(np.full(4, 0.25)), np.full(4, 0.75))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"linear": np.ones(3)}, "linear must have one entry for each of the 4"),
        ({"linear": np.full(4, np.nan)}, "linear must be finite"),
        ({"ridge": np.full(4, -1.0)}, "ridge must be finite and at least 0"),
        ({"kink": np.full(4, -1.0)}, "kink must be finite and at least 0"),
        ({"kink": np.full(4, np.inf)}, "kink must be finite and at least 0"),
        ({"kink": np.ones(4), "lower": np.full(4, 0.1)}, "bounds of a variable with a kink must include 0"),
        ({"kink": np.ones(3)}, "kink must have one entry for each of the 4"),
        ({"upper": np.full(4, np.nan)}, "not a number"),
        ({"group": np.full(4, 2, dtype=np.int32)}, "a group must lie between"),
    ],
)
def test_malformed_arrays_are_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        problem(**changes)


def test_infeasible_constraints_are_errors():
    with pytest.raises(InfeasibleProblemError, match="group 0 must sum to 9, but its bounds only allow 0 to 4"):
        problem(total=np.array([9.0]))
    with pytest.raises(InfeasibleProblemError, match="variable 2 has its lower bound above"):
        problem(lower=np.array([0.0, 0.0, 2.0, 0.0]))


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_infeasible_totals_are_errors_at_every_scale(scale):
    bounds = {"lower": np.zeros(4), "upper": np.full(4, scale)}
    with pytest.raises(InfeasibleProblemError, match="group 0 must sum to"):
        problem(total=np.array([4.001 * scale]), **bounds)
    with pytest.raises(InfeasibleProblemError, match="group 0 must sum to"):
        problem(total=np.array([-0.001 * scale]), **bounds)
    for total in (0.001, 2.0, 3.999):
        assert problem(total=np.array([total * scale]), **bounds).total[0] == total * scale
    assert problem(total=np.array([4.0 * scale * (1 + 1e-14)]), **bounds).total[0] == 4.0 * scale
    assert problem(total=np.array([4.0 * scale]), upper=np.full(4, np.inf)).total[0] == 4.0 * scale


def exact_sum(values):
    return sum(map(Fraction, values.tolist()), Fraction(0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(20))
def test_a_total_beyond_the_bounds_by_rounding_is_the_nearest_that_they_allow(seed, sign):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.0, 1.0, 4)
    limit = exact_sum(costs)
    bounds = {"upper": costs} if sign > 0 else {"lower": -costs, "upper": np.zeros(4)}
    for total in (fsum(costs) * (1 + k * 2.0**-52) for k in range(-3, 4)):
        p = problem(total=np.array([sign * total]), **bounds)
        kept = Fraction(sign * float(p.total[0]))
        assert kept <= limit
        if Fraction(total) <= limit:
            assert kept == Fraction(total)
        else:
            assert Fraction(np.nextafter(float(kept), np.inf)) > limit


def test_totals_of_other_groups_stay():
    group = np.array([0, 0, 1, 1], dtype=np.int32)
    upper = np.array([0.1, 0.2, 1.0, 1.0])  # 0.1 + 0.2 is rounded up to 0.30000000000000004
    p = problem(upper=upper, group=group, total=np.array([0.1 + 0.2, 0.7]))
    assert Fraction(float(p.total[0])) <= exact_sum(upper[:2])
    assert p.total[1] == 0.7


def test_feasible_start_meets_sums_and_bounds():
    p = problem(total=np.array([2.5]))
    start = feasible_start(p)
    assert start.sum() == pytest.approx(2.5)
    assert (start >= 0).all()
    assert (start <= 1).all()


def test_feasible_start_keeps_a_feasible_point():
    wanted = np.array([0.5, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(feasible_start(problem(), wanted), wanted)


def test_feasible_start_repairs_used_variables_first():
    start = feasible_start(problem(), np.array([0.25, 0.25, 0.0, 0.0]))
    np.testing.assert_allclose(start, [0.5, 0.5, 0.0, 0.0])


def test_feasible_start_with_infinite_bounds():
    p = problem(upper=np.array([np.inf, 1.0, 1.0, np.inf]), total=np.array([100.0]))
    start = feasible_start(p)
    assert start.sum() == pytest.approx(100.0)
    assert (start <= p.upper).all()


@pytest.mark.parametrize(("wanted", "message"), [(np.ones(3), "one entry"), (np.full(4, np.inf), "finite")])
def test_malformed_starts_are_errors(wanted, message):
    with pytest.raises(ValueError, match=message):
        feasible_start(problem(), wanted)


@pytest.mark.parametrize("seed", range(40))
def test_facts_are_those_of_the_arrays(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 12))

    def some(*values):
        return random.choice(np.array(values, dtype=float), n)

    linear, kink = some(-2, 0, 1e30, np.nan if seed % 5 == 0 else 3), some(0, 1)
    ridge = some(0, 0.5, -1 if seed == 7 else 2)
    lower, upper = some(-np.inf, -1, 0, np.nan if seed == 9 else -3), some(np.inf, 0, 1, -0.5 if seed % 3 == 0 else 2)
    group = random.integers(-1, 3 if seed % 11 == 0 else 2, n).astype(np.int32)
    total = np.array([random.choice([0.0, -1.5, np.inf if seed == 13 else 2.0]), 0.25])
    facts = ProblemFacts(*_native.problem_facts(linear, lower, upper, ridge, kink, group, total))
    fits, finite = (lower <= 0) & (upper >= 0), np.isfinite(lower) & np.isfinite(upper)
    numbers = np.isfinite(linear) & ~np.isnan(lower) & ~np.isnan(upper)
    bounds = np.abs(np.concatenate([lower, upper]))
    assert facts.valid == (numbers & (ridge >= 0) & ((kink == 0) | fits) & (group < 2)).all()
    assert facts.zero_fits == fits.all()
    assert facts.bounded == finite.all()
    assert facts.coercive == (finite | (ridge > 0)).all()
    assert facts.ridged == (ridge > 0).all()
    assert facts.kinked == kink.any()
    assert facts.ungrouped == (group < 0).sum()
    assert facts.largest_bound == bounds[np.isfinite(bounds)].max(initial=0.0)
    assert facts.least_ridge == min(ridge[ridge > 0], default=0.0)
    assert facts.largest_ridge == max(ridge[ridge > 0], default=0.0)
    assert facts.largest_total == np.abs(total).max()
    ends = [(lower[group == g].sum(), upper[group == g].sum()) for g in (0, 1)]
    room = [distance for (low, high), sum_ in zip(ends, total, strict=True) for distance in (sum_ - low, high - sum_)]
    np.testing.assert_equal(facts.room, np.nan if np.isnan(room).any() else min(room))
    if np.isfinite(linear).all():
        assert facts.largest_linear == max(np.abs(linear).max(), kink.max())


@pytest.mark.parametrize("missing", [0.0, 0.3, 2.5, 100.0, -1.7])
def test_moving_to_bounds_changes_the_sum(missing):
    random = np.random.default_rng(3)
    dual, order = random.uniform(-1, 1, 9), random.permutation(9)
    bounds = np.full(9, 1.5 if missing > 0 else -1.5)
    expected, rest = dual.copy(), abs(missing)
    for k in order:
        step = min(rest, abs(bounds[k] - expected[k]))
        expected[k] += np.sign(missing) * step
        rest -= step
    assert _native.move_to_bounds(order, bounds, dual, missing)
    np.testing.assert_allclose(dual, expected, atol=1e-14)
    unchanged = dual.copy()
    assert not _native.move_to_bounds(order, np.where(np.arange(9) == 4, np.inf, bounds), dual, missing)
    np.testing.assert_array_equal(dual, unchanged)
