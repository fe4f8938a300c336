"""The contract of solvers for the linear kernel: certify every linear problem. Inherit, and provide `make`."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.problems import Status, certify
from maxmargin.solvers import StoppingRule
from maxmargin.testing.named_problems import LINEAR, linear, overlapping
from maxmargin.testing.quadratic_program import solve_quadratic_program


class LinearSolverContract:
    """Tests of a solver that works on feature rows: subclass it and define `make(stopping)`."""

    #: Problems on which a first-order method needs an unreasonable number of steps.
    too_hard: frozenset[str] = frozenset()

    def make(self, stopping: StoppingRule):
        raise NotImplementedError("a subclass provides the solver")

    def check_limited_run(self, name):
        """Check that a run with a limit reports it, and that its bounds are valid."""
        problem = LINEAR[name]()
        solution = self.make(StoppingRule(violation=1e-12, max_iterations=50, relative_gap=1e-6)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        certificate = certify(problem, solution.dual, solution.weights)
        value, _ = solve_quadratic_program(problem)
        assert certificate.dual <= value + 1e-6 * (1 + abs(value))
        assert certificate.primal >= value - 1e-6 * (1 + abs(value))

    @pytest.mark.parametrize("name", LINEAR)
    def test_violation(self, name):
        if name in self.too_hard:
            self.check_limited_run(name)
            return
        problem = LINEAR[name]()
        solution = self.make(StoppingRule(violation=1e-5)).solve(problem)
        certificate = certify(problem, solution.dual)
        assert solution.status is Status.CONVERGED, solution.status
        assert solution.weights is None
        everything = np.arange(problem.size)
        sums = np.abs(problem.matrix.block(everything, everything)) @ np.abs(solution.dual)
        assert certificate.violation <= 1e-5 + 1e-14 * sums.max()
        assert certificate.infeasibility <= 1e-9 * (1.0 + np.abs(solution.dual).max())
        value, _ = solve_quadratic_program(problem)
        assert certificate.dual == pytest.approx(value, rel=1e-4, abs=1e-6)

    # A hard margin has no finite primal value before convergence, hence no gap; the violation is tested above.
    @pytest.mark.parametrize("name", [name for name in LINEAR if name != "hard_margin"])
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
    def test_relative_gap(self, name, tolerance):
        problem = LINEAR[name]()
        if name in self.too_hard:
            self.check_limited_run(name)
            return
        rule = StoppingRule(violation=1e-12, relative_gap=tolerance)
        solution = self.make(rule).solve(problem)
        assert solution.status is Status.CONVERGED, solution.status
        certificate = certify(problem, solution.dual, solution.weights)
        size = max(abs(certificate.primal), abs(certificate.dual))
        assert certificate.gap <= tolerance * size * (1 + 1e-6) + 1e-12
        assert certificate.infeasibility <= 1e-9 * (1.0 + np.abs(solution.dual).max())
        value, _ = solve_quadratic_program(problem)
        assert certificate.dual <= value + 1e-6 * (1 + abs(value))
        assert certificate.primal >= value - 1e-6 * (1 + abs(value))

    def test_other_kernels_raise(self):
        with pytest.raises(ValueError, match="linear kernel only"):
            self.make(StoppingRule()).solve(overlapping())

    def test_start_from_the_optimum_takes_no_steps(self):
        problem = linear("hinge")
        solver = self.make(StoppingRule(violation=1e-4))
        first = solver.solve(problem)
        again = solver.solve(problem, first.dual)
        assert again.counters.iterations == 0
        np.testing.assert_array_equal(again.dual, first.dual)

    def test_any_start_reaches_the_same_optimum(self):
        problem = linear("squared_hinge")
        solver = self.make(StoppingRule(violation=1e-7))
        optimum = certify(problem, solver.solve(problem).dual).dual
        for seed in range(3):
            start = np.random.default_rng(seed).normal(size=problem.size)
            assert certify(problem, solver.solve(problem, start).dual).dual == pytest.approx(optimum, rel=1e-9)

    def test_limit_on_iterations(self):
        problem = linear("hinge", 100.0)
        solution = self.make(StoppingRule(violation=1e-12, max_iterations=2)).solve(problem)
        assert solution.status is Status.MAX_ITERATIONS
        assert solution.counters.iterations == 2
        assert certify(problem, solution.dual).infeasibility < 1e-10

    def test_limit_on_seconds(self):
        problem = linear("hinge", 100.0)
        solution = self.make(StoppingRule(violation=1e-12, max_seconds=0.0)).solve(problem)
        assert solution.status is Status.MAX_SECONDS
        assert certify(problem, solution.dual).infeasibility < 1e-10

    def test_callback_sees_progress_and_can_stop(self):
        seen = []

        def stop(progress):
            seen.append(progress)
            return True

        solution = self.make(StoppingRule(violation=1e-12)).solve(linear("hinge", 100.0), callback=stop)
        assert len(seen) >= 1
        assert solution.status is Status.STOPPED
        assert seen[0].primal >= seen[0].dual

    def test_is_deterministic(self):
        problem = linear("hinge")
        first, second = (self.make(StoppingRule()).solve(problem) for _ in range(2))
        np.testing.assert_array_equal(first.dual, second.dual)
        assert first.counters.iterations == second.counters.iterations
