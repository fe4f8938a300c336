"""Rankings by the method of multipliers: compared with a generic quadratic program and the other solvers."""

import numpy as np
import pytest

from maxmargin.formulations import pairwise_ranking
from maxmargin.kernels import Gaussian, Linear, Points, Sigmoid
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import MultiplierNewtonSolver, PairwiseSolver, StoppingRule
from maxmargin.testing.quadratic_program import solve_quadratic_program


def problem(kernel, n=40, cost=1.0, seed=0, queries=1, levels=None):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    targets = X[:, 0] + random.normal(scale=0.5, size=n)
    if levels is not None:
        targets = np.digitize(targets, np.linspace(-1.0, 1.0, levels - 1)).astype(float)
    first, second = pairwise_ranking.list_pairs(targets, np.arange(n) % queries)
    costs = cost * random.integers(1, 4, len(first))
    return pairwise_ranking.pose(KernelMatrix(kernel, Points(X)), first, second, costs)


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(0.3)], ids=["linear", "gaussian"])
@pytest.mark.parametrize(
    "options",
    [
        {"cost": 1e-6}, {"cost": 0.1}, {"cost": 10.0}, {"cost": 1e4}, {"levels": 2}, {"queries": 7}, {"n": 2},
        {"levels": 3, "seed": 3},
    ],
    ids=str,
)  # fmt: skip
def test_objective_is_that_of_a_generic_solver(kernel, options):
    posed = problem(kernel, **options)
    found = MultiplierNewtonSolver(stopping=StoppingRule(violation=1e-6)).solve(posed)
    certificate = certify(posed, found.dual)
    assert found.status is Status.CONVERGED
    assert certificate.violation <= 1e-6
    value, _ = solve_quadratic_program(posed)
    assert certificate.dual == pytest.approx(value, rel=1e-6)
    assert certificate.relative_gap < 1e-5
    np.testing.assert_allclose(found.gradient, posed.gradient(found.dual), atol=1e-7 * max(1.0, options.get("cost", 1)))


def test_duplicates_and_equal_scores():
    X = np.repeat(np.random.default_rng(0).integers(0, 3, (12, 2)).astype(float), 4, axis=0)
    targets = np.tile([0.0, 1.0, 1.0, 2.0], 12)  # equal rows with different targets, and many equal differences
    first, second = pairwise_ranking.list_pairs(targets, np.zeros(48, dtype=np.int64))
    posed = pairwise_ranking.pose(KernelMatrix(Linear(), Points(X)), first, second, np.full(len(first), 2.0))
    found = certify(posed, MultiplierNewtonSolver().solve(posed).dual)
    expected = certify(posed, PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(posed).dual)
    assert found.violation <= 1e-3
    assert found.dual == pytest.approx(expected.dual, rel=1e-6)


def test_a_solution_is_a_start_that_takes_no_steps():
    posed = problem(Gaussian(0.3), 60)
    solver = MultiplierNewtonSolver(stopping=StoppingRule(violation=1e-4))
    found = solver.solve(posed)
    again = solver.solve(posed, found.dual)
    assert again.counters.iterations < found.counters.iterations / 5
    assert again.status is Status.CONVERGED
    far = solver.solve(posed, np.random.default_rng(0).uniform(-1, 5, posed.size))
    assert certify(posed, far.dual).dual == pytest.approx(certify(posed, found.dual).dual, rel=1e-4)


def test_block_solver_takes_over_indefinite_and_large_kernels():
    posed = problem(Sigmoid(0.5, -1.0), 30)
    found = MultiplierNewtonSolver().solve(posed)
    assert found.status is Status.CONVERGED
    assert certify(posed, found.dual).violation <= 1e-3
    posed = problem(Gaussian(0.3), 30)
    without_memory = MultiplierNewtonSolver(cache_bytes=100).solve(posed)
    assert certify(posed, without_memory.dual).violation <= 1e-3
    assert without_memory.counters.iterations > 50  # pair steps


def test_limits_return_the_best_point():
    posed = problem(Gaussian(0.3), 60)
    values = []
    for steps in (0, 2, 8, 40):
        found = MultiplierNewtonSolver(stopping=StoppingRule(violation=1e-12, max_iterations=steps)).solve(posed)
        assert found.counters.iterations <= steps
        assert (found.dual >= 0).all()
        assert (found.dual <= posed.upper).all()
        values.append(certify(posed, found.dual).dual)
    assert values == sorted(values)
    stopped = MultiplierNewtonSolver().solve(posed, callback=lambda progress: True)
    assert stopped.status is Status.STOPPED


def test_other_problems_are_rejected():
    square = np.eye(3)
    grouped = DualProblem(PrecomputedMatrix(square), np.ones(3), np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match="for rankings"):
        MultiplierNewtonSolver().solve(grouped)
