"""The hinge with a large cost on text: block decomposition on kernel values takes over from slow coordinate ascent."""

import numpy as np
import pytest
from benchmarks.peers.linear.synthetic_text import repeated_text

from maxmargin import LinearSVC
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Status
from maxmargin.solvers import BlockSolver, LinearSolver, SemismoothNewtonSolver, StoppingRule, Trace
from maxmargin.solvers.linear import linear_solver

RULE = StoppingRule(violation=1e-13, relative_gap=1e-4)


@pytest.fixture(scope="module")
def text():
    return repeated_text(2_400, 9_000, 100)


@pytest.fixture
def kernel_solves(monkeypatch):
    """The block solvers that are used."""
    used = []

    class Counted(BlockSolver):
        def solve(self, *arguments):
            used.append(self)
            return super().solve(*arguments)

    monkeypatch.setattr(linear_solver, "BlockSolver", Counted)
    return used


def pose(text, formulation=c_classification, cost=100.0, fit_intercept=True):
    X, y = text
    return formulation.pose(
        KernelMatrix(Linear(), Points(X)), np.where(y > 0, 1.0, -1.0), np.full(len(y), cost), fit_intercept
    )


def test_block_decomposition_takes_over(text, kernel_solves):
    X, y = text
    model = LinearSVC(loss="hinge", C=100).fit(X, y)
    assert len(kernel_solves) == 1
    assert model.certificate_.relative_gap <= 1e-4
    other = SemismoothNewtonSolver(RULE).solve(pose(text))
    assert other.status is Status.CONVERGED
    values = [pose(text).linear @ dual for dual in (model._models_[0].dual, other.dual)]
    assert values[0] == pytest.approx(values[1], rel=1e-2)


@pytest.mark.parametrize(
    "problem",
    [{"cost": 0.1}, {"formulation": squared_hinge}, {"fit_intercept": False}],
    ids=lambda problem: str(problem),
)
def test_other_methods_where_they_are_cheaper(problem, text, kernel_solves):
    solution = LinearSolver(RULE).solve(pose(text, **problem))
    assert solution.status is Status.CONVERGED
    assert not kernel_solves


def test_observers_and_limits_change_nothing(text):
    problem, solver = pose(text), LinearSolver(RULE)
    silent, traced = solver.solve(problem), solver.solve(problem, callback=Trace())
    limited = LinearSolver(StoppingRule(1e-13, None, 10**6, 1e6, 1e-4)).solve(problem)
    np.testing.assert_array_equal(traced.dual, silent.dual)
    np.testing.assert_array_equal(limited.dual, silent.dual)


def test_limit_of_iterations(text):
    passes = LinearSolver(RULE).solve(pose(text)).counters.iterations
    solution = LinearSolver(StoppingRule(1e-13, None, passes - 3, None, 1e-4)).solve(pose(text))
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.counters.iterations <= passes - 2


def test_the_next_method_after_an_unconfirmed_gap(text, kernel_solves, monkeypatch):
    monkeypatch.setattr(linear_solver, "KERNEL_GAP_FRACTION", 100.0)  # too early
    solution = LinearSolver(RULE).solve(pose(text))
    assert solution.status is Status.CONVERGED
    assert len(kernel_solves) == 1
