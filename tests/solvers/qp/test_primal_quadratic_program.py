import numpy as np
import pytest
from scipy import sparse

from contracts.linear_problems import sparse_rows
from contracts.linear_solver_contract import LinearSolverContract
from maxmargin import SVC, LinearSVC, LinearSVR
from maxmargin.feature_maps import PolynomialMap
from maxmargin.kernels import Linear
from maxmargin.problems import Status, certify
from maxmargin.solvers import PrimalQuadraticProgramSolver, QuadraticProgramSolver, StoppingRule
from maxmargin.solvers.qp.primal_quadratic_program import pose_primal
from maxmargin.solvers.qp.qp_backends import BACKENDS, BackendOptions
from maxmargin.testing.named_problems import (
    LINEAR,
    classification,
    hard_margin,
    linear,
    overlapping,
    separable,
    two_clouds,
)


class PrimalContract(LinearSolverContract):
    backend = "clarabel"

    def make(self, stopping):
        return PrimalQuadraticProgramSolver(self.backend, stopping=stopping)


class TestClarabel(PrimalContract):
    pass


class TestPiqp(PrimalContract):
    backend = "piqp"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", [separable, hard_margin, sparse_rows, lambda: linear("squared_epsilon", 1.0)])
def test_every_backend(backend, make):
    problem = make()
    solution = PrimalQuadraticProgramSolver(backend, stopping=StoppingRule(violation=1e-6)).solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual).violation <= 2e-6


@pytest.mark.parametrize("name", LINEAR)
def test_primal_and_dual_programs_agree(name):
    problem = LINEAR[name]()
    rule = StoppingRule(violation=1e-6)
    primal = certify(problem, PrimalQuadraticProgramSolver(stopping=rule).solve(problem).dual)
    dual = certify(problem, QuadraticProgramSolver(stopping=rule).solve(problem).dual)
    assert primal.dual == pytest.approx(dual.dual, rel=1e-6, abs=1e-9)
    assert primal.squared_norm == pytest.approx(dual.squared_norm, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", ["separable", "hard_margin", "hinge", "squared_hinge", "epsilon", "linear_two_groups"])
def test_weights_of_the_program_are_those_of_its_multipliers(name):
    problem = LINEAR[name]()
    rows = problem.matrix.features()
    posed = pose_primal(problem, rows, 10**6)
    answer = BACKENDS["clarabel"](posed.program, BackendOptions())
    width = float((problem.upper - problem.lower).max())
    unit = width if width < 1 else 1.0
    weights = unit * answer.point[: rows.width]
    np.testing.assert_allclose(weights, rows.weights(posed.read(answer))[:-1], atol=1e-6 * (1 + np.abs(weights).max()))


def test_the_hard_margin_is_the_textbook_program():
    """d + 1 variables and n inequalities: no slacks at all."""
    problem = hard_margin()
    program = pose_primal(problem, problem.matrix.features(), 10**6).program
    assert program.size == 3 + 1
    assert program.rows.shape == (40, 4)
    signs = problem.linear
    np.testing.assert_array_equal(program.least, np.where(signs > 0, 1.0, -np.inf))
    np.testing.assert_array_equal(program.most, np.where(signs > 0, np.inf, -1.0))


def test_the_soft_margin_has_one_slack_for_each_sample():
    problem = separable()
    program = pose_primal(problem, problem.matrix.features(), 10**6).program
    assert program.size == 3 + 1 + 40
    np.testing.assert_array_equal(program.linear[4:], np.full(40, 1.0))


def test_hard_margin_of_inseparable_data_is_unbounded():
    problem = classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf)
    assert PrimalQuadraticProgramSolver().solve(problem).status is Status.UNBOUNDED


def test_too_little_memory_raises():
    with pytest.raises(MemoryError, match="40 samples and 3 features takes .*'dual_coordinate_ascent'"):
        PrimalQuadraticProgramSolver(memory_bytes=1000).solve(separable())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_linear_svc(loss, make):
    X, signs = two_clouds(100, 4, 1.0)
    ours, usual = (
        LinearSVC(loss=loss, solver=solver, tol=1e-6).fit(make(X), signs)
        for solver in ("primal_quadratic_program", "auto")
    )
    np.testing.assert_allclose(ours.coef_, usual.coef_, atol=2e-3)
    assert ours.certificate_.relative_gap <= 1e-6


def test_linear_svr():
    X, _ = two_clouds(80, 3, 1.0)
    y = X @ [1.0, -2.0, 0.5]
    ours, usual = (LinearSVR(solver=solver, tol=1e-7).fit(X, y) for solver in ("primal_quadratic_program", "auto"))
    np.testing.assert_allclose(ours.coef_, usual.coef_, atol=1e-3)


@pytest.mark.parametrize("cost", [1.0, np.inf])
def test_svc_with_the_linear_kernel(cost):
    X, signs = two_clouds(60, 3, 7.0)
    ours, usual = (
        SVC(kernel="linear", C=cost, solver=solver, tol=1e-6).fit(X, signs)
        for solver in ("primal_quadratic_program", "auto")
    )
    assert ours.status_ is Status.CONVERGED
    assert ours.certificate_.dual == pytest.approx(usual.certificate_.dual, rel=1e-6)
    np.testing.assert_allclose(ours.coef_, usual.coef_, atol=1e-4)


def test_explicit_feature_maps():
    X, _ = two_clouds(80, 2, 1.0)
    y = np.where((X**2).sum(axis=1) > 2, 1, -1)
    Z = PolynomialMap(degree=2).fit_transform(X)
    ours = LinearSVC(C=1e4, loss="hinge", solver="primal_quadratic_program", fit_intercept=True).fit(Z, y)
    assert ours.score(Z, y) == 1.0


def test_other_kernels_are_an_error_that_names_the_solver():
    with pytest.raises(ValueError, match="'primal_quadratic_program' optimises the weights of a linear model"):
        PrimalQuadraticProgramSolver().solve(overlapping())
