"""Tests that every formulation must pass: inherit and provide a problem and the textbook primal."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.backends import BACKENDS
from maxmargin.problems import DualProblem, Status, certify, feasible_start
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule
from maxmargin.testing.quadratic_program import solve_quadratic_program


class FormulationContract:
    """A test class for a new formulation: subclass it and define `pose` and `textbook_primal`."""

    def pose(self) -> DualProblem:
        raise NotImplementedError("a subclass poses a small problem")

    def textbook_primal(self, product: np.ndarray, offset: np.ndarray, squared_norm: float) -> float:
        """Return the textbook objective, from w·Φ(x_i) of each variable, the offset of each group, and ‖w‖²."""
        raise NotImplementedError("a subclass provides the textbook primal")

    @pytest.fixture
    def problem(self) -> DualProblem:
        return self.pose()

    def test_generic_primal_equals_the_textbook_primal(self, problem):
        solution = PairwiseSolver(stopping=StoppingRule(violation=0.5)).solve(problem)
        for dual in (solution.dual, feasible_start(problem)):
            certificate = certify(problem, dual)
            product = problem.matrix.matvec(dual)
            expected = self.textbook_primal(product, certificate.offset, certificate.squared_norm)
            assert certificate.primal == pytest.approx(expected, rel=1e-10)
            assert certificate.gap == pytest.approx(certificate.primal - certificate.dual, rel=1e-6, abs=1e-9)

    def test_gap_converges_to_zero(self, problem):
        gaps = [
            certify(
                problem,
                PairwiseSolver(stopping=StoppingRule(violation=v), finish_below=0).solve(problem).dual,
            ).gap
            for v in (1e-1, 1e-3, 1e-6, 1e-9)
        ]
        assert all(gap >= 0 for gap in gaps)
        assert gaps[-1] < 1e-6 * max(1.0, gaps[0])

    def test_optimum_equals_that_of_a_generic_solver(self, problem):
        value, _ = solve_quadratic_program(problem)
        certificate = certify(problem, PairwiseSolver().solve(problem).dual)
        assert certificate.dual == pytest.approx(value, rel=1e-6)
        assert certificate.primal == pytest.approx(value, rel=1e-6)

    @pytest.mark.parametrize("working_set", [4096, 8])
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_block_solver_reaches_the_optimum_on_every_backend(self, problem, backend, working_set):
        value, _ = solve_quadratic_program(problem)
        solver = BlockSolver(backend=backend, working_set=working_set, stopping=StoppingRule(violation=1e-6))
        solution = solver.solve(problem)
        certificate = certify(problem, solution.dual)
        assert solution.status is Status.CONVERGED
        assert certificate.violation <= 1e-6
        assert certificate.dual == pytest.approx(value, rel=1e-5, abs=1e-7)
        assert certificate.gap >= 0
