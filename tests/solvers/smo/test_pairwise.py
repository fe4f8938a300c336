import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points
from maxmargin.matrices import CachedMatrix, KernelMatrix
from maxmargin.problems import DualProblem, Status, certify, feasible_start
from maxmargin.solvers import PairwiseSolver, StoppingRule, Trace
from maxmargin.solvers.smo.smo_state import SELECTION_RULES, SmoState
from maxmargin.testing.named_problems import CONVEX, classification, overlapping, two_clouds
from maxmargin.testing.solver_contract import SolverContract
from reference import pairwise as reference


class TestSecondOrder(SolverContract):
    def make(self, stopping):
        return PairwiseSolver(stopping=stopping)


class TestMostViolatingPair(SolverContract):
    def make(self, stopping):
        return PairwiseSolver("most_violating_pair", stopping=stopping)


class TestMaximumGain(SolverContract):
    def make(self, stopping):
        return PairwiseSolver("maximum_gain", stopping=stopping)


class TestWithoutShrinking(SolverContract):
    def make(self, stopping):
        return PairwiseSolver(shrinking=False, stopping=stopping)


class TestTwoRowsOfCache(SolverContract):
    def make(self, stopping):
        return PairwiseSolver(cache_bytes=1, stopping=stopping)


class TestTwoRowsOfCacheMaximumGain(SolverContract):
    def make(self, stopping):
        return PairwiseSolver("maximum_gain", cache_bytes=1, stopping=stopping)


class TestWithoutExactFinish(SolverContract):
    def make(self, stopping):
        return PairwiseSolver(finish_below=0, stopping=stopping)


def path_of(problem, selection, steps):
    """The pairs that the native loop moves, one step at a time."""
    state = SmoState(problem, feasible_start(problem), 10**8, keep_bounded_part=False)
    path = []
    while len(path) < steps:
        before = state.dual.copy()
        outcome = state.steps(SELECTION_RULES[selection], 1e-3, 1, 10.0)
        if outcome.steps:
            change = state.dual - before
            up, down = np.flatnonzero(change > 0), np.flatnonzero(change < 0)
            path.append((int(up[0]) if len(up) else -1, int(down[0]) if len(down) else -1))
        elif outcome.reason.name == "OPTIMAL":
            break
    return path, state.dual


PATHS = [
    "overlapping", "without_bias", "equal_duplicates", "almost_empty_class", "sample_costs", "singular_kernel",
    "two_samples", "with_ridge", "zero_diagonal", "opposite_duplicates", "hard_margin", "two_groups",
    "group_and_singles", "one_class",
]  # fmt: skip


@pytest.mark.parametrize("selection", SELECTION_RULES)
@pytest.mark.parametrize("name", PATHS)
def test_native_loop_takes_the_steps_of_its_reference(selection, name):
    problem = CONVEX[name]()
    expected_dual, expected_path = reference.pairwise(problem, selection, max_steps=300)
    path, dual = path_of(problem, selection, 300)
    assert path == [(int(i), int(j)) for i, j in expected_path]
    np.testing.assert_allclose(dual, expected_dual, rtol=1e-12, atol=1e-14)


def overlapping_cloud(n=600):
    return classification(*two_clouds(n, 4, 1.2), Gaussian(0.3), 10.0)


@pytest.mark.parametrize("selection", SELECTION_RULES)
def test_cache_size_changes_nothing(selection):
    problem = overlapping_cloud(400)
    results = [
        PairwiseSolver(selection, cache_bytes=bytes_).solve(problem)
        for bytes_ in (1, 8 * 400 * 10, 8 * 400 * 100, 10**9)
    ]
    for other in results[1:]:
        np.testing.assert_array_equal(other.dual, results[0].dual)
        assert other.counters.iterations == results[0].counters.iterations
    assert results[0].counters.cache_misses > results[-1].counters.cache_misses
    assert results[-1].counters.cache_hits > 0


def test_rules_shrinking_and_cache_agree_on_the_optimum():
    problem = overlapping_cloud()
    values = [
        certify(
            problem,
            PairwiseSolver(selection, shrinking, cache, StoppingRule(violation=1e-5)).solve(problem).dual,
        ).dual
        for selection in SELECTION_RULES
        for shrinking in (True, False)
        for cache in (10**9, 8 * 600 * 40)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


def test_shrinking_removes_and_restores_variables():
    problem = overlapping_cloud()
    options = {"cache_bytes": 8 * 600 * 40, "finish_below": 0, "stopping": StoppingRule(violation=1e-6)}
    plain = PairwiseSolver(shrinking=False, **options).solve(problem, callback=Trace())
    assert {entry.active for entry in plain.trace} == {problem.size}
    solution = PairwiseSolver(shrinking=True, **options).solve(problem, callback=Trace())
    active = [entry.active for entry in solution.trace]
    assert min(active) < problem.size
    assert active[-1] == problem.size
    assert solution.counters.kernel_evaluations < plain.counters.kernel_evaluations
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-9)
    assert certify(problem, solution.dual).dual == pytest.approx(certify(problem, plain.dual).dual, rel=1e-9)


def test_warm_start_with_shrinking_has_a_correct_gradient():
    problem = overlapping_cloud(600)
    first = PairwiseSolver(stopping=StoppingRule(violation=0.5)).solve(problem)
    second = PairwiseSolver(stopping=StoppingRule(violation=1e-6), finish_below=0).solve(problem, first.dual)
    np.testing.assert_allclose(second.gradient, problem.gradient(second.dual), atol=1e-9)
    assert certify(problem, second.dual).violation <= 1e-6 + 1e-9


# In a group of a few variables two may reach their bounds in the same step, one of them up to rounding.
@pytest.mark.parametrize("name", [name for name in CONVEX if name != "group_of_each_sample"])
def test_variables_at_a_bound_are_exactly_on_it(name):
    problem = CONVEX[name]()
    dual = PairwiseSolver(finish_below=0).solve(problem).dual
    assert (dual >= problem.lower).all()
    assert (dual <= problem.upper).all()
    width = np.where(np.isfinite(problem.upper - problem.lower), problem.upper - problem.lower, 1.0)
    near = np.minimum(dual - problem.lower, problem.upper - dual)
    assert not ((near > 0) & (near < 1e-13 * width)).any()


@given(st.integers(0, 2**31), st.sampled_from(sorted(SELECTION_RULES)), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_steps_keep_the_constraints_and_never_lower_the_dual(seed, selection, steps):
    random = np.random.default_rng(seed)
    X, signs = two_clouds(24, 2, 1.0, seed)
    problem = classification(X, signs, Gaussian(random.uniform(0.1, 3.0)), random.uniform(0.1, 10.0, 24))
    start = feasible_start(problem, random.normal(size=24))
    before = certify(problem, start)
    stopping = StoppingRule(violation=1e-9, max_iterations=steps)
    solution = PairwiseSolver(selection, stopping=stopping).solve(problem, start)
    after = certify(problem, solution.dual)
    assert after.infeasibility < 1e-10
    assert after.dual >= before.dual - 1e-10 * (1 + abs(before.dual))


def test_permuting_samples_permutes_the_dual():
    X, signs = two_clouds(60, 3, 1.0)
    order = np.random.default_rng(0).permutation(60)
    stopping = StoppingRule(violation=1e-8)
    dual = PairwiseSolver(stopping=stopping).solve(classification(X, signs, Gaussian(0.5), 2.0)).dual
    permuted = PairwiseSolver(stopping=stopping).solve(classification(X[order], signs[order], Gaussian(0.5), 2.0)).dual
    np.testing.assert_allclose(permuted, dual[order], atol=1e-8)


def test_flipping_labels_flips_the_dual():
    X, signs = two_clouds(60, 3, 1.0)
    stopping = StoppingRule(violation=1e-8)
    dual = PairwiseSolver(stopping=stopping).solve(classification(X, signs, Gaussian(0.5), 2.0)).dual
    flipped = PairwiseSolver(stopping=stopping).solve(classification(X, -signs, Gaussian(0.5), 2.0)).dual
    np.testing.assert_allclose(flipped, -dual, atol=1e-8)


def test_weight_two_equals_a_duplicated_sample():
    X, signs = two_clouds(40, 2, 1.0)
    weights = np.random.default_rng(2).integers(0, 4, 40)
    stopping = StoppingRule(violation=1e-9)
    weighted = classification(X, signs, Gaussian(0.5), 1.5 * weights)
    repeated = classification(np.repeat(X, weights, axis=0), np.repeat(signs, weights), Gaussian(0.5), 1.5)
    one = certify(weighted, PairwiseSolver(stopping=stopping).solve(weighted).dual)
    two = certify(repeated, PairwiseSolver(stopping=stopping).solve(repeated).dual)
    assert one.dual == pytest.approx(two.dual, rel=1e-10)


def test_exact_finish_reaches_double_precision():
    problem = overlapping()
    rough = certify(problem, PairwiseSolver(finish_below=0).solve(problem).dual)
    exact = certify(problem, PairwiseSolver().solve(problem).dual)
    assert rough.violation > 1e-6
    assert exact.violation < 1e-11
    assert exact.gap < 1e-10


def test_hard_margin_of_inseparable_data_is_unbounded():
    for make in (
        lambda: classification([[0.0], [1.0], [2.0]], [-1, 1, -1], Linear(), np.inf),
        lambda: classification([[0.0], [0.0]], [-1, 1], Linear(), np.inf),
        lambda: classification([[1.0], [-1.0]], [1, 1], Linear(), np.inf, fit_intercept=False),
    ):
        assert PairwiseSolver().solve(make()).status is Status.UNBOUNDED


def test_exhausted_precision_is_reported():
    X, signs = two_clouds(60, 2, 0.5)
    problem = classification(X * 1e9, signs, Linear(), 1e6)
    solution = PairwiseSolver(stopping=StoppingRule(violation=1e-9, max_iterations=200_000)).solve(problem)
    assert solution.status in (Status.PRECISION, Status.MAX_ITERATIONS)


def test_unknown_rule_lists_the_rules():
    with pytest.raises(
        ValueError, match=r"unknown selection 'best'.*'most_violating_pair', 'second_order', 'maximum_gain'"
    ):
        PairwiseSolver("best").solve(overlapping())


@pytest.mark.parametrize("changes", [{"violation": 0.0}, {"gap": -1.0}, {"max_iterations": -1}, {"max_seconds": -1.0}])
def test_invalid_stopping_rules_raise(changes):
    with pytest.raises(ValueError, match="must be"):
        StoppingRule(**changes)


def test_error_in_a_kernel_function_is_raised():
    def broken(X, Z):
        raise RuntimeError("no kernel today")

    X, signs = two_clouds(20, 2, 1.0)
    matrix = KernelMatrix(FunctionKernel(broken), Points(X))
    with pytest.raises(RuntimeError, match="no kernel today"):
        PairwiseSolver().solve(DualProblem(matrix, signs, np.minimum(0, signs), np.maximum(0, signs)))


def test_concurrent_solves_equal_sequential_ones():
    problems = [overlapping_cloud(500), classification(*two_clouds(500, 3, 0.8, seed=5), Gaussian(0.6), 3.0)]
    expected = [PairwiseSolver().solve(problem).dual for problem in problems]
    found = [None] * 6

    def work(k):
        found[k] = PairwiseSolver().solve(problems[k % 2]).dual

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        np.testing.assert_array_equal(found[k], expected[k % 2])


def test_interruption_in_the_middle_of_a_reordering(monkeypatch):
    problem = overlapping_cloud()

    def interrupted(self, permutation):
        raise KeyboardInterrupt

    monkeypatch.setattr(CachedMatrix, "reorder", interrupted)  # by then some of the arrays have been permuted
    solution = PairwiseSolver().solve(problem)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual).infeasibility < 1e-10
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=1e-9)
