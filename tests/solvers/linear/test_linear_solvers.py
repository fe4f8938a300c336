"""The solvers for the linear kernel: contract, data formats, threads, fallbacks and the choice of the algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from contracts.linear_solver_contract import LinearSolverContract
from maxmargin import _native
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.features import Features
from maxmargin.problems import Status, certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import (
    DualCoordinateAscentSolver,
    LinearSolver,
    PairwiseSolver,
    SemismoothNewtonSolver,
    StoppingRule,
)
from maxmargin.solvers.linear import linear_solver, newton_equations
from maxmargin.solvers.linear.dual_coordinate_ascent import CoordinateAscentRun
from maxmargin.solvers.linear.linear_point import LinearPoint
from maxmargin.solvers.linear.semismooth_newton import SemismoothNewtonRun
from maxmargin.solvers.linear.smoothed_primal import NewtonStart
from maxmargin.solvers.monitor import Monitor
from maxmargin.testing.named_problems import linear, two_clouds
from reference import coordinate_ascent

SOLVERS = [DualCoordinateAscentSolver, SemismoothNewtonSolver, LinearSolver]


class TestDualCoordinateAscent(LinearSolverContract):
    # Tens of thousands of passes if features differ in scale by orders of magnitude, or the cost is huge.
    too_hard = frozenset(
        {"unscaled_columns", "epsilon100.0_without_bias", "squared_hinge_at_huge_cost", "hinge_at_huge_cost"}
    )

    def make(self, stopping):
        return DualCoordinateAscentSolver(stopping)


class TestSemismoothNewton(LinearSolverContract):
    def make(self, stopping):
        return SemismoothNewtonSolver(stopping)


class TestLinearChoice(LinearSolverContract):
    def make(self, stopping):
        return LinearSolver(stopping)


def forms(X):
    """Yield the same numbers in every supported format."""
    single = X.astype(np.float32)
    for values in (X, single):
        yield values
        compressed = sparse.csr_array(values)
        yield compressed
        long = compressed.copy()
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        yield long


def problem_of(X, signs, cost=1.0, threads=1, pose=c_classification.pose):
    return pose(KernelMatrix(Linear(), Points(X), threads), signs, np.full(len(signs), cost))


@pytest.mark.parametrize("solver", SOLVERS)
def test_data_formats_give_the_same_solution(solver):
    X, signs = two_clouds(200, 8, 1.0)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    X = X.astype(np.float32).astype(np.float64)
    found = [solver(StoppingRule(violation=1e-9)).solve(problem_of(data, signs)) for data in forms(X)]
    values = [certify(problem_of(X, signs), solution.dual).dual for solution in found]
    np.testing.assert_allclose(values, values[0], rtol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_threads_give_the_same_solution_and_repeatable_bits(solver, form, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.linear.dual_coordinate_ascent.MIN_MULTIPLICATIONS_FOR_THREADS", 100)
    monkeypatch.setattr("maxmargin.solvers.linear.dual_coordinate_ascent.MULTIPLICATIONS_PER_COPIED_WEIGHT", 0)
    X, signs = two_clouds(6000, 10, 1.0)
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if form == "sparse" else X
    rule = StoppingRule(violation=1e-12, relative_gap=1e-6)
    alone = solver(rule).solve(problem_of(X, signs, 0.01))
    first, second = (solver(rule).solve(problem_of(X, signs, 0.01, threads=3)) for _ in range(2))
    np.testing.assert_array_equal(first.dual, second.dual)
    values = [certify(problem_of(X, signs, 0.01), solution.dual).dual for solution in (alone, first)]
    assert values[0] == pytest.approx(values[1], rel=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_indexed_subset_of_rows(solver):
    X, signs = two_clouds(100, 4, 1.0)
    index = np.random.default_rng(1).permutation(100)[:60]
    part = problem_of(Points(X).take(index).data[index], signs[index])
    whole = c_classification.pose(KernelMatrix(Linear(), Points(X).take(index)), signs[index], np.ones(60))
    found = [solver(StoppingRule(violation=1e-8)).solve(p).dual for p in (part, whole)]
    np.testing.assert_allclose(*(certify(part, dual).dual for dual in found), rtol=1e-10)


@pytest.mark.parametrize("pose", [c_classification.pose, squared_hinge.pose])
@pytest.mark.parametrize("exact", [0, 10**6])
def test_methods_for_the_newton_system_agree(pose, exact, monkeypatch):
    X, signs = two_clouds(300, 20, 1.0)
    problem = problem_of(X, signs, 10.0, pose=pose)
    value = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-8)).solve(problem).dual).dual
    monkeypatch.setattr(newton_equations, "MAX_FACTORISED", exact)
    solution = SemismoothNewtonSolver(StoppingRule(violation=1e-12, relative_gap=1e-8)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).dual == pytest.approx(value, rel=1e-7)


def test_subsamples_are_used_and_leave_the_optimum_unchanged(monkeypatch):
    X, signs = two_clouds(20000, 4, 1.0)
    problem = problem_of(X, signs)
    seen = []
    original = linear_solver.solve_subsample

    def spy(problem, *rest):
        seen.append(problem.size)
        return original(problem, *rest)

    monkeypatch.setattr(linear_solver, "solve_subsample", spy)
    rule = StoppingRule(violation=1e-12, relative_gap=1e-7)
    quick = LinearSolver(rule).solve(problem)
    plain = SemismoothNewtonSolver(rule).solve(problem)
    assert seen[0] == 20000
    assert min(seen) < 20000
    values = [certify(problem, solution.dual).dual for solution in (quick, plain)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon"])
@pytest.mark.parametrize(("constant", "bias"), [(0.0, True), (0.0, False), (2.0, False)])
def test_native_pass_equals_the_reference(form, name, constant, bias):
    problem = SplitProblem.of(linear(name, 0.7, constant, bias)).problem
    rows = problem.matrix.features()
    table = rows.points.data[rows.points.index]
    if form == "sparse":
        rows = Features(Points(sparse.csr_array(rows.points.data)).take(rows.points.index), rows.constant)
    n, random = problem.size, np.random.default_rng(4)
    groups = problem.groups
    twin = {
        "dual": np.zeros(n), "weights": np.zeros(rows.dimension), "linear": problem.linear, "lower": problem.lower,
        "upper": problem.upper, "ridge": problem.ridge, "group": problem.group, "offset": np.full(groups, 0.1),
        "excess": np.zeros(groups), "penalty": np.full(groups, 2.0), "constant": rows.constant,
    }  # fmt: skip
    own = {key: np.copy(value) for key, value in twin.items()}
    leave = np.inf, np.inf
    left = np.arange(n)
    for _ in range(6):
        order = random.permutation(left)
        expected, high, low, gaps = coordinate_ascent.take_pass(table, twin, order, *leave)
        names = ("dual", "weights", "offset", "excess", "penalty")
        state = _native.AscentState(**{name: own[name] for name in names}, squared_norms=rows.squared_norms())
        options = _native.AscentOptions(
            constant=rows.constant, shrink_above=leave[0], shrink_below=leave[1], damping=1.0
        )
        result = _native.coordinate_ascent(rows.native, problem.native, state, options, order, 1)
        last = result.remaining
        np.testing.assert_array_equal(order[:last], expected)
        for key in ("dual", "weights", "excess"):
            np.testing.assert_allclose(own[key], twin[key], atol=1e-12)
        assert (result.highest, result.lowest, result.gap) == pytest.approx((high, low, gaps), abs=1e-12)
        left, leave = order[:last], (high or np.inf, -low or np.inf)
    assert len(left) < n or name != "hinge"


def test_dual_objective_increases_with_every_pass():
    problem = linear("hinge", 10.0, fit_intercept=False)
    values = []
    for passes in range(1, 30):
        rule = StoppingRule(violation=1e-12, max_iterations=passes)
        values.append(certify(problem, DualCoordinateAscentSolver(rule).solve(problem).dual).dual)
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


def nearly_hard_margin(seed):
    """A nearly hard margin with about as many features as samples, far from the origin."""
    random = np.random.default_rng(seed)
    X = (random.normal(size=(150, 120)) + random.uniform(-100, 100, size=120)).astype(np.float32)
    values = X @ random.normal(size=120)
    away = np.abs(values - np.median(values))
    return problem_of(sparse.csr_matrix(X), np.where(away < np.quantile(away, 0.4), 1.0, -1.0), 2e3)


@pytest.mark.parametrize("seed", [0, 5, 11, 18, 20, 27])
def test_newton_method_does_not_stall_far_from_the_origin(seed):
    """Cancellation in the equations of the offset made about one in three such runs stall."""
    problem = nearly_hard_margin(seed)
    solution = SemismoothNewtonSolver(StoppingRule(violation=1e-13, relative_gap=1e-4)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-4


@pytest.mark.parametrize("seed", [0, 5])
def test_pairwise_solver_after_a_stall_of_the_newton_method(seed, monkeypatch):
    problem, ended, original = nearly_hard_margin(seed), [], linear_solver.solve_pairwise
    monkeypatch.setattr(linear_solver, "solve_pairwise", lambda *rest: ended.append(original(*rest)) or ended[-1])
    monkeypatch.setattr(linear_solver.SemismoothNewtonRun, "solve", lambda run: Status.PRECISION)
    solution = LinearSolver(StoppingRule(violation=1e-13, relative_gap=1e-4)).solve(problem)
    assert [status for status, *_ in ended] == [Status.CONVERGED]
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-4
    limited = StoppingRule(violation=1e-13, relative_gap=1e-4, max_iterations=5)
    assert LinearSolver(limited).solve(problem).status is Status.MAX_ITERATIONS


def test_reshuffling_reduces_the_number_of_passes(monkeypatch):
    """A fixed order takes several times the passes on sparse rows."""
    random = np.random.default_rng(0)
    X = sparse.random_array((2000, 3000), density=0.02, format="csr", rng=random)
    signs = np.where(X @ random.normal(size=3000) > 0, 1.0, -1.0)
    problem = squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.ones(2000), fit_intercept=False)
    solver = DualCoordinateAscentSolver(StoppingRule(violation=1e-12, relative_gap=1e-4))
    shuffled = solver.solve(problem).counters.iterations
    monkeypatch.setattr(CoordinateAscentRun, "_shuffled", lambda run, variables: variables.copy())
    assert solver.solve(problem).counters.iterations > 2 * shuffled


@pytest.mark.parametrize(("cost", "slow"), [(1e-5, False), (10.0, True)])
def test_newton_takes_over_when_coordinate_ascent_is_slow(cost, slow, monkeypatch):
    X, signs = two_clouds(2000, 150, 1.0)
    begun = []
    original = linear_solver.SemismoothNewtonRun
    monkeypatch.setattr(linear_solver, "SemismoothNewtonRun", lambda *rest: begun.append(rest) or original(*rest))
    rule = StoppingRule(violation=1e-12, relative_gap=1e-6)
    problem = problem_of(X, signs, cost, pose=squared_hinge.pose)
    assert linear_solver.first_step_cost(problem.matrix.features()) > linear_solver.MAX_CHEAP_STEP_PASSES
    solution = LinearSolver(rule).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-6
    assert bool(begun) == slow
    if slow:
        assert solution.counters.iterations < 20  # three or four passes, and Newton steps
        alone = DualCoordinateAscentSolver(rule).solve(problem)
        assert alone.counters.iterations > 3 * solution.counters.iterations


@pytest.mark.parametrize("failures", [0, 1, 2, 3])
def test_fallbacks_after_stalls_of_the_newton_method(failures, monkeypatch):
    X, signs = two_clouds(300, 5, 1.0)
    problem = problem_of(X, signs, 0.1)
    runs = []

    class Stalling(linear_solver.SemismoothNewtonRun):
        def solve(self):
            runs.append(self)
            return Status.PRECISION if len(runs) <= failures else super().solve()

    monkeypatch.setattr(linear_solver, "SemismoothNewtonRun", Stalling)
    monkeypatch.setattr(linear_solver, "MAX_PAIRWISE_SAMPLES", 0)
    if failures == 3:
        monkeypatch.setattr(linear_solver, "MAX_FALLBACK_MULTIPLICATIONS", 0)
    solution = LinearSolver(StoppingRule(violation=1e-12, relative_gap=1e-6)).solve(problem)
    assert len(runs) == min(failures + 1, 2)
    gap = certify(problem, solution.dual, solution.weights).relative_gap
    if failures < 3:
        assert solution.status is Status.CONVERGED
        assert gap <= 1e-6
    else:  # a single pass is not enough
        assert solution.status is Status.PRECISION
        assert gap > 1e-6


def test_passes_over_free_variables_save_steps(monkeypatch):
    """With few variables between their bounds, some passes over these alone replace passes over all."""
    X, signs = two_clouds(2000, 20, 1.0)
    matrix = KernelMatrix(Linear(), Points(X))
    problem = c_classification.pose(matrix, signs, np.full(2000, 1.0), fit_intercept=False)
    rule = StoppingRule(violation=1e-12, relative_gap=1e-5)
    original, lengths = CoordinateAscentRun._visit, []
    monkeypatch.setattr(
        CoordinateAscentRun,
        "_visit",
        lambda run, order, *rest: lengths.append(len(order)) or original(run, order, *rest),
    )
    solution = DualCoordinateAscentSolver(rule).solve(problem)
    assert len(lengths) > solution.counters.iterations > 3
    assert max(lengths[4:]) > 2 * min(lengths[4:])
    steps = sum(lengths)
    lengths.clear()
    monkeypatch.setattr("maxmargin.solvers.linear.dual_coordinate_ascent.MAX_INNER_PASSES", 0)
    without = DualCoordinateAscentSolver(rule).solve(problem)
    assert len(lengths) == without.counters.iterations
    assert sum(lengths) > steps
    values = [certify(problem, found.dual).dual for found in (solution, without)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_estimate_of_the_remaining_passes():
    X, signs = two_clouds(500, 20, 0.2)
    problem = problem_of(X, signs, 0.01, pose=squared_hinge.pose)
    rows, rule = problem.matrix.features(), StoppingRule(violation=1e-12, relative_gap=1e-8)
    run = CoordinateAscentRun(problem, rows, LinearPoint.start(problem, rows, None, rule), Monitor(rule))
    estimates = {}

    def record():
        estimates[run.iterations] = run.remaining_passes()
        return True

    assert run.solve(record) is Status.CONVERGED
    assert estimates[1] == estimates[2] == 0.0  # no estimate is possible yet
    half = run.iterations // 2
    assert estimates[half] == pytest.approx(run.iterations - half, rel=0.5)


def test_newton_steps_hardly_depend_on_the_cost():
    X, signs = two_clouds(500, 6, 0.5)
    for pose in (c_classification.pose, squared_hinge.pose):
        for cost in (1e-4, 1.0, 1e4, 1e6):
            rule = StoppingRule(violation=1e-12, relative_gap=1e-6)
            solution = SemismoothNewtonSolver(rule).solve(problem_of(X, signs, cost, pose=pose))
            assert solution.status is Status.CONVERGED
            assert solution.counters.iterations < 150


def unscaled(random):
    X = random.normal(size=(400, 12)) * 10.0 ** np.linspace(-2, 4, 12) + 3e3
    return X, np.sign(random.normal(size=400))


def separable(random):
    X = random.normal(size=(300, 20))
    return X, np.sign(X[:, 0])


def wide(random):
    return random.normal(size=(60, 200)), np.sign(random.normal(size=60))


@pytest.mark.parametrize("make", [unscaled, separable, wide])
@pytest.mark.parametrize("cost", [1e4, 1e6, 1e8, 1e10])
def test_tiny_ridge(make, cost):
    problem = problem_of(*make(np.random.default_rng(0)), cost, pose=squared_hinge.pose)
    for kind in (SemismoothNewtonSolver, LinearSolver):
        solution = kind(StoppingRule(violation=1e-13, relative_gap=1e-4)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-4
        assert solution.counters.iterations < 500


@pytest.mark.parametrize("form", ["dense", "single", "sparse"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_responses_from_weights_and_from_decision_values_agree(form, bias, threads):
    random = np.random.default_rng(1)
    X, signs = two_clouds(3000, 7, 1.0)
    data = {"dense": X, "single": X.astype(np.float32), "sparse": sparse.csr_array(X)}[form]
    problem = c_classification.pose(KernelMatrix(Linear(), Points(data)), signs, np.full(len(signs), 0.5), bias)
    rows = Features(Points(data), 2.0)
    weights, offset = random.normal(size=rows.dimension), random.normal(size=problem.groups)
    n, centre = problem.size, random.uniform(-0.5, 0.5, size=problem.size)
    both = []
    for at_weights in (False, True):
        slack, response, sums = np.empty(n), np.empty(n), np.empty(problem.groups)
        smoothed = _native.SmoothedArrays(
            centre=centre, offset=offset, sigma=0.3, slack=slack, response=response, group_sums=sums
        )
        if at_weights:
            image, own = np.empty(n), np.empty(rows.dimension)
            totals = _native.responses_of_rows(rows.native, problem.native, smoothed, weights, 2.0, image, own, threads)
        else:
            image = rows.decisions(weights)
            totals = _native.responses(problem.native, smoothed, image, threads)
            own = rows.weights(response)
        totals = [totals.loss, totals.linear, totals.ridge, totals.absolute_sum]
        both.append((image, slack, response, sums, own, totals))
    for left, right in zip(*both, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-9)


def test_hard_margin_takes_few_steps():
    for seed in range(5):
        random = np.random.default_rng(seed)
        X, signs = random.normal(size=(40, 3)), np.repeat([-1.0, 1.0], 20)
        problem = problem_of(X + 4.0 * signs[:, None], signs, np.inf)
        solution = SemismoothNewtonSolver(StoppingRule(violation=1e-5)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).violation <= 1e-5
        assert solution.counters.iterations < 60


def test_overflow_raises():
    X, signs = two_clouds(50, 3, 1.0)
    X[3] = 1e200
    for solver in SOLVERS:
        with pytest.raises(ValueError, match="finite"), np.errstate(all="ignore"):
            solver(StoppingRule()).solve(problem_of(X, signs))


def test_negative_gaps_are_no_progress():
    """Beyond double precision, infeasible responses may have dual values above the primal, which must not count."""
    problem = linear("squared_hinge", 1.0)
    rows, rule = problem.matrix.features(), StoppingRule(violation=1e-12, relative_gap=1e-4)
    run = SemismoothNewtonRun(problem, rows, NewtonStart(LinearPoint.start(problem, rows, None, rule)), Monitor(rule))
    stalled = []
    values = [(1, 3.0, 1.0), (90, 2.0, 1.0), (180, 2.0, 2.5), (270, 2.0, 2.6), (281, 2.0, 2.7)]
    for run.iterations, run.smoothed.primal, run.smoothed.dual_estimate in values:
        stalled.append(run._stalled())
    assert stalled == [False, False, False, False, True]
