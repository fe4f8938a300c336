"""The start from nested samples: when it is used, and what it saves."""

from itertools import pairwise

import numpy as np
import pytest

from maxmargin.backends.host_state import HostState
from maxmargin.backends.native_backend import NativeBackend
from maxmargin.backends.selection import place_at_bounds
from maxmargin.datasets import chessboard
from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import BlockSolver, StoppingRule, Trace
from maxmargin.solvers.block.nested_start import (
    bounded_fraction,
    can_start_nested,
    expects_few_support_vectors,
    filled_fraction,
    nested_samples,
)


def noisy_chessboard(size):
    """Return a problem most of whose support vectors are bounded."""
    X, y = chessboard(size, noise=0.3)
    signs = np.where(y > 0, 1.0, -1.0)
    return c_classification.pose(KernelMatrix(Gaussian(1.0), Points(X)), signs, np.full(size, 1.0))


def clouds(size, distance, gamma, cost):
    random = np.random.default_rng(0)
    signs = np.where(np.arange(size) % 2, 1.0, -1.0)
    X = random.normal(size=(size, 6)) + 0.5 * distance * signs[:, None]
    return c_classification.pose(KernelMatrix(Gaussian(gamma), Points(X)), signs, np.full(size, cost))


@pytest.fixture
def starts(monkeypatch):
    """Return the sizes of the problems that are started at bounds."""
    sizes, start_at_bounds = [], NativeBackend.start_at_bounds

    def record(backend, problem, columns, weights):
        sizes.append(problem.size)
        return start_at_bounds(backend, problem, columns, weights)

    monkeypatch.setattr(NativeBackend, "start_at_bounds", record)
    return sizes


class TestGate:
    """The conditions under which the nested start is used."""

    def test_above_the_limit(self, starts):
        BlockSolver(nested_above=4999).solve(noisy_chessboard(5000))
        assert starts == [1250, 5000]

    def test_not_at_the_limit(self, starts):
        BlockSolver(nested_above=5000).solve(noisy_chessboard(5000))
        assert starts == []

    def test_not_from_a_given_start(self, starts):
        problem = noisy_chessboard(5000)
        BlockSolver().solve(problem, start=np.zeros(5000))
        assert starts == []

    def test_not_where_a_slack_has_no_bound_on_its_side(self, starts):
        problem = noisy_chessboard(5000)
        upper = problem.upper.copy()
        upper[np.argmax(upper)] = np.inf
        BlockSolver().solve(DualProblem(problem.matrix, problem.linear, problem.lower, upper))
        assert starts == []

    def test_not_with_a_ridge(self, starts):
        problem = noisy_chessboard(5000)
        ridge = np.zeros(5000)
        ridge[7] = 1.0
        BlockSolver().solve(DualProblem(problem.matrix, problem.linear, problem.lower, problem.upper, ridge))
        assert starts == []

    def test_not_where_few_samples_are_support_vectors(self, starts):
        problem = clouds(5000, distance=2.5, gamma=0.1, cost=1.0)
        solution = BlockSolver().solve(problem)
        assert np.mean(solution.dual != 0) < 0.2
        assert starts == []

    def test_not_where_most_support_vectors_are_free(self, starts):
        problem = clouds(5000, distance=1.0, gamma=2.0, cost=10.0)
        solution = BlockSolver().solve(problem)
        free = (problem.lower < solution.dual) & (solution.dual < problem.upper)
        assert np.mean(solution.dual != 0) > 0.5
        assert free.sum() > 0.5 * np.count_nonzero(solution.dual)
        assert starts == []

    def test_not_where_a_sample_takes_many_steps(self, starts, monkeypatch):
        monkeypatch.setattr("maxmargin.solvers.block.nested_start.MAX_SAMPLE_STEPS_PER_VARIABLE", 0)
        problem = noisy_chessboard(5000)
        solution = BlockSolver().solve(problem)
        assert solution.status is Status.CONVERGED
        assert starts == []

    def test_conditions_on_the_problem(self):
        problem = noisy_chessboard(500)
        matrix, linear, lower, upper = problem.matrix, problem.linear, problem.lower, problem.upper
        assert can_start_nested(problem)
        assert not can_start_nested(DualProblem(matrix, linear, lower, np.where(upper > 0, np.inf, 0.0)))
        assert not can_start_nested(DualProblem(matrix, linear, lower, upper, ridge=np.full(500, 0.1)))
        for groups, possible in ((2, True), (3, False)):  # a sample must have members of every group
            group = (np.arange(500) % groups).astype(np.int32)
            grouped = DualProblem(matrix, linear, lower, upper, group=group, total=np.zeros(groups))
            assert can_start_nested(grouped) is possible

    @pytest.mark.parametrize(("positive", "few"), [(50, False), (16, False), (14, True), (86, True), (0, True)])
    def test_classes_of_uneven_size_have_few_support_vectors(self, positive, few):
        signs = np.repeat([1.0, -1.0], [positive, 100 - positive])
        matrix, lower, upper = PrecomputedMatrix(np.eye(100)), np.minimum(signs, 0.0), np.maximum(signs, 0.0)
        problem = DualProblem(matrix, signs, lower, upper)
        assert expects_few_support_vectors(problem) is few
        unbounded = DualProblem(matrix, signs, np.where(lower < 0, -np.inf, 0.0), np.where(upper > 0, np.inf, 0.0))
        assert not expects_few_support_vectors(unbounded)

    @pytest.mark.parametrize(("total", "few"), [(20.0, True), (40.0, False)])
    def test_the_sum_of_one_class_is_the_number_of_its_support_vectors(self, total, few):
        zero, one = np.zeros(100), np.ones(100)
        problem = DualProblem(PrecomputedMatrix(np.eye(100)), zero, zero, one, total=np.array([total]))
        assert expects_few_support_vectors(problem) is few

    @pytest.mark.parametrize(("bounded", "free"), [(31, 0), (20, 19), (0, 40), (0, 0)])
    def test_the_fraction_of_a_sample_at_a_bound(self, bounded, free):
        problem = DualProblem(
            PrecomputedMatrix(np.eye(100)), np.zeros(100), np.zeros(100), np.ones(100), total=np.ones(1)
        )
        dual = np.zeros(100)
        dual[:bounded], dual[bounded : bounded + free] = 1.0, 0.5
        assert bounded_fraction(problem, dual) == bounded / 100

    def test_the_fraction_that_sums_keep_at_bounds(self):
        matrix, zero, group = PrecomputedMatrix(np.eye(100)), np.zeros(100), np.repeat(np.int32([0, 1]), 50)
        signs = np.repeat([1.0, -1.0], 50)
        lower, upper = np.minimum(signs, 0.0), np.maximum(signs, 0.0)
        problem = DualProblem(matrix, zero, lower, upper, group=group, total=np.array([10.0, -10.0]))
        assert filled_fraction(problem) == 0.2
        assert filled_fraction(DualProblem(matrix, signs, lower, upper)) == 0.0
        assert filled_fraction(DualProblem(matrix, signs, zero, zero)) == 0.0


def test_samples_are_nested():
    samples = nested_samples(20_000)
    assert [len(sample) for sample in samples] == [1250, 5000]
    for smaller, larger in pairwise(samples):
        assert set(smaller) <= set(larger)
    assert [len(sample) for sample in nested_samples(1600)] == [400]


def test_fewer_rounds_on_noise():
    problem = noisy_chessboard(8000)
    nested, cold = BlockSolver().solve(problem), BlockSolver(nested_above=10**9).solve(problem)
    assert nested.counters.rounds < cold.counters.rounds
    assert certify(problem, nested.dual).dual == pytest.approx(certify(problem, cold.dual).dual, rel=1e-4)


def half_of_the_mass(size, sums):
    """Return a problem of clouds whose positive and negative variables each have a fixed sum, if any."""
    problem = clouds(size, distance=1.0, gamma=0.2, cost=1.0)
    group = (problem.linear < 0).astype(np.int32)
    total = 0.1 * size * np.array([1.0, -1.0]) if sums == 2 else np.array([0.2 * size])
    if sums == 2:
        return DualProblem(problem.matrix, np.zeros(size), problem.lower, problem.upper, group=group, total=total)
    return DualProblem(problem.matrix, np.zeros(size), np.zeros(size), np.ones(size), total=total)


@pytest.mark.parametrize("sums", [1, 2])
def test_where_zero_is_not_feasible_a_sample_chooses_the_variables_at_bounds(starts, sums):
    problem = half_of_the_mass(5000, sums)
    nested, cold = BlockSolver().solve(problem), BlockSolver(nested_above=10**9).solve(problem)
    assert starts[-1] == 5000
    assert nested.counters.kernel_evaluations < cold.counters.kernel_evaluations
    assert certify(problem, nested.dual).violation <= 1e-3
    assert certify(problem, nested.dual).dual == pytest.approx(certify(problem, cold.dual).dual, rel=1e-4)


def test_without_a_start_at_bounds_the_gradient_of_the_first_point_is_computed(starts, monkeypatch):
    problem = half_of_the_mass(5000, 2)
    monkeypatch.setattr("maxmargin.solvers.block.nested_start.bounded_fraction", lambda problem, dual: 0.0)
    solution = BlockSolver().solve(problem)
    assert starts == []
    assert certify(problem, solution.dual).violation <= 1e-3


def test_a_trace_starts_after_the_samples_where_zero_is_not_feasible():
    problem = half_of_the_mass(5000, 2)
    solution = BlockSolver().solve(problem, callback=Trace(points=True))
    assert solution.trace[0].iteration > 0
    assert np.isfinite([entry.primal for entry in solution.trace]).all()
    assert (solution.dual == BlockSolver().solve(problem).dual).all()


def test_an_interruption_before_the_first_sample_leaves_a_known_gradient(monkeypatch):
    def interrupted(problem, sample):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.solvers.block.nested_start.pose_sample", interrupted)
    problem = half_of_the_mass(5000, 2)
    solution = BlockSolver().solve(problem)
    assert solution.status is Status.INTERRUPTED
    assert np.allclose(solution.gradient, problem.linear - problem.matrix.matvec(solution.dual), atol=1e-3)


def test_the_solution_of_a_sample_is_kept_at_a_limit(monkeypatch):
    problem = noisy_chessboard(5000)
    early = BlockSolver(stopping=StoppingRule(max_iterations=30)).solve(problem)
    assert early.status is Status.MAX_ITERATIONS

    def interrupted(problem, slack):
        if problem.size == 5000:
            raise KeyboardInterrupt
        return place_at_bounds(problem, slack)

    monkeypatch.setattr("maxmargin.backends.native_backend.place_at_bounds", interrupted)
    late = BlockSolver().solve(problem)
    assert late.status is Status.INTERRUPTED
    values = [certify(problem, solution.dual).dual for solution in (early, late)]
    assert 0 < values[0] < values[1]
    for solution in (early, late):
        assert np.allclose(solution.gradient, problem.linear - problem.matrix.matvec(solution.dual), atol=1e-3)
        assert abs(solution.dual.sum()) < 1e-9
    decisions = problem.linear - late.gradient + certify(problem, late.dual).offset[0]
    assert np.mean(np.sign(decisions) == problem.linear) > 0.6  # at most 0.7 is possible


def test_limits_and_callbacks_end_a_nested_start():
    problem = clouds(2200, distance=0.6, gamma=0.2, cost=1.0)
    rule = StoppingRule(max_iterations=5)
    solution = BlockSolver(nested_above=1000, stopping=rule).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.counters.iterations == 5
    stopped = BlockSolver(nested_above=1000).solve(problem, callback=lambda _: True)
    assert stopped.status is Status.STOPPED
    assert certify(problem, stopped.dual).infeasibility < 1e-9


def test_a_sample_whose_bounds_do_not_allow_the_sum_is_skipped(starts):
    upper = np.random.default_rng(1).random(2200)
    problem = DualProblem(
        matrix=clouds(2200, distance=0.6, gamma=0.2, cost=1.0).matrix, linear=np.zeros(2200), lower=np.zeros(2200),
        upper=upper, total=np.array([0.9999 * upper.sum()]),
    )  # fmt: skip
    solution = BlockSolver(nested_above=1000).solve(problem)
    assert starts == []
    assert certify(problem, solution.dual).violation <= 1e-3


def test_only_the_whole_solution_is_audited(starts, monkeypatch):
    sizes, audit = [], HostState.audit
    monkeypatch.setattr(HostState, "audit", lambda state: (sizes.append(state.active), audit(state))[1])
    problem = noisy_chessboard(5000)
    solution = BlockSolver().solve(problem)
    assert starts == [1250, 5000]
    assert sizes == [5000]
    assert certify(problem, solution.dual).violation <= 1e-3
