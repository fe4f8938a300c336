from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.kernels import Gaussian, Linear
from maxmargin.matrices import CachedMatrix
from maxmargin.problems import Status, certify
from maxmargin.solvers import PairwiseSolver, PlattSolver, StoppingRule, Trace
from maxmargin.solvers.classical.platt import Variable, _PlattRun, clipped_pair, clipped_step
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
)  # fmt: skip
from maxmargin.testing.solver_contract import SolverContract


class TestPlatt(SolverContract):
    """All problems but one: with a huge cost, pair steps in the order of the samples converge slowly (see below)."""

    def make(self, stopping):
        return PlattSolver(stopping=stopping)

    @pytest.mark.parametrize("name", [name for name in CONVEX if name != "huge_cost"])
    def test_certifies(self, name):
        super().test_certifies(name)


def test_slow_convergence_at_huge_cost_ends_at_the_iteration_limit():
    problem = huge_cost()
    solution = PlattSolver(stopping=StoppingRule(violation=1e-6, max_iterations=2000)).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    certificate = certify(problem, solution.dual)
    assert certificate.infeasibility < 1e-9 * np.abs(solution.dual).max()
    assert certificate.gap > 0
    assert PlattSolver().solve(classification(*two_clouds(60, 2, 1.5), Gaussian(0.5), 100.0)).status.converged


# Steps of one variable converge slowly if samples are similar, as with a large constant in the kernel and no offset.
SLOW = {
    "least_squares_of_duplicates", "least_squares_of_a_singular_kernel", "least_squares_of_unscaled_columns",
    "hinge_at_huge_cost", "squared_hinge_at_huge_cost",
    *(name for name in LINEAR if name.endswith("_without_bias") and name != "hinge_without_bias"),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in (*BOXLESS, *LINEAR) if name not in SLOW])
def test_other_problems(name):
    problem = {**LINEAR, **BOXLESS}[name]()
    solution = PlattSolver(stopping=StoppingRule(violation=1e-4)).solve(problem)
    assert solution.status is Status.CONVERGED
    everything = np.arange(problem.size)
    sums = np.abs(problem.matrix.block(everything, everything)) @ np.abs(solution.dual)
    assert certify(problem, solution.dual).violation <= 1e-4 + 1e-15 * sums.max()


# ---- the step, three times: in α and y with L and H, in the signed dual, as a direction search ----------------------


def step_of_the_tutorial(alpha, y, error, eta, cost):
    """α₁ and α₂ after a step, as in the slides of Li: L and H by cases, the rest by the sum."""
    if y[0] != y[1]:
        L, H = max(0.0, alpha[1] - alpha[0]), min(cost, cost + alpha[1] - alpha[0])
    else:
        L, H = max(0.0, alpha[1] + alpha[0] - cost), min(cost, alpha[1] + alpha[0])
    second = min(max(alpha[1] + y[1] * (error[0] - error[1]) / eta, L), H)
    return alpha[0] + y[0] * y[1] * (alpha[1] - second), second


def direction_search(dual, lower, upper, gradient, curvature):
    """b₁ and b₂ after (1.18) along the direction of the pair in which the dual rises (Algorithm 1.3, line 7)."""
    i, j = (0, 1) if gradient[0] > gradient[1] else (1, 0)
    step = min(upper[i] - dual[i], dual[j] - lower[j], (gradient[i] - gradient[j]) / curvature)
    moved = np.array(dual)
    moved[i] += step
    moved[j] -= step
    return moved


unit = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0))
labels = st.sampled_from([-1.0, 1.0])
numbers = st.floats(-5.0, 5.0)


@given(unit, unit, labels, labels, numbers, numbers, st.floats(1e-3, 1e3), st.sampled_from([1e-3, 1.0, 50.0]), numbers)
@settings(max_examples=300, deadline=None)
def test_clipping_equals_the_line_search(part_1, part_2, y_1, y_2, error_1, error_2, eta, cost, offset):
    y, alpha, error = np.array([y_1, y_2]), cost * np.array([part_1, part_2]), np.array([error_1, error_2])
    dual, lower, upper = y * alpha, np.minimum(0.0, y * cost), np.maximum(0.0, y * cost)
    gradient = offset - error  # E = −(g − ρ)
    tutorial = y * step_of_the_tutorial(alpha, y, error, eta, cost)
    first, second = (Variable(dual[k], lower[k], upper[k]) for k in (0, 1))
    _, moved_2, moved_1 = clipped_pair(second, first, gradient[1] - gradient[0], eta)
    searched = direction_search(dual, lower, upper, gradient, eta)
    tolerance = 1e-12 * cost + 1e-14 * np.abs(gradient).max() / eta
    np.testing.assert_allclose([moved_1, moved_2], tutorial, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose([moved_1, moved_2], searched, rtol=1e-9, atol=tolerance)
    assert lower[0] <= moved_1 <= upper[0]
    assert lower[1] <= moved_2 <= upper[1]


@given(numbers, st.floats(-3.0, 3.0), st.floats(-4.0, 0.0), st.floats(0.0, 4.0))
@settings(max_examples=200, deadline=None)
def test_clipped_step_has_the_largest_gain(slope, curvature, low, high):
    """For any curvature: zero for duplicates, negative for indefinite kernels."""
    step = clipped_step(slope, curvature, low, high)
    others = np.linspace(low, high, 101)
    gains = slope * others - 0.5 * curvature * others**2
    assert low <= step <= high
    assert slope * step - 0.5 * curvature * step**2 >= gains.max() - 1e-9


def test_a_step_without_curvature_and_bound_is_infinite():
    assert clipped_step(1.0, 0.0, -1.0, np.inf) == np.inf
    assert clipped_step(-1.0, 0.0, -np.inf, 1.0) == -np.inf
    assert clipped_step(-1.0, 0.0, -1.0, np.inf) == -1.0
    assert clipped_step(1.0, 2.0, -np.inf, np.inf) == 0.5


# ---- the heuristics -------------------------------------------------------------------------------------------------


def run_of(problem, seed=0):
    rows = CachedMatrix(problem.matrix, 10**8)
    return _PlattRun(problem, None, Monitor(StoppingRule(violation=1e-6)), rows, np.random.default_rng(seed))


def test_order_of_partners():
    problem = overlapping()
    run = run_of(problem)
    assert not run._between_bounds().any()
    run.point = PlattSolver(stopping=StoppingRule(max_iterations=60)).solve(problem).dual, run.point[1]
    run.refresh()
    gradient, between = run.point[1], np.flatnonzero(run._between_bounds())
    index = int(np.flatnonzero(run.dual == 0)[0])
    order = list(run._partners(index))
    largest = max((k for k in between if k in order), key=lambda k: abs(gradient[k] - gradient[index]))
    inside = [k for k in order if k in between]
    assert order[0] == largest
    assert set(order[1 : 1 + len(set(inside))]) == set(inside)  # then those between their bounds, then all
    assert set(order) > set(inside)


def test_loops_over_all_and_over_free_samples_alternate(monkeypatch):
    loops = []
    plain = _PlattRun._examine_samples

    def watched(self, examine_all):
        changed = plain(self, examine_all)
        loops.append((examine_all, changed))
        return changed

    monkeypatch.setattr(_PlattRun, "_examine_samples", watched)
    assert PlattSolver(stopping=StoppingRule(violation=1e-6)).solve(overlapping()).status.converged
    assert loops[0][0]
    assert sum(examine_all for examine_all, _ in loops) < len(loops) / 2
    for (examine_all, changed), (next_one, _) in pairwise(loops):
        assert next_one == (not changed and not examine_all)


def test_the_seed_determines_the_steps():
    problem = overlapping()
    first, same, other = (PlattSolver(seed).solve(problem) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.dual, same.dual)
    assert (first.dual != other.dual).any()
    assert certify(problem, first.dual).dual == pytest.approx(certify(problem, other.dual).dual, rel=1e-4)


def test_cache_size_changes_nothing():
    problem = overlapping()
    small, large = (PlattSolver(cache_bytes=size).solve(problem) for size in (1, 10**8))
    np.testing.assert_array_equal(small.dual, large.dual)
    assert small.counters.cache_misses > large.counters.cache_misses


def test_every_step_raises_the_dual():
    problem, trace = overlapping(), Trace(steps=1)
    solution = PlattSolver(stopping=StoppingRule(violation=1e-4)).solve(problem, callback=trace)
    values = np.array([entry.dual for entry in solution.trace])
    assert len(values) > solution.counters.iterations
    assert (np.diff(values) >= -1e-12 * values[-1]).all()
    assert solution.trace[-1].kernel_evaluations == solution.counters.kernel_evaluations


def test_takes_more_steps_than_second_order_selection():
    problem = classification(*two_clouds(300, 4, 1.2), Gaussian(0.3), 10.0)
    rule = StoppingRule(violation=1e-3)
    mine, pairs = PlattSolver(stopping=rule).solve(problem), PairwiseSolver(stopping=rule).solve(problem)
    assert certify(problem, mine.dual).dual == pytest.approx(certify(problem, pairs.dual).dual, rel=1e-4)
    assert mine.counters.iterations > pairs.counters.iterations


def test_hard_margin_of_inseparable_data_is_unbounded():
    for problem in (
        classification([[0.0], [0.0]], [-1, 1], Linear(), np.inf),
        classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf),
    ):
        assert PlattSolver().solve(problem).status is Status.UNBOUNDED


def test_unbounded_growth_in_small_steps_reaches_the_iteration_limit():
    problem = classification([[1.0], [-1.0]], [1, 1], Linear(), np.inf, fit_intercept=False)
    solution = PlattSolver(stopping=StoppingRule(max_iterations=1000)).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.dual.sum() > 900


def test_ctrl_c_leaves_a_valid_point(monkeypatch):
    plain, calls = CachedMatrix.rows, []

    def interrupted(self, indices):
        calls.append(indices)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return plain(self, indices)

    monkeypatch.setattr(CachedMatrix, "rows", interrupted)
    problem = hard_to_finish()
    solution = PlattSolver(stopping=StoppingRule(violation=1e-12)).solve(problem)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual).infeasibility < 1e-9 * np.abs(solution.dual).max()
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-6)


def test_exhausted_precision_is_reported():
    X, signs = two_clouds(60, 2, 0.5)
    problem = classification(X * 1e9, signs, Linear(), 1e6)
    solution = PlattSolver(stopping=StoppingRule(violation=1e-9, max_iterations=5000)).solve(problem)
    assert solution.status in (Status.PRECISION, Status.MAX_ITERATIONS)
