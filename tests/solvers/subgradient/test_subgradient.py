"""The batch subgradient method, step sizes, and the bounds of both subgradient methods."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.linear_problems import EASY, hinge, matrix_of, novelty, squared, two_groups
from maxmargin.formulations import c_classification
from maxmargin.problems import Status, certify
from maxmargin.problems.losses import response
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import SOLVERS, PairwiseSolver, StepSize, StoppingRule, SubgradientSolver
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, feasible_responses
from maxmargin.solvers.subgradient.step_sizes import MAX_TRIAL_SAMPLES, best_step_by_trial, scaled_subsample
from maxmargin.testing.named_problems import LINEAR, hard_margin, overlapping, two_clouds
from maxmargin.testing.quadratic_program import solve_quadratic_program


@pytest.mark.parametrize("name", EASY)
@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_certified_relative_gap(name, solver):
    problem = EASY[name]()
    solution = SOLVERS[solver](stopping=StoppingRule(relative_gap=1e-2)).solve(problem)
    assert solution.status is Status.CONVERGED
    certificate = certify(problem, solution.dual, solution.weights)
    optimum = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-7)).solve(problem).dual)
    assert certificate.relative_gap <= 1e-2 * (1 + 1e-6)
    assert certificate.infeasibility <= 1e-12
    slack = 1e-6 * (1e-6 + abs(optimum.dual))
    assert certificate.dual - slack <= optimum.dual <= certificate.primal + slack
    np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, make in LINEAR.items() if make().coercive])
@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_bounds_hold_on_hard_problems(name, solver):
    """Some are too hard for subgradient methods; then the bounds hold, and the status is that of the limit."""
    problem = LINEAR[name]()
    solution = SOLVERS[solver](stopping=StoppingRule(1e-9, relative_gap=1e-2, max_iterations=100)).solve(problem)
    certificate = certify(problem, solution.dual, solution.weights)
    value, _ = solve_quadratic_program(problem)
    slack = 1e-6 * (1 + abs(value))
    assert certificate.dual - slack <= value <= certificate.primal + slack
    assert certificate.infeasibility <= 1e-9 * (1 + np.abs(solution.dual).max())
    reached = certificate.relative_gap <= 1e-2 * (1 + 1e-6) or certificate.violation <= 1e-9
    # The bound of two split variables may be worse than that of their sum.
    assert solution.status is (Status.CONVERGED if reached else Status.MAX_ITERATIONS) or (reached and problem.kinked)


def test_reaches_the_optimum_of_a_generic_solver():
    problem = hinge()
    solution = SubgradientSolver(stopping=StoppingRule(1e-12, relative_gap=1e-5, max_iterations=3000)).solve(problem)
    assert solution.status is Status.CONVERGED
    value, _ = solve_quadratic_program(problem)
    certificate = certify(problem, solution.dual, solution.weights)
    assert certificate.primal == pytest.approx(value, rel=2e-5)
    assert certificate.dual == pytest.approx(value, rel=2e-5)


def test_objective_may_increase_and_the_best_is_kept():
    problem = hinge(cost=1.0)
    bounds = PrimalBounds(problem, None)
    run = SubgradientSolver(step_size=StepSize.constant(0.02)).begin(bounds)
    values = [run.primal]
    for _ in range(100):
        run.advance()
        values.append(run.primal)
    assert (np.diff(values) > 0).any()
    assert bounds.primal == min(values)
    assert certify(problem, bounds.dual, bounds.weights).primal == pytest.approx(min(values), rel=1e-12)


def test_steps_reduce_the_distance_to_the_optimum():
    problem = hinge(cost=1.0)
    best = PairwiseSolver(stopping=StoppingRule(violation=1e-9)).solve(problem)
    optimum = problem.matrix.features().weights(best.dual)
    run = SubgradientSolver(step_size=StepSize.constant(1e-4)).begin(PrimalBounds(problem, None))
    distances = [np.linalg.norm(run.weights - optimum)]
    for _ in range(30):
        run.advance()
        distances.append(np.linalg.norm(run.weights - optimum))
    assert (np.diff(distances) < 0).all()


@pytest.mark.parametrize("name", EASY)
def test_subgradient_inequality(name):
    """P(v) ≥ P(w) + (w − Fᵀ b)·(v − w) for any v, where b are the feasible responses."""
    problem = SplitProblem.of(EASY[name]()).problem
    rows, random = problem.matrix.features(), np.random.default_rng(0)
    bounds = PrimalBounds(problem, None)
    for scale in (0.01, 1.0):
        w, v = scale * random.normal(size=(2, rows.dimension))
        if not rows.constant:
            w[-1] = v[-1] = 0.0
        here, there = bounds.evaluate(w), bounds.evaluate(v)
        responses = feasible_responses(problem, here.slack)
        assert certify(problem, responses).infeasibility <= 1e-9 * (1 + np.abs(responses).max())
        bound = here.primal + (w - rows.weights(responses)) @ (v - w)
        assert there.primal >= bound - 1e-9 * max(abs(bound), abs(there.primal))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_lower_bound_never_decreases(seed):
    random = np.random.default_rng(seed)
    problem = EASY[random.choice(["hinge", "squared", "two_groups", "novelty"])]()
    bounds = PrimalBounds(problem, random.normal(size=problem.size))
    value = bounds.dual_value
    for _ in range(5):
        slack = random.normal(size=problem.size)
        candidate = PrimalBounds(problem, response(problem, slack)).dual
        bounds.combine(candidate, bounds.rows.weights(candidate))
        assert bounds.dual_value >= value
        value = bounds.dual_value
    certificate = certify(problem, bounds.dual)
    assert certificate.dual == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert certificate.infeasibility <= 1e-9 * (1 + np.abs(bounds.dual).max())


def test_step_sizes():
    assert [StepSize.constant(0.5)(t) for t in (1, 9)] == [0.5, 0.5]
    assert [StepSize.decaying(2.0, 3.0)(t) for t in (1, 7)] == [0.5, 0.2]
    assert [StepSize.inverse_time()(t) for t in (1, 4)] == [1.0, 0.25]
    for wrong in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="above 0 and finite"):
            StepSize.constant(wrong)
    with pytest.raises(ValueError, match="not both 0"):
        StepSize(1.0, 0.0, 0.0)


@pytest.mark.parametrize("best", [1e-6, 0.3, 1.0, 50.0])
def test_trials_find_the_best_step_within_a_factor(best):
    found = best_step_by_trial(lambda step: np.inf if step > 1e3 * best else abs(np.log(step / best)), 1.0)
    assert best / 2 <= found <= best * 2


def test_trials_recover_from_overflow():
    assert best_step_by_trial(lambda step: np.nan if step > 1e-5 else -step, 1.0) == pytest.approx(2.0**-17)


def test_inverse_time_averages_the_responses():
    """With steps 1/t the weights are those of the mean of the responses, as with 1/(λt) for the λ-scaled objective."""
    problem = squared()
    run = SubgradientSolver(step_size="inverse_time").begin(PrimalBounds(problem, None))
    targets = [run.target]
    for _ in range(5):
        run.advance()
        targets.append(run.target)
    np.testing.assert_allclose(run.weights, np.mean(targets[:-1], axis=0), rtol=1e-12)


def test_subsample_represents_all_variables():
    problem = hinge(n=3 * MAX_TRIAL_SAMPLES)
    subsample = scaled_subsample(problem, 0)
    assert subsample.size == MAX_TRIAL_SAMPLES
    weights = np.append(np.ones(3), 0.0)
    whole, some = (PrimalBounds(p, None).evaluate(weights).primal for p in (problem, subsample))
    assert some == pytest.approx(whole, rel=0.1)
    assert scaled_subsample(hinge(), 0).size == 60
    assert scaled_subsample(two_groups(), 0, samples=600).upper.sum() == pytest.approx(10 * two_groups().upper.sum())


def test_start_from_the_optimum_takes_no_steps():
    problem = hinge()
    optimum = PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual
    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-5)).solve(problem, optimum)
    assert solution.status is Status.CONVERGED
    assert solution.counters.iterations == 0
    np.testing.assert_array_equal(solution.dual, optimum)


def test_bounds_of_the_start_never_get_worse():
    problem = hinge(cost=1.0)
    start = PairwiseSolver(stopping=StoppingRule(violation=1e-2)).solve(problem).dual
    before = certify(problem, start)
    for step_size in ("trial", "inverse_time"):
        solver = SubgradientSolver(step_size, StoppingRule(violation=1e-9, relative_gap=1e-9, max_iterations=20))
        solution = solver.solve(problem, start)
        after = certify(problem, solution.dual, solution.weights)
        assert after.dual >= before.dual - 1e-12
        assert after.primal <= before.primal + 1e-12


def test_limits():
    problem = hinge()
    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-12, max_iterations=5)).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.counters.iterations == 5
    assert SubgradientSolver(stopping=StoppingRule(max_seconds=0.0)).solve(problem).status is Status.MAX_SECONDS
    tight = StoppingRule(violation=1e-300)
    assert SubgradientSolver(stopping=tight).solve(problem).counters.iterations == 1000


def test_callback_sees_progress_and_can_stop():
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-12)).solve(hinge(), callback=stop)
    assert solution.status is Status.STOPPED
    assert seen[0].primal >= seen[0].dual
    assert seen[0].iteration >= 1


def test_interrupt_leaves_a_feasible_point():
    problem = novelty()

    def interrupt(progress):
        raise KeyboardInterrupt

    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-12)).solve(problem, callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual, solution.weights).infeasibility <= 1e-12


def test_divergence_with_a_given_step_size_raises():
    problem = squared()
    with pytest.raises(ValueError, match="too long.*'trial'"):
        SubgradientSolver(step_size=StepSize.constant(1e3)).solve(problem)


def test_recovers_from_a_bad_trial(monkeypatch):
    problem = squared()
    monkeypatch.setattr(
        "maxmargin.solvers.subgradient.subgradient.choose_step_size", lambda *_: StepSize.decaying(1e9, 1e6)
    )
    solution = SubgradientSolver().solve(problem)
    assert solution.status is Status.CONVERGED
    assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-2 * (1 + 1e-9)


@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_data_beyond_double_precision(solver):
    X, signs = two_clouds(40, 3, 2.0)
    costs, rule = np.ones(40), StoppingRule(relative_gap=1e-2, max_iterations=30)
    for broken in (X * 1e160, np.where(X > 1, np.nan, X)):
        with pytest.raises(ValueError, match="not finite.*scale the data"):
            SOLVERS[solver](stopping=rule).solve(c_classification.pose(matrix_of(broken), signs, costs))
    problem = c_classification.pose(matrix_of(X * 1e80), signs, costs)  # only squares do not overflow
    solution = SOLVERS[solver](stopping=rule).solve(problem)
    assert solution.status is Status.MAX_ITERATIONS
    assert np.isfinite(certify(problem, solution.dual, solution.weights).primal)


@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_one_sample_one_label_no_features(solver):
    X, signs = two_clouds(40, 3, 2.0)
    for problem in (
        c_classification.pose(matrix_of(X[:1]), signs[:1], np.ones(1), fit_intercept=False),
        c_classification.pose(matrix_of(X), np.ones(40), np.ones(40)),
        c_classification.pose(matrix_of(X[:, :0]), signs, np.ones(40)),
    ):
        solution = SOLVERS[solver]().solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual, solution.weights).relative_gap <= 1e-2


def test_unsupported_problems_raise():
    with pytest.raises(ValueError, match="solver='subgradient'.*use 'block' or 'pairwise'"):
        SubgradientSolver().solve(overlapping())
    with pytest.raises(ValueError, match="finite costs"):
        SubgradientSolver().solve(hard_margin())
    with pytest.raises(ValueError, match="'trial' or 'inverse_time', not 'magic'"):
        SubgradientSolver(step_size="magic").solve(hinge())
