import numpy as np
import pytest

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, InfeasibleProblemError, feasible_start


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
