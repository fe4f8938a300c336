"""Callbacks, traces and limits that are not reached leave the solution of linear and subgradient solvers unchanged."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Status
from maxmargin.solvers import SOLVERS, CoordinateDescentSolver, StoppingRule, Trace
from maxmargin.testing.named_problems import two_clouds

NAMES = ["dual_coordinate_ascent", "semismooth_newton", "linear", "subgradient", "stochastic_subgradient"]
SHAPES = {"small": (80, 5), "large": (4000, 8), "wide": (1500, 150), "with_subsample": (24_000, 4)}


def hinge(X, signs, cost):
    return c_classification.pose(KernelMatrix(Linear(), Points(X)), signs, np.full(len(signs), cost))


def squared(X, signs, cost):
    return squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.full(len(signs), cost))


def data(shape, storage):
    X, signs = two_clouds(*SHAPES[shape], 1.0)
    return (sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if storage == "csr" else X), signs


def nearly_hard_margin():
    """A problem on which Newton's method stalls and LinearSolver continues with the pairwise solver."""
    random = np.random.default_rng(0)
    X = (random.normal(size=(150, 120)) + random.uniform(-100, 100, size=120)).astype(np.float32)
    values = X @ random.normal(size=120)
    distance = np.abs(values - np.median(values))
    return hinge(sparse.csr_matrix(X), np.where(distance < np.quantile(distance, 0.4), 1.0, -1.0), 2e3)


def observed(solver, problem):
    """Yield the solutions with every observer and every limit that is not reached."""
    rule = solver.stopping
    yield solver.solve(problem, callback=lambda progress: False)
    yield solver.solve(problem, callback=Trace())
    yield solver.solve(problem, callback=Trace(steps=1, points=True))
    for limit in ({"max_seconds": 1e6}, {"max_iterations": 10**9}, {"gap": 1e-300}):
        yield replace(solver, stopping=replace(rule, **limit)).solve(problem)
    everything = replace(rule, max_seconds=1e6, max_iterations=10**9, gap=1e-300)
    yield replace(solver, stopping=everything).solve(problem, callback=Trace(callback=lambda progress: None))


def assert_unchanged(solver, problem):
    silent = solver.solve(problem)
    assert silent.status in (Status.CONVERGED, Status.PRECISION)
    for other in observed(solver, problem):
        assert other.status is silent.status
        assert other.counters.iterations == silent.counters.iterations
        np.testing.assert_array_equal(other.dual, silent.dual)
        np.testing.assert_array_equal(other.gradient, silent.gradient)
        np.testing.assert_array_equal(other.weights, silent.weights)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("shape", ["small", "large", "wide"])
@pytest.mark.parametrize("pose", [hinge, squared])
@pytest.mark.parametrize("name", NAMES)
def test_relative_gap(name, pose, shape, storage):
    tolerance = 0.05 if "subgradient" in name else 1e-4
    solver = SOLVERS[name](stopping=StoppingRule(violation=1e-12, relative_gap=tolerance))
    assert_unchanged(solver, pose(*data(shape, storage), 1e-3))


@pytest.mark.parametrize("shape", ["small", "large"])
@pytest.mark.parametrize("name", NAMES)
def test_violation(name, shape):
    violation = 0.5 if "subgradient" in name else 1e-3
    assert_unchanged(SOLVERS[name](stopping=StoppingRule(violation=violation)), squared(*data(shape, "dense"), 1e-3))


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("shape", ["small", "large", "wide"])
def test_sparse_weights(shape, storage):
    solver = CoordinateDescentSolver(stopping=StoppingRule(violation=1e-12, relative_gap=1e-4))
    assert_unchanged(solver, squared(*data(shape, storage), 0.1))


@pytest.mark.parametrize("pose", [hinge, squared])
def test_start_on_a_subsample(pose):
    solver = SOLVERS["linear"](stopping=StoppingRule(violation=1e-12, relative_gap=1e-4))
    assert_unchanged(solver, pose(*data("with_subsample", "dense"), 1e-3))


@pytest.mark.parametrize("tolerance", [1e-4, 1e-15])
def test_fallbacks_of_the_linear_solver(tolerance):
    assert_unchanged(
        SOLVERS["linear"](stopping=StoppingRule(violation=1e-13, relative_gap=tolerance)), nearly_hard_margin()
    )


def test_limit_on_iterations_holds_in_the_pairwise_fallback():
    problem, rule = nearly_hard_margin(), StoppingRule(violation=1e-13, relative_gap=1e-4)
    free = SOLVERS["linear"](stopping=rule).solve(problem)
    limit = free.counters.iterations - 1
    limited = SOLVERS["linear"](stopping=replace(rule, max_iterations=limit)).solve(problem)
    assert limited.status is Status.MAX_ITERATIONS
    assert limited.counters.iterations == limit
