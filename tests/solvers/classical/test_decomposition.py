import io
import signal

import numpy as np
import pytest

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.interchange import load, save
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import (
    BlockSolver,
    DecompositionSolver,
    GradientProjectionSolver,
    PairwiseSolver,
    QuadraticProgramSolver,
    StoppingRule,
    Trace,
)
from maxmargin.solvers.classical import decomposition_run
from maxmargin.testing.named_problems import (
    QUADRATIC,
    classification,
    hard_to_finish,
    indefinite_sigmoid,
    overlapping,
    two_clouds,
)
from maxmargin.testing.solver_contract import SolverContract


class TestTen(SolverContract):
    def make(self, stopping):
        return DecompositionSolver(stopping=stopping)


class TestForty(SolverContract):
    def make(self, stopping):
        return DecompositionSolver(40, stopping=stopping)


class TestTwoRowsOfCache(SolverContract):
    def make(self, stopping):
        return DecompositionSolver(20, cache_bytes=1, stopping=stopping)


class TestQuadraticPrograms(SolverContract):
    def make(self, stopping):
        return DecompositionSolver(30, QuadraticProgramSolver("piqp"), stopping=stopping)

    def test_indefinite_matrix_ends_stationary(self):
        """A convex inner solver raises."""
        with pytest.raises(ValueError, match="indefinite"):
            self.make(StoppingRule()).solve(indefinite_sigmoid())


class TestGradientProjection(SolverContract):
    def make(self, stopping):
        return DecompositionSolver(20, GradientProjectionSolver(), stopping=stopping)


class TestBlocks(SolverContract):
    """A solver in single precision inside."""

    def make(self, stopping):
        return DecompositionSolver(30, BlockSolver(), stopping=stopping)


#: Not those on which the most violating pair takes tens of thousands of steps, nor those with variables in no group:
#: there the pairwise solver moves one variable at a time, and a working set of two moves two. And where both variables
#: of a pair reach a bound in one step, up to rounding, a subproblem sees both on it: as in groups of a few variables.
EXACT = sorted(
    set(QUADRATIC)
    - {"huge_cost", "unscaled_columns", "two_groups", "without_bias", "group_and_singles", "group_of_each_sample"}
)


@pytest.mark.parametrize("name", EXACT)
def test_two_variables_take_the_steps_of_the_pairwise_solver(name):
    """The same dual vector, to the last bit, after every number of steps."""
    problem = QUADRATIC[name]()
    ends = []
    for limit in (1, 2, 3, 7, 20, 60, 200, 1000):
        rule = StoppingRule(violation=1e-4, max_iterations=limit)
        plain = PairwiseSolver("most_violating_pair", shrinking=False, finish_below=0, stopping=rule).solve(problem)
        ours = DecompositionSolver(2, stopping=rule).solve(problem)
        np.testing.assert_array_equal(ours.dual, plain.dual)
        np.testing.assert_array_equal(ours.gradient, plain.gradient)
        assert ours.counters.iterations == plain.counters.iterations
        assert ours.counters.rounds == ours.counters.iterations
        assert ours.status is plain.status
        ends.append(ours.status)
    assert Status.CONVERGED in ends


@pytest.mark.parametrize("subproblem", [PairwiseSolver(), QuadraticProgramSolver("piqp"), BlockSolver()])
def test_subproblem_solvers_are_interchangeable(subproblem):
    problem = classification(*two_clouds(200, 3, 1.0), Gaussian(0.5), 3.0)
    expected = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual).dual
    solution = DecompositionSolver(24, subproblem, stopping=StoppingRule(violation=1e-5)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).dual == pytest.approx(expected, rel=1e-8)


def test_cache_size_changes_nothing():
    problem = overlapping()
    duals = [DecompositionSolver(cache_bytes=size).solve(problem) for size in (1, 8 * 80 * 20, 10**8)]
    for other in duals[1:]:
        np.testing.assert_array_equal(other.dual, duals[0].dual)
    assert duals[0].counters.kernel_evaluations > duals[-1].counters.kernel_evaluations
    assert duals[-1].counters.kernel_evaluations <= 80**2


def test_only_rows_of_the_working_sets_are_computed():
    asked = set()

    def kernel(X, Z):
        asked.update(X.ravel().tolist() if len(X) < len(Z) else [])
        return np.exp(-((X - Z.T) ** 2))

    X = np.linspace(0, 1, 200)[:, None]
    signs = np.where(X.ravel() > 0.5, 1.0, -1.0)
    matrix = KernelMatrix(FunctionKernel(kernel), Points(X))
    solution = DecompositionSolver(4).solve(DualProblem(matrix, signs, np.minimum(0, signs), np.maximum(0, signs)))
    assert solution.status is Status.CONVERGED
    assert len(asked) < 200
    assert solution.counters.kernel_evaluations < 200**2


class Lazy(PairwiseSolver):
    """A subproblem solver that changes nothing unless its tolerance is small."""

    def solve(self, problem, start=None, callback=None):
        if self.stopping.violation > 1e-4:
            return PairwiseSolver(stopping=StoppingRule(violation=1e9)).solve(problem, start, callback)
        return super().solve(problem, start, callback)


def test_a_subproblem_that_changes_nothing_is_solved_again_more_exactly():
    problem = overlapping()
    solution = DecompositionSolver(10, Lazy(), stopping=StoppingRule(violation=1e-3)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3


class Idle(PairwiseSolver):
    def solve(self, problem, start=None, callback=None):
        return PairwiseSolver(stopping=StoppingRule(violation=1e9)).solve(problem, start, callback)


def test_a_subproblem_solver_that_never_moves_is_not_taken_for_convergence():
    solution = DecompositionSolver(10, Idle()).solve(overlapping())
    assert solution.status is Status.PRECISION
    assert not solution.dual.any()


def test_hard_margin_of_inseparable_data_is_unbounded():
    for make in (
        lambda: classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf),
        lambda: classification([[0.0], [0.0]], [-1, 1], Linear(), np.inf),
    ):
        assert DecompositionSolver().solve(make()).status is Status.UNBOUNDED


def test_trace_has_every_round():
    problem = overlapping()
    solution = DecompositionSolver(10).solve(problem, callback=Trace())
    assert len(solution.trace) == solution.counters.rounds + 1
    values = [entry.dual for entry in solution.trace]
    assert (np.diff(values) > 0).all()
    assert all(entry.primal >= entry.dual for entry in solution.trace)
    assert solution.trace[-1].violation <= 1e-3
    assert {entry.active for entry in solution.trace[1:-1]} <= set(range(2, 11))


def test_ctrl_c_leaves_a_valid_point():
    problem, seen = hard_to_finish(), []

    def strike(progress):
        seen.append(progress)
        if len(seen) == 5:
            signal.raise_signal(signal.SIGINT)

    solution = DecompositionSolver(stopping=StoppingRule(violation=1e-9)).solve(problem, callback=Trace(0, strike))
    assert solution.status is Status.INTERRUPTED
    assert solution.dual.any()
    assert certify(problem, solution.dual).infeasibility < 1e-9
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-6)


@pytest.mark.parametrize("options", [{"working_set_size": 1}, {"subproblem": "pairwise"}])
def test_invalid_options_raise(options):
    with pytest.raises(ValueError, match="at least 2 variables|subproblem must be a solver object"):
        DecompositionSolver(**options)


@pytest.mark.parametrize("machine", [SVC, SVR, NuSVC, OneClassSVM, lambda **p: SVC(C=np.inf, kernel="linear", **p)])
def test_models_by_name(machine):
    X, signs = two_clouds(80, 3, 7.0)
    ours, usual = (machine(solver=solver, tol=1e-5).fit(X, signs) for solver in ("decomposition", "auto"))
    assert ours.status_ is Status.CONVERGED
    assert ours.certificate_.violation <= 1e-5
    assert ours.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-4, abs=1e-6)


def test_model_file_stores_the_inner_solver():
    X, signs = two_clouds(40, 2, 2.0)
    model = SVC(solver=DecompositionSolver(8, QuadraticProgramSolver("piqp", crossover=3))).fit(X, signs)
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    assert load(file).solver == model.solver


def test_the_limit_on_inner_steps_grows_with_the_number_of_variables(monkeypatch):
    problem = overlapping()
    solver = DecompositionSolver(10, stopping=StoppingRule(violation=1e-6))
    unlimited = solver.solve(problem)
    assert unlimited.counters.iterations > 2 * problem.size
    monkeypatch.setattr(decomposition_run, "MAX_INNER_ITERATIONS", 0)
    found = solver.solve(problem)
    assert found.status is Status.CONVERGED
    np.testing.assert_array_equal(found.dual, unlimited.dual)
    monkeypatch.setattr(decomposition_run, "MAX_INNER_ITERATIONS_PER_VARIABLE", 1)
    assert solver.solve(problem).status is Status.SLOW
