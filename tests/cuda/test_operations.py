"""Kernels of the solver on the card, compared with what they stand for."""

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.backends.array_operations import ArrayOperations, DeviceVariables
from maxmargin.backends.interface import RunningTotals
from maxmargin.cuda.device import cupy, is_available
from maxmargin.cuda.pair_steps import DeviceBox, has_clusters, pair_steps, step_report
from maxmargin.kernels import Gaussian
from maxmargin.training import fit_context
from reference.joint_steps import JointNumpySubproblem

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not is_available(), reason="needs an NVIDIA GPU and CuPy"),
]

PAUSED = 2


def problem(n, kinked, seed=0):
    """A dual problem of one group: matrix, linear term, bounds and kink."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5))
    matrix = Gaussian(0.2)(X, X)
    if kinked:
        return matrix, X[:, 0].copy(), -np.ones(n), np.ones(n), np.full(n, 0.1)
    labels = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0, 1.0, -1.0)
    return matrix, labels, np.minimum(0.0, labels), np.maximum(0.0, labels), None


def solve(of, clusters, steps_per_launch):
    """Return gradient and dual vector after pair steps to the tolerance, and their number."""
    xp = cupy()
    matrix, linear, lower, upper, kink = of
    gradient, dual, start = xp.asarray(linear.copy()), xp.zeros(len(linear)), xp.zeros(len(linear))
    box = DeviceBox(
        xp.asarray(lower), xp.asarray(upper), None if kink is None else xp.asarray(kink),
        xp.zeros(len(linear), dtype=xp.int8), xp.zeros(len(linear)), xp.ones(len(linear)),
    )  # fmt: skip
    values, report = xp.asarray(matrix.astype(np.float32)), step_report()
    middles, members, reason, total = (0.0,), None, PAUSED, 0
    while reason == PAUSED:
        result = pair_steps(
            values,
            (gradient, dual, start),
            box,
            middles,
            members,
            False,
            False,
            1e-3,
            steps_per_launch,
            report,
            clusters,
        )
        middles, members, reason, total = result.middles, result.members, result.reason, total + result.steps
    assert result.violation <= 1e-3
    assert result.changed == int((dual != 0).sum())
    return gradient.get(), dual.get(), total


def twin_value(of):
    """Return the dual objective that joint steps in NumPy reach."""
    matrix, linear, lower, upper, kink = of
    variables = SimpleNamespace(
        dual=np.zeros(len(linear)), gradient=linear, lower=lower, upper=upper, curvature=np.ones(len(linear)),
        ridge=np.zeros(len(linear)), kink=np.zeros(len(linear)) if kink is None else kink,
        group=np.zeros(len(linear), dtype=np.int32), groups=1, bounded=True, totals=RunningTotals(), threads=1,
    )  # fmt: skip
    twin = JointNumpySubproblem(variables, np.arange(len(linear)), matrix.astype(np.float32))
    twin.pair_steps(1e-3, 10**6, np.inf)
    assert twin.violation <= 1e-3
    return twin.totals.dual_value


@pytest.mark.parametrize("kinked", [False, True])
@pytest.mark.parametrize("n", [1100, 3000])
def test_pair_steps_of_clusters_and_of_one_block(n, kinked):
    of = problem(n, kinked)
    matrix, linear, lower, upper, kink = of
    values = [twin_value(of)]
    for clusters in [False, True] if has_clusters(0) else [False]:
        gradient, dual, _ = solve(of, clusters, 10**6)
        assert (lower <= dual).all()
        assert (dual <= upper).all()
        assert abs(dual.sum()) <= 1e-10
        exact = linear - matrix.astype(np.float32).astype(np.float64) @ dual
        np.testing.assert_allclose(gradient, exact, atol=1e-10)
        values.append(0.5 * dual @ (linear + exact) - (0.0 if kink is None else kink @ np.abs(dual)))
    assert max(values) - min(values) <= 1e-3 * np.abs(dual).sum()


@pytest.mark.parametrize("n", [300, 2500])
def test_launches_continue_bit_for_bit(n):
    of = problem(n, kinked=True)
    whole, parts = solve(of, None, 10**6), solve(of, None, 37)
    assert whole[2] == parts[2]
    for one, other in zip(whole[:2], parts[:2], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kinked", [False, True])
@pytest.mark.parametrize("groups", [0, 1, 2])
def test_operations_over_all_variables(groups, kinked):
    from maxmargin.backends.cuda_operations import CudaOperations

    xp, n, random = cupy(), 5000, np.random.default_rng(1)
    lower, upper = -random.random(n), random.random(n)
    dual = random.choice([0.0, 1.0, 2.0], size=n, p=[0.3, 0.4, 0.3])
    dual = np.where(dual == 0, lower, np.where(dual == 1, random.uniform(lower, upper), upper))
    if kinked:
        dual[::7] = 0.0
    variables = DeviceVariables(
        *(xp.asarray(array) for array in (random.normal(size=n), lower, upper, random.random(n), np.ones(n))),
        xp.asarray(random.integers(-1, groups, size=n).astype(np.int8)),
        xp.asarray(random.random(n)) if kinked else None,
    )
    point = xp.asarray(dual), xp.asarray(random.normal(size=n))
    compiled, plain = CudaOperations(groups, n), ArrayOperations(xp, groups)
    found, expected = (operations.find_violations(variables, *point) for operations in (compiled, plain))
    assert found.largest == expected.largest
    assert found.free == expected.free
    assert found.middles == pytest.approx(expected.middles, rel=1e-15)
    chosen = compiled.select(found, 512).get()
    assert len(chosen) == 512
    assert (np.diff(chosen) > 0).all()
    sample = compiled.sample(variables, *point, 64, 100)
    up, down = plain.slopes(variables, *point)
    highest, lowest = plain.extremes(variables, up, down)
    group = variables.group
    nearest = xp.minimum(xp.maximum(0, highest[group] - up), xp.maximum(0, down - lowest[group])).get()
    found_nearest = np.sort(nearest[np.unique(sample.get())])
    np.testing.assert_allclose(found_nearest[:32], np.sort(nearest)[:32], rtol=0.02, atol=1e-12)
    product = xp.asarray(random.normal(size=len(sample)))
    errors = [operations.errors(variables, point, sample, product, 0.5) for operations in (compiled, plain)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-12)


def test_pairs_of_classes_side_by_side(monkeypatch):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(3000, 4)), random.integers(0, 6, size=3000)
    models = []
    for count in (1, 8):
        monkeypatch.setattr(fit_context, "PROBLEMS_ON_DEVICE", count)
        models.append(SVC(device="cuda", n_jobs=4).fit(X, y))
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)
