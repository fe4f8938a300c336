"""Both backends under the block solver: every named problem is certified, and where rounding allows on one path."""

from itertools import product

import numpy as np
import pytest

from maxmargin.backends import BACKENDS, get_backend, host_state
from maxmargin.backends.host_state import HostState
from maxmargin.backends.interface import KnownProduct
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import DualProblem, Status, certify
from maxmargin.solvers import BlockSolver, StoppingRule
from maxmargin.solvers.block import block_solver
from maxmargin.testing.named_problems import CONVEX, indefinite_sigmoid
from maxmargin.testing.solver_contract import SolverContract

#: Problems on which native and NumPy backend take the same path, given the same float32 values. On the others ties or
#: ill-conditioned steps are decided by the order of summation; there only the optimum is the same.
SAME_PATH = [
    "separable", "overlapping", "opposite_duplicates", "almost_empty_class", "zero_diagonal", "all_zero_matrix",
    "all_at_bound", "tiny_cost", "two_samples", "sample_costs", "hard_margin", "with_ridge", "two_groups",
    "group_and_singles", "one_class", "indefinite_sigmoid", "tube", "wide_tube",
]  # fmt: skip

#: The same for problems that are solved as a whole, without updates of the gradient in another order of summation.
SAME_PATH_AS_A_WHOLE = ["tube_without_bias", "squared_tube", "some_kinks"]


class NumpyBackendContract(SolverContract):
    gradient_accuracy = 1e-5  # kernel values are in single precision


class TestNumpyWhole(NumpyBackendContract):
    def make(self, stopping):
        return BlockSolver(backend="numpy", stopping=stopping)


class TestNumpySmallWorkingSets(NumpyBackendContract):
    def make(self, stopping):
        return BlockSolver(backend="numpy", working_set=8, cache_bytes=0, stopping=stopping)


class TestNumpyStoredRows(NumpyBackendContract):
    def make(self, stopping):
        return BlockSolver(backend="numpy", working_set=8, stopping=stopping)


@pytest.mark.parametrize("working_set", [4096, 16])
@pytest.mark.parametrize("name", CONVEX)
def test_both_backends_reach_the_same_optimum(name, working_set):
    problem = CONVEX[name]()
    rule = StoppingRule(violation=1e-5)
    certificates = []
    for backend in BACKENDS:
        solution = BlockSolver(backend=backend, working_set=working_set, stopping=rule).solve(problem)
        assert solution.status is Status.CONVERGED
        certificates.append(certify(problem, solution.dual))
        assert certificates[-1].violation <= 1e-5
    native, numpy = certificates
    assert native.dual == pytest.approx(numpy.dual, rel=1e-6, abs=1e-5)


def solve_and_record(backend, problem, working_set, monkeypatch):
    """Return the solution and the working sets that were selected."""
    selected, select = [], HostState.select
    with monkeypatch.context() as patch:
        patch.setattr(HostState, "select", lambda state, size: selected.append(select(state, size)) or selected[-1])
        solution = BlockSolver(backend=backend, working_set=working_set, cache_bytes=0).solve(problem)
    return solution, [tuple(np.sort(working)) for working in selected]


@pytest.mark.parametrize(
    ("name", "working_set"),
    [*product(SAME_PATH, [4096, 16]), *product(SAME_PATH_AS_A_WHOLE, [4096])],
)
def test_both_backends_take_the_same_path(name, working_set, monkeypatch):
    problem = (CONVEX | {"indefinite_sigmoid": indefinite_sigmoid})[name]()
    everything = np.arange(problem.size)
    values = problem.matrix.block(everything, everything).astype(np.float32).astype(np.float64)
    problem = problem.with_matrix(PrecomputedMatrix(values))
    # The equations of the free variables are factorised differently, and row caches change the order of variables.
    monkeypatch.setattr(block_solver, "MAX_FREE_EQUATIONS", 0)
    native, native_sets = solve_and_record("native", problem, working_set, monkeypatch)
    numpy, numpy_sets = solve_and_record("numpy", problem, working_set, monkeypatch)
    assert native_sets == numpy_sets
    assert native.counters.rounds == numpy.counters.rounds
    assert native.counters.iterations == numpy.counters.iterations
    np.testing.assert_allclose(native.dual, numpy.dual, atol=1e-5 * (1.0 + np.abs(numpy.dual).max()))


def test_an_unknown_backend_is_an_error():
    with pytest.raises(ValueError, match="'native', 'numpy'"):
        BlockSolver(backend="gpu")
    with pytest.raises(ValueError, match="unknown backend"):
        get_backend("gpu")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_known_product_saves_the_kernel_values_in_common(backend):
    problem = CONVEX["overlapping"]()
    half = 0.5 * problem.upper + 0.5 * problem.lower
    dual = half.copy()
    dual[:3] = problem.upper[:3]
    states = [get_backend(backend).open(problem, 2**20, 1) for _ in range(2)]
    states[0].set_dual(dual)
    states[1].set_dual(dual, known=KnownProduct(half, problem.matrix.matvec(half)))
    np.testing.assert_allclose(states[0].gradient, states[1].gradient, atol=1e-5)
    assert states[0].dual_value == pytest.approx(states[1].dual_value, abs=1e-4)
    far = get_backend(backend).open(problem, 2**20, 1)
    far.set_dual(dual, known=KnownProduct(dual + 1.0, np.full(problem.size, np.nan)))  # no variable in common
    np.testing.assert_array_equal(far.gradient, states[0].gradient)


def bounded_by_single_precision():
    """Return a problem in which only an error of single precision keeps the third variable at its bound.

    The first two variables have the solution b = ±1/δ with a gradient of 0, exact in float32. The third column is
    rounded: in float32 its gradient is −1/15, in truth 0.8/15.
    """
    ulp, delta = 2.0**-23, 15 * 2.0**-24
    first, second = 1.0 + 8 * ulp - 0.45 * ulp, 1.0 + 0.45 * ulp  # float32: 1 + 8 ulp and 1
    K = np.array([[1.0, 1.0 - delta, first], [1.0 - delta, 1.0, second], [first, second, 4.0]])
    assert (K.astype(np.float32)[2, :2] == [1.0 + 8 * ulp, 1.0]).all()
    lower, upper = np.array([0.0, -1e8, 0.0]), np.array([1e8, 0.0, 1e8])
    return DualProblem(PrecomputedMatrix(K), linear=np.array([1.0, -1.0, 1.0]), lower=lower, upper=upper)


@pytest.mark.parametrize("backend", BACKENDS)
class TestAudit:
    def test_notices_a_variable_that_only_an_error_keeps_at_its_bound(self, backend):
        problem = bounded_by_single_precision()
        solution = BlockSolver(backend=backend).solve(problem)
        assert solution.status is Status.CONVERGED
        assert solution.dual[2] > 0
        assert certify(problem, solution.dual).violation <= 1e-3

    def test_accepts_a_wrong_point_without_its_safety_factor(self, backend, monkeypatch):
        """Otherwise the test above shows nothing."""
        monkeypatch.setattr(host_state, "ERROR_SAFETY_FACTOR", 0.0)
        problem = bounded_by_single_precision()
        solution = BlockSolver(backend=backend).solve(problem)
        assert certify(problem, solution.dual).violation > 1e-2

    def test_counts_errors_by_the_distance_from_the_extremes(self, backend):
        problem = CONVEX["overlapping"]()
        dual = BlockSolver(stopping=StoppingRule(violation=1e-6)).solve(problem).dual
        state = get_backend(backend).open(problem, 2**20, 1)
        state.set_dual(dual)
        state.find_violation()
        exact = problem.gradient(dual)
        assert state.audit() <= 1e-5
        wrong = exact.copy()
        free = np.flatnonzero((problem.lower < dual) & (dual < problem.upper))[0]
        wrong[free] += 0.01
        state._set(dual, wrong)
        assert state.audit() == pytest.approx(0.02)
        state.refresh()
        np.testing.assert_allclose(state.gradient[free], exact[free], atol=1e-12)
        assert state.refreshed
