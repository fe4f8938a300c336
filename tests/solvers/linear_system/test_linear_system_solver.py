import numpy as np
import pytest

from maxmargin.formulations import least_squares_regression
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points, Sigmoid
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.problems import Status, certify
from maxmargin.solvers import BlockSolver, LinearSystemSolver, PairwiseSolver, StoppingRule, Trace, monitor
from maxmargin.solvers.linear_system import linear_system_solver, preconditioners
from maxmargin.testing.named_problems import BOXLESS, equations, least_squares, overlapping, two_clouds
from maxmargin.testing.quadratic_program import solve_quadratic_program
from maxmargin.testing.solver_contract import OBSERVERS, assert_same_solution, least_gap


def exact(problem):
    """The solution of the whole system, by numpy."""
    n, groups = problem.size, problem.groups
    members = (problem.group[:, None] == np.arange(groups)).astype(float)
    K = problem.matrix.block(np.arange(n), np.arange(n)) + np.diag(problem.ridge)
    system = np.block([[K, members], [members.T, np.zeros((groups, groups))]])
    return np.linalg.solve(system, np.concatenate([problem.linear, problem.total]))[:n]


@pytest.fixture(params=["whole", "few columns", "no memory"])
def make(request, monkeypatch):
    """The solver with each of its preconditioners."""
    if request.param == "few columns":
        monkeypatch.setattr(linear_system_solver, "MAX_DIRECT_SIZE", 0)
    if request.param == "no memory":
        monkeypatch.setattr(linear_system_solver, "MIN_COLUMNS", 8)
    budget = 0 if request.param == "no memory" else 2**30
    return lambda *rule, **limits: LinearSystemSolver(budget, StoppingRule(*rule, **limits))


@pytest.mark.parametrize("name", BOXLESS)
def test_certifies(make, name):
    problem = BOXLESS[name]()
    solution = make(1e-6).solve(problem)
    certificate = certify(problem, solution.dual)
    assert solution.status is Status.CONVERGED
    assert certificate.violation <= 1e-6
    assert certificate.infeasibility <= 1e-9 * (1.0 + np.abs(solution.dual).max())
    value, _ = solve_quadratic_program(problem)
    assert certificate.dual == pytest.approx(value, rel=1e-5, abs=1e-7)
    assert certificate.primal == pytest.approx(value, rel=1e-5, abs=1e-7)
    np.testing.assert_array_equal(solution.gradient, problem.gradient(solution.dual))
    expected = exact(problem)
    np.testing.assert_allclose(solution.dual, expected, atol=2e-6 * (1.0 / problem.ridge).max() + 1e-9)


@pytest.mark.parametrize("name", BOXLESS)
@pytest.mark.parametrize("other", [PairwiseSolver, BlockSolver])
def test_other_solvers_agree(name, other):
    problem = BOXLESS[name]()
    mine = certify(problem, LinearSystemSolver(stopping=StoppingRule(1e-6)).solve(problem).dual)
    theirs = certify(problem, other(stopping=StoppingRule(1e-5)).solve(problem).dual)
    assert theirs.violation <= 1e-5
    assert mine.dual == pytest.approx(theirs.dual, rel=1e-5, abs=1e-8)


def test_start_from_the_optimum_takes_no_steps(make):
    problem = least_squares()
    first = make(1e-4).solve(problem)
    again = make(1e-4).solve(problem, first.dual)
    assert again.counters.iterations == 0
    np.testing.assert_allclose(again.dual, first.dual, rtol=1e-12)


def test_any_start_reaches_the_same_optimum(make):
    problem = least_squares()
    for seed in range(3):
        start = np.random.default_rng(seed).normal(size=problem.size)
        np.testing.assert_allclose(make(1e-9).solve(problem, start).dual, exact(problem), atol=1e-7)


def test_limits(monkeypatch):
    monkeypatch.setattr(linear_system_solver, "MIN_COLUMNS", 2)
    problem = equations(*two_clouds(300, 4, 0.5), Gaussian(1.0), 1e4)
    for rule, status in (
        (StoppingRule(1e-9, max_iterations=5), Status.MAX_ITERATIONS),
        (StoppingRule(1e-9, max_seconds=0.0), Status.MAX_SECONDS),
    ):
        solution = LinearSystemSolver(0, rule).solve(problem)
        assert solution.status is status
        assert solution.counters.iterations == (5 if status is Status.MAX_ITERATIONS else 0)
        certificate = certify(problem, solution.dual)
        assert certificate.infeasibility < 1e-9
        assert certificate.gap > 0
    gap = 1e-3 * certificate.gap
    early = LinearSystemSolver(0, StoppingRule(1e-9, gap=gap)).solve(problem)
    assert early.status is Status.CONVERGED
    assert certify(problem, early.dual).gap <= gap
    assert early.counters.iterations < LinearSystemSolver(0, StoppingRule(1e-9)).solve(problem).counters.iterations


def test_callbacks_see_progress_and_can_stop(make):
    problem, seen = equations(*two_clouds(300, 4, 0.5), Gaussian(1.0), 1e4), []
    solution = make(1e-9).solve(problem, callback=lambda progress: bool(seen.append(progress)) or True)
    assert solution.status is Status.STOPPED
    assert seen[0].primal >= seen[0].dual
    assert seen[0].active == 300


def test_interruptions_leave_a_valid_point(make):
    def interrupt(progress):
        raise KeyboardInterrupt

    problem = least_squares()
    solution = make(1e-9).solve(problem, callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual).infeasibility < 1e-12


@pytest.mark.parametrize("observer", OBSERVERS)
def test_observers_and_limits_that_are_not_reached_change_nothing(make, observer, monkeypatch):
    problem = equations(*two_clouds(150, 4, 0.5), Gaussian(1.0), 1e4)
    expected = make(1e-6).solve(problem)
    changes, callback = OBSERVERS[observer]
    monkeypatch.setattr(monitor, "REPORT_INTERVAL", 0.0)
    assert_same_solution(make(1e-6, **changes).solve(problem, callback=callback()), expected)


def test_a_gap_that_is_not_reached_changes_nothing(make):
    problem = equations(*two_clouds(150, 4, 0.5), Gaussian(1.0), 1e4)
    expected = make(1e-4).solve(problem, callback=Trace())
    assert_same_solution(make(1e-4, gap=0.5 * least_gap(expected)).solve(problem), expected)


def test_is_deterministic(make):
    problem = equations(*two_clouds(300, 4, 0.5), Gaussian(1.0), 1e3)
    first, second = (make(1e-3).solve(problem) for _ in range(2))
    np.testing.assert_array_equal(first.dual, second.dual)
    assert first.counters.iterations == second.counters.iterations


def test_a_tolerance_beyond_double_precision_ends_with_that_status(make):
    problem = equations(*two_clouds(200, 2, 0.5), Linear(), 1e12)
    solution = make(1e-9).solve(problem)
    assert solution.status is Status.PRECISION
    assert certify(problem, solution.dual).violation < 1.0


def test_panels_of_the_whole_factor(monkeypatch):
    monkeypatch.setattr(preconditioners, "WHOLE_PANEL", 7)
    problem = least_squares()
    solution = LinearSystemSolver().solve(problem)
    assert solution.counters.iterations <= 2
    np.testing.assert_allclose(solution.dual, exact(problem), atol=1e-12)


def test_hard_problems_get_the_whole_factor(monkeypatch):
    monkeypatch.setattr(linear_system_solver, "MAX_DIRECT_SIZE", 100)
    hard = equations(*two_clouds(600, 4, 0.5), Gaussian(2.0), 1e6)
    assert LinearSystemSolver(0).solve(hard).counters.iterations > 100
    solution = LinearSystemSolver().solve(hard)
    assert solution.status is Status.CONVERGED
    assert solution.counters.iterations <= 600 // (3 * hard.matrix.cost) + 3
    assert certify(hard, solution.dual).violation <= 1e-3


def test_columns_of_a_low_rank_matrix_are_few(monkeypatch):
    problem = equations(*two_clouds(500, 3, 1.0), Linear(), 1e3)
    solution = LinearSystemSolver(0).solve(problem)
    assert solution.status is Status.CONVERGED
    assert solution.counters.iterations <= 5  # three columns are all there are


def test_precomputed_and_callable_kernels(make):
    X, signs = two_clouds(80, 2, 1.0)
    K = Gaussian(0.7)(X)
    expected = exact(least_squares_regression.pose(PrecomputedMatrix(K), signs, np.full(80, 2.0)))
    for matrix in (PrecomputedMatrix(K), KernelMatrix(FunctionKernel(Gaussian(0.7)), Points(X))):
        problem = least_squares_regression.pose(matrix, signs, np.full(80, 2.0))
        np.testing.assert_allclose(make(1e-8).solve(problem).dual, expected, atol=1e-6)


def test_errors(make):
    with pytest.raises(ValueError, match="without bounds and with a ridge.*use the pairwise or the block solver"):
        make(1e-3).solve(overlapping())
    X, signs = two_clouds(60, 2, 1.0)
    with pytest.raises(ValueError, match="kernel is indefinite.*use a positive semi-definite kernel"):
        make(1e-6).solve(equations(X, signs, Sigmoid(0.8, -1.0), 1e3))
    K = Gaussian(0.7)(X)
    K[3, 7] = K[7, 3] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        make(1e-3).solve(least_squares_regression.pose(PrecomputedMatrix(K), signs, np.ones(60)))
