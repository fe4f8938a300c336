from itertools import pairwise

import numpy as np
import pytest

from maxmargin.kernels import Gaussian, Linear
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.matrices.lazy_row_cache import LazyRowCache
from maxmargin.problems import Status, certify
from maxmargin.solvers import GradientProjectionSolver, PairwiseSolver, StoppingRule, Trace
from maxmargin.solvers.classical.gradient_projection import _GradientProjectionRun
from maxmargin.solvers.monitor import Monitor
from maxmargin.testing.named_problems import (
    BOXLESS,
    CONVEX,
    LINEAR,
    classification,
    hard_to_finish,
    huge_cost,
    overlapping,
    two_clouds,
    unscaled_columns,
)  # fmt: skip
from maxmargin.testing.solver_contract import SolverContract


class TestConjugate(SolverContract):
    def make(self, stopping):
        return GradientProjectionSolver(stopping=stopping)


class TestWithoutRoomForRows(SolverContract):
    def make(self, stopping):
        return GradientProjectionSolver(cache_bytes=1, stopping=stopping)


class TestGradient(SolverContract):
    """Algorithm 1.1 as printed; it converges slowly if the kernel matrix is ill-conditioned (see below)."""

    def make(self, stopping):
        return GradientProjectionSolver("gradient", stopping=stopping)

    @pytest.mark.parametrize("name", [name for name in CONVEX if name not in ("huge_cost", "unscaled_columns")])
    def test_certifies(self, name):
        super().test_certifies(name)


@pytest.mark.parametrize("make", [huge_cost, unscaled_columns])
def test_plain_gradients_converge_slowly(make):
    problem, rule = make(), StoppingRule(violation=1e-6, max_iterations=1000)
    plain = GradientProjectionSolver("gradient", stopping=rule).solve(problem)
    assert plain.status is Status.MAX_ITERATIONS
    conjugate = GradientProjectionSolver(stopping=rule).solve(problem)
    assert conjugate.status is Status.CONVERGED
    assert certify(problem, plain.dual).dual < certify(problem, conjugate.dual).dual


@pytest.mark.parametrize("name", [*BOXLESS, *LINEAR])
def test_other_problems(name):
    problem = {**LINEAR, **BOXLESS}[name]()
    solution = GradientProjectionSolver(stopping=StoppingRule(violation=1e-5)).solve(problem)
    assert solution.status is Status.CONVERGED
    everything = np.arange(problem.size)
    sums = np.abs(problem.matrix.block(everything, everything)) @ np.abs(solution.dual)
    assert certify(problem, solution.dual).violation <= 1e-5 + 1e-15 * sums.max()


def test_unknown_directions_raise():
    with pytest.raises(ValueError, match="unknown directions 'newton'; choose one of 'conjugate', 'gradient'"):
        GradientProjectionSolver("newton").solve(overlapping())


@pytest.mark.parametrize("directions", ["conjugate", "gradient"])
def test_hard_margin_of_inseparable_data_is_unbounded(directions):
    for problem in (
        classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf),
        classification([[0.0], [0.0]], [-1, 1], Linear(), np.inf),
        classification([[1.0], [-1.0]], [1, 1], Linear(), np.inf, fit_intercept=False),
    ):
        assert GradientProjectionSolver(directions).solve(problem).status is Status.UNBOUNDED
    larger = classification(*two_clouds(60, 3, 1.0), Linear(), np.inf)
    assert GradientProjectionSolver().solve(larger).status is Status.UNBOUNDED


def run_of(problem, conjugate=True):
    return _GradientProjectionRun(
        problem, None, Monitor(StoppingRule(violation=1e-9)), LazyRowCache(problem.matrix, 10**8), conjugate
    )


def test_projection_and_eviction_as_printed():
    """Lines 7 to 12 on five variables, two of which the projected gradient drives out, one of them only in turn."""
    matrix = PrecomputedMatrix(np.eye(5))
    problem = classification(np.zeros((5, 1)), [1, 1, 1, -1, -1], Linear()).with_matrix(matrix)
    run = run_of(problem)
    dual = np.array([1.0, 0.0, 0.5, -1.0, -0.5])  # at upper, at lower, free, at lower, free
    run.point = dual, np.array([9.0, 1.0, 2.0, 1.9, 0.0])
    run.working = np.arange(5)
    # The mean of all is 2.78: the first rises at its upper bound; the second and the fourth fall at their lower ones.
    ascent = run._project()
    np.testing.assert_array_equal(run.working, [2, 4])
    np.testing.assert_allclose(ascent, [1.0, -1.0])


def test_directions_are_conjugate_while_the_working_set_stays():
    problem = BOXLESS["least_squares"]()
    everything = np.arange(problem.size)
    H = problem.matrix.block(everything, everything) + np.diag(problem.ridge)
    run = run_of(problem)
    directions = []
    plain = run._step

    def watched(ascent, direction):
        directions.append(direction)
        return plain(ascent, direction)

    run._step = watched
    assert run.iterate() is Status.CONVERGED
    assert len(directions) > 20
    for before, after in pairwise(directions):
        assert abs(before @ H @ after) < 1e-6 * np.sqrt((before @ H @ before) * (after @ H @ after))


def test_conjugate_directions_take_fewer_steps():
    problem = overlapping()
    rule = StoppingRule(violation=1e-8)
    steps = [
        GradientProjectionSolver(name, stopping=rule).solve(problem).counters.iterations
        for name in ("conjugate", "gradient")
    ]
    assert 2 * steps[0] < steps[1]


def test_every_step_raises_the_dual_inside_the_box():
    problem, trace = overlapping(), Trace(steps=1)
    solution = GradientProjectionSolver(stopping=StoppingRule(violation=1e-8)).solve(problem, callback=trace)
    values = [entry.dual for entry in solution.trace]
    assert len(values) > 50
    assert (np.diff(values) >= -1e-12 * abs(values[-1])).all()
    assert all(0 < entry.active <= problem.size for entry in solution.trace[1:])
    assert solution.trace[-1].kernel_evaluations == solution.counters.kernel_evaluations
    assert solution.trace[-1].support_vectors == np.count_nonzero(solution.dual)
    width = problem.upper - problem.lower
    near = np.minimum(solution.dual - problem.lower, problem.upper - solution.dual)
    assert (near >= 0).all()
    assert not ((near > 0) & (near < 1e-13 * width)).any()


def test_row_cache_changes_the_cost_only():
    problem = overlapping()
    rule = StoppingRule(violation=1e-7)
    stored, computed = (GradientProjectionSolver(cache_bytes=b, stopping=rule).solve(problem) for b in (10**8, 1))
    assert stored.counters.kernel_evaluations < computed.counters.kernel_evaluations
    assert certify(problem, stored.dual).dual == pytest.approx(certify(problem, computed.dual).dual, rel=1e-10)


def test_agrees_with_pair_steps():
    problem = classification(*two_clouds(300, 4, 1.2), Gaussian(0.3), 10.0)
    rule = StoppingRule(violation=1e-5)
    mine, pairs = (kind(stopping=rule).solve(problem) for kind in (GradientProjectionSolver, PairwiseSolver))
    assert certify(problem, mine.dual).dual == pytest.approx(certify(problem, pairs.dual).dual, rel=1e-8)


def test_ctrl_c_leaves_a_valid_point(monkeypatch):
    plain, calls = LazyRowCache.product, []

    def interrupted(self, vector):
        calls.append(vector)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return plain(self, vector)

    monkeypatch.setattr(LazyRowCache, "product", interrupted)
    problem = hard_to_finish()
    solution = GradientProjectionSolver(stopping=StoppingRule(violation=1e-12)).solve(problem)
    assert solution.status is Status.INTERRUPTED
    assert solution.counters.iterations == 19
    assert certify(problem, solution.dual).infeasibility < 1e-9 * np.abs(solution.dual).max()
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-6)


def test_exhausted_precision_is_reported():
    X, signs = two_clouds(60, 2, 0.5)
    problem = classification(X * 1e9, signs, Linear(), 1e6)
    solution = GradientProjectionSolver(stopping=StoppingRule(violation=1e-9, max_iterations=20_000)).solve(problem)
    assert solution.status in (Status.PRECISION, Status.MAX_ITERATIONS)
