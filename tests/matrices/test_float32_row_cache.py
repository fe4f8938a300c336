"""Float32 rows of a matrix within a byte budget."""

import numpy as np
import pytest

from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import Float32RowCache, KernelMatrix
from maxmargin.matrices.float32_row_cache import REQUESTS_UNTIL_STALE


def gaussian_matrix(n, d=6):
    return KernelMatrix(Gaussian(0.1), Points(np.random.default_rng(0).normal(size=(n, d)) * 1.5))


def test_rows_and_square_blocks():
    matrix = gaussian_matrix(300)
    store = Float32RowCache(matrix, 10**8, 1)
    everything = matrix.block(np.arange(300), np.arange(300))
    store.hold(np.array([5, 9, 7]))
    np.testing.assert_allclose(store.storage[store.slot[[5, 9, 7]]], everything[[5, 9, 7]], atol=1e-6)
    order = store.cached_last(np.array([0, 9, 1, 5]))
    np.testing.assert_array_equal(order, [0, 1, 9, 5])
    square = np.empty((4, 4), dtype=np.float32)
    store.square(order, square)
    np.testing.assert_allclose(square, everything[np.ix_(order, order)], atol=1e-6)
    assert store.evaluations == 3 * 300 + 2 * 2


@pytest.mark.parametrize("rows_that_fit", [0, 3, 300])
def test_combinations_with_any_capacity(rows_that_fit):
    matrix = gaussian_matrix(300, d=200)
    store = Float32RowCache(matrix, rows_that_fit * 300 * 4, 1)
    assert store.capacity == rows_that_fit
    weights = np.linspace(-1.0, 1.0, 40)
    expected = matrix.block(np.arange(300), np.arange(40)) @ weights
    for _ in range(2):
        np.testing.assert_allclose(store.combine(np.arange(40), weights), expected, atol=1e-5)
    assert store.hits == min(40, rows_that_fit)


def test_cheap_rows_are_recomputed():
    matrix = gaussian_matrix(300, d=3)
    store = Float32RowCache(matrix, 10**8, 1)
    for _ in range(2):
        store.combine(np.arange(40), np.ones(40))
    assert store.evaluations == 2 * 40 * 300


def test_stale_rows_are_replaced_and_used_ones_kept():
    matrix = gaussian_matrix(50)
    store = Float32RowCache(matrix, 3 * 50 * 4, 1)
    store.hold(np.array([1, 2, 3]))
    store.hold(np.array([4]))
    assert store.slot[4] == -1
    for _ in range(REQUESTS_UNTIL_STALE):
        store.hold(np.array([1, 2]))
    store.hold(np.array([4]))
    assert (store.slot[[1, 2, 4]] >= 0).all()
    assert store.slot[3] == -1
