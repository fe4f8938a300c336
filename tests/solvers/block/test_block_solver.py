import numpy as np
import pytest

from maxmargin.backends.host_state import HostState
from maxmargin.datasets import chessboard
from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.problems import Status, certify
from maxmargin.problems.gradient_extremes import offset_bounds
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule
from maxmargin.testing.solver_contract import SolverContract


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


def test_solves_are_repeatable():
    problem = posed(5000)
    np.testing.assert_array_equal(BlockSolver().solve(problem).dual, BlockSolver().solve(problem).dual)


@pytest.mark.parametrize("fraction", [1.0, 0.1, 0.01])
def test_converges_with_little_memory(fraction):
    problem = posed(3500, cost=10.0, noise=1.0)
    solution = BlockSolver(cache_bytes=int(fraction * 4 * problem.size**2), nested_above=10**9).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


def test_shrinking_reaches_the_same_optimum():
    problem = posed(4000, cost=1.0, noise=1.0)
    with_shrinking = BlockSolver(nested_above=10**9).solve(problem)
    without = BlockSolver(shrinking=False, nested_above=10**9).solve(problem)
    assert certify(problem, with_shrinking.dual).violation <= 1e-3
    assert certify(problem, with_shrinking.dual).dual == pytest.approx(certify(problem, without.dual).dual, rel=1e-4)


def test_more_free_variables_than_a_working_set_holds():
    X, signs = blobs(1200, d=40)
    problem = c_classification.pose(KernelMatrix(Gaussian(0.02), Points(X)), signs, np.full(1200, 50.0))
    solution = BlockSolver(working_set=64).solve(problem)
    assert solution.status is Status.CONVERGED
    assert np.count_nonzero((problem.lower < solution.dual) & (solution.dual < problem.upper)) > 64
    assert certify(problem, solution.dual).violation <= 1e-3
    assert solution.counters.rounds < BlockSolver(working_set=64, cache_bytes=0).solve(problem).counters.rounds


@pytest.mark.parametrize("cost", [1e3, 1e5])
def test_large_costs_are_certified(cost):
    X, y = chessboard(2500)
    signs = np.where(y > 0, 1.0, -1.0)
    problem = c_classification.pose(KernelMatrix(Gaussian(0.5), Points(X)), signs, np.full(2500, cost))
    solution = BlockSolver().solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


def test_values_beyond_single_precision_are_solved_in_double_precision():
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


class TestRegressions:
    """Cases that failed in earlier versions."""

    def test_a_matrix_with_nan_is_an_error(self):
        X, signs = blobs(200)
        K = X @ X.T
        K[0, 100] = K[100, 0] = np.nan
        problem = c_classification.pose(PrecomputedMatrix(K), signs, np.ones(200))
        for cache_bytes in (2**30, 0):
            with pytest.raises(ValueError, match="not finite"):
                BlockSolver(cache_bytes=cache_bytes, stopping=StoppingRule(max_seconds=20.0)).solve(problem)

    def test_one_infinite_bound_among_many_is_not_unbounded(self):
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

    def test_the_gap_counts_shrunk_variables(self):
        problem = posed(3000, noise=1.0)
        solution = BlockSolver(stopping=StoppingRule(violation=1e-9, gap=20.0)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).gap <= 20.5
        assert solution.counters.iterations < BlockSolver().solve(problem).counters.iterations

    def test_offset_after_a_limit_while_variables_are_shrunk(self):
        problem = posed(1500, cost=100.0, kernel=Gaussian(0.2))
        rule = StoppingRule(violation=1e-4, max_iterations=5000)
        solution = BlockSolver(stopping=rule).solve(problem)
        low, high = offset_bounds(problem, solution.dual, solution.gradient)
        truth = certify(problem, solution.dual)
        assert abs(0.5 * (low + high)[0] - truth.offset[0]) <= truth.violation


def uneven_clouds(positive, negative, distance):
    random = np.random.default_rng(0)
    signs = np.repeat([1.0, -1.0], [positive, negative])
    X = random.normal(size=(len(signs), 4)) + distance * (signs[:, None] > 0)
    return c_classification.pose(KernelMatrix(Gaussian(0.1), Points(X)), signs, np.full(len(signs), 10.0))


@pytest.mark.parametrize(("positive", "negative"), [(20, 5000), (50, 3000), (3000, 3)])
def test_few_support_vectors_need_few_kernel_values(positive, negative):
    problem = uneven_clouds(positive, negative, distance=3.0)
    solution = BlockSolver().solve(problem)
    support = np.count_nonzero(solution.dual)
    assert solution.status is Status.CONVERGED
    assert support < 0.05 * problem.size
    assert solution.counters.kernel_evaluations < 10 * problem.size * support + 256**2
    assert certify(problem, solution.dual).violation <= 1e-3


def test_the_whole_follows_a_small_first_working_set_of_which_most_has_changed(monkeypatch):
    problem = uneven_clouds(1300, 1300, distance=0.3)
    sizes = []
    monkeypatch.setattr(
        "maxmargin.backends.host_state.HostState._open",
        lambda state, part, open_=HostState._open: sizes.append(part.active) or open_(state, part),
    )
    solution = BlockSolver().solve(problem)
    assert solution.status is Status.CONVERGED
    assert np.count_nonzero(solution.dual) > 0.5 * problem.size
    assert sizes == [256, 2600]


def test_a_settled_subproblem_is_solved_to_the_end(monkeypatch):
    problem = uneven_clouds(20, 5000, distance=3.0)
    refined = BlockSolver().solve(problem)
    monkeypatch.setattr("maxmargin.solvers.block.block_solver.SETTLED_FACTOR", 0.0)
    plain = BlockSolver().solve(problem)
    assert refined.counters.rounds < plain.counters.rounds
    assert refined.value == pytest.approx(plain.value, rel=1e-4)
