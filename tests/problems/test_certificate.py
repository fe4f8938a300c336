"""The certificate: its primal value against brute force, its gap by weak duality, its offset by a line search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, certify, feasible_start
from maxmargin.problems.losses import conjugate, residuals, response
from maxmargin.solvers import PairwiseSolver
from maxmargin.testing.named_problems import CONVEX, hard_margin, overlapping, two_samples
from maxmargin.testing.quadratic_program import solve_quadratic_program


@st.composite
def random_problems(draw):
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(2, 12))
    random = np.random.default_rng(seed)
    factor = random.normal(size=(n, draw(st.integers(1, n))))
    groups = draw(st.integers(0, 2))
    lower = np.where(random.random(n) < 0.5, -random.exponential(size=n), 0.0)
    upper = random.exponential(size=n)
    inside = lower + random.random(n) * (upper - lower)
    group = random.integers(-1, groups, n).astype(np.int32) if groups else np.full(n, -1, dtype=np.int32)
    total = np.array([inside[group == g].sum() for g in range(groups)])
    return DualProblem(
        PrecomputedMatrix(factor @ factor.T),
        linear=random.normal(size=n),
        lower=lower,
        upper=upper,
        ridge=np.where(random.random(n) < 0.3, random.exponential(size=n), 0.0),
        group=group,
        total=total,
        kink=np.where(random.random(n) < 0.5, draw(st.sampled_from([0.0, 0.5])) * random.exponential(size=n), 0.0),
    ), inside


@given(random_problems())
@settings(max_examples=200, deadline=None)
def test_gap_is_never_negative_and_is_primal_minus_dual(case):
    problem, inside = case
    certificate = certify(problem, inside)
    assert certificate.gap >= 0
    scale = 1.0 + abs(certificate.primal) + abs(certificate.dual)
    assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, abs=1e-9 * scale)
    assert certificate.infeasibility < 1e-12 * scale


@given(random_problems())
@settings(max_examples=25, deadline=None)
def test_primal_and_dual_enclose_the_optimum(case):
    problem, inside = case
    value, _ = solve_quadratic_program(problem)
    certificate = certify(problem, inside)
    slack = 1e-6 * (1.0 + abs(value))
    assert certificate.dual <= value + slack
    assert certificate.primal >= value - slack


@given(random_problems(), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_conjugate_is_the_maximum(case, seed):
    problem, _ = case
    slack = np.random.default_rng(seed).normal(size=problem.size)
    best = response(problem, slack)
    assert (best >= problem.lower).all()
    assert (best <= problem.upper).all()
    shares = np.linspace(0, 1, 201)[:, None]
    beta = np.vstack([problem.lower + shares * (problem.upper - problem.lower), np.zeros(problem.size)])
    brute = (beta * slack - problem.kink * np.abs(beta) - 0.5 * problem.ridge * beta**2).max(axis=0)
    exact = conjugate(problem, slack)
    assert (exact >= brute - 1e-12).all()
    np.testing.assert_allclose(exact, brute, atol=1e-3 * (1.0 + np.abs(brute).max()))


@pytest.mark.parametrize("name", CONVEX)
def test_bounds_at_the_start_enclose_the_optimum(name):
    problem = CONVEX[name]()
    certificate = certify(problem, feasible_start(problem))
    value, _ = solve_quadratic_program(problem)
    assert certificate.dual <= value + 1e-6 * (1 + abs(value))
    assert certificate.primal >= value - 1e-6 * (1 + abs(value))
    assert certificate.violation >= 0


def test_offset_minimises_the_primal_at_the_optimum():
    problem = overlapping()
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)

    def primal(offset):
        slack = problem.linear - problem.matrix.matvec(dual) - offset
        return 0.5 * certificate.squared_norm + conjugate(problem, slack).sum()

    best = minimize_scalar(primal, bounds=(-2, 2), method="bounded", options={"xatol": 1e-10})
    assert primal(certificate.offset[0]) == pytest.approx(best.fun, rel=1e-6)


def test_two_samples_by_hand():
    # x = 0 and 1, w = 2, f = 2x − 1, so α = 2 for both, ‖w‖² = 4, both on the margin.
    certificate = certify(two_samples(), np.array([-2.0, 2.0]))
    assert certificate.dual == pytest.approx(2.0)
    assert certificate.primal == pytest.approx(2.0)
    assert certificate.offset[0] == pytest.approx(-1.0)
    assert certificate.squared_norm == pytest.approx(4.0)
    assert certificate.violation == pytest.approx(0.0)


def test_offset_interval_when_nothing_is_free():
    K = np.diag([1.0, 1.0])
    problem = DualProblem(
        PrecomputedMatrix(K),
        linear=np.array([1.0, -1.0]),
        lower=np.array([0.0, -0.25]),
        upper=np.array([0.25, 0.0]),
    )
    certificate = certify(problem, np.array([0.25, -0.25]))
    np.testing.assert_allclose(certificate.offset_interval, [[-0.75, 0.75]])
    assert certificate.offset[0] == pytest.approx(0.0)
    assert certificate.violation == 0
    assert certificate.gap == pytest.approx(0.0)


def test_hard_margin_has_a_finite_certificate_short_of_the_margin():
    problem = hard_margin()
    _, dual = solve_quadratic_program(problem)
    exact = certify(problem, np.clip(dual, problem.lower, problem.upper))
    shorter = certify(problem, 0.999 * np.clip(dual, problem.lower, problem.upper))
    assert np.isfinite(shorter.primal)
    assert shorter.primal >= exact.dual
    assert shorter.gap == pytest.approx(shorter.primal - shorter.dual, rel=1e-6)


def test_str():
    text = str(certify(two_samples(), np.array([-2.0, 2.0])))
    assert text.startswith("primal 2, dual 2, gap ")
    assert "array" not in repr(certify(two_samples(), np.array([-2.0, 2.0])))


def test_a_share_of_the_gap_that_overflows_is_infinite():
    upper = np.full(2, 1e250)
    problem = DualProblem(PrecomputedMatrix(np.eye(2)), np.ones(2), np.zeros(2), upper)
    dual = np.array([1e200, 0.0])
    np.testing.assert_array_equal(residuals(problem, dual, np.array([1e200, -1.0])), [np.inf, 0.0])
    certificate = certify(problem, dual)
    assert (certificate.primal, certificate.dual, certificate.gap) == (np.inf, -np.inf, np.inf)
    assert not np.isnan(certificate.residual).any()
