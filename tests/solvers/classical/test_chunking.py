import signal

import numpy as np
import pytest

from contracts.linear_problems import hinge
from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.kernels import Gaussian, Linear
from maxmargin.problems import Status, certify
from maxmargin.solvers import (
    BlockSolver,
    ChunkingSolver,
    DecompositionSolver,
    DualCoordinateAscentSolver,
    PairwiseSolver,
    QuadraticProgramSolver,
    StoppingRule,
    Trace,
)
from maxmargin.testing.named_problems import (
    classification,
    hard_margin,
    hard_to_finish,
    indefinite_sigmoid,
    overlapping,
    two_clouds,
)
from maxmargin.testing.solver_contract import SolverContract


class TestPairSteps(SolverContract):
    loose_gap = 40.0  # that of all variables is known between two rounds only

    def make(self, stopping):
        return ChunkingSolver(20, stopping=stopping)


class TestQuadraticPrograms(SolverContract):
    loose_gap = 40.0  # that of all variables is known between two rounds only

    def make(self, stopping):
        return ChunkingSolver(20, QuadraticProgramSolver(), stopping=stopping)

    def test_indefinite_matrix_ends_stationary(self):
        """A convex inner solver raises."""
        with pytest.raises(ValueError, match="indefinite"):
            self.make(StoppingRule()).solve(indefinite_sigmoid())


class TestOneChunk(SolverContract):
    """Everything at once."""

    def make(self, stopping):
        return ChunkingSolver(10**6, stopping=stopping)


def sparse_solution(n=600):
    return classification(*two_clouds(n, 2, 4.0), Gaussian(0.5), 10.0)


def test_most_samples_never_enter_the_working_set():
    problem = sparse_solution()
    solution = ChunkingSolver(20, stopping=StoppingRule(violation=1e-4)).solve(problem, callback=Trace())
    assert solution.status is Status.CONVERGED
    active = [entry.active for entry in solution.trace]
    assert active == sorted(active)
    assert np.count_nonzero(solution.dual) <= active[-1] < problem.size / 3
    assert solution.counters.rounds == len(active) - 1
    assert certify(problem, solution.dual).violation <= 1e-4


@pytest.mark.parametrize(
    "inner",
    [PairwiseSolver(), BlockSolver(), QuadraticProgramSolver("piqp"), DecompositionSolver(20), ChunkingSolver(10)],
)
def test_inner_solvers(inner):
    problem = sparse_solution(300)
    solution = ChunkingSolver(40, inner, stopping=StoppingRule(violation=1e-4)).solve(problem)
    expected = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual).dual
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).dual == pytest.approx(expected, rel=1e-6)


def test_inner_solver_for_the_linear_kernel():
    problem = hinge(200, fit_intercept=False)
    solution = ChunkingSolver(30, DualCoordinateAscentSolver(), stopping=StoppingRule(violation=1e-3)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 1e-3 + 1e-9


def test_a_hard_margin_in_chunks():
    problem = hard_margin()
    solution = ChunkingSolver(4, stopping=StoppingRule(violation=1e-6)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).relative_gap < 1e-6


def test_hard_margin_of_inseparable_data_is_unbounded():
    problem = classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf)
    assert ChunkingSolver().solve(problem).status is Status.UNBOUNDED


def test_ctrl_c_leaves_a_valid_point():
    problem, seen = hard_to_finish(), []

    def strike(progress):
        seen.append(progress)
        if len(seen) == 3:
            signal.raise_signal(signal.SIGINT)

    solution = ChunkingSolver(20, stopping=StoppingRule(violation=1e-9)).solve(problem, callback=Trace(0, strike))
    assert solution.status is Status.INTERRUPTED
    assert solution.dual.any()
    assert certify(problem, solution.dual).infeasibility < 1e-9


@pytest.mark.parametrize("options", [{"chunk": 1}, {"inner": None}])
def test_invalid_options_raise(options):
    with pytest.raises(ValueError, match="at least 2 variables|inner must be a solver object"):
        ChunkingSolver(**options)


def test_limit_on_iterations_holds_across_chunks():
    problem = overlapping()
    for limit in (30, 100):
        solution = ChunkingSolver(10, stopping=StoppingRule(violation=1e-9, max_iterations=limit)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations == limit


@pytest.mark.parametrize("machine", [SVC, SVR, NuSVC, OneClassSVM, lambda **p: SVC(C=np.inf, kernel="linear", **p)])
def test_models_by_name(machine):
    X, signs = two_clouds(80, 3, 7.0)
    ours, usual = (machine(solver=solver, tol=1e-5).fit(X, signs) for solver in ("chunking", "auto"))
    assert ours.status_ is Status.CONVERGED
    assert ours.certificate_.violation <= 1e-5
    assert ours.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-4, abs=1e-6)
