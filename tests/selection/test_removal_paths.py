"""The paths along which samples are removed: the native loop takes the path of the reference in plain Python."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.reference import removal_path

from maxmargin import _native
from maxmargin.formulations import c_classification, epsilon_regression, nu_classification
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem
from maxmargin.selection import removal_checks
from maxmargin.selection.common_point import CommonPoint
from maxmargin.selection.left_out_paths import ROUNDING
from maxmargin.selection.problem_without_each import totals_without
from maxmargin.selection.removal_checks import OptimalityCheck
from maxmargin.selection.removal_errors import SlackErrors
from maxmargin.selection.removal_paths import MARGIN, End, Goal, RemovalPaths, can_remove
from maxmargin.selection.removal_proofs import feasible, proved_gains, proved_signs
from maxmargin.solvers import PairwiseSolver
from maxmargin.solvers.stopping import StoppingRule


def common_point(name, seed):
    """The exact solution of a small problem, with a free variable in every group."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.8 * random.normal(size=40) > 0, 1.0, -1.0)
    matrix = KernelMatrix(Gaussian(1.0), Points.wrap(X))
    costs = random.uniform(0.5, 3.0, 40)
    problem = {
        "hinge": lambda: c_classification.pose(matrix, y, costs),
        "squared hinge": lambda: with_ridge(c_classification.pose(matrix, y, 10 * costs), costs),
        "regression": lambda: epsilon_regression.pose(matrix, X[:, 0] + 0.1 * y, costs, 0.1),
        "nu": lambda: nu_classification.pose(matrix, y, costs, 0.4),
    }[name]()
    dual = PairwiseSolver(stopping=StoppingRule(violation=1e-10)).solve(problem).dual
    return CommonPoint(problem, 40, dual, 1e-6, 2**24, 1)


def with_ridge(problem, costs):
    return DualProblem(problem.matrix, problem.linear, problem.lower, problem.upper, 1.0 / costs)


def dense(point):
    everything = np.arange(point.problem.size)
    problem = point.problem
    return SimpleNamespace(
        matrix=problem.matrix.block(everything, everything),
        **{name: getattr(problem, name) for name in ("linear", "ridge", "lower", "upper", "group")},
    )


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "regression", "nu"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("part", [1.0, 0.5])
def test_native_paths_are_those_of_the_reference(name, seed, part):
    point = common_point(name, seed)
    assert can_remove(point)
    problem, free = dense(point), point.inverse.variables
    others = np.setdiff1d(np.arange(point.problem.size), free)
    others = np.random.default_rng(seed).permutation(others)[: int(part * len(others))]
    paths = RemovalPaths(point, np.sort(others))
    samples = np.flatnonzero(point.dual[point.used_variables(np.arange(40))])
    variables = point.used_variables(samples)
    missing = (totals_without(point.problem, 40) - point.problem.total)[samples] if name == "nu" else None
    gains = np.full(len(samples), 0.05)
    seen = set()
    for goal in Goal:
        removed = paths.remove(variables, goal, missing=missing, gains=gains)
        for row, (sample, variable) in enumerate(zip(samples.tolist(), variables.tolist(), strict=True)):
            table = np.setdiff1d(paths.variables, np.setdiff1d(point.variables_of(sample), [variable]))
            expected = removal_path.follow(
                problem,
                point.dual,
                paths.slack,
                table,
                variable,
                goal.name.lower(),
                missing=None if missing is None else missing[row],
                needed=gains[row],
                margin=MARGIN * point.scale,
            )
            end = End(removed.end[row])
            seen.add(end)
            assert end.name.lower() == expected.end
            if end is End.FAILED:  # no other free variable
                continue
            assert removed.values[row] == pytest.approx(expected.value, abs=1e-8)
            assert removed.duals[row] == pytest.approx(expected.dual[variable], rel=1e-6, abs=1e-8)
            np.testing.assert_allclose(removed.offsets[row], point.offset + expected.offsets, atol=1e-8)
            assert removed.exchanges[row] == expected.exchanges
            inside = paths.variables != variable
            at = paths.variables[inside]
            np.testing.assert_allclose(removed.changes[row, inside], (expected.dual - point.dual)[at], atol=1e-5)
            np.testing.assert_allclose(removed.slacks[row, inside], expected.slack[at], atol=1e-7)
    assert len(seen) > 1


@pytest.fixture
def unrefined(monkeypatch):
    monkeypatch.setattr(removal_checks, "REFINEMENTS", 0)


def test_ends_are_optimal_and_violations_are_found(unrefined):
    point = common_point("hinge", 0)
    free = point.inverse.variables
    samples = np.flatnonzero(point.dual)
    whole = RemovalPaths(point, np.setdiff1d(np.arange(40), free))
    removed = whole.remove(samples, Goal.VALUE)
    assert (removed.duals == 0).all()
    assert OptimalityCheck(whole, 1.0).check(removed, samples).optimal.all()
    wrong = removed._replace(slacks=removed.slacks + 1e-4 * np.eye(1, 40, 5))
    assert not OptimalityCheck(whole, 1.0).check(wrong, samples).optimal.any()
    part = RemovalPaths(point, np.empty(0, dtype=np.int64))
    removed = part.remove(samples, Goal.VALUE)
    _, optimal, late, _ = OptimalityCheck(part, 1.0).check(removed, samples)
    reached = removed.end == End.REACHED
    for row in np.flatnonzero(reached):
        dual = point.dual.copy()
        dual[part.variables] += removed.changes[row]
        dual[samples[row]] = 0.0
        expected = point.violators(dual, point.problem.gradient(dual), removed.offsets[row], 1e-7)
        expected[samples[row]] = False
        np.testing.assert_array_equal(late[row], expected)
    assert late[reached].any()
    np.testing.assert_array_equal(optimal, reached & ~late.any(axis=1))


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "nu"])
def test_errors_of_slacks_are_bounded(name):
    point = common_point(name, 3)
    others = np.setdiff1d(np.arange(40), point.inverse.variables)
    samples = np.flatnonzero(point.dual)
    for some in (others, others[:0]):
        paths = RemovalPaths(point, some)
        removed = paths.remove(samples, Goal.VALUE)
        slack_errors = SlackErrors(paths)
        for scale in (0.0, 1e-6, 1.0):
            noise = scale * np.random.default_rng(0).normal(size=removed.slacks.shape)
            noisy = removed._replace(slacks=removed.slacks + noise)
            errors = slack_errors.errors(noisy, samples) - slack_errors.ridge * noisy.changes
            bounds = slack_errors.norms(noisy, samples)
            done = removed.end == End.REACHED
            assert (np.linalg.norm(errors, axis=1) <= bounds)[done].all()
            assert (bounds <= 30.0 * np.linalg.norm(errors, axis=1) + 1e-12)[done].all()


def test_equal_and_opposite_errors_of_paths_do_not_cancel(unrefined):
    point = common_point("hinge", 0)
    samples = np.flatnonzero(point.dual)
    paths = RemovalPaths(point, np.setdiff1d(np.arange(40), point.inverse.variables))
    check = OptimalityCheck(paths, 1.0)
    removed = paths.remove(samples, Goal.VALUE)
    assert check.check(removed, samples).optimal.all()
    for count in range(2, len(samples)):  # the random numbers may depend on the number of paths
        error = np.zeros(removed.slacks[:count].shape)
        error[0, 5], error[1, 5] = 1e-4, -1e-4
        for sign in (1.0, -1.0):
            error[1] *= sign
            some = removed.at(np.arange(count))
            wrong = some._replace(slacks=some.slacks + error)
            assert check.check(wrong, samples[:count]).optimal.tolist() == [False, False] + (count - 2) * [True]


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "regression", "nu"])
def test_ends_with_errors_are_refined(name):
    point = common_point(name, 4)
    samples = np.flatnonzero(point.dual[point.used_variables(np.arange(40))])
    variables = point.used_variables(samples)
    paths = RemovalPaths(point, np.setdiff1d(np.arange(point.problem.size), point.inverse.variables))
    removed = paths.remove(variables, Goal.VALUE)
    done = removed.end == End.REACHED
    exact = OptimalityCheck(paths, 1.0)
    expected, optimal, _, _ = exact.check(removed, variables)
    at = paths.variables
    lower, upper = point.problem.lower[at], point.problem.upper[at]
    ends = point.dual[at] + removed.changes
    free = (ends - lower > 1e-3) & (upper - ends > 1e-3) & (removed.slacks == 0) & (at != variables[:, None])
    groups = point.problem.group[at]
    noise = np.where(free, 1e-4 * np.random.default_rng(0).normal(size=free.shape), 0.0)
    for g in range(point.problem.groups):  # the totals stay
        count = np.maximum(1, (free & (groups == g)).sum(axis=1))
        noise -= np.where(free & (groups == g), (noise * (groups == g)).sum(axis=1, keepdims=True) / count[:, None], 0)
    wrong = removed._replace(changes=removed.changes + noise, values=removed.values + 1.0)
    moved = done & (np.abs(noise) > 1e-5).any(axis=1)
    assert moved.any()
    found, again, _, _ = exact.check(wrong, variables)
    np.testing.assert_array_equal(again[moved], optimal[moved])
    np.testing.assert_allclose(found.values[moved], expected.values[moved], atol=1e-6)
    assert (found.violations[moved] <= 1e-7).all()
    errors = exact.errors.errors(found, variables)
    assert np.abs(errors[moved & again]).max() <= 1e-10


@pytest.mark.parametrize("part", ["slacks", "changes", "offsets"])
def test_ends_that_are_not_numbers_are_no_optima(part):
    point = common_point("hinge", 0)
    samples = np.flatnonzero(point.dual)
    paths = RemovalPaths(point, np.setdiff1d(np.arange(40), point.inverse.variables))
    removed = paths.remove(samples, Goal.VALUE)
    values = getattr(removed, part).copy()
    values[2, 0] = np.nan
    optimal = OptimalityCheck(paths, 1.0).check(removed._replace(**{part: values}), samples).optimal
    assert np.flatnonzero(~optimal).tolist() == [2]


def test_gains_are_lower_bounds():
    point = common_point("hinge", 1)
    samples = np.flatnonzero(point.dual)
    unlimited = np.full(len(samples), np.inf)
    part = RemovalPaths(point, np.empty(0, dtype=np.int64)).remove(samples, Goal.BOUND, gains=unlimited)
    others = np.setdiff1d(np.arange(40), point.inverse.variables)
    whole = RemovalPaths(point, others).remove(samples, Goal.BOUND, gains=unlimited)
    both = (part.end == End.UNPROVED) & (whole.end == End.UNPROVED)
    assert both.any()
    assert (part.gains[both] <= whole.gains[both] + ROUNDING).all()
    assert (part.gains[both] < whole.gains[both] - 1e-6).any()


def test_without_another_free_variable_there_is_no_path():
    table = np.linalg.inv([[1.0, 1.0], [1.0, 0.0]]) * [[-1.0, -1.0], [1.0, 1.0]]  # of one free variable and its group
    outcome, numbers, empty = np.full((1, 3), -1), np.zeros((1, 5)), np.empty((0, 1))
    one, zero, group = np.ones(1), np.zeros(1), np.zeros(1, np.int32)
    arguments = {"response": zero, "dual": 0.5 * one, "slack": zero, "linear": one, "ridge": zero, "gain": zero}
    _native.remove_samples(
        _native.RemovalTable(
            columns=table,
            dual=0.5 * one,
            slack=zero,
            lower=zero,
            upper=one,
            group=group,
            groups=1,
            curvature=1.0,
        ),
        _native.Removals(
            place=np.zeros(1, np.int64), twin=np.array([-1]), own_columns=empty, margin=0.0, missing=empty, **arguments
        ),
        _native.RemovalResults(outcome=outcome, numbers=numbers, changes=empty, slacks=empty),
        int(Goal.VALUE),
        20,
        np.inf,
        1,
    )
    assert End(outcome[0, 0]) is End.FAILED


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="a column for every variable"):
        _native.RemovalTable(
            columns=np.zeros((2, 2)),
            dual=np.zeros(2),
            slack=np.zeros(2),
            lower=np.zeros(2),
            upper=np.ones(2),
            group=np.zeros(2, np.int32),
            groups=1,
            curvature=1.0,
        )


def signs_at_ends(point, samples, noise=0.0):
    """Whether the signs at the ends of paths are proved, with their values; `noise` is added to the path's numbers."""
    paths = RemovalPaths(point, np.setdiff1d(np.arange(40), point.inverse.variables))
    removed = paths.remove(samples, Goal.SIGN)
    random = np.random.default_rng(0)
    removed = removed._replace(
        changes=removed.changes + noise * random.normal(size=removed.changes.shape),
        slacks=removed.slacks + noise * random.normal(size=removed.slacks.shape),
        values=removed.values + noise,
    )
    check = OptimalityCheck(paths, 1.0)
    removed, partner = feasible(check.errors, removed, samples)
    shares = check.check(removed, samples).shares
    return proved_signs(check.errors, removed, samples, partner, shares)


@pytest.mark.parametrize("name", ["hinge", "squared hinge"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3, 1.0])
def test_signs_are_proved_whatever_the_errors_of_paths(name, seed, noise):
    point = common_point(name, seed)
    samples = np.flatnonzero(point.dual)
    removed, proved = signs_at_ends(point, samples, noise)
    paths = RemovalPaths(point, np.setdiff1d(np.arange(40), point.inverse.variables))
    values = paths.remove(samples, Goal.VALUE).values
    np.testing.assert_array_equal(np.sign(removed.values[proved]), np.sign(values[proved]))
    assert noise > 0.0 or proved.mean() > 0.9
    assert noise > 1e-6 or proved.mean() > 0.5
    assert noise < 1.0 or not proved.all()


def test_a_gap_larger_than_the_margin_of_the_value_proves_nothing():
    point = common_point("hinge", 0)
    samples = np.flatnonzero(point.dual)
    paths = RemovalPaths(point, np.setdiff1d(np.arange(40), point.inverse.variables))
    check = OptimalityCheck(paths, 1.0)
    removed, partner = feasible(check.errors, paths.remove(samples, Goal.SIGN), samples)
    shares = np.zeros(len(samples))
    assert proved_signs(check.errors, removed, samples, partner, shares)[1].any()
    assert not proved_signs(check.errors, removed, samples, partner, shares + 100.0)[1].any()


@pytest.mark.parametrize("name", ["hinge", "squared hinge"])
@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-3])
def test_gains_are_bounded_from_kernel_values(name, noise):
    point = common_point(name, 2)
    problem, everything = point.problem, np.arange(40)
    matrix = problem.matrix.block(everything, everything)
    samples = np.flatnonzero(point.dual)
    for others in (everything[:0], np.setdiff1d(everything, point.inverse.variables)):
        paths = RemovalPaths(point, others)
        removed = paths.remove(samples, Goal.BOUND, gains=np.full(len(samples), np.inf))
        noisy = removed.changes + noise * np.random.default_rng(1).normal(size=removed.changes.shape)
        errors = SlackErrors(paths)
        removed, _ = feasible(errors, removed._replace(changes=noisy, gains=removed.gains + 1.0), samples)
        bounds = proved_gains(errors, removed, samples)
        for row, sample in enumerate(samples.tolist()):
            linear, ridge = problem.linear.copy(), problem.ridge.copy()
            linear[sample] = ridge[sample] = 0.0
            after = point.dual.copy()
            after[paths.variables] += removed.changes[row]
            after[sample] = removed.duals[row]
            assert after.sum() == pytest.approx(point.dual.sum(), abs=1e-12)
            before, value = (
                linear @ dual - 0.5 * dual @ matrix @ dual - 0.5 * ridge @ dual**2 for dual in (point.dual, after)
            )
            assert bounds[row] <= value - before + 1e-10
            assert noise > 1e-7 or bounds[row] >= value - before - 1e-3 * (1.0 + abs(value - before))
