"""`Trace` with all solvers, from the first point to the last."""

import time
from dataclasses import replace

import numpy as np
import pytest

from maxmargin.datasets import chessboard
from maxmargin.formulations import c_classification, least_squares_classification
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Progress, Status, certify, feasible_start
from maxmargin.solvers import SOLVERS, BlockSolver, LinearSolver, PairwiseSolver, SharedCallback, StoppingRule, Trace
from maxmargin.solvers.monitor import Monitor
from maxmargin.testing.named_problems import linear, overlapping


def cloud(n, cost=10.0, seed=0):
    random = np.random.default_rng(seed)
    X, signs = random.normal(size=(n, 3)), np.where(random.random(n) < 0.5, -1.0, 1.0)
    X[:, 0] += 0.5 * signs
    return c_classification.pose(KernelMatrix(Gaussian(0.5), Points(X)), signs, np.full(n, cost))


def least_squares():
    random = np.random.default_rng(0)
    X, signs = random.normal(size=(60, 3)), np.where(random.random(60) < 0.5, -1.0, 1.0)
    matrix = KernelMatrix(Gaussian(0.5), Points(X))
    return least_squares_classification.pose(matrix, signs, np.full(60, 10.0))


def solve_one(solver):
    """Return the first of three problems that the solver accepts, and its solution."""
    for problem in (overlapping(), linear("hinge"), least_squares()):
        try:
            return problem, solver.solve(problem, callback=Trace(points=True))
        except ValueError as error:
            if "linear" not in str(error):  # for the linear kernel only, or for a linear system
                raise
    raise AssertionError("the solver accepts none of the problems")


@pytest.fixture(params=sorted(SOLVERS.keys() - {"multiplier_newton"}))  # for rankings: tests/solvers/ranking
def traced(request):
    rule = StoppingRule(violation=1e-4, gap=1.0 if "subgradient" in request.param else None, max_iterations=100_000)
    solver = SOLVERS[request.param](stopping=rule)
    problem, solution = solve_one(solver)
    return request.param, problem, solver, solution


def test_first_entry_is_the_start_and_last_the_solution(traced):
    _, problem, _, solution = traced
    first, last = solution.trace[0], solution.trace[-1]
    start = certify(problem, feasible_start(problem), extended=True)
    assert first.iteration == 0
    assert first.primal == pytest.approx(start.primal)
    assert first.dual == pytest.approx(start.dual, abs=1e-12)
    assert first.violation == pytest.approx(start.violation)
    certified = certify(problem, solution.dual, solution.weights)
    assert last.iteration == solution.counters.iterations
    assert last.primal == pytest.approx(certified.primal, rel=1e-5)
    assert last.dual == pytest.approx(certified.dual, rel=1e-5)
    assert last.support_vectors == np.count_nonzero(solution.dual)


def test_counts_and_time_increase_and_bounds_hold(traced):
    _, problem, _, solution = traced
    optimum = certify(problem, solution.dual, solution.weights)
    assert len(solution.trace) > 1
    for before, after in zip(solution.trace, solution.trace[1:], strict=False):
        assert after.iteration >= before.iteration
        assert after.seconds >= before.seconds
        assert after.kernel_evaluations >= before.kernel_evaluations
        assert after.dual >= before.dual - 1e-6 * abs(optimum.primal)
    for entry in solution.trace:
        assert entry.gap >= -1e-9 * abs(optimum.primal)
        assert entry.dual <= optimum.primal * (1 + 1e-9)
        assert entry.primal >= optimum.dual * (1 - 1e-6)
        assert 0 <= entry.active <= problem.size
    assert solution.trace[-1].kernel_evaluations == solution.counters.kernel_evaluations
    assert solution.counters.kernel_evaluations > 0 or problem.matrix.features() is not None


def test_points_are_kept_from_start_to_solution(traced):
    _, problem, _, solution = traced
    points = [entry.point for entry in solution.trace]
    np.testing.assert_array_equal(points[0], feasible_start(problem))
    np.testing.assert_array_equal(points[-1], solution.dual)
    for entry, point in zip(solution.trace, points, strict=True):
        assert entry.support_vectors == np.count_nonzero(point)
        assert certify(problem, point).infeasibility <= 1e-9


def test_a_trace_changes_nothing(traced):
    _, problem, solver, solution = traced
    plain = solver.solve(problem)
    np.testing.assert_array_equal(plain.dual, solution.dual)
    assert plain.status is solution.status
    assert plain.counters.iterations == solution.counters.iterations
    assert plain.trace == ()


@pytest.mark.parametrize("make", [PairwiseSolver, BlockSolver])
def test_entries_of_every_pair_step(make):
    problem = overlapping()
    options = {"finish_below": 0} if make is PairwiseSolver else {}
    solution = make(**options).solve(problem, callback=Trace(steps=1, points=True))
    steps = [entry.iteration for entry in solution.trace]
    if make is PairwiseSolver:
        assert steps == list(range(solution.counters.iterations + 1))
    assert set(range(solution.counters.iterations)) <= set(steps)
    for before, after in zip(solution.trace, solution.trace[1:], strict=False):
        assert len(np.flatnonzero(before.point != after.point)) == 2 * (after.iteration - before.iteration)
        assert after.point.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_thousand_steps_make_about_a_hundred_entries():
    solution = PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(cloud(300), callback=Trace())
    assert solution.counters.iterations > 500
    assert 60 < len(solution.trace) < 200
    assert all(entry.point is None for entry in solution.trace)


@pytest.mark.parametrize("solver", [PairwiseSolver(finish_below=0), BlockSolver(), BlockSolver(working_set=300)])
def test_entries_cover_shrunk_variables(solver):
    X, y = chessboard(800)
    matrix = KernelMatrix(Linear(), Points(X - 2.0))  # far from separable: variables are shrunk that come back
    problem = c_classification.pose(matrix, np.where(y, 1.0, -1.0), np.full(800, 100.0))
    solution = solver.solve(problem, callback=Trace(points=True))
    assert min(entry.active for entry in solution.trace) < problem.size
    optimum = certify(problem, solution.dual)
    for entry in solution.trace:
        assert entry.primal >= optimum.dual * (1 - 1e-6)
    if isinstance(solver, PairwiseSolver):
        for entry in solution.trace[:: len(solution.trace) // 10]:
            certified = certify(problem, entry.point, extended=True)
            assert entry.primal == pytest.approx(certified.primal, rel=1e-6)
            assert entry.violation == pytest.approx(certified.violation, abs=1e-9)
    plain = solver.solve(problem)
    np.testing.assert_array_equal(plain.dual, solution.dual)
    assert replace(plain.counters, seconds=0.0) == replace(solution.counters, seconds=0.0)


def test_bounds_within_a_round_are_those_before_it():
    problem = cloud(1500)
    solver = BlockSolver(working_set=200, stopping=StoppingRule(violation=1e-4))
    solution = solver.solve(problem, callback=Trace())
    optimum = certify(problem, solution.dual)
    assert solution.counters.rounds > 3
    assert any(entry.active < problem.size for entry in solution.trace)
    assert all(entry.primal >= optimum.dual * (1 - 1e-6) for entry in solution.trace)


@pytest.mark.parametrize(
    ("solver", "problem"),
    [
        (BlockSolver(stopping=StoppingRule(violation=1e-2)), cloud(5000, cost=1.0)),
        (LinearSolver(), linear("hinge", n=21_000)),
    ],
    ids=["block", "linear"],
)
def test_nested_solves_are_reported_but_not_recorded(solver, problem):
    received = []
    solution = solver.solve(problem, callback=Trace(points=True, callback=received.append))
    assert all(len(entry.point) == problem.size for entry in solution.trace)
    assert len(received) > len(solution.trace)


def test_counts_continue_in_a_second_solve():
    problem, trace = overlapping(), Trace()
    first = PairwiseSolver(stopping=StoppingRule(violation=1e-1)).solve(problem, callback=trace)
    second = PairwiseSolver(stopping=StoppingRule(violation=1e-4)).solve(problem, first.dual, callback=trace)
    steps = [entry.iteration for entry in trace.entries]
    assert steps == sorted(steps)
    assert steps[-1] == first.counters.iterations + second.counters.iterations
    assert trace.entries[-1].kernel_evaluations == sum(s.counters.kernel_evaluations for s in (first, second))


def test_clock_is_stopped_for_a_trace(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def work(seconds):
        now[0] += seconds

    trace = Trace(callback=lambda progress: work(1000.0))
    monitor = Monitor(StoppingRule(max_seconds=5.0), trace, started=now[0])
    for round_ in range(4):
        work(1.0)

        def progress(iteration=round_):
            work(10_000.0)
            return Progress(iteration, 1.0, 2.0, 1.0, 10, monitor.seconds)

        assert not monitor.report(progress)
    assert [entry.seconds for entry in trace.entries] == [1.0, 2.0, 3.0, 4.0]
    assert monitor.seconds == 4.0
    assert monitor.limit_reached(0) is None
    work(1.0)
    assert monitor.limit_reached(0) is Status.MAX_SECONDS


def test_clock_runs_for_other_callbacks(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monitor = Monitor(StoppingRule(), lambda progress: now.__setitem__(0, now[0] + 7.0), started=0.0)
    monitor.report(lambda: Progress(0, 1.0, 2.0, 1.0, 10, monitor.seconds))
    assert monitor.seconds == 7.0


def test_interval_limits_the_entries(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    trace = Trace(interval=1.0)
    monitor = Monitor(StoppingRule(), trace, started=0.0)
    for k in range(10):
        now[0] += 0.25
        monitor.report(lambda k=k: Progress(k, 1.0, 2.0, 1.0, 10, monitor.seconds))
    assert [entry.iteration for entry in trace.entries] == [0, 4, 8]


def test_repeated_entries_are_omitted_and_the_callback_may_stop():
    received = []
    trace = Trace(callback=lambda progress: received.append(progress) or len(received) == 3)
    monitor = Monitor(StoppingRule(), SharedCallback(trace))
    same = Progress(0, 1.0, 2.0, 1.0, 10, 0.0)
    assert [monitor.report(lambda: same, now=True) for _ in range(5)] == [False, False, True, True, True]
    assert len(received) == 3
    assert len(monitor.trace) == len(trace.entries) == 1


def test_less_than_one_step_between_entries_raises():
    with pytest.raises(ValueError, match="at least 1 step"):
        Trace(steps=0)
