"""Newton's method by passes: sums of blocks, bounds on the optimum, repaired dual vectors."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from maxmargin.formulations import (
    c_classification,
    epsilon_regression,
    one_class,
    squared_epsilon_regression,
    squared_hinge,
)
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import LinearSolver, StoppingRule
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses
from maxmargin.solvers.linear.pass_bounds import DualConstraints, dual_bound
from maxmargin.solvers.linear.pass_sums import PassPoint, evaluate_block

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(300, 6)) + 0.5
SIGNS = np.where(X[:, 0] + RANDOM.normal(size=300) > 0.5, 1.0, -1.0)
TARGETS = X @ RANDOM.normal(size=6) + RANDOM.normal(size=300)
COSTS = RANDOM.uniform(0.1, 2.0, size=300)

#: From rows to a problem.
POSES = {
    "squared hinge": lambda m, r: squared_hinge.pose(m, SIGNS[r], COSTS[r]),
    "hinge": lambda m, r: c_classification.pose(m, SIGNS[r], COSTS[r]),
    "hinge without offset": lambda m, r: c_classification.pose(m, SIGNS[r], COSTS[r], fit_intercept=False),
    "regression": lambda m, r: epsilon_regression.pose(m, TARGETS[r], COSTS[r], 0.1),
    "squared regression": lambda m, r: squared_epsilon_regression.pose(m, TARGETS[r], COSTS[r], 0.1),
    "one class": lambda m, r: one_class.pose(m, COSTS[r], 0.3),
}


def block(name, rows, data=X):
    """Return the problem and the features of some rows."""
    matrix = KernelMatrix(Linear(), Points.wrap(data[rows]))
    return POSES[name](matrix, rows), matrix.features()


def sums_at(name, point, blocks, data=X, centre=None):
    """Return the sums over blocks; the centre, an array of all samples, is replaced by the responses."""
    norm, total = float(np.linalg.norm(X, axis=1).max()), None
    for rows in blocks:
        problem, features = block(name, rows, data)
        own = None if centre is None else centre[rows]
        sums, response = evaluate_block(problem, features, point, norm, None, own)
        total = sums if total is None else total + sums
        if centre is not None:
            centre[rows] = response
    return total


def constraints_of(name):
    problem, rows = block(name, np.arange(300))
    if not problem.total.any():
        return DualConstraints(problem.total, scalable=not problem.bounded)
    upper = rows.weights(problem.upper)
    return DualConstraints(problem.total, False, upper, float(problem.upper.sum()), 1e-10)


def a_point(name, sigma=0.0, scale=0.3):
    problem, _ = block(name, np.arange(300))
    weights = np.append(scale * np.random.default_rng(1).normal(size=6), 0.0)
    return PassPoint(weights, np.full(problem.groups, 0.2 if name != "one class" else -0.1), sigma)


@pytest.mark.parametrize("name", POSES)
@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_sums_do_not_depend_on_the_blocks(name, sigma):
    point = a_point(name, sigma)
    whole = sums_at(name, point, [np.arange(300)])
    parts = sums_at(name, point, [np.arange(0, 7), np.arange(7, 150), np.arange(150, 300)])
    sparse_parts = sums_at(name, point, [np.arange(0, 150), np.arange(150, 300)], sparse.csr_array(X))
    for other in (parts, sparse_parts):
        np.testing.assert_allclose(other.loss, whole.loss, rtol=1e-12)
        for field in ("linear", "ridge", "total", "weights"):
            np.testing.assert_allclose(getattr(other, field), getattr(whole, field), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(other.moments.squares, whole.moments.squares, rtol=1e-11, atol=1e-11)
        assert other.moments.total == pytest.approx(whole.moments.total)


@pytest.mark.parametrize("name", POSES)
@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.5, 20.0])
@pytest.mark.parametrize("scale", [0.0, 0.3, 5.0])
def test_every_point_bounds_the_optimum(name, sigma, scale):
    problem, _ = block(name, np.arange(300))
    solution = LinearSolver(stopping=StoppingRule(violation=1e-12, relative_gap=1e-10)).solve(problem)
    exact = certify(problem, solution.dual, solution.weights)
    point = a_point(name, sigma, scale)
    sums = sums_at(name, point, [np.arange(0, 100), np.arange(100, 300)])
    primal = 0.5 * point.weights @ point.weights + sums.loss + float(point.offset @ problem.total)
    dual, error = dual_bound(sums, constraints_of(name))
    assert dual <= exact.primal
    assert primal >= exact.dual
    assert error <= 1e-9 * max(1.0, abs(exact.primal)) or not np.isfinite(dual)


def test_sums_in_any_order_bound_their_rounding():
    """A sum of one large and many small parts, from the small end."""
    point = a_point("hinge", sigma=0.5)
    parts = [sums_at("hinge", point, [np.array([k])]) for k in range(40)]
    parts[0] = replace(parts[0], weights=parts[0].weights + 2.0**53)
    total = parts[0]
    for part in parts[1:]:
        total = part + total
    places = [(side, k) for side in range(2) for k in range(7)]
    exact = [sum(Fraction(float(part.weights[at])) for part in parts) for at in places]
    off = [float(sought - Fraction(float(total.weights[at]))) for sought, at in zip(exact, places, strict=True)]
    assert 0 < float(np.linalg.norm(off)) <= total.weights_error


@pytest.mark.parametrize("by_products", [False, True])
@pytest.mark.parametrize("name", POSES)
def test_the_run_converges_to_the_optimum(name, by_products):
    problem, _ = block(name, np.arange(300))
    exact = certify(problem, LinearSolver(stopping=StoppingRule(relative_gap=1e-9)).solve(problem).dual)
    start = PassPoint(np.zeros(7), np.full(problem.groups, -1.0), 0.0 if problem.ridged else 2.0)
    tolerance = 1e-3 if by_products else 1e-5  # with inexact steps, the last digits take many
    rule = StoppingRule(violation=1e-13, relative_gap=tolerance)
    run = NewtonByPasses(start, rule, constraints_of(name), 0.0, np.zeros(6), by_products)
    centre, last = np.zeros(300, dtype=np.float32), np.zeros(300, dtype=np.float32)
    while run.status is None and run.passes < 600:
        centre = last if run.point.recentre else centre
        last = centre.copy()
        run.receive(sums_at(name, run.point, [np.arange(0, 100), np.arange(100, 300)], centre=last))
    assert run.status is not None
    assert run.status.converged
    assert run.dual <= exact.primal
    assert exact.dual <= run.primal
    assert run.primal - run.dual <= tolerance * max(abs(run.primal), abs(run.dual))


def test_values_that_overflow_are_an_error():
    with pytest.raises(ValueError, match="not finite"):
        sums_at("squared hinge", PassPoint(np.full(7, 1e308), np.zeros(1)), [np.arange(300)])
