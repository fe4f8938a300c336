"""The block solver on a GPU: every named problem is certified, and the optimum is that of the CPU."""

import numpy as np
import pytest

from maxmargin.kernels import Gaussian, Points, Polynomial
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import BlockSolver, StoppingRule
from maxmargin.testing.named_problems import CONVEX
from maxmargin.testing.solver_contract import SolverContract

pytestmark = pytest.mark.gpu

#: All named problems but one, of as many groups as samples.
SUPPORTED = [name for name in CONVEX if name != "group_of_each_sample"]


class CudaContract(SolverContract):
    gradient_accuracy = 1e-5  # kernel values are in single precision

    @pytest.mark.parametrize("name", SUPPORTED)
    def test_certifies(self, name):
        super().test_certifies(name)


class TestWhole(CudaContract):
    def make(self, stopping):
        return BlockSolver(backend="cuda", stopping=stopping)


class TestSmallWorkingSets(CudaContract):
    def make(self, stopping):
        return BlockSolver(backend="cuda", working_set=8, stopping=stopping)


def classification(n, C, seed=0, features=10, kernel=None):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, features))
    signs = np.where(X[:, 0] * X[:, 1] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    matrix = KernelMatrix(kernel or Gaussian(0.1), Points(X))
    return DualProblem(matrix, signs, np.minimum(0, C * signs), np.maximum(0, C * signs))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n", [2, 3, 500, 6000])
def test_optimum_of_the_cpu(n, C):
    problem = classification(n, C)
    rule = StoppingRule(violation=1e-4)
    expected = certify(problem, BlockSolver(stopping=rule).solve(problem).dual)
    solution = BlockSolver(backend="cuda", stopping=rule).solve(problem)
    found = certify(problem, solution.dual)
    assert solution.status is Status.CONVERGED
    assert found.violation <= 1e-4
    assert found.dual == pytest.approx(expected.dual, rel=1e-6, abs=1e-9)
    again = BlockSolver(backend="cuda", stopping=rule).solve(problem)
    np.testing.assert_array_equal(again.dual, solution.dual)


def test_nested_start_and_many_rounds():
    problem = classification(20_000, 1.0)
    rule = StoppingRule()
    expected = certify(problem, BlockSolver(stopping=rule, threads=2).solve(problem).dual)
    found = certify(problem, BlockSolver(backend="cuda", stopping=rule).solve(problem).dual)
    assert found.violation <= 1e-3
    assert found.dual == pytest.approx(expected.dual, rel=1e-5)


def test_another_kernel():
    problem = classification(3000, 0.1, kernel=Polynomial(gamma=0.1, coef0=1.0, degree=2))
    found = certify(problem, BlockSolver(backend="cuda").solve(problem).dual)
    assert found.violation <= 1e-3
