"""The batch subgradient method, the step sizes, and the bounds that both subgradient methods keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.linear_problems import EASY, hinge, matrix_of, novelty, squared, two_groups
from contracts.named_problems import LINEAR, hard_margin, overlapping, two_clouds
from maxmargin.formulations import c_classification
from maxmargin.problems import Status, certify
from maxmargin.problems.certificate import response
from maxmargin.solvers import SOLVERS, PairwiseSolver, StepSize, StoppingRule, SubgradientSolver
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, responses_with_sums
from maxmargin.solvers.subgradient.primal_method import PART, part_of
from maxmargin.solvers.subgradient.step_sizes import best_by_trial
from reference.quadratic_program import solve_quadratic_program


@pytest.mark.parametrize("name", EASY)
@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_comes_near_to_the_optimum_and_proves_it(name, solver):
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


@pytest.mark.parametrize("name", [name for name, make in LINEAR.items() if make().has_limit])
@pytest.mark.parametrize("solver", ["subgradient", "stochastic_subgradient"])
def test_what_is_proved_is_true_on_hard_problems(name, solver):
    """Other solvers bring these to an end. Here some are too hard; then the bounds hold, and the status says so."""
    problem = LINEAR[name]()
    solution = SOLVERS[solver](stopping=StoppingRule(1e-9, relative_gap=1e-2, max_iterations=100)).solve(problem)
    certificate = certify(problem, solution.dual, solution.weights)
    value, _ = solve_quadratic_program(problem)
    slack = 1e-6 * (1 + abs(value))
    assert certificate.dual - slack <= value <= certificate.primal + slack
    assert certificate.infeasibility <= 1e-9 * (1 + np.abs(solution.dual).max())
    reached = certificate.relative_gap <= 1e-2 * (1 + 1e-6) or certificate.violation <= 1e-9
    assert solution.status is (Status.CONVERGED if reached else Status.MAX_ITERATIONS)


def test_reaches_the_optimum_of_a_generic_solver():
    problem = hinge()
    solution = SubgradientSolver(stopping=StoppingRule(1e-12, relative_gap=1e-5, max_iterations=3000)).solve(problem)
    assert solution.status is Status.CONVERGED
    value, _ = solve_quadratic_program(problem)
    certificate = certify(problem, solution.dual, solution.weights)
    assert certificate.primal == pytest.approx(value, rel=2e-5)
    assert certificate.dual == pytest.approx(value, rel=2e-5)


def test_is_not_descent_and_keeps_the_best():
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


def test_a_step_comes_closer_to_the_optimum():
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
def test_the_subgradient_is_one(name):
    """P(v) ≥ P(w) + (w − Fᵀ b)·(v − w) for any v, where b are the responses with the right sums."""
    problem = EASY[name]()
    rows, random = problem.matrix.features(), np.random.default_rng(0)
    bounds = PrimalBounds(problem, None)
    for scale in (0.01, 1.0):
        w, v = scale * random.normal(size=(2, rows.dimension))
        if not rows.constant:
            w[-1] = v[-1] = 0.0
        here, there = bounds.evaluate(w), bounds.evaluate(v)
        answers = responses_with_sums(problem, here.slack)
        assert certify(problem, answers).infeasibility <= 1e-9 * (1 + np.abs(answers).max())
        bound = here.primal + (w - rows.weights(answers)) @ (v - w)
        assert there.primal >= bound - 1e-9 * max(abs(bound), abs(there.primal))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_lower_bound_never_falls(seed):
    random = np.random.default_rng(seed)
    problem = EASY[random.choice(["hinge", "squared", "two_groups", "novelty"])]()
    bounds = PrimalBounds(problem, random.normal(size=problem.size))
    value = bounds.dual_value
    for _ in range(5):
        slack = random.normal(size=problem.size)
        candidate = PrimalBounds(problem, response(problem, slack)).dual
        bounds.offer(candidate, bounds.rows.weights(candidate))
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
def test_trials_find_the_best_step(best):
    found = best_by_trial(lambda step: np.inf if step > 1e3 * best else abs(np.log(step / best)), 1.0)
    assert best / 2 <= found <= best * 2


def test_trials_leave_overflow_behind():
    assert best_by_trial(lambda step: np.nan if step > 1e-5 else -step, 1.0) == pytest.approx(2.0**-17)


def test_inverse_time_is_the_average_of_responses():
    """With steps 1/t the weights are those of the mean of the responses, as with 1/(λt) for the λ-scaled objective."""
    problem = squared()
    run = SubgradientSolver(step_size="inverse_time").begin(PrimalBounds(problem, None))
    targets = [run.target]
    for _ in range(5):
        run.advance()
        targets.append(run.target)
    np.testing.assert_allclose(run.weights, np.mean(targets[:-1], axis=0), rtol=1e-12)


def test_a_part_stands_for_the_whole():
    problem = hinge(n=3 * PART)
    part = part_of(problem, 0)
    assert part.size == PART
    weights = np.append(np.ones(3), 0.0)
    whole, some = (PrimalBounds(p, None).evaluate(weights).primal for p in (problem, part))
    assert some == pytest.approx(whole, rel=0.1)
    assert part_of(hinge(), 0).size == 60
    assert part_of(two_groups(), 0, samples=600).upper.sum() == pytest.approx(10 * two_groups().upper.sum())


def test_start_from_the_optimum_takes_no_steps():
    problem = hinge()
    optimum = PairwiseSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual
    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-5)).solve(problem, optimum)
    assert solution.status is Status.CONVERGED
    assert solution.counters.iterations == 0
    np.testing.assert_array_equal(solution.dual, optimum)


def test_a_start_is_never_made_worse():
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
    assert SubgradientSolver(stopping=tight).solve(problem).counters.iterations == 1000  # a fit ends


def test_callback_sees_progress_and_can_stop():
    seen = []

    def watch(progress):
        seen.append(progress)
        return True

    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-12)).solve(hinge(), callback=watch)
    assert solution.status is Status.STOPPED
    assert seen[0].primal >= seen[0].dual
    assert seen[0].iteration >= 1


def test_an_interrupt_leaves_a_valid_point():
    problem = novelty()

    def interrupt(progress):
        raise KeyboardInterrupt

    solution = SubgradientSolver(stopping=StoppingRule(violation=1e-12)).solve(problem, callback=interrupt)
    assert solution.status is Status.INTERRUPTED
    assert certify(problem, solution.dual, solution.weights).infeasibility <= 1e-12


def test_steps_that_are_too_long():
    problem = squared()
    with pytest.raises(ValueError, match="too long.*'trial'"):
        SubgradientSolver(step_size=StepSize.constant(1e3)).solve(problem)


def test_a_misled_trial_recovers(monkeypatch):
    problem = squared()
    monkeypatch.setattr("maxmargin.solvers.subgradient.subgradient.first_step", lambda *_: StepSize.decaying(1e9, 1e6))
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
    problem = c_classification.pose(matrix_of(X * 1e80), signs, costs)  # squares can be computed, little else
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


def test_unsupported_problems_say_what_works():
    with pytest.raises(ValueError, match="solver='subgradient'.*use 'block' or 'pairwise'"):
        SubgradientSolver().solve(overlapping())
    with pytest.raises(ValueError, match="finite costs"):
        SubgradientSolver().solve(hard_margin())
    with pytest.raises(ValueError, match="'trial' or 'inverse_time', not 'magic'"):
        SubgradientSolver(step_size="magic").solve(hinge())
