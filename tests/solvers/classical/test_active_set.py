import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.kernels import Gaussian, Linear
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import ActiveSetSolver, PairwiseSolver, StoppingRule, Trace
from maxmargin.solvers.classical.active_set import _ActiveSetRun
from maxmargin.solvers.classical.reduced_cholesky import ReducedCholesky
from maxmargin.testing.named_problems import BOXLESS, LINEAR, classification, hard_to_finish, overlapping, two_clouds
from maxmargin.testing.solver_contract import SolverContract


class TestActiveSet(SolverContract):
    def make(self, stopping):
        return ActiveSetSolver(stopping=stopping)


class TestWithoutRoomForRows(SolverContract):
    def make(self, stopping):
        return ActiveSetSolver(cache_bytes=1, stopping=stopping)


@pytest.mark.parametrize("name", [*BOXLESS, *LINEAR])
def test_other_problems(name):
    problem = {**LINEAR, **BOXLESS}[name]()
    solution = ActiveSetSolver(stopping=StoppingRule(violation=1e-6)).solve(problem)
    assert solution.status is Status.CONVERGED
    everything = np.arange(problem.size)
    sums = np.abs(problem.matrix.block(everything, everything)) @ np.abs(solution.dual)
    assert certify(problem, solution.dual).violation <= 1e-6 + 1e-15 * sums.max()


def factor_of(size, groups, seed):
    """A problem with several groups and some variables in none, a ridge on some, and an empty factor."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(size, size + 2))
    problem = DualProblem(
        PrecomputedMatrix(features @ features.T),
        linear=random.normal(size=size),
        lower=np.full(size, -np.inf),
        upper=np.full(size, np.inf),
        ridge=random.integers(0, 2, size) * 0.5,
        group=random.integers(-1, groups, size).astype(np.int32),
        total=np.zeros(groups),
    )
    return problem, ReducedCholesky(problem, LazyRowCache(problem.matrix, 10**8))


def check_factor(problem, factor):
    Z = np.array([factor.expand(row) for row in np.eye(len(factor.independent))]).reshape(-1, problem.size).T
    assert np.abs(problem.group_sums(Z.sum(axis=1))).max(initial=0.0) < 1e-12
    H = problem.matrix.values + np.diag(problem.ridge)
    system = Z.T @ H @ Z
    np.testing.assert_allclose(factor._triangle.T @ factor._triangle, system, atol=1e-9)
    np.testing.assert_allclose(np.tril(factor._triangle, -1), 0.0, atol=1e-12)
    np.testing.assert_allclose(system @ factor.solve(factor.reduce(problem.linear)), Z.T @ problem.linear, atol=1e-7)


@given(st.integers(0, 2**31), st.integers(0, 3), st.lists(st.integers(0, 11), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_updates_equal_a_factorisation(seed, groups, calls):
    """Variables enter and leave: independent ones, eliminated ones, the last of a group."""
    problem, factor = factor_of(12, groups, seed)
    for variable in calls:
        group = problem.group[variable]
        if variable in factor.free:
            factor.remove(variable)
        elif group >= 0 and factor.eliminated[group] < 0:
            factor.eliminated[group] = variable
        else:
            assert factor.append(variable) is None
        check_factor(problem, factor)


def test_a_factor_from_scratch_leaves_dependent_variables_out():
    problem = classification(np.repeat(two_clouds(10, 2, 1.0)[0], 3, axis=0), np.tile([1, -1], 15), Gaussian(0.5))
    factor = ReducedCholesky(problem, LazyRowCache(problem.matrix, 10**8))
    factor.build(np.arange(30))
    assert len(factor.free) == 10
    flat = factor.append(int(np.setdiff1d(np.arange(30), factor.free)[0]))
    assert flat is not None
    direction = factor.expand(flat, last=int(np.setdiff1d(np.arange(30), factor.free)[0]))
    assert abs(direction.sum()) < 1e-12
    np.testing.assert_allclose(problem.matrix.matvec(direction), 0.0, atol=1e-10)


def test_hard_margin_of_inseparable_data_is_unbounded():
    for problem in (
        classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf),
        classification([[0.0], [0.0]], [-1, 1], Linear(), np.inf),
        classification([[1.0], [-1.0]], [1, 1], Linear(), np.inf, fit_intercept=False),
        classification(*two_clouds(60, 3, 1.0), Linear(), np.inf),
    ):
        assert ActiveSetSolver().solve(problem).status is Status.UNBOUNDED


@given(st.integers(0, 2**31), st.integers(2, 40), st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_ties_and_dependencies_never_cycle(seed, size, cost, bias):
    """Small whole numbers: bounds are met by several variables at once, and samples depend on one another."""
    random = np.random.default_rng(seed)
    X, signs = random.integers(-1, 2, (size, 2)).astype(float), random.choice([-1.0, 1.0], size)
    problem, trace = classification(X, signs, Linear(), cost, fit_intercept=bias), Trace(steps=1)
    solution = ActiveSetSolver(stopping=StoppingRule(violation=1e-8, max_iterations=2000)).solve(
        problem, callback=trace
    )
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-8
    values = np.array([entry.dual for entry in solution.trace])
    assert (np.diff(values) >= -1e-10 * (1.0 + np.abs(values[1:]))).all()


def test_the_optimum_is_exact():
    problem = overlapping()
    solution = ActiveSetSolver(stopping=StoppingRule(violation=1e-6)).solve(problem)
    certificate = certify(problem, solution.dual, extended=True)
    assert certificate.violation < 1e-12
    assert certificate.gap < 1e-11


def test_agrees_with_pair_steps():
    problem = classification(*two_clouds(300, 4, 1.2), Gaussian(0.3), 10.0)
    rule = StoppingRule(violation=1e-5)
    mine, pairs = (kind(stopping=rule).solve(problem) for kind in (ActiveSetSolver, PairwiseSolver))
    assert certify(problem, mine.dual).dual == pytest.approx(certify(problem, pairs.dual).dual, rel=1e-8)


def test_pair_step_if_an_entering_variable_does_not_move(monkeypatch):
    problem = overlapping()
    # As if rounding had spoilt the direction.
    monkeypatch.setattr(_ActiveSetRun, "_entering_direction", lambda self: np.zeros(self.problem.size))
    solution = ActiveSetSolver().solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


def test_progress_counts_the_free_variables():
    problem, trace = overlapping(), Trace(steps=1)
    solution = ActiveSetSolver().solve(problem, callback=trace)
    free = np.count_nonzero((solution.dual > problem.lower) & (solution.dual < problem.upper))
    assert solution.trace[-1].active == free
    assert solution.trace[-1].kernel_evaluations == solution.counters.kernel_evaluations
    assert solution.trace[-1].support_vectors == np.count_nonzero(solution.dual)


def test_ctrl_c_leaves_a_valid_point(monkeypatch):
    plain, calls = ReducedCholesky.remove, []

    def interrupted(self, variable):
        calls.append(variable)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return plain(self, variable)

    monkeypatch.setattr(ReducedCholesky, "remove", interrupted)
    problem = hard_to_finish()
    solution = ActiveSetSolver(stopping=StoppingRule(violation=1e-12)).solve(problem)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual).infeasibility < 1e-9 * np.abs(solution.dual).max()
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-6)


def test_exhausted_precision_is_reported():
    X, signs = two_clouds(60, 2, 0.5)
    problem = classification(X * 1e9, signs, Linear(), 1e6)
    solution = ActiveSetSolver(stopping=StoppingRule(violation=1e-9, max_iterations=10_000)).solve(problem)
    assert solution.status in (Status.PRECISION, Status.MAX_ITERATIONS)
