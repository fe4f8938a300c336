"""The compiled sums of a pass compared with NumPy, on dense and compressed rows, in parts and by kinds."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import _native
from maxmargin.formulations import c_classification, epsilon_regression, squared_epsilon_regression, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices.features import Features
from maxmargin.solvers.linear.pass_sums import PassPoint, evaluate_block
from reference.pass_sums import pass_sums

RANDOM = np.random.default_rng(0)
ROWS = 3000  # enough for two threads
SIGNS = np.where(RANDOM.random(ROWS) > 0.4, 1.0, -1.0)
TARGETS, COSTS = RANDOM.normal(size=ROWS), RANDOM.uniform(0.1, 2.0, ROWS)
POSES = {
    "squared hinge": lambda m: squared_hinge.pose(m, SIGNS, COSTS),
    "hinge": lambda m: c_classification.pose(m, SIGNS, COSTS),
    "regression": lambda m: epsilon_regression.pose(m, TARGETS, COSTS, 0.3),
    "squared regression": lambda m: squared_epsilon_regression.pose(m, TARGETS, COSTS, 0.3),
}


def found(problem, rows, weights, sigma, centre, slack_error=0.01):
    response, free, dual_weights = np.empty(rows.size), np.empty(rows.size, bool), np.empty((2, rows.dimension))
    arrays = _native.PassArrays(
        linear=problem.linear, lower=problem.lower, upper=problem.upper, ridge=problem.ridge, kink=problem.kinks,
        centre=centre, response=response, free=free,
    )  # fmt: skip
    sums = _native.pass_sums(
        rows.native, arrays, weights, rows.constant, 0.3, sigma, slack_error, dual_weights, rows.threads
    )
    return sums, response, free, dual_weights


def data_of(kind, width):
    X = RANDOM.normal(size=(ROWS, width)) * (RANDOM.random((ROWS, width)) > 0.3)
    types = {"single": X.astype(np.float32), "double": X, "csr": sparse.csr_array(X)}
    return types[kind]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sigma", [0.0, 0.7])
@pytest.mark.parametrize("width", [1, 7, 8, 37])
@pytest.mark.parametrize("kind", ["single", "double", "csr"])
@pytest.mark.parametrize("name", POSES)
def test_the_sums_are_those_of_the_reference(name, kind, width, sigma, threads):
    data = data_of(kind, width)
    rows = Features(Points.wrap(data), 1.5, threads)
    problem = POSES[name](KernelMatrix(Linear(), rows.points))
    weights, centre = RANDOM.normal(size=width + 1), RANDOM.normal(size=ROWS).astype(np.float32)
    expected, responses, free = pass_sums(problem, rows, weights, 0.3, sigma, centre, 0.01)
    sums, response, is_free, dual_weights = found(problem, rows, weights, sigma, centre)
    np.testing.assert_allclose(response, responses, rtol=1e-9, atol=1e-12)
    assert (is_free == free).mean() > 0.999  # rounding decides at a bound
    assert sums.free == is_free.sum()
    for field in ("loss", "slack_square", "size", "linear", "ridge", "total"):
        np.testing.assert_allclose(getattr(sums, field), expected[field], rtol=1e-9, err_msg=field)
    np.testing.assert_allclose(dual_weights, expected["weights"], rtol=1e-9, atol=1e-9)


def test_some_rows_in_any_order():
    data, index = data_of("single", 37), RANDOM.permutation(ROWS)
    rows = Features(Points.wrap(data), 0.0, 2)
    problem = POSES["hinge"](KernelMatrix(Linear(), rows.points))
    weights, centre = RANDOM.normal(size=38), np.zeros(ROWS, np.float32)
    taken = rows.take(index)
    copied = Features(Points.wrap(data[index]), 0.0, 2)
    for left, right in zip(
        found(problem, taken, weights, 0.7, centre)[1:], found(problem, copied, weights, 0.7, centre)[1:], strict=True
    ):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("sigma", [0.0, 0.7])
def test_one_sample_of_each_kind_stands_for_all(sigma):
    data = data_of("single", 7)
    rows = Features(Points.wrap(data), 0.0, 2)
    matrix = KernelMatrix(Linear(), rows.points)
    kinds = (SIGNS > 0).astype(np.int32)
    whole = c_classification.pose(matrix, SIGNS, np.full(ROWS, 2.0))
    two = c_classification.pose(
        KernelMatrix(Linear(), rows.points.take([0, 0])), np.array([-1.0, 1.0]), np.full(2, 2.0)
    )
    point = PassPoint(RANDOM.normal(size=8), np.array([0.3]), sigma)
    each, responses = evaluate_block(whole, rows, point, 10.0, None)
    short, response = evaluate_block(two, rows, point, 10.0, None, kinds=kinds)
    np.testing.assert_array_equal(response, responses)
    assert short.loss == each.loss
    np.testing.assert_array_equal(short.weights, each.weights)
    np.testing.assert_array_equal(short.moments.squares, each.moments.squares)


@pytest.mark.parametrize("kind", [-1, 2])
def test_kinds_out_of_range_are_refused(kind):
    rows = Features(Points.wrap(data_of("single", 7)))
    two = c_classification.pose(KernelMatrix(Linear(), rows.points.take([0, 0])), np.array([-1.0, 1.0]), np.ones(2))
    kinds = np.zeros(ROWS, np.int32)
    kinds[17] = kind
    with pytest.raises(ValueError, match="a kind is out of range"):
        evaluate_block(two, rows, PassPoint(np.ones(8), np.zeros(1)), 10.0, None, kinds=kinds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 70_000])
def test_finite_values(dtype, size):
    values = np.full(size, np.finfo(dtype).max, dtype)
    assert _native.all_finite(values, 2)
    for bad in (np.nan, np.inf, -np.inf):
        for at in {0, size // 2, size - 1} if size else ():
            broken = values.copy()
            broken[at] = bad
            assert not _native.all_finite(broken, 2)
