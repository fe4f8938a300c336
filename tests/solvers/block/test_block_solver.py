from itertools import pairwise

import numpy as np
import pytest

from contracts.solver_contract import SolverContract
from maxmargin import _native
from maxmargin.backends.native_backend import NativeState
from maxmargin.backends.selection import place_at_bounds
from maxmargin.datasets import chessboard
from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.matrices import Float32RowCache, KernelMatrix, PrecomputedMatrix
from maxmargin.matrices.float32_row_cache import REQUESTS_UNTIL_STALE
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule
from maxmargin.solvers.block.nested_start import nested_samples
from reference import one_group as reference


class BlockContract(SolverContract):
    gradient_accuracy = 1e-5  # rows are in single precision


class TestBlock(BlockContract):
    def make(self, stopping):
        return BlockSolver(stopping=stopping)


class TestSmallBlocks(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=8, stopping=stopping)


class TestPairs(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=2, stopping=stopping)


class TestWithoutMemory(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, cache_bytes=0, stopping=stopping)


class TestWithoutShrinking(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, shrinking=False, stopping=stopping)


class TestTwoThreads(BlockContract):
    def make(self, stopping):
        return BlockSolver(working_set=16, threads=2, stopping=stopping)


def blobs(n, d=6, seed=0, noise=1.5):
    random = np.random.default_rng(seed)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    return random.normal(size=(n, d)) * noise + 0.5 * signs[:, None], signs


def posed(n, cost=1.0, kernel=None, threads=1, **options):
    X, signs = blobs(n, **options)
    matrix = KernelMatrix(kernel or Gaussian(0.1), Points(X), threads)
    return c_classification.pose(matrix, signs, np.full(n, float(cost)))


@pytest.mark.parametrize("n", [2, 5, 40, 130])
def test_steps_on_single_precision_rows_are_those_of_the_twin(n):
    problem = posed(n, cost=3.0)
    matrix = problem.matrix.block(np.arange(n), np.arange(n)).astype(np.float32)
    ridge = np.full(n, 0.01)
    expected, dual = reference.steps(matrix, problem.linear, problem.lower, problem.upper, ridge, 1e-3, 60)
    mine, gradient, path = np.zeros(n), problem.linear.copy(), []
    for _ in range(len(expected)):
        before = mine.copy()
        _native.pairwise_steps(
            _native.BoxProblem(
                lower=problem.lower, upper=problem.upper, ridge=ridge, group=np.zeros(n, np.int32), groups=1
            ),
            _native.PairwiseState(
                dual=mine, gradient=gradient, diagonal=matrix.diagonal().astype(float) + ridge, active=n
            ),
            _native.CachedRows(
                storage=matrix, slot=np.arange(n), valid=np.full(n, n), last_use=np.zeros(n, np.int64), clock=0
            ),
            _native.PairSelection(rule=1, memory=np.full(4, -1), violation=np.inf),
            _native.StepLimits(tolerance=1e-3, max_steps=1, max_seconds=10.0),
        )
        path.append((int(np.argmax(mine - before)), int(np.argmin(mine - before))))
    assert path == expected
    np.testing.assert_allclose(mine, dual, atol=1e-12)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Linear(), Polynomial(3, 0.2, 1.0), Laplacian(0.1), Sigmoid(0.01, 0.0)]
)
def test_agrees_with_the_pairwise_solver(kernel):
    problem = posed(700, cost=2.0, kernel=kernel)
    rule = StoppingRule(violation=1e-4)
    block = certify(problem, BlockSolver(working_set=64, stopping=rule).solve(problem).dual)
    pairwise = certify(problem, PairwiseSolver(stopping=rule).solve(problem).dual)
    assert block.violation <= 1e-4
    assert block.dual == pytest.approx(pairwise.dual, rel=1e-5)


def test_the_result_does_not_depend_on_threads():
    results = [BlockSolver(threads=k).solve(posed(6000, threads=k)).dual for k in (1, 2, 3)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_it_is_repeatable():
    problem = posed(5000)
    np.testing.assert_array_equal(BlockSolver().solve(problem).dual, BlockSolver().solve(problem).dual)


@pytest.mark.parametrize("share", [1.0, 0.1, 0.01])
def test_little_memory_makes_it_slower_not_wrong(share):
    problem = posed(3500, cost=10.0, noise=1.0)
    solution = BlockSolver(cache_bytes=int(share * 4 * problem.size**2), nested_above=10**9).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


def test_shrinking_repacks_and_looks_again():
    problem = posed(4000, cost=1.0, noise=1.0)
    with_shrinking = BlockSolver(nested_above=10**9).solve(problem)
    without = BlockSolver(shrinking=False, nested_above=10**9).solve(problem)
    assert certify(problem, with_shrinking.dual).violation <= 1e-3
    assert certify(problem, with_shrinking.dual).dual == pytest.approx(certify(problem, without.dual).dual, rel=1e-4)


class TestFloat32RowCache:
    def test_rows_and_squares(self):
        problem = posed(300)
        store = Float32RowCache(problem.matrix, 10**8, 1)
        everything = problem.matrix.block(np.arange(300), np.arange(300))
        store.hold(np.array([5, 9, 7]))
        np.testing.assert_allclose(store.storage[store.slot[[5, 9, 7]]], everything[[5, 9, 7]], atol=1e-6)
        order = store.cached_last(np.array([0, 9, 1, 5]))
        np.testing.assert_array_equal(order, [0, 1, 9, 5])
        square = np.empty((4, 4), dtype=np.float32)
        store.square(order, square)
        np.testing.assert_allclose(square, everything[np.ix_(order, order)], atol=1e-6)
        assert store.evaluations == 3 * 300 + 2 * 2

    @pytest.mark.parametrize("rows_that_fit", [0, 3, 300])
    def test_combinations_at_any_size(self, rows_that_fit):
        problem = posed(300, d=100)
        store = Float32RowCache(problem.matrix, rows_that_fit * 300 * 4, 1)
        assert store.capacity == rows_that_fit
        weights = np.linspace(-1.0, 1.0, 40)
        expected = problem.matrix.block(np.arange(300), np.arange(40)) @ weights
        for _ in range(2):
            np.testing.assert_allclose(store.combine(np.arange(40), weights), expected, atol=1e-5)
        assert store.hits == min(40, rows_that_fit)

    def test_cheap_rows_are_computed_again(self):
        problem = posed(300, d=3)
        store = Float32RowCache(problem.matrix, 10**8, 1)
        for _ in range(2):
            store.combine(np.arange(40), np.ones(40))
        assert store.evaluations == 2 * 40 * 300

    def test_rows_in_use_are_kept_and_others_make_room(self):
        problem = posed(50)
        store = Float32RowCache(problem.matrix, 3 * 50 * 4, 1)
        store.hold(np.array([1, 2, 3]))
        store.hold(np.array([4]))
        assert store.slot[4] == -1
        for _ in range(REQUESTS_UNTIL_STALE):
            store.hold(np.array([1, 2]))
        store.hold(np.array([4]))
        assert (store.slot[[1, 2, 4]] >= 0).all()
        assert store.slot[3] == -1


def test_closing_subproblems_updates_gradient_and_dual_value():
    problem = posed(200, cost=3.0)
    state = NativeState(problem, 10**8, 1)
    state.set_dual(np.zeros(200))
    outer = state.open_subproblem(np.arange(0, 200, 3))
    part = outer.restricted(np.arange(10, 50))
    state.open_subproblems.append(part)
    part.pair_steps(1e-3, 10**6, 10.0)
    state.close(part)
    state.close(outer)
    assert np.count_nonzero(state.dual) > 10
    np.testing.assert_allclose(state.gradient, problem.gradient(state.dual), atol=1e-5)
    np.testing.assert_allclose(outer.gradient, state.gradient[outer.variables], atol=1e-6)
    value = 0.5 * state.dual @ (problem.linear + state.gradient)
    assert state.dual_value == pytest.approx(value, rel=1e-6)


def test_more_free_variables_than_a_square_has_room_for():
    X, signs = blobs(1200, d=40)
    problem = c_classification.pose(KernelMatrix(Gaussian(0.02), Points(X)), signs, np.full(1200, 50.0))
    wide = BlockSolver(working_set=64).solve(problem)
    assert wide.status is Status.CONVERGED
    assert np.count_nonzero((problem.lower < wide.dual) & (wide.dual < problem.upper)) > 64
    assert certify(problem, wide.dual).violation <= 1e-3
    assert wide.counters.rounds < BlockSolver(working_set=64, cache_bytes=0).solve(problem).counters.rounds


class TestNestedStart:
    def noise(self, size):
        X, y = chessboard(size, noise=0.3)
        signs = np.where(y > 0, 1.0, -1.0)
        return c_classification.pose(KernelMatrix(Gaussian(1.0), Points(X)), signs, np.full(size, 1.0))

    def test_samples_are_nested(self):
        samples = nested_samples(20_000)
        assert [len(sample) for sample in samples] == [1250, 5000]
        for smaller, larger in pairwise(samples):
            assert set(smaller) <= set(larger)

    def test_place_fills_up_from_the_largest_slack(self):
        problem = posed(100, cost=2.0)
        slack = np.random.default_rng(0).normal(size=100)
        dual = place_at_bounds(problem, slack)
        assert abs(dual.sum()) < 1e-12
        assert ((problem.lower <= dual) & (dual <= problem.upper)).all()
        between = (dual > problem.lower) & (dual < problem.upper)
        assert between.sum() <= 1
        assert slack[dual == problem.upper].min() >= slack[dual == problem.lower].max()

    def test_what_a_sample_has_taught_is_kept(self, monkeypatch):
        problem = self.noise(5000)
        tight = BlockSolver(stopping=StoppingRule(max_iterations=30)).solve(problem)
        assert tight.status is Status.MAX_ITERATIONS

        def interrupted(problem, slack):
            if problem.size == 5000:
                raise KeyboardInterrupt
            return place_at_bounds(problem, slack)

        monkeypatch.setattr("maxmargin.backends.native_backend.place_at_bounds", interrupted)
        late = BlockSolver().solve(problem)
        assert late.status is Status.INTERRUPTED
        values = [certify(problem, solution.dual).dual for solution in (tight, late)]
        assert 0 < values[0] < values[1]
        for solution in (tight, late):
            assert np.allclose(solution.gradient, problem.linear - problem.matrix.matvec(solution.dual), atol=1e-3)
            assert abs(solution.dual.sum()) < 1e-9
        decisions = problem.linear - late.gradient
        assert (
            np.mean(np.sign(decisions + certify(problem, late.dual).offset[0]) == problem.linear) > 0.6
        )  # 0.7 is the best there is

    def test_it_saves_rounds_on_noise(self):
        problem = self.noise(8000)
        nested, cold = BlockSolver().solve(problem), BlockSolver(nested_above=10**9).solve(problem)
        assert nested.counters.rounds < cold.counters.rounds
        assert certify(problem, nested.dual).dual == pytest.approx(certify(problem, cold.dual).dual, rel=1e-4)


@pytest.mark.parametrize("cost", [1e3, 1e5])
def test_large_costs_are_certified(cost):
    X, y = chessboard(2500)
    signs = np.where(y > 0, 1.0, -1.0)
    problem = c_classification.pose(KernelMatrix(Gaussian(0.5), Points(X)), signs, np.full(2500, cost))
    solution = BlockSolver().solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


def test_values_too_large_for_single_precision_are_left_to_double():
    X, signs = blobs(300)
    problem = c_classification.pose(KernelMatrix(Polynomial(3, 1.0, 0.0), Points(X * 1e7)), signs, np.full(300, 1.0))
    assert problem.matrix.diagonal().max() > 3.4e38
    rule = StoppingRule(violation=1e-3, max_iterations=20_000)
    expected = PairwiseSolver(stopping=rule).solve(problem)
    solution = BlockSolver(stopping=rule).solve(problem)
    assert solution.status is expected.status
    np.testing.assert_array_equal(solution.dual, expected.dual)


def test_a_working_set_of_one_is_an_error():
    with pytest.raises(ValueError, match="at least 2"):
        BlockSolver(working_set=1)


class TestHardCases:
    """Each of these went wrong once."""

    def test_a_matrix_with_values_that_are_not_numbers_is_an_error(self):
        X, signs = blobs(200)
        K = X @ X.T
        K[0, 100] = K[100, 0] = np.nan
        problem = c_classification.pose(PrecomputedMatrix(K), signs, np.ones(200))
        for cache_bytes in (2**30, 0):
            with pytest.raises(ValueError, match="not finite"):
                BlockSolver(cache_bytes=cache_bytes, stopping=StoppingRule(max_seconds=20.0)).solve(problem)

    def test_limits_hold_in_a_nested_start(self):
        problem = posed(2200)
        rule = StoppingRule(max_iterations=5)
        solution = BlockSolver(nested_above=1000, stopping=rule).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations == 5
        stopped = BlockSolver(nested_above=1000).solve(problem, callback=lambda _: True)
        assert stopped.status is Status.STOPPED
        assert certify(problem, stopped.dual).infeasibility < 1e-9

    def test_one_open_bound_among_many_is_not_called_unbounded(self):
        X, signs = blobs(1500)
        costs = np.full(1500, 5.0)
        costs[7] = np.inf
        problem = c_classification.pose(KernelMatrix(Gaussian(0.1), Points(X)), signs, costs)
        assert BlockSolver().solve(problem).status is Status.CONVERGED

    def test_near_duplicates_of_a_hard_margin(self):
        X = np.array([[0.0], [1e-4], [1.0], [-1.0], [2.0], [-2.0]])
        signs = np.array([-1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
        problem = c_classification.pose(KernelMatrix(Gaussian(1.0), Points(X)), signs, np.full(6, np.inf))
        solution, expected = BlockSolver().solve(problem), PairwiseSolver().solve(problem)
        assert solution.status is expected.status is Status.CONVERGED
        assert certify(problem, solution.dual).dual == pytest.approx(certify(problem, expected.dual).dual, rel=1e-6)

    def test_the_gap_counts_what_was_left_out(self):
        problem = posed(3000, noise=1.0)
        solution = BlockSolver(stopping=StoppingRule(violation=1e-9, gap=20.0)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).gap <= 20.5
        assert solution.counters.iterations < BlockSolver().solve(problem).counters.iterations

    def test_a_sample_that_cannot_meet_the_sum_is_no_obstacle(self):
        random = np.random.default_rng(1)
        upper = random.random(2200)
        problem = DualProblem(
            matrix=posed(2200).matrix, linear=np.zeros(2200), lower=np.zeros(2200), upper=upper,
            total=np.array([0.9999 * upper.sum()]),
        )  # fmt: skip
        solution = BlockSolver(nested_above=1000).solve(problem)
        assert certify(problem, solution.dual).violation <= 1e-3

    def test_a_place_for_a_sum_that_rounds_below_its_least(self):
        problem = DualProblem(
            matrix=posed(3).matrix, linear=np.zeros(3), lower=np.array([0.1, 0.2, 0.3]), upper=np.ones(3),
            total=np.array([np.nextafter(0.6, 0)]),
        )  # fmt: skip
        np.testing.assert_allclose(place_at_bounds(problem, np.zeros(3)), [0.1, 0.2, 0.3])

    def test_stopped_while_shrunk(self):
        problem = posed(1500, cost=100.0, kernel=Gaussian(0.2))
        rule = StoppingRule(violation=1e-4, max_iterations=5000)
        solution = BlockSolver(stopping=rule).solve(problem)
        low, high = offset_bounds(problem, solution.dual, solution.gradient)
        truth = certify(problem, solution.dual)
        assert abs(0.5 * (low + high)[0] - truth.offset[0]) <= truth.violation


def test_variables_in_no_group_violate_by_their_own_gradient():
    """Not by the difference of two of them, which no step can act on: rounds without steps would never end."""
    X, signs = blobs(400)
    problem = c_classification.pose(KernelMatrix(Gaussian(0.1), Points(X)), signs, np.ones(400), fit_intercept=False)
    state = NativeState(problem, 2**20, 1)
    state.set_dual(np.where(signs > 0, 0.3, -0.3))
    up, down = state.kkt_violations()
    assert max(up.max(), down.max()) == pytest.approx(certify(problem, state.dual).violation, abs=1e-5)
