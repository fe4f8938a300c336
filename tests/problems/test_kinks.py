"""Kinks: the same problem in split form, and certificates that enclose exact values."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, certify, feasible_start
from maxmargin.problems.gradient_extremes import gradient_extremes
from maxmargin.problems.kinks import excess_of, is_free, nearest_bounds, slopes
from maxmargin.problems.losses import conjugate
from maxmargin.problems.offsets import best_offsets
from maxmargin.problems.split_problem import SplitProblem

mpmath.mp.dps = 80


@st.composite
def kinked_problems(draw, always_squared=False):
    """Regression-like problems: some variables without a kink, points with variables at kinks and bounds."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, groups = draw(st.integers(2, 12)), draw(st.integers(0, 4))
    factor = random.normal(size=(n, draw(st.integers(1, n))))
    group = random.integers(-1, groups, n).astype(np.int32) if groups else np.full(n, -1, dtype=np.int32)
    cost = random.exponential(size=n)
    problem = DualProblem(
        PrecomputedMatrix(factor @ factor.T),
        linear=draw(st.sampled_from([1e-3, 1.0, 1e6])) * random.normal(size=n),
        lower=-cost,
        upper=np.where(random.random(n) < 0.5, cost, 2 * cost),
        ridge=random.exponential(size=n) if always_squared or draw(st.booleans()) else np.zeros(n),
        group=group,
        total=np.zeros(groups),
        kink=np.where(random.random(n) < 0.8, 10.0 ** draw(st.integers(-3, 3)) * random.exponential(size=n), 0.0),
    )
    wanted = random.choice([0.0, 0.0, 1.0, 5.0, -5.0], n) * random.normal(size=n)
    return problem, feasible_start(problem, wanted)


@given(kinked_problems())
@settings(max_examples=100, deadline=None)
def test_the_split_problem_has_the_same_certificate(case):
    problem, dual = case
    split = SplitProblem.of(problem)
    own, theirs = certify(problem, dual), certify(split.problem, split.dual(dual))
    size = 1.0 + abs(own.primal) + abs(own.dual)
    for name in ("primal", "dual", "gap", "squared_norm"):
        assert getattr(own, name) == pytest.approx(getattr(theirs, name), rel=1e-9, abs=1e-9 * size)
    assert own.violation == pytest.approx(theirs.violation, rel=1e-9, abs=1e-9 * size)
    np.testing.assert_allclose(own.offset, theirs.offset, rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(split.combined_dual(split.dual(dual)), dual)
    gradient = problem.gradient(dual)
    of_split = split.gradient(dual, gradient)
    np.testing.assert_allclose(of_split, split.problem.gradient(split.dual(dual)), rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(
        split.combined_gradient(split.dual(dual), of_split), gradient, rtol=1e-9, atol=1e-9 * size
    )
    assert problem.value(dual, gradient) == pytest.approx(own.dual, rel=1e-9, abs=1e-9 * size)


@given(kinked_problems(always_squared=True), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_offsets_of_least_loss(case, seed):
    problem, _ = case
    slack = np.random.default_rng(seed).normal(size=problem.size)
    best = best_offsets(problem, slack)

    def loss(offset):
        return conjugate(problem, slack - problem.expand_groups(offset)).sum() if problem.groups else 0.0

    for shift in (1e-3, -1e-3):
        assert loss(best) <= loss(best + shift) + 1e-9 * (1 + loss(best))


@given(kinked_problems(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_certificates_enclose_values_in_eighty_digits(case, extended):
    problem, dual = case
    certificate = certify(problem, dual, extended=extended)
    n, number = problem.size, mpmath.mpf
    b = [number(v) for v in dual]
    product = [mpmath.fdot([number(v) for v in row], b) for row in problem.matrix.block(np.arange(n), np.arange(n))]
    norm = mpmath.fdot(b, product)
    rho = [number(0 if g < 0 else certificate.offset[g]) for g in problem.group]
    loss = mpmath.fsum(
        exact_loss(number(t) - p - r, *map(number, rest))
        for t, p, r, *rest in zip(
            problem.linear, product, rho, problem.lower, problem.upper, problem.ridge, problem.kink, strict=True
        )
    )
    primal = norm / 2 + loss
    value = mpmath.fsum(
        number(t) * v - number(k) * abs(v) - number(r) * v * v / 2
        for t, k, r, v in zip(problem.linear, problem.kink, problem.ridge, b, strict=True)
    )
    assert primal <= certificate.primal
    assert value - norm / 2 >= certificate.dual
    assert primal - (value - norm / 2) <= certificate.gap


def exact_loss(slack, lower, upper, ridge, kink):
    """Return max over [lower, upper] of βz − kink |β| − ½ ridge β²; the maximum is at a bound, 0, or stationary."""
    candidates = [mpmath.mpf(0), lower, upper]
    if ridge > 0:
        candidates += [min(max((slack - sign * kink) / ridge, lower), upper) for sign in (1, -1)]
    return max(beta * slack - kink * abs(beta) - ridge * beta * beta / 2 for beta in candidates)


def test_slacks_at_the_edge_of_the_tube_are_enclosed():
    """Slacks that equal the kink but for rounding have no loss in float64; the bounds account for it."""
    kink, n = 0.1, 8
    problem = DualProblem(
        PrecomputedMatrix(np.zeros((n, n))),
        linear=np.array([np.nextafter(kink, 1.0), -np.nextafter(kink, 1.0)] * 4),
        lower=np.full(n, -1e9),
        upper=np.full(n, 1e9),
        kink=np.full(n, kink),
    )
    for extended in (False, True):
        certificate = certify(problem, np.zeros(n), extended=extended, offset=np.zeros(1))
        exact = n * mpmath.mpf(10) ** 9 * (mpmath.mpf(problem.linear[0]) - mpmath.mpf(kink))
        assert exact > 0
        assert exact <= certificate.primal
        assert certificate.dual <= 0


def test_a_hard_tube_has_a_finite_certificate():
    """Without bounds a sample outside the tube has an infinite loss; a multiple of the function is within it."""
    problem = DualProblem(
        PrecomputedMatrix(np.eye(2)),
        linear=np.array([1.0, -1.0]),
        lower=np.full(2, -np.inf),
        upper=np.full(2, np.inf),
        kink=np.full(2, 0.25),
    )
    for dual in ([0.75, -0.75], [0.7499999, -0.7499999], [0.5, -0.5]):
        certificate = certify(problem, np.array(dual))
        assert certificate.dual <= 0.5625 <= certificate.primal < 2.0
    assert certify(problem, np.array([0.75, -0.75])).gap < 1e-12


def test_sides_of_a_kink():
    dual, gradient = np.array([-1.0, 0.0, 1.0, 0.0]), np.zeros(4)
    lower, upper, kink = np.full(4, -2.0), np.full(4, 2.0), np.array([0.5, 0.5, 0.5, 0.0])
    up, down = slopes(dual, gradient, kink)
    np.testing.assert_array_equal(up, [0.5, -0.5, -0.5, 0.0])
    np.testing.assert_array_equal(down, [0.5, 0.5, -0.5, 0.0])
    np.testing.assert_array_equal(nearest_bounds(dual, lower, upper, kink)[0], [-2, -2, 0, -2])
    np.testing.assert_array_equal(nearest_bounds(dual, lower, upper, kink)[1], [0, 2, 2, 2])
    np.testing.assert_array_equal(is_free(dual, lower, upper, kink), [True, False, True, True])
    none = np.empty(0)
    assert slopes(dual, gradient, none) == (gradient, gradient)
    assert is_free(dual, lower, upper, none).all()
    np.testing.assert_array_equal(
        excess_of(np.array([1.0, -1.0, 0.5, np.nan]), np.full(4, 0.5)), [0.5, -0.5, 0, np.nan]
    )


def test_a_variable_at_a_kink_limits_the_offset_from_both_sides():
    problem = DualProblem(
        PrecomputedMatrix(np.eye(2)), np.array([0.3, -0.2]), np.full(2, -1.0), np.full(2, 1.0), kink=np.full(2, 0.5)
    )
    extremes = gradient_extremes(problem, np.zeros(2), problem.linear)
    np.testing.assert_allclose(extremes.offset_bounds, [[-0.2], [0.3]])
    assert certify(problem, np.zeros(2)).gap <= 1e-12
    assert certify(replace(problem, kink=np.full(2, 0.1)), np.zeros(2)).violation == pytest.approx(0.3)
