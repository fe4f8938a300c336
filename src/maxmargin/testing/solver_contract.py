"""The contract of solvers: certify every named problem, observers change nothing. Inherit, and provide `make`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from maxmargin.problems import Status, certify
from maxmargin.solvers import StoppingRule, Trace, monitor
from maxmargin.testing.named_problems import CONVEX, hard_to_finish, indefinite_sigmoid, many_bounded, overlapping
from maxmargin.testing.quadratic_program import solve_quadratic_program

#: Observers and limits that do not stop a solver: changes of its stopping rule, and its callback.
OBSERVERS: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
    "callback": ({}, lambda: lambda progress: False),
    "trace": ({}, Trace),
    "trace of every step": ({}, lambda: Trace(steps=1, points=True)),
    "max_seconds": ({"max_seconds": 1e6}, lambda: None),
    "max_iterations": ({"max_iterations": 10**9}, lambda: None),
    "gap": ({"gap": 1e-300}, lambda: None),
    "all": ({"max_seconds": 1e6, "max_iterations": 10**9, "gap": 1e-300}, lambda: Trace(callback=lambda p: None)),
}


def assert_same_solution(found, expected, same_iterations=True):
    """Assert that two solutions agree bit for bit, in all but what they cost."""
    assert found.status is expected.status
    assert found.counters.iterations == expected.counters.iterations or not same_iterations
    np.testing.assert_array_equal(found.dual, expected.dual)
    np.testing.assert_array_equal(found.gradient, expected.gradient)
    np.testing.assert_array_equal(found.weights, expected.weights)


def least_gap(solution):
    """Return the least gap on the way, as a `Trace` has recorded it, without that of an exact finish."""
    return min(entry.gap for entry in solution.trace if entry.gap > 1e-9 * abs(entry.dual))


class SolverContract:
    """A test class for a new solver: subclass it and define `make(stopping)`."""

    gradient_accuracy = 1e-9
    gap_is_free = True  #: Whether a tolerance on the gap that is not met leaves the number of iterations unchanged.
    loose_gap = 5.0  #: A gap of the problem `overlapping` that is reached before the end.

    def make(self, stopping: StoppingRule):
        raise NotImplementedError("a subclass provides the solver")

    @pytest.mark.parametrize("name", CONVEX)
    def test_certifies(self, name):
        problem = CONVEX[name]()
        solution = self.make(StoppingRule(violation=1e-6)).solve(problem)
        certificate = certify(problem, solution.dual)
        assert solution.status is Status.CONVERGED, solution.status
        everything = np.arange(problem.size)
        sums = np.abs(problem.matrix.block(everything, everything)) @ np.abs(solution.dual)
        assert certificate.violation <= 1e-6 + 1e-15 * sums.max()  # a gradient cannot be known better than that
        assert certificate.infeasibility <= 1e-9 * (1.0 + np.abs(solution.dual).max())
        assert certificate.gap >= 0
        value, _ = solve_quadratic_program(problem)
        assert certificate.dual == pytest.approx(value, rel=1e-5, abs=1e-7)
        assert certificate.primal >= value - 1e-6 * (1.0 + abs(value))

    def test_indefinite_matrix_ends_stationary(self):
        problem = indefinite_sigmoid()
        solution = self.make(StoppingRule(violation=1e-5)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).violation <= 1e-5

    def test_gradient_is_correct(self):
        problem = overlapping()
        solution = self.make(StoppingRule()).solve(problem)
        np.testing.assert_allclose(solution.gradient, problem.gradient(solution.dual), atol=self.gradient_accuracy)

    def test_start_from_the_optimum_takes_no_steps(self):
        problem = overlapping()
        solver = self.make(StoppingRule(violation=1e-4))
        first = solver.solve(problem)
        again = solver.solve(problem, first.dual)
        assert again.counters.iterations == 0
        np.testing.assert_array_equal(again.dual, first.dual)

    def test_any_start_reaches_the_same_optimum(self):
        problem = overlapping()
        solver = self.make(StoppingRule(violation=1e-7))
        optimum = certify(problem, solver.solve(problem).dual).dual
        for seed in range(3):
            start = np.random.default_rng(seed).normal(size=problem.size)
            value = certify(problem, solver.solve(problem, start).dual).dual
            assert value == pytest.approx(optimum, rel=1e-9)

    def test_limit_on_iterations(self):
        problem = overlapping()
        solution = self.make(StoppingRule(violation=1e-9, max_iterations=5)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations == 5
        certificate = certify(problem, solution.dual)
        assert certificate.infeasibility < 1e-12
        assert certificate.gap > 0

    def test_limit_on_seconds(self):
        solution = self.make(StoppingRule(violation=1e-12, max_seconds=0.0)).solve(overlapping())
        assert solution.status is Status.MAX_SECONDS

    def test_gap_is_a_stopping_criterion(self):
        problem = overlapping()
        full = self.make(StoppingRule(violation=1e-10)).solve(problem)
        solution = self.make(StoppingRule(violation=1e-10, gap=self.loose_gap)).solve(problem)
        assert solution.status is Status.CONVERGED
        assert certify(problem, solution.dual).gap <= self.loose_gap
        assert solution.counters.iterations < full.counters.iterations

    def test_callback_sees_progress_and_can_stop(self):
        seen = []

        def stop(progress):
            seen.append(progress)
            return True

        solution = self.make(StoppingRule(violation=1e-12)).solve(hard_to_finish(), callback=stop)
        assert len(seen) >= 1
        assert solution.status is Status.STOPPED
        assert seen[0].primal >= seen[0].dual
        assert seen[0].active <= hard_to_finish().size

    def test_is_deterministic(self):
        problem = overlapping()
        first, second = (self.make(StoppingRule()).solve(problem) for _ in range(2))
        np.testing.assert_array_equal(first.dual, second.dual)
        assert first.counters.iterations == second.counters.iterations

    @pytest.mark.parametrize("observer", OBSERVERS)
    def test_observers_and_limits_that_are_not_reached_change_nothing(self, observer, monkeypatch):
        problem, rule = overlapping(), StoppingRule(violation=1e-4)
        expected = self.make(rule).solve(problem)
        changes, callback = OBSERVERS[observer]
        monkeypatch.setattr(monitor, "REPORT_INTERVAL", 0.0)  # a report at every opportunity
        found = self.make(replace(rule, **changes)).solve(problem, callback=callback())
        assert_same_solution(found, expected, self.gap_is_free or "gap" not in changes)

    def test_trace_clock_and_a_gap_that_is_not_reached_change_nothing(self, monkeypatch):
        problem, rule = many_bounded(), StoppingRule(violation=1e-2)
        expected = self.make(rule).solve(problem)
        traced = self.make(rule).solve(problem, callback=Trace(steps=1))
        assert_same_solution(traced, expected)
        monkeypatch.setattr(monitor, "TIME_SLICE", 0.0)  # native loops return as often as they can
        gap = 0.5 * least_gap(traced) if self.gap_is_free else 1e-300
        limited = self.make(replace(rule, gap=gap)).solve(problem)
        assert_same_solution(limited, expected, self.gap_is_free)
