"""Operations of the native backend."""

import numpy as np
import pytest

from maxmargin import _native
from maxmargin.backends.interface import StopReason
from maxmargin.backends.native_backend import NativeState
from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from reference import fused_pairwise as reference


def posed(n, cost=1.0, fit_intercept=True):
    random = np.random.default_rng(0)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = random.normal(size=(n, 6)) * 1.5 + 0.5 * signs[:, None]
    matrix = KernelMatrix(Gaussian(0.1), Points(X))
    return c_classification.pose(matrix, signs, np.full(n, float(cost)), fit_intercept)


def runs(*lengths):
    """Return groups 0 and 1 in turn, in runs of these lengths."""
    return np.repeat(np.arange(len(lengths)) % 2, lengths).astype(np.int32)


@pytest.mark.parametrize("kink", [0.0, 0.2])
@pytest.mark.parametrize(
    "group", [runs(2), runs(5), runs(40), runs(130), runs(3, 2), runs(61, 69), runs(17, 40, 30, 43)], ids=str
)
def test_steps_on_single_precision_rows_are_those_of_the_twin(group, kink):
    n, groups = len(group), int(group.max()) + 1
    problem = posed(n, cost=3.0)
    lower, upper = np.full(n, -3.0 if kink else 0.0), np.full(n, 3.0)
    matrix = problem.matrix.block(np.arange(n), np.arange(n)).astype(np.float32)
    ridge, odd = np.full(n, 0.01), np.arange(n) % 2 == 1
    start = np.where(np.arange(n) % 3, 0.0, np.where(odd & (kink > 0), -1.5, 1.5))
    expected, dual = reference.steps(matrix, problem.linear, lower, upper, ridge, 1e-3, 60, group, kink, start)
    assert len(expected) >= 1
    mine, path = start.copy(), []
    gradient = problem.linear - matrix.astype(float) @ start - ridge * start
    for _ in range(len(expected)):
        before = mine.copy()
        _native.pairwise_steps(
            _native.BoxProblem(
                lower=lower, upper=upper, ridge=ridge, group=group, groups=groups, kink=np.full(n, kink)
            ),
            _native.PairwiseState(
                dual=mine, gradient=gradient, diagonal=matrix.diagonal().astype(float) + ridge, active=n
            ),
            _native.CachedRows(
                storage=matrix, slot=np.arange(n), valid=np.full(n, n), last_use=np.zeros(n, np.int64), clock=0
            ),
            _native.PairSelection(rule=1, memory=np.full(4, -1), violation=np.inf),
            _native.StepLimits(tolerance=1e-3, max_steps=1, max_seconds=10.0),
        )
        path.append((int(np.argmax(mine - before)), int(np.argmin(mine - before))))
    assert path == expected
    np.testing.assert_allclose(mine, dual, atol=1e-12)


@pytest.mark.parametrize("group", [runs(9000), runs(2500, 6500), runs(2000, 3000, 3000, 1000)], ids=len)
def test_steps_on_long_rows_do_not_depend_on_the_number_of_threads(group):
    """Rows of several chunks, equal gradients on either side of their edges, and only some variables that can move."""
    n, movable, groups = len(group), 240, int(group.max()) + 1
    random = np.random.default_rng(0)
    positions = np.sort(np.concatenate([random.choice(n, movable - 8, replace=False), np.arange(2044, 2052)]))
    positions = np.unique(positions)
    X = random.normal(size=(n, 3))
    X[2044:2052] = X[2044]
    distances = ((X[positions, None] - X) ** 2).sum(axis=-1)
    rows, slot, bound = np.exp(-0.5 * distances).astype(np.float32), np.full(n, -1), np.zeros(n)
    slot[positions], bound[positions] = np.arange(len(positions)), 5.0
    results = []
    for threads in (1, 2, 3, 8):
        dual, gradient = np.zeros(n), np.sign(np.sin(5.0 * X[:, 0]))
        steps = []
        for max_steps in (30, 100, 10**6):
            result = _native.pairwise_steps(
                _native.BoxProblem(lower=-bound, upper=bound, ridge=np.zeros(n), group=group, groups=groups),
                _native.PairwiseState(dual=dual, gradient=gradient, diagonal=np.ones(n), active=n),
                _native.CachedRows(
                    storage=rows,
                    slot=slot,
                    valid=np.full(len(rows), n),
                    last_use=np.zeros(len(rows), np.int64),
                    clock=0,
                ),
                _native.PairSelection(rule=1, memory=np.full(4, -1), violation=np.inf),
                _native.StepLimits(tolerance=1e-3, max_steps=max_steps, max_seconds=100.0, threads=threads),
            )
            steps.append((result.steps, result.violation, result.gain))
        assert result.reason == StopReason.OPTIMAL
        results.append((steps, dual.tobytes(), gradient.tobytes()))
    assert results[0][0][-1][0] > 100
    assert all(result == results[0] for result in results)


def test_closing_subproblems_updates_gradient_and_dual_value():
    problem = posed(200, cost=3.0)
    state = NativeState(problem, 10**8, 1)
    state.set_dual(np.zeros(200))
    outer = state.open_subproblem(np.arange(0, 200, 3))
    part = outer.restricted(np.arange(10, 50))
    state.open_subproblems.append(part)
    part.pair_steps(1e-3, 10**6, 10.0)
    state.close(part)
    state.close(outer)
    assert np.count_nonzero(state.dual) > 10
    np.testing.assert_allclose(state.gradient, problem.gradient(state.dual), atol=1e-5)
    np.testing.assert_allclose(outer.gradient, state.gradient[outer.variables], atol=1e-6)
    value = 0.5 * state.dual @ (problem.linear + state.gradient)
    assert state.dual_value == pytest.approx(value, rel=1e-6)


def test_variables_in_no_group_violate_by_their_own_gradient():
    """Not by the difference of two of them, which no step can act on: rounds without steps would never end."""
    problem = posed(400, fit_intercept=False)
    state = NativeState(problem, 2**20, 1)
    state.set_dual(0.3 * problem.linear)
    up, down = state.kkt_violations()
    assert max(up.max(), down.max()) == pytest.approx(certify(problem, state.dual).violation, abs=1e-5)
