import builtins
import signal

import numpy as np
import pytest

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.kernels import Gaussian, Linear
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import PairwiseSolver, QuadraticProgramSolver, StoppingRule, Trace
from maxmargin.solvers.qp.qp_backends import BACKENDS, BackendResult
from maxmargin.solvers.qp.quadratic_program import BYTES_PER_VALUE, check_convex, pose_program
from maxmargin.testing.named_problems import (
    QUADRATIC,
    classification,
    hard_to_finish,
    indefinite_sigmoid,
    least_squares_in_groups,
    least_squares_of_duplicates,
    overlapping,
    two_clouds,
    unscaled_columns,
)
from maxmargin.testing.solver_contract import SolverContract


class QuadraticProgramContract(SolverContract):
    backend = "clarabel"
    gap_is_free = False  # rough solutions are tried first, whose gaps are not those of the trace

    def make(self, stopping):
        return QuadraticProgramSolver(self.backend, stopping=stopping)

    def test_indefinite_matrix_ends_stationary(self):
        """These raise, and name solvers that do not."""
        with pytest.raises(ValueError, match="indefinite.*'pairwise' and 'block' end at a stationary point"):
            self.make(StoppingRule()).solve(indefinite_sigmoid())


class TestClarabel(QuadraticProgramContract):
    pass


class TestPiqp(QuadraticProgramContract):
    backend = "piqp"


class TestHighs(QuadraticProgramContract):
    backend = "highs"

    def test_limit_on_iterations(self):
        """HiGHS checks its limit after every second iteration."""
        problem = overlapping()
        solution = self.make(StoppingRule(violation=1e-9, max_iterations=5)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations in (5, 6)
        certificate = certify(problem, solution.dual)
        assert certificate.infeasibility < 1e-12
        assert certificate.gap > 0


class TestProxqp(QuadraticProgramContract):
    backend = "proxqp"

    def test_limit_on_iterations(self):
        """An iteration of ProxQP has many steps: two do not solve a harder problem."""
        problem = large_cost()
        solution = self.make(StoppingRule(violation=1e-9, max_iterations=2)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations == 2
        assert certify(problem, solution.dual).infeasibility < 1e-9


class TestOsqp(QuadraticProgramContract):
    backend = "osqp"


def large_cost():
    return classification(*two_clouds(100, 2, 0.5), Gaussian(2.0), 1e5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [least_squares_of_duplicates, least_squares_in_groups, large_cost])
def test_other_problems(backend, make):
    problem = make()
    solution = QuadraticProgramSolver(backend, stopping=StoppingRule(violation=1e-5)).solve(problem)
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution.dual)
    assert certificate.violation <= 1e-5 + 1e-8
    assert certificate.relative_gap < 1e-5


@pytest.mark.parametrize("name", QUADRATIC)
def test_centring_by_groups_changes_nothing(name):
    """The program and the problem differ by a constant on every feasible point."""
    problem = QUADRATIC[name]()
    everything = np.arange(problem.size)
    program, unit, _ = pose_program(problem, problem.matrix.block(everything, everything))
    duals = [PairwiseSolver(stopping=StoppingRule(max_iterations=steps)).solve(problem).dual for steps in (1, 3, 10**6)]
    ours = np.array([certify(problem, dual, extended=True).dual for dual in duals])
    points = [dual / unit for dual in duals]
    theirs = np.array([-(0.5 * x @ program.quadratic @ x + program.linear @ x) for x in points])
    for x in points:
        np.testing.assert_allclose(program.rows @ x, program.most, atol=1e-9 * (1 + np.abs(x).max()))
    factor = np.ptp(theirs) / max(np.ptp(ours), np.finfo(float).tiny)
    rounding = 1e-9 * (np.ptp(theirs) + np.finfo(float).eps * np.abs(ours).max() * factor)
    np.testing.assert_allclose(theirs - theirs[0], factor * (ours - ours[0]), atol=max(rounding, 1e-14))


def test_conditionally_definite_matrices_are_convex_enough():
    """Minus squared distances are indefinite, but not among vectors that sum up to 0."""
    X, signs = two_clouds(40, 2, 1.0)
    squared_distances = ((X[:, None] - X) ** 2).sum(axis=2)
    problem = DualProblem(PrecomputedMatrix(-squared_distances), signs, np.minimum(0, signs), np.maximum(0, signs))
    with pytest.raises(ValueError, match="indefinite"):
        check_convex(-squared_distances)
    solution = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-8)).solve(problem)
    linear = classification(X, signs, Linear(), 1.0)
    twice = linear.with_matrix(PrecomputedMatrix(2.0 * X @ X.T))
    assert certify(problem, solution.dual).violation <= 1e-8
    expected = certify(twice, PairwiseSolver(stopping=StoppingRule(violation=1e-8)).solve(twice).dual).dual
    assert certify(twice, solution.dual).dual == pytest.approx(expected, rel=1e-9)


def test_crossover_rounds_are_counted_and_optional():
    problem = unscaled_columns()
    rule = StoppingRule(violation=1e-6)
    raw = QuadraticProgramSolver(crossover=0, stopping=rule).solve(problem)
    assert raw.status is Status.PRECISION
    assert raw.counters.rounds == 0
    assert 0 < certify(problem, raw.dual).relative_gap < 1e-3
    crossed = QuadraticProgramSolver(stopping=rule).solve(problem)
    assert crossed.status is Status.CONVERGED
    assert crossed.counters.rounds >= 1
    assert crossed.counters.iterations - raw.counters.iterations <= 10
    assert certify(problem, crossed.dual).violation <= 1e-6 + 1e-7


def test_backend_without_a_result_ends_with_precision(monkeypatch):
    nothing = BackendResult(np.empty(0), np.empty(0), 3, infeasible=False, unbounded=False)
    monkeypatch.setitem(BACKENDS, "clarabel", lambda program, options: nothing)
    solution = QuadraticProgramSolver().solve(overlapping())
    assert solution.status is Status.PRECISION
    assert not solution.dual.any()
    assert solution.counters.iterations == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_hard_margin_of_inseparable_data_is_unbounded(backend):
    problem = classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf)
    assert QuadraticProgramSolver(backend).solve(problem).status is Status.UNBOUNDED


def test_too_little_memory_raises():
    problem = overlapping()
    needed = BYTES_PER_VALUE["clarabel"] * problem.size**2
    sentence = r"80 variables takes about .* GiB with the backend 'clarabel'.*'block', 'pairwise', 'decomposition'"
    with pytest.raises(MemoryError, match=sentence):
        QuadraticProgramSolver(memory_bytes=needed - 1).solve(problem)
    assert QuadraticProgramSolver(memory_bytes=needed).solve(problem).status is Status.CONVERGED


def test_too_large_a_problem_raises_before_the_matrix_is_computed():
    class Huge(PrecomputedMatrix):
        size = 10**7

    n = 10**7
    problem = DualProblem(Huge(np.ones((1, 1))), np.zeros(n), np.zeros(n), np.ones(n))
    with pytest.raises(MemoryError, match="GiB"):
        QuadraticProgramSolver().solve(problem)


@pytest.mark.parametrize(
    ("backend", "package"),
    [("clarabel", "clarabel"), ("osqp", "osqp"), ("highs", "highspy"), ("piqp", "piqp"), ("proxqp", "proxsuite")],
)
def test_missing_package_raises(backend, package, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.qp.qp_backends.import_module", _refuse)
    with pytest.raises(ImportError, match=rf"'{package}'; install it with: pip install 'maxmargin\[qp\]'"):
        QuadraticProgramSolver(backend).solve(overlapping())


def _refuse(name):
    return builtins.__import__(f"no_such_package_as_{name}")


def test_unknown_backend_lists_the_backends():
    with pytest.raises(ValueError, match="unknown backend 'minos'; the backends are 'clarabel', 'osqp'"):
        QuadraticProgramSolver("minos").solve(overlapping())


def test_ctrl_c_inside_the_backend_leaves_a_valid_point():
    """Clarabel calls back after every iteration; an exception there must not pass through the backend."""
    problem, seen = hard_to_finish(), []

    def strike(progress):
        seen.append(progress)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    solution = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-9)).solve(problem, callback=Trace(0, strike))
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual).infeasibility < 1e-9


def test_callback_stops_the_backend():
    problem, seen = hard_to_finish(), []

    def stop(progress):
        seen.append(progress)
        return len(seen) == 4

    solution = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-9)).solve(problem, callback=Trace(0, stop))
    assert solution.status is Status.STOPPED
    assert 0 < solution.counters.iterations < 10
    assert len(seen) == 4
    assert all(entry.primal >= entry.dual for entry in solution.trace)


def test_trace_has_the_backend_result_and_the_crossover():
    solution = QuadraticProgramSolver(stopping=StoppingRule(violation=1e-7)).solve(unscaled_columns(), callback=Trace())
    last = solution.trace[-1]
    assert last.violation <= 1e-7
    assert last.kernel_evaluations == 60**2
    assert last.support_vectors == np.count_nonzero(solution.dual)
    assert any(1e-6 < entry.violation < 1.0 for entry in solution.trace)  # the backend's result, before the crossover


@pytest.mark.parametrize("backend", BACKENDS)
def test_svc_agrees_with_the_default_solver(backend):
    X, signs = two_clouds(150, 3, 1.0)
    usual = SVC(tol=1e-6).fit(X, signs)
    model = SVC(tol=1e-6, solver=QuadraticProgramSolver(backend, stopping=StoppingRule(violation=1e-6))).fit(X, signs)
    assert model.certificate_.violation <= 1e-6
    assert model.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-8)
    np.testing.assert_allclose(model.decision_function(X), usual.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("machine", [SVC, SVR, NuSVC, OneClassSVM, lambda **p: SVC(C=np.inf, kernel="linear", **p)])
def test_models_by_name(machine):
    X, signs = two_clouds(80, 3, 7.0)
    ours, usual = (machine(solver=solver, tol=1e-5).fit(X, signs) for solver in ("quadratic_program", "auto"))
    assert ours.status_ is Status.CONVERGED
    assert ours.certificate_.violation <= 1e-5
    assert ours.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-4, abs=1e-6)


def test_three_classes():
    X, _ = two_clouds(90, 3, 1.0)
    y = np.arange(90) % 3
    ours, usual = (SVC(solver=solver, tol=1e-6).fit(X, y) for solver in ("quadratic_program", "pairwise"))
    np.testing.assert_array_equal(ours.predict(X), usual.predict(X))


def test_non_finite_values_raise():
    values = np.eye(4)
    values[1, 2] = values[2, 1] = np.inf
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    with pytest.raises(ValueError, match="not finite"):
        QuadraticProgramSolver().solve(
            DualProblem(PrecomputedMatrix(values), signs, np.minimum(0, signs), np.maximum(0, signs))
        )


def test_huge_cost_of_a_larger_problem():
    problem = classification(*two_clouds(200, 3, 1.0), Gaussian(0.2), 1e4)
    solution = QuadraticProgramSolver("piqp", stopping=StoppingRule(violation=1e-6)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).relative_gap < 1e-6
